package multicast

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// onlyOwn makes a socket receive what comes on the interface where it has
// joined the group, and not what comes where others have (ip(7),
// IP_MULTICAST_ALL).
func onlyOwn(c *net.UDPConn, v4 bool) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	level, option := unix.IPPROTO_IP, unix.IP_MULTICAST_ALL
	if !v4 {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_ALL
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = unix.SetsockoptInt(int(fd), level, option, 0) })
	if errors.Is(inner, unix.ENOPROTOOPT) && !v4 {
		inner = nil // Linux before 4.20; a link-local group binds to the interface anyway
	}
	return errors.Join(err, inner)
}
