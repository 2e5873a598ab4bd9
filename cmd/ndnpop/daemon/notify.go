package daemon

import (
	"fmt"
	"net"
	"os"
	"time"
)

// Notify tells the service manager (systemd, Type=notify) of a change of
// state, in the form of sd_notify(3): "READY=1", "STOPPING=1". Without one it
// does nothing.
func Notify(state string) error {
	addr := os.Getenv("NOTIFY_SOCKET")
	if addr == "" {
		return nil
	}
	if addr[0] == '@' {
		addr = "\x00" + addr[1:] // the abstract name space
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: addr, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("service manager: %w", err)
	}
	defer c.Close()
	_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // who does not read is not waited for
	if _, err := c.Write([]byte(state)); err != nil {
		return fmt.Errorf("service manager: %w", err)
	}
	return nil
}
