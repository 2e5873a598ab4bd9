//go:build !linux

package udp

import (
	"net"
	"net/netip"
)

// sockaddr is not needed by the plain path.
type sockaddr struct{}

func (*sockaddr) set(netip.AddrPort) {}

// newSocket takes c over.
func newSocket(c *net.UDPConn, _ netip.Addr, connected bool, _ *Options, report report) (socket, error) {
	return newPlain(c, connected, report)
}

// Group is of use on Linux only.
type Group struct{}

// NewGroup makes a group. Each socket is received from by a goroutine of its
// own nevertheless.
func NewGroup(int) *Group { return new(Group) }

func dial(to netip.AddrPort, local string) (*net.UDPConn, error) {
	from, err := localOf(local)
	if err != nil {
		return nil, err
	}
	return net.DialUDP(family(to.Addr()), from, net.UDPAddrFromAddrPort(to))
}

// shareAddress does nothing: other systems share an address only among
// sockets that have agreed to from the start.
func shareAddress(*net.UDPConn) {}

// setBuffers sets the buffers as far as the system lets it, halving what it
// refuses.
func setBuffers(c *net.UDPConn, o *Options) (read, write int) {
	return shrink(c.SetReadBuffer, o.ReadBuffer), shrink(c.SetWriteBuffer, o.WriteBuffer)
}

func shrink(set func(int) error, n int) int {
	for ; n > 64<<10; n /= 2 {
		if set(n) == nil {
			return n
		}
	}
	return 0
}
