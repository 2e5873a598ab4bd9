package udp

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"ndnpop/face"
	"ndnpop/ndn"
)

// Listener is one socket that serves every peer that sends to it. It
// implements face.Listener.
type Listener struct {
	sock        socket
	o           Options
	local       netip.AddrPort
	uri         string
	read, write int

	refused, overLimit, oversize, foreign atomic.Uint64

	mu     sync.Mutex
	peers  map[netip.AddrPort]*peer
	ended  []*peer // whose Receiver is to be told
	closed bool
	done   bool // Serve has told all Receivers that it will
}

// peer is the transport of one peer of a Listener.
type peer struct {
	endpoint
	l       *Listener
	r       face.Receiver
	touched bool // it got frames that have not been followed by Flush
}

// Listen opens a socket on addr, e.g. 0.0.0.0:6363 or [::]:6363. An IPv6
// socket does not take IPv4.
func Listen(addr string, o Options) (*Listener, error) {
	o.defaults()
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("udp: listen on %q: an address and port are needed, such as 0.0.0.0:6363: %w", addr, err)
	}
	ap = unmap(ap)
	c, err := net.ListenUDP(family(ap.Addr()), net.UDPAddrFromAddrPort(ap))
	if err != nil {
		return nil, fmt.Errorf("udp: %w", err)
	}
	l := &Listener{o: o, local: localAddr(c), peers: make(map[netip.AddrPort]*peer)}
	l.uri = uri(l.local)
	// Only now may sockets of Dial share the address: another process could
	// not have taken it before, and cannot take it unasked now.
	shareAddress(c)
	l.read, l.write = setBuffers(c, &o)
	if l.sock, err = newSocket(c, ap.Addr(), false, &o, l.hear); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("udp: listen on %s: %w", addr, err)
	}
	return l, nil
}

// URI implements face.Listener.
func (l *Listener) URI() string { return l.uri }

// Buffers is the size of the socket's buffers in bytes, as reached.
func (l *Listener) Buffers() (read, write int) { return l.read, l.write }

// Counters of a Listener. They only grow.
type Counters struct {
	Refused   uint64 // frames of peers that the Acceptor refused
	OverLimit uint64 // frames of new peers while there were MaxPeers
	Oversize  uint64 // datagrams larger than ndn.MaxPacketSize
	Foreign   uint64 // datagrams of new peers that are not NDN
}

// Counters returns a copy of the counters.
func (l *Listener) Counters() Counters {
	return Counters{l.refused.Load(), l.overLimit.Load(), l.oversize.Load(), l.foreign.Load()}
}

// Close implements face.Listener: all peers end.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return l.sock.close()
}

// Serve implements face.Listener. Peers are made on demand.
func (l *Listener) Serve(accept face.Acceptor) error {
	return l.finish(l.sock.serve(&server{l: l, accept: accept}))
}

// reap tells the receivers of peers that have ended.
func (l *Listener) reap() {
	l.mu.Lock()
	ended := l.ended
	l.ended = nil
	l.mu.Unlock()
	for _, p := range ended {
		if p.r != nil {
			p.r.Closed(p.reason())
		}
	}
}

// finish ends all peers and the socket.
func (l *Listener) finish(err error) error {
	l.mu.Lock()
	if l.closed {
		err = face.ErrClosed
	}
	l.closed = true
	_ = l.sock.close()
	for _, p := range l.peers {
		if p.endpoint.finish(err) {
			l.ended = append(l.ended, p)
		}
	}
	clear(l.peers)
	l.done = true
	l.mu.Unlock()
	l.reap()
	return err
}

// hear takes an error about a peer.
func (l *Listener) hear(to netip.AddrPort, err error, mtu int) {
	l.mu.Lock()
	p := l.peers[to]
	l.mu.Unlock()
	if p == nil {
		return
	}
	if err := p.learn(err, mtu); err != nil {
		p.end(err)
	}
}

// end ends a peer, once. The Receiver is told by Serve, or here when Serve is
// already past that.
func (p *peer) end(err error) {
	if !p.finish(err) {
		return
	}
	l := p.l
	l.mu.Lock()
	if l.done {
		l.mu.Unlock()
		if p.r != nil {
			p.r.Closed(p.reason())
		}
		return
	}
	defer l.mu.Unlock()
	if l.peers[p.to] == p {
		delete(l.peers, p.to)
	}
	l.ended = append(l.ended, p)
	l.sock.wake()
}

// Close implements face.Transport. The peer may come back as a new one.
func (p *peer) Close() error {
	p.end(face.ErrClosed)
	return nil
}

// server is the handler of a Listener's socket.
type server struct {
	l       *Listener
	accept  face.Acceptor
	frames  [][]byte
	touched []*peer
}

// over tells the receivers of peers that have ended.
func (s *server) over() bool {
	s.l.reap()
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	return s.l.closed
}

// arrived gives what came to the peers that sent it.
func (s *server) arrived(in *arrivals) {
	l := s.l
	l.oversize.Add(uint64(in.oversize))
	var cur *peer
	for i := range in.datagrams {
		d := &in.datagrams[i]
		if cur == nil || cur.to != d.from {
			s.deliver(cur)
			cur = s.peer(d)
		}
		if cur != nil {
			s.frames = d.frames(s.frames)
		}
	}
	s.deliver(cur)
}

func (s *server) flush() {
	for i, p := range s.touched {
		p.touched = false
		p.r.Flush()
		s.touched[i] = nil
	}
	s.touched = s.touched[:0]
}

// deliver passes the collected frames to p.
func (s *server) deliver(p *peer) {
	if len(s.frames) == 0 {
		return
	}
	p.r.Receive(s.frames)
	s.frames = s.frames[:0]
	if !p.touched {
		p.touched = true
		s.touched = append(s.touched, p)
	}
}

// peer finds or makes the peer that sent d. It is nil if it may not exist.
func (s *server) peer(d *datagram) *peer {
	l := s.l
	l.mu.Lock()
	p := l.peers[d.from]
	n := len(l.peers)
	l.mu.Unlock()
	if p != nil {
		return p
	}
	count := uint64((len(d.data) + d.segment - 1) / d.segment)
	switch t := d.data[0]; {
	case uint32(t) != ndn.TypeLpPacket && uint32(t) != ndn.TypeInterest && uint32(t) != ndn.TypeData:
		l.foreign.Add(count)
		return nil
	case n >= l.o.MaxPeers:
		l.overLimit.Add(count)
		return nil
	}
	p = &peer{l: l}
	p.init(l.sock, l.local, d.from, l.o.MTU)
	var err error
	if p.r, err = s.accept(p); err != nil {
		l.refused.Add(count)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || p.reason() != nil {
		// Closed between accept and here: end has noted it for reap.
		if l.closed && p.finish(face.ErrClosed) {
			l.ended = append(l.ended, p)
		}
		return nil
	}
	l.peers[d.from] = p
	return p
}
