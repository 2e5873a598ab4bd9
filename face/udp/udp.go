// Package udp carries frames in UDP datagrams: one socket that listens for
// many peers, and connected sockets for configured ones.
//
// On Linux a run of frames of one size is one message to the kernel, which
// cuts it up (GSO), and arrives as one (GRO); the path MTU is followed, never
// relying on IP fragmentation; ICMP errors are attributed to the peer that
// they are about. Elsewhere, and with Options.Plain, one system call carries
// one datagram.
package udp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

// Options of a socket. The zero value is usable.
type Options struct {
	// MTU bounds the frame size in bytes; 0 means ndn.MaxPacketSize. The path
	// may bound it further.
	MTU int
	// Local is the address that Dial sends from; empty lets the system
	// choose. On Linux it may be that of a Listener of this process, so that
	// the peer sees both as one.
	Local string
	// ReadBuffer and WriteBuffer are the sizes of the socket's buffers in
	// bytes, 0 means DefaultBuffer. Without the privilege to exceed it, the
	// system's maximum (net.core.rmem_max) holds; Buffers tells what was
	// reached.
	ReadBuffer, WriteBuffer int
	// MaxPeers bounds the peers of a Listener; 0 means 65536. When reached,
	// new ones are dropped and counted until one is closed.
	MaxPeers int
	// Family is "udp", "udp4" or "udp6"; empty means "udp". It matters to
	// Dial, when a host has addresses of both.
	Family string
	// Group receives for the socket; nil is one of its own.
	Group *Group
	// Plain avoids everything that only Linux has, and Group.
	Plain bool
}

// DefaultBuffer is the default size of the socket buffers in bytes: some
// windows of 256 Data of 8 KB.
const DefaultBuffer = 8 << 20

const (
	defaultMaxPeers = 65536
	// lookEvery is how often a sending endpoint asks for the path MTU again, and
	// whether the host still has the address that it sends from.
	lookEvery = 15 * time.Second
	// mtuDoubt is how long an endpoint keeps below a size that failed
	// although the kernel's own idea of the path allows it (RFC 1191, 6.3).
	mtuDoubt = 10 * time.Minute
)

func (o *Options) defaults() {
	if o.MTU <= 0 || o.MTU > ndn.MaxPacketSize {
		o.MTU = ndn.MaxPacketSize
	}
	if o.ReadBuffer <= 0 {
		o.ReadBuffer = DefaultBuffer
	}
	if o.WriteBuffer <= 0 {
		o.WriteBuffer = DefaultBuffer
	}
	if o.MaxPeers <= 0 {
		o.MaxPeers = defaultMaxPeers
	}
	if o.Family == "" {
		o.Family = "udp"
	}
}

// socket is what the fast and the plain path differ in.
type socket interface {
	// serve receives until h is over, and then returns nil, or until the socket
	// has ended, and returns why.
	serve(h handler) error
	// wake makes serve look whether its handler is over.
	wake()
	close() error
	// send transmits frames to a peer without waiting for it, and returns how
	// many it dropped. What it learns about peers goes to the socket's report.
	send(e *endpoint, b *face.Frames) (dropped int)
	// pathMTU is the largest datagram for a peer in bytes, not limited to
	// ndn.MaxPacketSize.
	pathMTU(to netip.AddrPort) int
	// control gives access to the descriptor.
	control() syscall.RawConn
}

// handler takes what a socket receives.
type handler interface {
	// over reports whether nothing more is to be received.
	over() bool
	// arrived takes what came; the memory is the socket's again afterwards.
	arrived(in *arrivals)
	// flush follows one or several calls of arrived.
	flush()
}

// report tells the owner of a socket of an error about a peer. mtu is the
// size in bytes that a router allows a datagram, or 0. It may be called by
// the receiver and by every sender, which hold locks of their own.
type report func(to netip.AddrPort, err error, mtu int)

// arrivals is what one call of receive brought.
type arrivals struct {
	datagrams []datagram
	oversize  int // datagrams larger than ndn.MaxPacketSize, left out
}

// datagram is one datagram, or several of segment bytes each (the last one
// may be shorter).
type datagram struct {
	from    netip.AddrPort // unset on a connected socket
	data    []byte
	segment int
}

// frames appends the frames in d to f.
func (d *datagram) frames(f [][]byte) [][]byte {
	rest := d.data
	for len(rest) > d.segment {
		f = append(f, rest[:d.segment:d.segment])
		rest = rest[d.segment:]
	}
	return append(f, rest[:len(rest):len(rest)])
}

// add notes a datagram that came, unless it is empty or too large.
func (in *arrivals) add(d datagram) {
	switch {
	case d.segment > ndn.MaxPacketSize:
		in.oversize += (len(d.data) + d.segment - 1) / d.segment
	case len(d.data) > 0:
		in.datagrams = append(in.datagrams, d)
	}
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "udp4"
	}
	return "udp6"
}

func uri(ap netip.AddrPort) string { return family(ap.Addr()) + "://" + ap.String() }

func unmap(ap netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

func localAddr(c *net.UDPConn) netip.AddrPort {
	return unmap(c.LocalAddr().(*net.UDPAddr).AddrPort())
}

// header is the size of IP and UDP headers.
func header(a netip.Addr) int {
	if a.Is4() {
		return 20 + 8
	}
	return 40 + 8
}

// Dial opens a socket that is connected to remote, e.g. 192.0.2.7:6363. Host
// names are resolved. Whether the peer is there is not known until it
// answers or ICMP refuses, which ends Serve with face.ErrRefused.
func Dial(remote string, o Options) (face.Server, error) {
	o.defaults()
	to, err := Resolve(context.Background(), o.Family, remote)
	if err != nil {
		return nil, err
	}
	if !to.Addr().IsValid() || to.Addr().IsUnspecified() || to.Port() == 0 {
		return nil, fmt.Errorf("udp: %q has no address and port to send to", remote)
	}
	c, err := dial(to, o.Local)
	if err != nil {
		return nil, fmt.Errorf("udp: %w", err)
	}
	p := new(connected)
	p.read, p.write = setBuffers(c, &o)
	local := localAddr(c)
	sock, err := newSocket(c, to.Addr(), true, &o, p.hear)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("udp: %w", err)
	}
	p.init(sock, local, to, o.MTU)
	p.from, p.moved = local.Addr(), p.end
	return p, nil
}

// Resolve finds the address that remote names, until ctx ends: of several the
// first, an IPv4 one if the family (Options.Family) leaves the choice.
func Resolve(ctx context.Context, family, remote string) (netip.AddrPort, error) {
	to, err := resolve(ctx, family, remote)
	if err != nil {
		return to, fmt.Errorf("udp: %w", err)
	}
	return to, nil
}

func resolve(ctx context.Context, family, remote string) (netip.AddrPort, error) {
	if ap, err := netip.ParseAddrPort(remote); err == nil {
		ap = unmap(ap)
		if is4 := ap.Addr().Is4(); family == "udp4" && !is4 || family == "udp6" && is4 {
			return netip.AddrPort{}, fmt.Errorf("%s is no address of %s", ap.Addr(), family)
		}
		return ap, nil
	}
	host, service, err := net.SplitHostPort(remote)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, family, service)
	if err != nil {
		return netip.AddrPort{}, err
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip"+strings.TrimPrefix(family, "udp"), host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	to := addrs[0] // there is one, or an error
	for _, a := range addrs {
		if a.Unmap().Is4() {
			to = a
			break
		}
	}
	return netip.AddrPortFrom(to.Unmap(), uint16(port)), nil
}

// connected is the transport of a connected socket.
type connected struct {
	endpoint
	read, write int
}

// Buffers is the size of the socket's buffers in bytes, as reached.
func (p *connected) Buffers() (read, write int) { return p.read, p.write }

// hear takes what the socket learns, which is all about its one peer.
func (p *connected) hear(_ netip.AddrPort, err error, mtu int) {
	if err := p.learn(err, mtu); err != nil {
		p.end(err)
	}
}

// end ends the transport for a reason, once, and wakes Serve.
func (p *connected) end(err error) {
	if p.finish(err) {
		p.sock.wake()
	}
}

// Close implements face.Transport.
func (p *connected) Close() error {
	p.end(face.ErrClosed)
	return p.sock.close()
}

// Serve implements face.Server.
func (p *connected) Serve(r face.Receiver) error {
	if err := p.sock.serve(&sole{p: p, r: r}); err != nil {
		p.finish(err)
	}
	_ = p.sock.close()
	r.Closed(p.reason())
	return p.reason()
}

// sole is the handler of a connected socket.
type sole struct {
	p       *connected
	r       face.Receiver
	frames  [][]byte
	touched bool // r got frames that have not been followed by Flush
}

func (h *sole) over() bool { return h.p.reason() != nil }

func (h *sole) arrived(in *arrivals) {
	for i := range in.datagrams {
		h.frames = in.datagrams[i].frames(h.frames)
	}
	if len(h.frames) > 0 {
		h.r.Receive(h.frames)
		h.frames, h.touched = h.frames[:0], true
	}
}

func (h *sole) flush() {
	if h.touched {
		h.touched = false
		h.r.Flush()
	}
}

// localOf parses Options.Local; nil lets the system choose.
func localOf(local string) (*net.UDPAddr, error) {
	if local == "" {
		return nil, nil
	}
	ap, err := netip.ParseAddrPort(local)
	if err != nil {
		return nil, fmt.Errorf("local address %q: %w", local, err)
	}
	return net.UDPAddrFromAddrPort(unmap(ap)), nil
}
