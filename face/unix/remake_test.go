//go:build unix

package unix

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
)

// served is a listener that looks at its socket file all the time, and what it
// says of it.
func served(t *testing.T, path string) (*Listener, chan error, chan face.Transport) {
	t.Helper()
	told, accepted := make(chan error, 16), make(chan face.Transport, 16)
	l, err := Listen(path, Options{Remade: func(_ bool, err error) { told <- err }})
	if err != nil {
		t.Fatal(err)
	}
	l.every = time.Millisecond
	done := make(chan error, 1)
	go func() {
		done <- l.Serve(func(tr face.Transport) (face.Receiver, error) {
			accepted <- tr
			return new(facetest.Sink), nil
		})
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, face.ErrClosed) {
			t.Error(err)
		}
	})
	return l, told, accepted
}

func next[T any](t *testing.T, c chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

func connect(t *testing.T, path string, accepted chan face.Transport) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	tr := next(t, accepted, "connection")
	t.Cleanup(func() { _ = c.Close(); _ = tr.Close() })
	return c
}

// TestRemovedSocketIsMadeAgain, with its directory too, as often as it is removed;
// who is connected stays so.
func TestRemovedSocketIsMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	path := filepath.Join(dir, "s")
	l, told, accepted := served(t, path)
	if err := os.Chmod(dir, 0o710); err != nil {
		t.Fatal(err)
	}
	facetest.Eventually(t, "the listener to see its mode", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.dir.Mode().Perm() == 0o710
	})
	first := connect(t, path, accepted)
	for range 3 {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := next(t, told, "word of a new socket"); err != nil {
			t.Fatal(err)
		}
		connect(t, path, accepted)
		if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o710 {
			t.Errorf("its directory: %v, %v", fi.Mode(), err)
		}
	}
	if err := first.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("who was connected before: %v", err)
	}
}

// TestSocketIsLeftToSuccessor while that lives, which is said once; afterwards it
// is made again.
func TestSocketIsLeftToSuccessor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	_, told, accepted := served(t, path)
	// Somebody puts another forwarder's socket in its place.
	other := filepath.Join(filepath.Dir(path), "other")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: other, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if err := next(t, told, "word of the other"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatal(err)
	}
	// Attempts are seen at the other.
	for range 3 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	if len(told) > 0 {
		t.Errorf("told again: %v", <-told)
	}
	_ = l.Close()
	if err := next(t, told, "word of a new socket"); err != nil {
		t.Fatal(err)
	}
	connect(t, path, accepted)
}

// TestLockedDirectory: somebody who locks the directory stops no forwarder.
func TestLockedDirectory(t *testing.T) {
	dir := t.TempDir()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(filepath.Join(dir, "s"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
