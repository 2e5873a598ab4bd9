package multicast

import (
	"errors"
	"net"
	"syscall"

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

// early lets a socket be bound to an address that its host has not yet made sure
// of: an IPv6 address is tentative for a second or more after its interface came
// up (RFC 4862, 5.4), which at boot is when forwarders start.
func early(_, _ string, c syscall.RawConn) error {
	var inner error
	err := c.Control(func(fd uintptr) { inner = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1) })
	if errors.Is(inner, unix.ENOPROTOOPT) {
		inner = nil // Linux before 4.15
	}
	return errors.Join(err, inner)
}
