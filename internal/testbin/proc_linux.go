package testbin

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

// tieToParent has the kernel kill the process when the test binary dies, so
// that a test that panics or runs out of time leaves nothing behind.
func tieToParent(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// RSS returns the resident memory of the process and its peak so far, in
// bytes.
func (p *Proc) RSS(tb testing.TB) (now, peak int64) {
	tb.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		tb.Fatal(err)
	}
	field := func(name string) int64 {
		_, rest, ok := bytes.Cut(b, []byte("\n"+name+":"))
		words := bytes.Fields(rest)
		if !ok || len(words) == 0 {
			tb.Fatalf("%s: /proc has no %s", p.name, name)
		}
		kb, err := strconv.ParseInt(string(words[0]), 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		return kb << 10
	}
	return field("VmRSS"), field("VmHWM")
}
