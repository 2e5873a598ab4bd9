package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ndnpop/face"
	"ndnpop/face/internal/outq"
)

// endpoint sends to one peer. It is the face.Transport of a connected socket
// and of each peer of a Listener, except for Close.
type endpoint struct {
	info  face.Info
	sock  socket
	outq  *outq.Meter
	to    netip.AddrPort
	name  sockaddr // to, as the kernel wants it; unused if connected
	limit int      // Options.MTU
	// The socket's own address, of a connected one, and what is told when the host
	// has it no more.
	from  netip.Addr
	moved func(error)

	mtu atomic.Int64 // 0: not known yet

	mu      sync.Mutex
	err     error     // why it ends; nil while it lives
	checked time.Time // when the path MTU was read, and from looked for
	doubted int       // a size limit that the kernel does not know of
	doubts  time.Time // until when
}

// init fills in the endpoint. The MTU of a path is read when first needed.
func (e *endpoint) init(sock socket, local, to netip.AddrPort, mtu int) {
	e.outq = outq.New(sock.control())
	e.sock, e.to, e.limit = sock, to, mtu
	e.name.set(to)
	// UDP is never local, as in NFD: its source is too easily forged.
	e.info = face.Info{RemoteURI: uri(to), LocalURI: uri(local)}
}

// Info implements face.Transport.
func (e *endpoint) Info() face.Info { return e.info }

// QueueLen implements face.Transport. Peers of one Listener share a queue.
func (e *endpoint) QueueLen() int { return e.outq.Len() }

// MTU implements face.Transport.
func (e *endpoint) MTU() int {
	if m := e.mtu.Load(); m != 0 {
		return int(m)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.readMTU(time.Now())
	return int(e.mtu.Load())
}

// readMTU asks for the MTU of the path.
func (e *endpoint) readMTU(now time.Time) {
	m := min(e.sock.pathMTU(e.to), e.limit)
	if now.Before(e.doubts) {
		m = min(m, e.doubted)
	}
	e.checked = now
	e.mtu.Store(int64(max(m, leastMTU)))
}

// leastMTU is less than any path offers, and still of use.
const leastMTU = 256

// Send implements face.Transport.
func (e *endpoint) Send(b *face.Frames) (dropped int) {
	if b.Len() == 0 {
		return 0
	}
	now := time.Now()
	e.mu.Lock()
	if e.err != nil {
		e.mu.Unlock()
		return b.Len()
	}
	fresh, look := e.checked.IsZero(), now.Sub(e.checked) > lookEvery
	if look {
		e.readMTU(now)
	}
	e.mu.Unlock()
	if look && !fresh && e.moved != nil && !isLocal(e.from) {
		e.moved(fmt.Errorf("udp: %w: %s", errMoved, e.from))
		return b.Len()
	}
	return e.sock.send(e, b)
}

// errMoved ends a connected socket: it would send from that address all the same,
// and hear nothing, until it is connected anew.
var errMoved = errors.New("this host has the address no more that the face sends from")

// isLocal reports whether the host has an address, or cannot say. Binding to it is
// the cheapest way to ask.
func isLocal(a netip.Addr) bool {
	c, err := net.ListenUDP(family(a), net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
	if err != nil {
		return !errors.Is(err, syscall.EADDRNOTAVAIL)
	}
	_ = c.Close()
	return true
}

// sizes are what a datagram may be tried with when one did not pass and
// nobody says what would (in the spirit of RFC 1191, section 7).
var sizes = [...]int{8800, 4352, 1472, 1452, 1400, 1232, 548, leastMTU}

// tooBig notes that a datagram of size bytes did not pass. The kernel usually
// knows by now what does.
func (e *endpoint) tooBig(size int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lower(size - 1)
}

func (e *endpoint) lower(limit int) {
	now := time.Now()
	e.readMTU(now)
	if int(e.mtu.Load()) <= limit {
		return
	}
	for _, s := range sizes {
		if s <= limit {
			limit = s
			break
		}
	}
	e.doubted, e.doubts = limit, now.Add(mtuDoubt)
	e.readMTU(now)
}

// learn takes an error about the peer. It returns the reason to end the
// endpoint, nil to live on.
func (e *endpoint) learn(err error, mtu int) error {
	switch {
	case errors.Is(err, syscall.EMSGSIZE):
		e.mu.Lock()
		defer e.mu.Unlock()
		if limit := mtu - header(e.to.Addr()); mtu > 0 && limit < int(e.mtu.Load()) {
			e.readMTU(time.Now())
			if limit < int(e.mtu.Load()) {
				e.doubted, e.doubts = limit, time.Now().Add(mtuDoubt)
				e.readMTU(time.Now())
			}
		}
		return nil
	case unreachable(err):
		return fmt.Errorf("%w: %w", face.ErrRefused, err)
	}
	return nil
}

// unreachable reports whether an error says that nobody receives at the
// peer's address.
func unreachable(err error) bool {
	for _, e := range [...]syscall.Errno{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN, syscall.ENOPROTOOPT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// finish records the reason to end, and says whether it is the first.
func (e *endpoint) finish(err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return false
	}
	e.err = err
	return true
}

func (e *endpoint) reason() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}
