//go:build unix

package daemon

import "syscall"

// openFiles is how many files the process may have open.
func openFiles() (uint64, bool) {
	var l syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return uint64(l.Cur), err == nil
}
