package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ndnpop/strategy"
	"ndnpop/strategy/strategies"
)

// buffer is a bytes.Buffer for a writer and a reader at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// job is a command that runs in this process.
type job struct {
	t        *testing.T
	args     string
	out, err buffer
	stop     context.CancelCauseFunc
	done     chan struct{}
	code     int

	transport string // the flag to reach it, of a forwarder
}

// begin starts a command. What still runs at the end of the test is stopped.
func begin(t *testing.T, stdin io.Reader, args ...string) *job {
	t.Helper()
	set, err := strategy.NewSet(strategies.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	j := &job{t: t, args: strings.Join(args, " "), stop: cancel, done: make(chan struct{})}
	root := newRoot(&env{stdin: stdin, stdout: &j.out, stderr: &j.err, strategies: set})
	root.SetArgs(args)
	go func() {
		defer close(j.done)
		err := root.ExecuteContext(ctx)
		var coded *codedError
		switch {
		case err == nil:
		case errors.As(err, &coded):
			j.code = coded.code
		default:
			j.code = exitFailed
		}
		if err != nil {
			fmt.Fprintf(&j.err, "ndnpop: %v\n", err)
		}
	}()
	t.Cleanup(func() { j.end(errors.New("terminated signal received")) })
	return j
}

// end stops the command, if it still runs, and returns its exit code.
func (j *job) end(cause error) int {
	j.stop(cause)
	return j.wait()
}

func (j *job) wait() int {
	j.t.Helper()
	select {
	case <-j.done:
	case <-time.After(30 * time.Second):
		j.t.Fatalf("%s does not end; it said\n%s", j.args, j.err.String())
	}
	return j.code
}

// says waits until the command has written text to w.
func (j *job) says(w *buffer, text string) {
	j.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(w.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			j.t.Fatalf("%s does not say %q but\n%s", j.args, text, w.String())
		}
		select {
		case <-j.done:
			if !strings.Contains(w.String(), text) {
				j.t.Fatalf("%s ended with %d without %q; it said\n%s%s", j.args, j.code, text, j.out.String(), j.err.String())
			}
		default:
		}
	}
}

// forwarder starts "ndnpop run" on a socket of its own and returns the
// --transport to reach it.
func forwarder(t *testing.T) (transport string) {
	t.Helper()
	// Socket paths are short; t.TempDir is not always.
	dir, err := os.MkdirTemp("", "ndnpop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return forwarderAt(t, filepath.Join(dir, "nfd.sock")).transport
}

func forwarderAt(t *testing.T, socket string) *job {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.toml")
	config := fmt.Sprintf("[faces.udp]\nlisten = []\n[faces.tcp]\nlisten = []\n[faces.unix]\npath = %q\n[admin]\nlisten = \"\"\n[cs]\ncapacity = \"1MB\"\n", socket)
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	j := begin(t, nil, "run", "-c", file)
	j.says(&j.err, "ready")
	j.transport = "--transport=unix://" + socket
	return j
}
