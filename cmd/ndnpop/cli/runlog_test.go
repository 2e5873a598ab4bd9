//go:build unix

package cli

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// argsEnv has the arguments, one a line, of a test that is to be a command.
const argsEnv = "NDNPOP_TEST_ARGS"

// beCommand is what a test begins with that runs itself by unread.
func beCommand() {
	if args := os.Getenv(argsEnv); args != "" {
		os.Exit(Main(strings.Split(args, "\n"), os.Stdin, os.Stdout, os.Stderr, Options{}))
	}
}

// unread starts a command as a process of its own, waits until it says ready, and
// reads what it says no longer.
func unread(t *testing.T, ready string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), argsEnv+"="+strings.Join(args, "\n"))
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for r, line := bufio.NewReader(log), ""; !strings.Contains(line, ready); {
		if line, err = r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	_ = log.Close()
	return cmd
}

// TestRunOutlivesItsLog: a forwarder whose log nobody reads any more goes on, and
// ends in order.
func TestRunOutlivesItsLog(t *testing.T) {
	beCommand()
	dir := t.TempDir()
	file, sock := filepath.Join(dir, "c.toml"), filepath.Join(dir, "s")
	write(t, file, fmt.Sprintf("faces.unix.path = %q\nfaces.udp.listen = []\nfaces.tcp.listen = []\nadmin.listen = \"\"\nlog.level = \"debug\"\n", sock))
	cmd := unread(t, "ready", "run", "-c", file)
	// It has something to say of each connection that comes and goes.
	for range 3 {
		c, err := net.Dial("unix", sock)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.UnixConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil || os.IsTimeout(err) {
			t.Errorf("the connection is not closed: %v", err)
		}
		_ = c.Close()
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestPutOutlivesItsLog: what put publishes can be fetched after somebody stopped
// reading what it says of each Interest.
func TestPutOutlivesItsLog(t *testing.T) {
	beCommand()
	transport := forwarder(t)
	path := filepath.Join(t.TempDir(), "f")
	want := randomFile(t, path, 1000)
	cmd := unread(t, "fetch it with", "put", "-v", "/cdn/f", path, transport)
	for range 3 {
		if got, code := fetch(t, "/cdn/f", transport); got != string(want) {
			t.Errorf("fetched %d bytes, code %d", len(got), code)
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
