package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

// sendWait bounds how long one frame of the plain path waits for room in the
// socket's buffer, twice at the most.
const sendWait = 50 * time.Millisecond

// plain carries one datagram per system call, with nothing but the standard
// library.
type plain struct {
	c         *net.UDPConn
	raw       syscall.RawConn // of c
	connected bool
	report    report
	buf       []byte
}

func newPlain(c *net.UDPConn, connected bool, report report) (*plain, error) {
	raw, err := c.SyscallConn()
	// One byte more than a frame may have shows which are too large.
	return &plain{c: c, raw: raw, connected: connected, report: report, buf: make([]byte, ndn.MaxPacketSize+1)}, err
}

func (s *plain) control() syscall.RawConn { return s.raw }

func (s *plain) wake() { _ = s.c.SetReadDeadline(time.Unix(1, 0)) }

func (s *plain) close() error { return s.c.Close() }

func (s *plain) serve(h handler) error {
	var in arrivals
	for !h.over() {
		err := s.receive(&in)
		switch {
		case err == nil:
			h.arrived(&in)
			h.flush()
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = s.c.SetReadDeadline(time.Time{})
		default:
			return err
		}
	}
	return nil
}

// receive waits for datagrams and describes them in in, whose memory is the
// socket's until the next call. An error ends the socket, except
// os.ErrDeadlineExceeded.
func (s *plain) receive(in *arrivals) error {
	in.datagrams, in.oversize = in.datagrams[:0], 0
	n, from, err := s.c.ReadFromUDPAddrPort(s.buf)
	if err == nil {
		if s.connected {
			from = netip.AddrPort{}
		} else {
			from = unmap(from)
		}
		in.add(datagram{from, s.buf[:n], n})
		return nil
	}
	var errno syscall.Errno
	if errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &errno) {
		return err
	}
	// An error about a peer, which some systems report here. Of an unconnected
	// socket nobody knows which.
	switch {
	case unreachable(errno), errno == syscall.EMSGSIZE:
		if s.connected {
			s.report(netip.AddrPort{}, errno, 0)
		}
		return nil
	}
	return err
}

func (s *plain) send(e *endpoint, b *face.Frames) (dropped int) {
	late, once := true, true
	for i := 0; i < b.Len(); i++ {
		f := b.Frame(i)
		if late {
			_ = s.c.SetWriteDeadline(time.Now().Add(sendWait))
		}
		var err error
		if s.connected {
			_, err = s.c.Write(f)
		} else {
			_, err = s.c.WriteToUDPAddrPort(f, e.to)
		}
		switch {
		case err == nil:
			late, once = false, true
			continue
		case errors.Is(err, os.ErrDeadlineExceeded) && once:
			// The deadline may have passed before the write.
			late, once = true, false
			i--
			continue
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
			return b.Len() - i + dropped
		case errors.Is(err, syscall.EMSGSIZE):
			e.tooBig(len(f))
		case unreachable(err):
			s.report(e.to, err, 0)
		}
		dropped++
	}
	return dropped
}

// plainMTU bounds what is sent beyond this host in one datagram where the
// MTU of the path cannot be read: the MTU of Ethernet.
const plainMTU = 1500

// pathMTU finds the interface towards a peer.
func (s *plain) pathMTU(to netip.AddrPort) int {
	if to.Addr().IsLoopback() {
		return ndn.MaxPacketSize
	}
	mtu := plainMTU
	if c, err := net.DialUDP(family(to.Addr()), nil, net.UDPAddrFromAddrPort(to)); err == nil {
		mtu = min(mtu, interfaceMTU(localAddr(c).Addr()))
		_ = c.Close()
	}
	return mtu - header(to.Addr())
}

// interfaceMTU is the MTU of the interface that has the address a.
func interfaceMTU(a netip.Addr) int {
	all, err := net.Interfaces()
	if err != nil {
		return plainMTU
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, x := range addrs {
			n, ok := x.(*net.IPNet)
			if !ok {
				continue
			}
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == a.WithZone("") {
				return i.MTU
			}
		}
	}
	return plainMTU
}
