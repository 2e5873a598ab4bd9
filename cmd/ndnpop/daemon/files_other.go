//go:build !unix

package daemon

func openFiles() (uint64, bool) { return 0, false }
