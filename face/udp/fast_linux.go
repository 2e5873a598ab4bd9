package udp

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"ndnpop/face"
)

const (
	// Limits of one message with GSO: UDP_MAX_SEGMENTS of Linux before 6.9,
	// and what an IP packet holds beside the headers.
	gsoSegments = 64
	gsoBytes    = 65000
	// Messages per call of sendmmsg.
	txMessages = 64
	// How often a batch is tried again after an error that concerns another
	// peer of the same socket.
	txRetries = 4
)

// fast uses recvmmsg with GRO and sendmmsg with GSO. Errors about peers come
// from the socket's error queue (IP_RECVERR, ip(7)).
type fast struct {
	f         *os.File
	raw       syscall.RawConn // of f
	connected bool
	v6        bool
	report    report
	gso       atomic.Bool

	recvFn  func(fd uintptr)
	rx      *messages // argument of recvFn
	senders chan *sender

	loop   *loop
	member atomic.Pointer[member] // of loop, once it is served

	errMu sync.Mutex // one reader of the error queue at a time
}

type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

type rxMsg struct {
	name sockaddr
	iov  unix.Iovec
	ctl  [8]uint64
	buf  []byte
}

// messages is the memory of a call of recvmmsg, and what came of it.
type messages struct {
	rx    [rxMessages]rxMsg
	hdrs  [rxMessages]mmsghdr
	n     int // received
	errno unix.Errno
}

func newMessages() *messages {
	b := &messages{n: rxMessages}
	for i := range b.rx {
		m, h := &b.rx[i], &b.hdrs[i].hdr
		m.buf = make([]byte, rxMessage)
		m.iov.Base = &m.buf[0]
		m.iov.SetLen(len(m.buf))
		h.Iov = &m.iov
		h.SetIovlen(1)
		h.Name = (*byte)(unsafe.Pointer(&m.name.raw))
		h.Control = (*byte)(unsafe.Pointer(&m.ctl))
	}
	return b
}

// newFast takes c over.
func newFast(c *net.UDPConn, a netip.Addr, connected bool, o *Options, report report) (*fast, error) {
	s := &fast{connected: connected, v6: !a.Is4(), report: report, loop: o.Group.loop()}
	// More senders than this wait for each other, which is what the kernel's
	// socket lock makes them do anyway.
	s.senders = make(chan *sender, 4)
	for range cap(s.senders) {
		s.senders <- nil
	}
	err := control(c, func(fd int) error {
		// GRO and GSO are there since Linux 5.0 and 4.18; without them there
		// is one datagram to a message.
		_ = setInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
		_, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		s.gso.Store(err == nil)
		if s.v6 {
			if err := setInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO); err != nil {
				return err
			}
			return setInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
		}
		if err := setInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO); err != nil {
			return err
		}
		return setInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
	})
	if err == nil {
		s.f, err = unpolled(c)
	}
	if err != nil {
		return nil, err
	}
	if s.raw, err = s.f.SyscallConn(); err != nil {
		_ = s.f.Close()
		return nil, err
	}
	s.recvFn = s.recvmmsg
	return s, nil
}

// unpolled takes the socket away from the runtime, which otherwise would be
// woken by each datagram, beside the loop that waits for it. A file that may
// block is left alone by the runtime; every call here says that it may not.
func unpolled(c *net.UDPConn) (*os.File, error) {
	var f *os.File
	err := control(c, func(fd int) error {
		d, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		if err := unix.SetNonblock(d, false); err != nil {
			_ = unix.Close(d)
			return os.NewSyscallError("fcntl", err)
		}
		f = os.NewFile(uintptr(d), "udp")
		return nil
	})
	if err == nil {
		err = c.Close()
	}
	return f, err
}

func (s *fast) control() syscall.RawConn { return s.raw }

func (s *fast) serve(h handler) error { return s.loop.serve(s, h) }

func (s *fast) wake() {
	if m := s.member.Load(); m != nil {
		s.loop.ask(m)
	}
}

func (s *fast) close() error {
	err := s.f.Close()
	s.wake()
	return err
}

// recvmmsg reads what there is.
func (s *fast) recvmmsg(fd uintptr) {
	b := s.rx
	for i := range b.n {
		h := &b.hdrs[i].hdr
		h.Namelen = uint32(unsafe.Sizeof(b.rx[i].name.raw))
		h.SetControllen(int(unsafe.Sizeof(b.rx[i].ctl)))
		h.Flags = 0
	}
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.hdrs[0])), uintptr(len(b.hdrs)), unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		b.n, b.errno = int(n), errno
		if errno != 0 {
			b.n = 0
		}
		return
	}
}

// receive takes what has come, and describes it in in, whose memory is b's. It
// says whether there was something; an error ends the socket.
func (s *fast) receive(b *messages, in *arrivals) (some bool, err error) {
	in.datagrams, in.oversize = in.datagrams[:0], 0
	s.rx = b
	err = s.raw.Control(s.recvFn)
	s.rx = nil
	switch {
	case err != nil:
		return false, err
	case b.errno == unix.EAGAIN:
		return false, nil
	case b.errno != 0:
		return true, s.failed(b.errno)
	}
	for i := range b.n {
		h, m := &b.hdrs[i], &b.rx[i]
		d := datagram{data: m.buf[:h.len], segment: int(h.len)}
		if h.hdr.Flags&unix.MSG_TRUNC != 0 {
			in.oversize++
			continue
		}
		if seg := segment(&h.hdr, &m.ctl); seg > 0 {
			d.segment = seg
		}
		if !s.connected {
			d.from = m.name.get()
		}
		in.add(d)
	}
	return true, nil
}

// segment finds the size of the joined datagrams, 0 when there is one.
func segment(h *unix.Msghdr, ctl *[8]uint64) int {
	n := int(h.Controllen)
	b := (*[64]byte)(unsafe.Pointer(ctl))[:min(n, 64)]
	for len(b) >= unix.SizeofCmsghdr {
		c := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		l := int(c.Len)
		if l < unix.SizeofCmsghdr || l > len(b) {
			return 0
		}
		if c.Level == unix.IPPROTO_UDP && c.Type == unix.UDP_GRO && l >= unix.CmsgLen(4) {
			return int(*(*int32)(unsafe.Pointer(&b[unix.CmsgLen(0)])))
		}
		next := unix.CmsgSpace(l - unix.CmsgLen(0))
		if next > len(b) {
			return 0
		}
		b = b[next:]
	}
	return 0
}

// failed handles an error of the socket: one about peers has an entry in the
// error queue. It returns an error that ends the socket.
func (s *fast) failed(errno unix.Errno) error {
	s.drainErrors()
	switch errno {
	case unix.ENOMEM, unix.ENOBUFS, unix.EPERM:
		return nil
	case unix.EMSGSIZE, unix.EACCES, unix.EPROTO, unix.ENONET, unix.EOPNOTSUPP:
		// With those of unreachable, all that ICMP can say. Anybody can forge it.
		return nil
	}
	if !unreachable(errno) {
		return errno
	}
	if s.connected {
		s.report(netip.AddrPort{}, errno, 0)
	}
	return nil
}

const sizeofSockErr = int(unsafe.Sizeof(unix.SockExtendedErr{}))

// drainErrors reports what is in the socket's error queue.
func (s *fast) drainErrors() {
	s.errMu.Lock()
	defer s.errMu.Unlock()
	_ = s.raw.Control(func(fd uintptr) {
		var data [1]byte
		var oob [512]byte
		// Bounded, for a flood of errors.
		for range 256 {
			_, n, _, from, err := unix.Recvmsg(int(fd), data[:], oob[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if err != nil {
				return
			}
			s.reportError(oob[:n], from)
		}
	})
}

// reportError reports one entry of the error queue. to is where the datagram
// was sent.
func (s *fast) reportError(oob []byte, to unix.Sockaddr) {
	var peer netip.AddrPort
	switch a := to.(type) {
	case *unix.SockaddrInet4:
		peer = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(a.Addr).Unmap()
		if a.ZoneId != 0 && ip.Is6() {
			ip = ip.WithZone(zoneName(a.ZoneId))
		}
		peer = netip.AddrPortFrom(ip, uint16(a.Port))
	default:
		return
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return
	}
	for _, m := range msgs {
		v4 := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR
		v6 := m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		if !v4 && !v6 || len(m.Data) < sizeofSockErr {
			continue
		}
		e := (*unix.SockExtendedErr)(unsafe.Pointer(&m.Data[0]))
		mtu := 0
		if unix.Errno(e.Errno) == unix.EMSGSIZE {
			mtu = int(e.Info)
		}
		s.report(peer, unix.Errno(e.Errno), mtu)
	}
}

// sender is the memory of one call of send.
type sender struct {
	s    *fast
	hdrs [txMessages]mmsghdr
	iovs [txMessages]unix.Iovec
	ctls [txMessages]txControl
	ends [txMessages]int // frames up to the end of each message
	n    int             // messages to send
	sent int
	err  unix.Errno
	fn   func(fd uintptr)
}

// txControl is a control message with a segment size.
type txControl struct {
	hdr unix.Cmsghdr
	seg uint16
	_   [6]byte
}

func (s *fast) send(e *endpoint, b *face.Frames) (dropped int) {
	t := <-s.senders
	if t == nil {
		t = &sender{s: s}
		t.fn = t.sendmmsg
	}
	dropped = t.send(e, b)
	s.senders <- t
	return dropped
}

func (t *sender) send(e *endpoint, b *face.Frames) (dropped int) {
	s, retries := t.s, 0
	for at := 0; at < b.Len(); {
		t.prepare(e, b, at)
		if err := s.raw.Control(t.fn); err != nil {
			return dropped + b.Len() - at
		}
		if t.sent > 0 {
			at = t.ends[t.sent-1]
			continue
		}
		switch first := t.ends[0]; t.err {
		case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
			// The queue towards the network is full.
			return dropped + b.Len() - at
		case unix.EIO, unix.EINVAL:
			if first-at > 1 && s.gso.Load() && len(b.Frame(at)) <= s.pathMTU(e.to) {
				// This device or path cannot do it.
				s.gso.Store(false)
				continue
			}
			e.tooBig(len(b.Frame(at)))
			dropped += first - at
			at = first
		case unix.EMSGSIZE:
			s.drainErrors()
			e.tooBig(len(b.Frame(at)))
			dropped += first - at
			at = first
		default:
			s.drainErrors()
			if e.reason() != nil {
				return dropped + b.Len() - at
			}
			// It may have concerned an earlier datagram, or another peer.
			if retries++; retries <= txRetries {
				continue
			}
			if unreachable(t.err) {
				s.report(e.to, t.err, 0)
				return dropped + b.Len() - at
			}
			dropped += first - at
			at = first
		}
	}
	return dropped
}

// prepare makes messages of the frames from at.
func (t *sender) prepare(e *endpoint, b *face.Frames, at int) {
	gso := t.s.gso.Load()
	start := 0
	if at > 0 {
		start = b.Ends[at-1]
	}
	t.n = 0
	for at < b.Len() && t.n < txMessages {
		size := b.Ends[at] - start
		end := b.Ends[at]
		at++
		segments := 1
		for gso && at < b.Len() && segments < gsoSegments {
			next := b.Ends[at] - end
			if next > size || next == 0 || b.Ends[at]-start > gsoBytes {
				break
			}
			end = b.Ends[at]
			at++
			segments++
			if next < size {
				// Only the last one may be shorter.
				break
			}
		}
		t.message(e, b.Buf[start:end], size, segments)
		t.ends[t.n-1] = at
		start = end
	}
}

func (t *sender) message(e *endpoint, p []byte, size, segments int) {
	h, iov := &t.hdrs[t.n].hdr, &t.iovs[t.n]
	*h = unix.Msghdr{Iov: iov}
	h.SetIovlen(1)
	if len(p) > 0 {
		iov.Base = &p[0]
	}
	iov.SetLen(len(p))
	if !t.s.connected {
		h.Name = (*byte)(unsafe.Pointer(&e.name.raw))
		h.Namelen = e.name.len
	}
	if segments > 1 {
		c := &t.ctls[t.n]
		c.hdr.Level, c.hdr.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
		c.hdr.SetLen(unix.CmsgLen(2))
		c.seg = uint16(size)
		h.Control = (*byte)(unsafe.Pointer(c))
		h.SetControllen(unix.CmsgSpace(2))
	}
	t.n++
}

func (t *sender) sendmmsg(fd uintptr) {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&t.hdrs[0])), uintptr(t.n), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		t.sent, t.err = int(n), errno
		if errno != 0 {
			t.sent = 0
		}
		// Not to keep the caller's memory alive.
		for i := range t.n {
			t.iovs[i].Base = nil
		}
		return
	}
}

// pathMTU asks the kernel what it knows of the path, by a socket that is
// connected for the question.
func (s *fast) pathMTU(to netip.AddrPort) int {
	domain, level, option, guess := unix.AF_INET, unix.IPPROTO_IP, unix.IP_MTU, 1500
	if !to.Addr().Is4() {
		domain, level, option, guess = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_MTU, 1280
	}
	mtu := guess
	if fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
		var name sockaddr
		name.set(to)
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&name.raw)), uintptr(name.len))
		if errno == 0 {
			if v, err := unix.GetsockoptInt(fd, level, option); err == nil && v > 0 {
				mtu = v
			}
		}
		_ = unix.Close(fd)
	}
	return mtu - header(to.Addr())
}
