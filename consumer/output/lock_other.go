//go:build !unix

package output

import "os"

// lock does nothing here: the system has no advisory locks in Go's syscall
// package.
func lock(*os.File) error { return nil }
