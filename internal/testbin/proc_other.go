//go:build !linux

package testbin

import (
	"os/exec"
	"testing"
)

func start(c *exec.Cmd) error { return c.Start() }

// RSS skips the test: only Linux says how much memory a process has.
func (p *Proc) RSS(tb testing.TB) (now, peak int64) {
	tb.Skip("the memory of a process is read from /proc")
	return 0, 0
}

// TryRSS tells nothing.
func (p *Proc) TryRSS() (now, peak int64, ok bool) { return 0, 0, false }
