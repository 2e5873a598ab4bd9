//go:build linux

package emunet

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"sync"
	"syscall"
)

// Cmd is an exec.Cmd that runs in a host. Fields and methods mean what they
// mean there; the process is killed when the Network is closed or its owner
// dies. Wait may be called more than once.
type Cmd struct {
	*exec.Cmd
	host *Host

	wait    sync.Once
	waitErr error
}

// Command returns a command to run in the host.
func (h *Host) Command(name string, args ...string) *Cmd {
	return h.CommandContext(context.Background(), name, args...)
}

// CommandContext is Command, with the process killed when ctx ends.
func (h *Host) CommandContext(ctx context.Context, name string, args ...string) *Cmd {
	c := &Cmd{Cmd: exec.CommandContext(ctx, name, args...), host: h}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// Start is exec.Cmd's, in the host.
func (c *Cmd) Start() error {
	return c.host.onHostThread(func() error {
		if err := c.Cmd.Start(); err != nil {
			return err
		}
		c.host.mu.Lock()
		c.host.cmds = append(c.host.cmds, c)
		c.host.mu.Unlock()
		return nil
	})
}

// Wait is exec.Cmd's; every call returns the same.
func (c *Cmd) Wait() error {
	if c.Process == nil {
		return errors.New("emunet: not started")
	}
	c.wait.Do(func() {
		c.waitErr = c.Cmd.Wait()
		c.host.mu.Lock()
		c.host.cmds = slices.DeleteFunc(c.host.cmds, func(o *Cmd) bool { return o == c })
		c.host.mu.Unlock()
	})
	return c.waitErr
}

// Run is exec.Cmd's, in the host.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output is exec.Cmd's, in the host. Standard error goes where Stderr says.
func (c *Cmd) Output() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout = &out
	err := c.Run()
	return out.Bytes(), err
}

// CombinedOutput is exec.Cmd's, in the host.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.Bytes(), err
}
