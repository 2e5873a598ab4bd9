package udp

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sockaddr is a struct sockaddr_in or sockaddr_in6.
type sockaddr struct {
	raw unix.RawSockaddrInet6 // the larger of the two
	len uint32
}

func (s *sockaddr) set(to netip.AddrPort) {
	a := to.Addr()
	if a.Is4() {
		in4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(&s.raw))
		*in4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: a.As4()}
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&in4.Port))[:], to.Port())
		s.len = unix.SizeofSockaddrInet4
		return
	}
	s.raw = unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: a.As16(), Scope_id: scopeID(a.Zone())}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&s.raw.Port))[:], to.Port())
	s.len = unix.SizeofSockaddrInet6
}

// get reads what the kernel wrote.
func (s *sockaddr) get() netip.AddrPort {
	if s.raw.Family == unix.AF_INET {
		in4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(&s.raw))
		return netip.AddrPortFrom(netip.AddrFrom4(in4.Addr), binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&in4.Port))[:]))
	}
	a := netip.AddrFrom16(s.raw.Addr).Unmap()
	if s.raw.Scope_id != 0 && a.Is6() {
		a = a.WithZone(zoneName(s.raw.Scope_id))
	}
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&s.raw.Port))[:]))
}

func scopeID(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	n, _ := strconv.ParseUint(zone, 10, 32)
	return uint32(n)
}

// zones remembers the names of interfaces: looking one up takes a netlink
// dump. An interface that is renamed keeps its old name here.
var zones sync.Map

func zoneName(id uint32) string {
	if v, ok := zones.Load(id); ok {
		return v.(string)
	}
	name := strconv.FormatUint(uint64(id), 10)
	if i, err := net.InterfaceByIndex(int(id)); err == nil {
		name = i.Name
	}
	zones.Store(id, name)
	return name
}

// newSocket takes c over.
func newSocket(c *net.UDPConn, a netip.Addr, connected bool, o *Options, report report) (socket, error) {
	if o.Plain {
		return newPlain(c, connected, report)
	}
	return newFast(c, a, connected, o, report)
}

// control runs f on the descriptor of c.
func control(c syscall.Conn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

func setInt(fd, level, opt, value int) error { return unix.SetsockoptInt(fd, level, opt, value) }

// dial connects a socket to a peer. If it shares the address of a Listener,
// what others sent to it before it was connected is thrown away.
func dial(to netip.AddrPort, local string) (*net.UDPConn, error) {
	from, err := localOf(local)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{}
	if from != nil {
		d.LocalAddr = from
		d.Control = func(_, _ string, raw syscall.RawConn) error {
			var inner error
			err := raw.Control(func(fd uintptr) { inner = setInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
			if err != nil {
				return err
			}
			return inner
		}
	}
	c, err := d.DialContext(context.Background(), family(to.Addr()), to.String())
	if err != nil {
		return nil, err
	}
	uc := c.(*net.UDPConn)
	if from != nil {
		_ = control(uc, func(fd int) error {
			var b [1]byte
			for range 1000 {
				if _, _, err := unix.Recvfrom(fd, b[:], unix.MSG_DONTWAIT); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return uc, nil
}

// shareAddress lets sockets of dial bind to the address of c.
func shareAddress(c *net.UDPConn) {
	_ = control(c, func(fd int) error { return setInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
}

// setBuffers sets the socket's buffers, beyond the system's maximum if
// permitted, and returns what was reached.
func setBuffers(c *net.UDPConn, o *Options) (read, write int) {
	_ = control(c, func(fd int) error {
		read = setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, o.ReadBuffer)
		write = setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, o.WriteBuffer)
		return nil
	})
	return read, write
}

func setBuffer(fd, force, plain, n int) int {
	if setInt(fd, unix.SOL_SOCKET, force, n) != nil {
		_ = setInt(fd, unix.SOL_SOCKET, plain, n)
	}
	// The kernel doubles the value, for its own overhead (socket(7)).
	v, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, plain)
	return v / 2
}
