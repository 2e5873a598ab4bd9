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

// TestRunOutlivesItsLog: a forwarder whose log nobody reads any more goes on, and
// ends in order.
func TestRunOutlivesItsLog(t *testing.T) {
	const configEnv = "NDNPOP_TEST_RUN"
	if file := os.Getenv(configEnv); file != "" {
		os.Exit(Main([]string{"run", "-c", file}, os.Stdin, os.Stdout, os.Stderr, Options{}))
	}
	dir := t.TempDir()
	file, sock := filepath.Join(dir, "c.toml"), filepath.Join(dir, "s")
	write(t, file, fmt.Sprintf("faces.unix.path = %q\nfaces.udp.listen = []\nfaces.tcp.listen = []\nadmin.listen = \"\"\nlog.level = \"debug\"\n", sock))
	cmd := exec.Command(os.Args[0], "-test.run=^TestRunOutlivesItsLog$")
	cmd.Env = append(os.Environ(), configEnv+"="+file)
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for r, line := bufio.NewReader(log), ""; !strings.Contains(line, "ready"); {
		if line, err = r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	_ = log.Close()
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
