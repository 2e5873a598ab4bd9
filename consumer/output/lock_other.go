//go:build !unix

package output

import "os"

// Lock does nothing here: the system has no advisory locks in Go's syscall
// package.
func Lock(*os.File) error { return nil }

// publish closes f, since not every system renames open files, and gives it
// its final name.
func publish(f *os.File, path string) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
