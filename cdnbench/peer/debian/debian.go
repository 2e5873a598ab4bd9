//go:build linux

package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// ErrMissing is wrapped by errors about programs that are absent and could not
// be installed.
var ErrMissing = errors.New("a program is missing")

// File is what an experiment needs of a package: a program or a module.
type File struct {
	Path    string   // absolute
	Package string   // the one to install
	Units   []string // names of the services that the package brings
}

// Ensure installs the packages of those files that are absent, and says on log
// what it does. It fails with ErrMissing, and what to do, where it may not or
// cannot install. It stops what the installation started all the same.
func Ensure(ctx context.Context, log io.Writer, files ...File) error {
	missing := absent(files)
	if len(missing) == 0 {
		return nil
	}
	if err := mayInstall(missing); err != nil {
		return err
	}
	release, err := lock()
	if err != nil {
		return err
	}
	defer release()
	if missing = absent(files); len(missing) == 0 { // another one did it
		return nil
	}
	names := packages(missing)
	fmt.Fprintf(log, "installing %s with apt-get\n", strings.Join(names, ", "))
	restore, err := denyServices(policyFile)
	if err != nil {
		return err
	}
	before, err := processes()
	if err != nil {
		return errors.Join(err, restore())
	}
	err = install(ctx, names)
	err = errors.Join(err, disable(missing), stopNew(before, names), restore())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if missing = absent(files); len(missing) > 0 {
		return fmt.Errorf("%w: package %s does not bring %s in this release", ErrMissing, missing[0].Package, missing[0].Path)
	}
	return nil
}

func absent(files []File) (missing []File) {
	for _, f := range files {
		if _, err := os.Stat(f.Path); err != nil {
			missing = append(missing, f)
		}
	}
	return missing
}

func packages(files []File) (names []string) {
	for _, f := range files {
		if !slices.Contains(names, f.Package) {
			names = append(names, f.Package)
		}
	}
	return names
}

// mayInstall says why nothing can be installed, and what the user can do.
func mayInstall(missing []File) error {
	names := strings.Join(packages(missing), " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("%w: there is no %s, and no apt-get to install it; install what Debian has in the package %s", ErrMissing, missing[0].Path, missing[0].Package)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: there is no %s; run as root, or install it first: sudo apt-get install --no-install-recommends %s", ErrMissing, missing[0].Path, names)
	}
	return nil
}

// install runs apt-get, after fetching the lists if it fails without.
func install(ctx context.Context, names []string) error {
	args := append([]string{"install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"}, names...)
	if _, err := apt(ctx, args...); err == nil {
		return nil
	}
	if out, err := apt(ctx, "update"); err != nil {
		return fmt.Errorf("apt-get update: %w: %s", err, tail(out))
	}
	if out, err := apt(ctx, args...); err != nil {
		return fmt.Errorf("apt-get install %s: %w: %s", strings.Join(names, " "), err, tail(out))
	}
	return nil
}

func apt(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "apt-get", args...)
	c.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	// It may not be killed in the middle of unpacking.
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	return c.CombinedOutput()
}

// tail is the end of a program's output, where its reason is.
func tail(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}
