//go:build unix

package cli

import "syscall"

// ownGroup keeps a terminal's ^C from a child, which whoever started it stops.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
