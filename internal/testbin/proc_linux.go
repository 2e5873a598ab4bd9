package testbin

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// starter takes functions to a thread that lives as long as the test binary.
var starter = sync.OnceValue(func() chan<- func() {
	todo := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range todo {
			f()
		}
	}()
	return todo
})

// start starts a process that the kernel kills when the test binary dies, so that
// a test that panics or runs out of time leaves nothing behind. What counts is the
// thread that started it (prctl(2), PR_SET_PDEATHSIG), and threads end before
// their process where a goroutine ends that has one for itself.
func start(c *exec.Cmd) error {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	starter() <- func() { started <- c.Start() }
	return <-started
}

// RSS returns the resident memory of the process and its peak so far, in
// bytes.
func (p *Proc) RSS(tb testing.TB) (now, peak int64) {
	tb.Helper()
	now, peak, ok := p.TryRSS()
	if !ok {
		tb.Fatalf("%s: /proc does not tell its memory", p.name)
	}
	return now, peak
}

// TryRSS is RSS for a process that may end meanwhile; ok is false when it has.
func (p *Proc) TryRSS() (now, peak int64, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return 0, 0, false
	}
	field := func(name string) int64 {
		_, rest, found := bytes.Cut(b, []byte("\n"+name+":"))
		words := bytes.Fields(rest)
		if !found || len(words) == 0 {
			return -1
		}
		kb, err := strconv.ParseInt(string(words[0]), 10, 64)
		if err != nil {
			return -1
		}
		return kb << 10
	}
	now, peak = field("VmRSS"), field("VmHWM")
	return now, peak, now >= 0 && peak >= 0
}
