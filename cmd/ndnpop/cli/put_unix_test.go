//go:build unix

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPutPipe serves what comes through a named pipe, and stops as a signal
// says although nobody has opened it for writing.
func TestPutPipe(t *testing.T) {
	transport := forwarder(t)
	path, idle := filepath.Join(t.TempDir(), "pipe"), filepath.Join(t.TempDir(), "idle")
	for _, p := range []string{path, idle} {
		if err := syscall.Mkfifo(p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	terminated := errors.New("terminated signal received")
	j := begin(t, nil, "put", "/cdn/idle", idle, transport)
	j.says(&j.err, "publishing "+idle)
	if code := j.end(terminated); code != exitDone {
		t.Errorf("a termination ends put with %d", code)
	}
	// What still waits to open it ends.
	if w, err := os.OpenFile(idle, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		w.Close()
	}

	j = begin(t, nil, "put", "/cdn/pipe", path, transport)
	j.says(&j.err, "publishing "+path)
	if err := os.WriteFile(path, []byte("content"), 0); err != nil {
		t.Fatal(err)
	}
	if got, code := fetch(t, "/cdn/pipe", transport); got != "content" || code != exitDone {
		t.Errorf("fetched %q, code %d", got, code)
	}
	if code := j.end(terminated); code != exitDone {
		t.Errorf("a termination ends put with %d", code)
	}
}
