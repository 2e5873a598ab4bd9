package daemon

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify("READY=1"); err != nil {
		t.Errorf("without a service manager: %v", err)
	}
	dir := t.TempDir()
	for _, addr := range []string{filepath.Join(dir, "s"), "@ndnpop-test" + filepath.Base(dir)} {
		name := addr
		if strings.HasPrefix(addr, "@") {
			name = "\x00" + addr[1:]
		}
		c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("NOTIFY_SOCKET", addr)
		if err := Notify("READY=1\nSTATUS=ok"); err != nil {
			t.Error(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(patience))
		var b [100]byte
		n, err := c.Read(b[:])
		if err != nil || string(b[:n]) != "READY=1\nSTATUS=ok" {
			t.Errorf("%s: %q, %v", addr, b[:n], err)
		}
		_ = c.Close()
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "nobody"))
	if Notify("READY=1") == nil {
		t.Error("nobody there, and no error")
	}
}
