//go:build unix

package output

import (
	"os"
	"syscall"
)

// Lock keeps other fetches off a file while this process has it open.
func Lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
