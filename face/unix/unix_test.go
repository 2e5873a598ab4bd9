//go:build unix

package unix_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
	"ndnpop/face/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func path(l face.Listener) string { return strings.TrimPrefix(l.URI(), "unix://") }

func testCase() facetest.Case {
	listen := func(t testing.TB) *unix.Listener {
		l, err := unix.Listen(filepath.Join(t.TempDir(), "s"), unix.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	return facetest.Case{
		Listen: func(t testing.TB) (face.Listener, func() (face.Server, error)) {
			l := listen(t)
			return l, func() (face.Server, error) { return unix.Dial(path(l), unix.Options{}) }
		},
		Raw: func(t *testing.T, l face.Listener) net.Conn {
			c, err := net.Dial("unix", path(l))
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Refused: func(t *testing.T) (face.Server, error) {
			stale := filepath.Join(t.TempDir(), "s")
			makeStale(t, stale)
			return unix.Dial(stale, unix.Options{})
		},
		Bounded: true,
	}
}

func TestConformance(t *testing.T) { facetest.Run(t, testCase()) }

// makeStale leaves the socket file of a process that died.
func makeStale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

func TestStaleSocketIsReplaced(t *testing.T) {
	p := filepath.Join(t.TempDir(), "s")
	makeStale(t, p)
	l, err := unix.Listen(p, unix.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket file is still there: %v", err)
	}
}

func TestLiveSocketIsRefused(t *testing.T) {
	p := filepath.Join(t.TempDir(), "new", "dir", "s")
	l, err := unix.Listen(p, unix.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = unix.Listen(p, unix.Options{})
	var live *unix.LiveError
	if !errors.As(err, &live) || !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("error %v", err)
	}
	if live.PID != 0 && live.PID != os.Getpid() {
		t.Errorf("owner %d", live.PID)
	}
	if live.PID != 0 && !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) || !strings.Contains(err.Error(), p) {
		t.Errorf("error does not say who or where: %v", err)
	}
	c, err := unix.Dial(p, unix.Options{})
	if err != nil {
		t.Fatalf("the first listener suffered: %v", err)
	}
	c.Close()
}

func TestOtherFileIsLeftAlone(t *testing.T) {
	p := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(p, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Listen(p, unix.Options{}); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("error %v", err)
	}
	if b, _ := os.ReadFile(p); string(b) != "precious" {
		t.Error("the file was changed")
	}
}

func TestSuccessorsSocketStays(t *testing.T) {
	p := filepath.Join(t.TempDir(), "s")
	a, err := unix.Listen(p, unix.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Somebody removes the file, and another forwarder starts.
	if err := os.Remove(p); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Listen(p, unix.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	if _, err := os.Lstat(p); err != nil {
		t.Errorf("the successor's socket file is gone: %v", err)
	}
	b.Close()
}

func TestMode(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	for _, want := range []fs.FileMode{0, 0o600, 0o660} {
		p := filepath.Join(t.TempDir(), "s")
		l, err := unix.Listen(p, unix.Options{Mode: want})
		if err != nil {
			t.Fatal(err)
		}
		fi, err := os.Lstat(p)
		l.Close()
		if want == 0 {
			want = 0o666
		}
		if err != nil || fi.Mode().Perm() != want {
			t.Errorf("mode %v instead of %v (%v)", fi.Mode().Perm(), want, err)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	p := filepath.Join(t.TempDir(), "s")
	if _, err := unix.Dial(p, unix.Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), p) {
		t.Errorf("error %v", err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	var err error
	asNobody(t, func() { _, err = unix.Listen(filepath.Join(dir, "sub", "s"), unix.Options{}) })
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "choose another path") || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v", err)
	}
}

func TestInfo(t *testing.T) {
	c := testCase()
	n := c.Open(t)
	d, a := n.Pair()
	if i := d.Info(); i.Scope != face.ScopeLocal || i.RemoteURI != n.L.URI() || !strings.HasPrefix(i.LocalURI, "fd://") {
		t.Errorf("%+v", i)
	}
	if i := a.Info(); i.Scope != face.ScopeLocal || i.LocalURI != n.L.URI() || !strings.HasPrefix(i.RemoteURI, "fd://") {
		t.Errorf("%+v", i)
	}
}

func BenchmarkFrame(b *testing.B) { facetest.Benchmark(b, testCase(), 8800) }

// Of forwarders that start at the same time on a stale socket one gets it.
func TestOneOfManyGetsTheSocket(t *testing.T) {
	p := filepath.Join(t.TempDir(), "s")
	makeStale(t, p)
	type result struct {
		l   *unix.Listener
		err error
	}
	results := make(chan result)
	const n = 8
	for range n {
		go func() {
			l, err := unix.Listen(p, unix.Options{})
			results <- result{l, err}
		}()
	}
	won := 0
	for range n {
		r := <-results
		var live *unix.LiveError
		switch {
		case r.err == nil:
			won++
			defer r.l.Close()
		case !errors.As(r.err, &live):
			t.Error(r.err)
		}
	}
	if won != 1 {
		t.Errorf("%d listeners", won)
	}
}
