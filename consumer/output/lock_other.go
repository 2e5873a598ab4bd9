//go:build !unix

package output

import "os"

// Lock does nothing here: the system has no advisory locks in Go's syscall
// package.
func Lock(*os.File) error { return nil }
