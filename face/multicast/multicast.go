// Package multicast carries frames in UDP datagrams to and from everybody on a
// link: one transport for each interface and address family, with the groups
// and port of NFD. Its receiver is told the senders apart, if it can
// (face.SenderReceiver).
package multicast

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"ndnpop/face"
	"ndnpop/face/internal/outq"
	"ndnpop/ndn"
)

// Groups of NDN (NFD, "face_system.udp").
const (
	GroupV4 = "224.0.23.170:56363"
	GroupV6 = "[ff02::1234]:56363"
)

// Options of a transport. The zero value is usable.
type Options struct {
	// MTU is the size of a frame in bytes. 0 leaves all fragmentation to IP:
	// NFD's multicast faces take no fragments of link packets (UdpFactory).
	MTU int
	// Loop lets other programs on this host that have joined the group hear
	// what is sent. The transport itself never hears what it has sent.
	Loop bool
	// Buffer is the size of the socket's buffers in bytes; 0 means 1 MiB.
	Buffer int
}

// sendWait bounds how long a batch waits for room in the interface's queue.
const sendWait = 5 * time.Millisecond

// Interfaces lists the interfaces of this host that are up, can multicast and
// match one of the patterns (path.Match: "eth0", "wlan*"). A loopback interface
// has to be named in full.
func Interfaces(patterns []string) ([]net.Interface, error) {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("multicast: pattern %q: %w", p, err)
		}
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("multicast: %w", err)
	}
	return slices.DeleteFunc(all, func(i net.Interface) bool {
		if i.Flags&net.FlagUp == 0 {
			return true
		}
		if i.Flags&net.FlagLoopback != 0 {
			return !slices.Contains(patterns, i.Name)
		}
		return i.Flags&net.FlagMulticast == 0 || !slices.ContainsFunc(patterns, func(p string) bool {
			ok, _ := path.Match(p, i.Name)
			return ok
		})
	}), nil
}

// ErrNoAddress: the interface has no address of the group's family.
var ErrNoAddress = errors.New("interface has no address of this family")

// Open joins a group, GroupV4 or GroupV6 as a rule, on an interface.
func Open(i *net.Interface, group string, o Options) (face.Server, error) {
	to, err := netip.ParseAddrPort(group)
	if err != nil || !to.Addr().IsMulticast() || to.Port() == 0 {
		return nil, fmt.Errorf("multicast: %q is no group, such as %s", group, GroupV4)
	}
	t, err := open(i, to, o)
	if err != nil {
		return nil, fmt.Errorf("multicast: %s on %s: %w", group, i.Name, err)
	}
	return t, nil
}

func open(i *net.Interface, to netip.AddrPort, o Options) (*transport, error) {
	from, err := addressOf(i, to.Addr().Is4())
	if err != nil {
		return nil, err
	}
	family, remote := "udp4", to
	if to.Addr().Is6() {
		family, remote = "udp6", netip.AddrPortFrom(to.Addr().WithZone(i.Name), to.Port())
		// By number: package net remembers for a minute which interface had a name.
		zone := strconv.Itoa(i.Index)
		to = netip.AddrPortFrom(to.Addr().WithZone(zone), to.Port())
		if from.Zone() != "" {
			from = from.WithZone(zone)
		}
	}
	if o.Buffer <= 0 {
		o.Buffer = 1 << 20
	}
	rx, err := net.ListenMulticastUDP(family, i, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return nil, err
	}
	var bind net.ListenConfig
	if from.Is6() {
		bind.Control = early
	}
	conn, err := bind.ListenPacket(context.Background(), family, netip.AddrPortFrom(from, 0).String())
	if err != nil {
		_ = rx.Close()
		return nil, err
	}
	tx := conn.(*net.UDPConn)
	t := &transport{rx: rx, tx: tx, to: to, seed: maphash.MakeSeed()}
	err = errors.Join(onlyOwn(rx, to.Addr().Is4()), sendOn(tx, i, to.Addr().Is4(), o.Loop))
	raw, rawErr := tx.SyscallConn()
	if err = errors.Join(err, rawErr); err != nil {
		_, _ = rx.Close(), tx.Close()
		return nil, err
	}
	_ = rx.SetReadBuffer(o.Buffer)
	_ = tx.SetWriteBuffer(o.Buffer)
	t.outq = outq.New(raw)
	t.from = unmap(tx.LocalAddr().(*net.UDPAddr).AddrPort())
	t.mtu = ndn.MaxPacketSize
	if o.MTU > 0 {
		t.mtu = min(t.mtu, o.MTU)
	}
	t.info = face.Info{
		RemoteURI: family + "://" + remote.String(),
		LocalURI:  family + "://" + t.from.String(),
		Scope:     face.ScopeNonLocal, Link: face.LinkMultiAccess,
	}
	return t, nil
}

// addressOf chooses the address to send from; of IPv6 a link-local one.
func addressOf(i *net.Interface, v4 bool) (netip.Addr, error) {
	addrs, err := i.Addrs()
	if err != nil {
		return netip.Addr{}, err
	}
	var other netip.Addr
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if ip = ip.Unmap(); !ok || ip.Is4() != v4 {
			continue
		}
		if v4 {
			return ip, nil
		}
		if ip.IsLinkLocalUnicast() {
			return ip.WithZone(i.Name), nil
		}
		other = ip
	}
	if !other.IsValid() {
		return netip.Addr{}, ErrNoAddress
	}
	return other, nil
}

// sendOn makes a socket send multicast on an interface. Routers do not pass it
// on: the TTL is 1 by default (RFC 1112; RFC 3493).
func sendOn(c *net.UDPConn, i *net.Interface, v4, loop bool) error {
	if v4 {
		p := ipv4.NewPacketConn(c)
		return errors.Join(p.SetMulticastInterface(i), p.SetMulticastLoopback(loop))
	}
	p := ipv6.NewPacketConn(c)
	return errors.Join(p.SetMulticastInterface(i), p.SetMulticastLoopback(loop))
}

// transport is a face.Server for one group on one interface.
type transport struct {
	info face.Info
	rx   *net.UDPConn // bound to the group
	tx   *net.UDPConn // bound to the interface's address
	to   netip.AddrPort
	from netip.AddrPort
	mtu  int
	outq *outq.Meter
	seed maphash.Seed // of the senders' numbers

	mu  sync.Mutex
	err error // why it ends; nil while it lives
}

// Info implements face.Transport.
func (t *transport) Info() face.Info { return t.info }

// MTU implements face.Transport.
func (t *transport) MTU() int { return t.mtu }

// QueueLen implements face.Transport.
func (t *transport) QueueLen() int { return t.outq.Len() }

// Send implements face.Transport.
func (t *transport) Send(b *face.Frames) (dropped int) {
	if t.reason() != nil {
		return b.Len()
	}
	_ = t.tx.SetWriteDeadline(time.Now().Add(sendWait))
	for i := range b.Len() {
		_, err := t.tx.WriteToUDPAddrPort(b.Frame(i), t.to)
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
			return dropped + b.Len() - i
		case gone(err):
			t.end(err)
			return dropped + b.Len() - i
		default:
			dropped++
		}
	}
	return dropped
}

// gone reports whether an error says that the interface or its address is.
func gone(err error) bool {
	for _, e := range []error{syscall.ENODEV, syscall.ENXIO, syscall.ENETDOWN, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (t *transport) reason() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// end ends the transport for a reason, once.
func (t *transport) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
		_, _ = t.rx.Close(), t.tx.Close()
	}
}

// Close implements face.Transport.
func (t *transport) Close() error {
	t.end(face.ErrClosed)
	return nil
}

// Serve implements face.Server.
func (t *transport) Serve(r face.Receiver) error {
	buf := make([]byte, ndn.MaxPacketSize+1)
	frames := make([][]byte, 1)
	apart, _ := r.(face.SenderReceiver)
	for {
		n, from, err := t.rx.ReadFromUDPAddrPort(buf)
		if err != nil {
			var errno syscall.Errno
			if errors.As(err, &errno) && !gone(err) && t.reason() == nil {
				continue // about a datagram that was sent
			}
			t.end(err)
			break
		}
		from = unmap(from)
		if n == 0 || n > ndn.MaxPacketSize || from == t.from {
			continue
		}
		frames[0] = buf[:n:n]
		if apart != nil {
			apart.ReceiveFrom(t.sender(from), frames)
		} else {
			r.Receive(frames)
		}
		r.Flush()
	}
	r.Closed(t.reason())
	return t.reason()
}

// sender numbers a sender. That two have the same number is as likely as a
// guessed key.
func (t *transport) sender(from netip.AddrPort) uint64 { return maphash.Comparable(t.seed, from) }

func unmap(ap netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
