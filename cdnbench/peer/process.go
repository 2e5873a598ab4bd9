package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a program that an experiment started.
type Process struct {
	cmd  *exec.Cmd
	name string
	log  string
	done chan struct{}
	err  error
}

// Start starts a program. Its standard error goes to dir/name.log.
func Start(dir, name string, env []string, stdin io.Reader, stdout io.Writer, argv ...string) (*Process, error) {
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdin, c.Stdout, c.Env = stdin, stdout, append(os.Environ(), env...)
	return StartCommand(dir, name, c, c)
}

// Runner starts and awaits a program that has been set up: an exec.Cmd itself,
// or what wraps one to run it in another place, such as emunet.Cmd.
type Runner interface {
	Start() error
	Wait() error
}

// StartCommand starts c, whose runner is r, in dir. Its standard error goes to
// dir/name.log, and so does its standard output if it has none of its own.
func StartCommand(dir, name string, c *exec.Cmd, r Runner) (*Process, error) {
	p := &Process{cmd: c, name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	c.Dir, c.Stderr = dir, log
	if c.Stdout == nil {
		c.Stdout = log
	}
	if err := r.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = r.Wait()
		close(p.done)
	}()
	return p, nil
}

// Wait waits for the end of the program and returns an error with the end of
// its log unless it ended well.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Stop()
		return fmt.Errorf("%s: %w", p.name, ctx.Err())
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w: %s", p.name, p.err, p.lastLog())
	}
	return nil
}

func (p *Process) lastLog() string {
	b, _ := os.ReadFile(p.log)
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(lines[len(lines)-1])
}

// LogHas reports whether the program has written text.
func (p *Process) LogHas(text string) bool {
	b, _ := os.ReadFile(p.log)
	return bytes.Contains(b, []byte(text))
}

// Ended reports whether the program has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Stop ends the program and waits for it.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Usage is what a process has consumed.
type Usage struct {
	CPU     time.Duration // user and system
	PeakRSS int64         // bytes
}

// Final is the usage of a process that has ended.
func (p *Process) Final() (Usage, error) {
	if !p.Ended() {
		return Usage{}, errors.New("peer: the process still runs")
	}
	st := p.cmd.ProcessState
	return Usage{CPU: st.UserTime() + st.SystemTime(), PeakRSS: peakRSS(st)}, nil
}

// Usage is the usage so far of a running process: the time on a processor of
// its threads from schedstat, which counts nanoseconds.
func (p *Process) Usage() (Usage, error) {
	dir := fmt.Sprintf("/proc/%d", p.cmd.Process.Pid)
	var u Usage
	tasks, err := os.ReadDir(dir + "/task")
	if err != nil {
		return u, err
	}
	for _, t := range tasks {
		b, err := os.ReadFile(dir + "/task/" + t.Name() + "/schedstat")
		if err != nil {
			continue // a thread that has just ended
		}
		on, _, _ := strings.Cut(string(b), " ")
		ns, err := strconv.ParseInt(on, 10, 64)
		if err != nil {
			return u, fmt.Errorf("schedstat of %s: %w", p.name, err)
		}
		u.CPU += time.Duration(ns)
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			if err != nil {
				return u, fmt.Errorf("VmHWM of %s: %w", p.name, err)
			}
			u.PeakRSS = kb * 1024
		}
	}
	return u, nil
}

// Until polls cond until it holds, with a deadline.
func Until(ctx context.Context, limit time.Duration, what string, cond func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}
