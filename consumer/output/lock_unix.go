//go:build unix

package output

import (
	"errors"
	"os"
	"syscall"
)

// Lock keeps other fetches off a file while this process has it open.
func Lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// publish gives f its final name and closes it. The lock is held until the
// name is right, or another fetch could take the part file in between.
func publish(f *os.File, path string) error {
	return errors.Join(os.Rename(f.Name(), path), f.Close())
}
