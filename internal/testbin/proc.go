package testbin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Cmd says what to run.
type Cmd struct {
	Path  string
	Args  []string
	Env   []string  // added to the environment of the test
	Dir   string    // working directory; empty: a new one
	Stdin io.Reader // nil: none
	// Stdout takes the standard output instead of Proc.Stdout.
	Stdout io.Writer
}

// Proc is a running or finished process. A test that ends kills it, and shows
// its output if the test failed.
type Proc struct {
	Stdout, Stderr *Output

	name   string
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
}

// Start runs a command. The test fails if it cannot be started.
func Start(tb testing.TB, c Cmd) *Proc {
	tb.Helper()
	p := &Proc{
		Stdout: new(Output), Stderr: new(Output), exited: make(chan struct{}),
		name: filepath.Base(c.Path) + " " + strings.Join(c.Args, " "),
	}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Env = append(os.Environ(), c.Env...)
	if p.cmd.Dir = c.Dir; c.Dir == "" {
		p.cmd.Dir = tb.TempDir()
	}
	p.cmd.Stdin = c.Stdin
	p.cmd.Stdout, p.cmd.Stderr = p.Stdout, p.Stderr
	if c.Stdout != nil {
		p.cmd.Stdout = c.Stdout
	}
	// A pipe that a grandchild keeps open must not hold up the test.
	p.cmd.WaitDelay = 5 * time.Second
	if err := start(p.cmd); err != nil {
		tb.Fatalf("starting %s: %v", p.name, err)
	}
	go func() {
		p.cmd.Wait() // the state says how it ended
		close(p.exited)
	}()
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("%s: %v\nstdout: %s\nstderr: %s", p.name, p.cmd.ProcessState, tail(p.Stdout.Bytes()), tail(p.Stderr.Bytes()))
		}
	})
	return p
}

// tail cuts output to what a person reads, and leaves out binary data.
func tail(b []byte) string {
	const limit = 8 << 10
	if bytes.IndexByte(b, 0) >= 0 {
		return fmt.Sprintf("(%d bytes of binary data)", len(b))
	}
	if len(b) > limit {
		return fmt.Sprintf("(%d bytes) …%s", len(b), b[len(b)-limit:])
	}
	return string(b)
}

// Pid is the process id.
func (p *Proc) Pid() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Proc) Exited() <-chan struct{} { return p.exited }

// Running reports whether the process has not ended yet.
func (p *Proc) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Wait waits for the end of the process and returns its exit code, -1 when a
// signal ended it. The test fails when that takes longer than limit.
func (p *Proc) Wait(tb testing.TB, limit time.Duration) int {
	tb.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-timer.C:
		tb.Fatalf("%s: still running after %v", p.name, limit)
		return 0
	}
}

// Signal sends a signal to the process; one that has ended takes none.
func (p *Proc) Signal(tb testing.TB, s os.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tb.Fatalf("%s: signal %v: %v", p.name, s, err)
	}
}

// Stop asks the process to end (SIGTERM) and returns its exit code.
func (p *Proc) Stop(tb testing.TB, limit time.Duration) int {
	tb.Helper()
	p.Signal(tb, syscall.SIGTERM)
	return p.Wait(tb, limit)
}

// Kill ends the process at once and waits for it.
func (p *Proc) Kill() {
	if p.Running() {
		p.cmd.Process.Kill() // an error means that it has just ended
	}
	<-p.exited
}

// Run runs a command to its end and returns it with its exit code.
func Run(tb testing.TB, c Cmd, limit time.Duration) (*Proc, int) {
	tb.Helper()
	p := Start(tb, c)
	return p, p.Wait(tb, limit)
}

// Output collects what a process writes.
type Output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

// Bytes returns a copy of what has been written so far.
func (o *Output) Bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.b.Bytes())
}

// String returns what has been written so far.
func (o *Output) String() string { return string(o.Bytes()) }

// Contains reports whether s has been written.
func (o *Output) Contains(s string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Contains(o.b.Bytes(), []byte(s))
}

// Eventually polls cond until it is true. The test fails, naming what was
// waited for, when that takes longer than limit or when one of the processes
// ends before.
func Eventually(tb testing.TB, limit time.Duration, what string, cond func() bool, procs ...*Proc) {
	tb.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		for _, p := range procs {
			if !p.Running() {
				tb.Fatalf("waiting for %s: %s ended", what, p.name)
			}
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			tb.Fatalf("waited %v for %s", limit, what)
		}
	}
}
