//go:build unix

package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRunTellsTheServiceManager: ready after the start and after a reload, and
// stopping, even while it reads a file that gives nothing.
func TestRunTellsTheServiceManager(t *testing.T) {
	dir := t.TempDir()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "notify"))
	next := func(want string) {
		t.Helper()
		var b [200]byte
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if n, err := c.Read(b[:]); err != nil || !strings.HasPrefix(string(b[:n]), want) {
			t.Fatalf("%q, %v, want %s", b[:n], err, want)
		}
	}
	file := filepath.Join(dir, "c.toml")
	write(t, file, fmt.Sprintf("faces.unix.path = %q\nfaces.udp.listen = []\nfaces.tcp.listen = []\nadmin.listen = \"\"\n", filepath.Join(dir, "s")))
	log, code := &syncBuffer{}, make(chan int, 1)
	go func() { code <- Main([]string{"run", "-c", file}, strings.NewReader(""), log, log, Options{}) }()
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	next("READY=1")
	signal(syscall.SIGHUP)
	next("RELOADING=1\nMONOTONIC_USEC=")
	next("READY=1")
	log.waitFor(t, "configuration reloaded")
	write(t, file, "")
	signal(syscall.SIGHUP)
	next("RELOADING=1")
	next("READY=1")
	log.waitFor(t, "c.toml is empty")
	pipe := filepath.Join(dir, "pipe")
	err = syscall.Mkfifo(pipe, 0o600)
	if err == nil {
		err = os.Rename(pipe, file)
	}
	if err != nil {
		t.Fatal(err)
	}
	signal(syscall.SIGHUP)
	next("RELOADING=1")
	signal(syscall.SIGTERM)
	next("STOPPING=1")
	if n := <-code; n != 0 {
		t.Errorf("exit code %d\n%s", n, log)
	}
	w, err := os.OpenFile(file, os.O_WRONLY, 0) // so that the reader ends
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
}
