// Package testbin runs real programs in tests: it builds ndnpop and ndnd once
// per test binary, starts them with their output captured, waits for what they
// should do with a deadline, and stops them by their process. It knows when a
// test may be skipped for want of something.
package testbin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// BuildFlagsEnv names the environment variable whose words are added to the
// build of ndnpop, for instance "-race".
const BuildFlagsEnv = "NDNPOP_TEST_BUILDFLAGS"

var (
	dirOnce    = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "ndnpop-test-") })
	ndnpopOnce = sync.OnceValues(func() (string, error) {
		args := append([]string{"build"}, strings.Fields(os.Getenv(BuildFlagsEnv))...)
		return build(".", "ndnpop", append(args, "-o"), "./cmd/ndnpop")
	})
	ndndOnce = sync.OnceValues(func() (string, error) {
		return build("internal/ndndtool", "ndnd", []string{"build", "-o"}, "github.com/named-data/ndnd/cmd/ndnd")
	})
)

// Main runs the tests of a package that uses testbin and removes what was
// built for them. It is the body of TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(testbin.Main(m)) }
func Main(m *testing.M) int {
	code := m.Run()
	if dir, err := dirOnce(); err == nil {
		os.RemoveAll(dir)
	}
	return code
}

// Ndnpop returns the path of this project's program, built from the sources
// around.
func Ndnpop(tb testing.TB) string { tb.Helper(); return built(tb, ndnpopOnce) }

// Ndnd returns the path of ndnd's program, in the version that
// internal/ndndtool pins.
func Ndnd(tb testing.TB) string { tb.Helper(); return built(tb, ndndOnce) }

func built(tb testing.TB, once func() (string, error)) string {
	tb.Helper()
	path, err := once()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Root is the directory of this module.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// build runs "go ARGS OUT PKG" in dir, a directory of this module.
func build(dir, name string, args []string, pkg string) (string, error) {
	tmp, err := dirOnce()
	if err != nil {
		return "", err
	}
	out := filepath.Join(tmp, name)
	if runtime.GOOS == "windows" {
		out += ".exe"
	}
	cmd := exec.Command("go", append(args, out, pkg)...)
	cmd.Dir = filepath.Join(Root(), filepath.FromSlash(dir))
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, b)
	}
	return out, nil
}
