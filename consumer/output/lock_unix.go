//go:build unix

package output

import (
	"os"
	"syscall"
)

// lock keeps other fetches off the part file while this process has it open.
func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
