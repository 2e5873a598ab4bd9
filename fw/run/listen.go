package run

import (
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

// ListenOptions say how a listener's faces live. The zero value of a field is
// its default.
type ListenOptions struct {
	// MaxFaces bounds the faces; 4096. When there are so many, a new datagram
	// peer takes the place of one that is not proven and has sent little, and a new
	// connection that of one from a host that has more of them.
	MaxFaces int
	// IdleTimeout destroys on-demand datagram faces that hear nothing; 10
	// minutes (NFD), below 0 never.
	IdleTimeout time.Duration
	MTU         int // bytes, of datagram faces; 0 follows the path
	Reliable    Reliability
	// Allowance bounds what unproven peers of a datagram listener get.
	Allowance Allowance
}

// listener is a face.Listener in service.
type listener struct {
	f       *Forwarder
	l       face.Listener
	uri     string
	streams bool
	opts    ListenOptions
	once    sync.Once
	total   *shared // of the peers with a budget; nil: they have none

	// Guarded by the face table's lock.
	members []*netFace
	hosts   map[netip.Prefix]int // faces of each host, of streams
	refused uint64
	fullAt  ndn.Time // when a peer was refused last for want of room; 0: never
	turns   bucket   // of faces for new datagram peers
	again   bucket   // of those that come back after a refusal
	back    returns  // who they are
	seed    maphash.Seed
}

// Listen serves a listener and owns it. Its peers become on-demand faces.
func (f *Forwarder) Listen(l face.Listener, o ListenOptions) error {
	if o.MaxFaces <= 0 {
		o.MaxFaces = 4096
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 10 * time.Minute
	}
	s := &listener{f: f, l: l, uri: l.URI(), opts: o, streams: !isDatagram(l.URI()), hosts: make(map[netip.Prefix]int), seed: maphash.MakeSeed()}
	places := int64(max(o.MaxFaces, crowdLeast))
	s.turns = bucket{rate: places / crowdTurns, burst: places}
	s.again = s.turns
	if a := &s.opts.Allowance; !s.streams && a.Rate >= 0 {
		a.defaults()
		s.total = &shared{bucket: bucket{rate: a.Total, burst: max(a.Total, a.Burst)}}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		_ = l.Close()
		return ErrClosed
	}
	f.listeners = append(f.listeners, s)
	f.wg.Go(s.serve)
	return nil
}

func (l *listener) close() { l.once.Do(func() { _ = l.l.Close() }) }

func (l *listener) serve() {
	err := l.l.Serve(l.accept)
	l.close()
	if !errors.Is(err, face.ErrClosed) {
		l.f.mu.Lock()
		for i, x := range l.f.listeners {
			if x == l {
				l.f.listeners = append(l.f.listeners[:i:i], l.f.listeners[i+1:]...)
				break
			}
		}
		l.f.mu.Unlock()
		l.f.emit(Event{Kind: ListenerDown, Listener: l.uri, Err: err})
	}
}

// fullCalm is how long there must have been room until want of it is news.
const fullCalm = time.Minute

// full notes that a peer is refused; the face table's lock is held.
func (l *listener) full() {
	l.refused++
	now := l.f.clock.now()
	if l.fullAt == 0 || now.Sub(l.fullAt) > fullCalm {
		l.f.emit(Event{Kind: ListenerFull, Listener: l.uri})
	}
	l.fullAt = now
}

// join adds a face; the face table's lock is held.
func (l *listener) join(fc *netFace) {
	fc.member = len(l.members)
	l.members = append(l.members, fc)
	if l.streams {
		fc.host = hostOf(fc.info.RemoteURI)
		l.hosts[fc.host]++
	}
}

// leave removes a face; the face table's lock is held.
func (l *listener) leave(fc *netFace) {
	last := len(l.members) - 1
	moved := l.members[last]
	l.members[fc.member], moved.member = moved, fc.member
	l.members[last] = nil
	l.members = l.members[:last]
	if l.streams {
		if l.hosts[fc.host]--; l.hosts[fc.host] == 0 {
			delete(l.hosts, fc.host)
		}
	}
}

// HostOf is the host in a face's URI: an IPv4 address, or 64 bits of an IPv6
// address, which is what one host may choose from; the URI itself if there is
// none.
func HostOf(uri string) string {
	if h := hostOf(uri); h.IsValid() {
		return h.String()
	}
	return uri
}

func hostOf(uri string) netip.Prefix {
	_, addr := splitURI(uri)
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return netip.Prefix{}
	}
	a := ap.Addr().Unmap().WithZone("")
	p, _ := a.Prefix(min(a.BitLen(), 64)) // there are so many bits
	return p
}

// When a listener has too many faces, makeRoom looks at so many of them for the
// one that is worth the least. After the first, as many as there are places and
// crowdLeast in any case, new datagram peers get faces no faster than one place
// in crowdTurns each second, and as many more are for peers that have been
// refused and come back. So the work is bounded that forged addresses can cause,
// whether their faces stay or end by an ICMP error at once: it must leave the
// processor time to read what else comes, which is lost otherwise. And who has
// got a place has it for a while.
const (
	crowdSample = 32
	crowdIdle   = time.Second
	crowdTurns  = 4
	crowdLeast  = 64
)

// makeRoom ends a datagram face if there are too many, of a few at random the
// one that has sent the fewest packets, an idle second counting as half of them.
// Otherwise a few thousand datagrams a second with forged addresses would lock
// new peers out. They take one another's places: a peer that has sent a second
// packet, as every honest one does, is worth more than they are. Who has shown
// that it receives what is sent to it, is wanted by an operator, or has had
// routes keeps its face.
func (l *listener) makeRoom() {
	f, now := l.f, l.f.clock.now()
	f.mu.Lock()
	if len(l.members) < l.opts.MaxFaces {
		f.mu.Unlock()
		return
	}
	var victim *netFace
	var least uint64
	var last ndn.Time
	for range crowdSample {
		fc := l.members[rand.IntN(len(l.members))]
		if fc.routed || fc == victim {
			continue
		}
		fc.mu.Lock()
		idle := max(0, now.Sub(fc.lastIn))
		worth := (fc.ctr.InInterests + fc.ctr.InData + fc.ctr.InNacks) >> min(idle/crowdIdle, 63)
		if fc.dispensable(now) && (victim == nil || worth < least || worth == least && fc.lastIn < last) {
			victim, least, last = fc, worth, fc.lastIn
		}
		fc.mu.Unlock()
	}
	f.mu.Unlock()
	if victim != nil {
		f.destroy(victim, ErrCrowded)
	}
}

// makeRoomFor ends a connection if there are too many: of the hosts that have
// more of them than the new one's would have, that of one with the most which
// has been silent the longest. Otherwise one host could keep all others out by
// connecting and doing nothing.
func (l *listener) makeRoomFor(uri string) {
	f := l.f
	f.mu.Lock()
	if len(l.members) < l.opts.MaxFaces {
		f.mu.Unlock()
		return
	}
	var victim *netFace
	var silent ndn.Time
	most := l.hosts[hostOf(uri)] + 1
	for range crowdSample {
		fc := l.members[rand.IntN(len(l.members))]
		n := l.hosts[fc.host]
		if fc.routed || n < most || n == most && victim == nil {
			continue
		}
		fc.mu.Lock()
		if fc.persistency == face.PersistencyOnDemand && (n > most || fc.lastIn < silent) {
			victim, most, silent = fc, n, fc.lastIn
		}
		fc.mu.Unlock()
	}
	f.mu.Unlock()
	if victim != nil {
		f.destroy(victim, ErrCrowded)
	}
}

// dispensable reports whether nobody is known to be at the other end of a
// datagram face; the lock is held.
func (fc *netFace) dispensable(now ndn.Time) bool {
	if fc.persistency != face.PersistencyOnDemand {
		return false
	}
	if fc.listener == nil || fc.info.Stream {
		return false
	}
	return fc.listener.total == nil || (fc.budget != nil && now >= fc.budget.proven)
}

// turn reports whether a new datagram peer may have a face now; the face
// table's lock is held.
func (l *listener) turn(now ndn.Time, key uint64) bool {
	turns := &l.turns
	if l.back.known(now, key) {
		turns = &l.again
	}
	if turns.take(now, 1) {
		return true
	}
	l.back.note(now, key)
	l.refused++
	return false
}

// accept makes a face of a new peer (face.Acceptor).
func (l *listener) accept(tr face.Transport) (face.Receiver, error) {
	f := l.f
	n := newFace{tr: tr, persistency: face.PersistencyOnDemand, listener: l, reliable: l.opts.Reliable}
	n.uri = tr.Info().RemoteURI
	if l.streams {
		l.makeRoomFor(n.uri)
	} else {
		n.mtu = l.opts.MTU
		f.mu.Lock()
		turn := l.turn(f.clock.now(), maphash.String(l.seed, n.uri))
		f.mu.Unlock()
		if !turn {
			return nil, ErrTooManyFaces
		}
		l.makeRoom()
	}
	// The transport's goroutine ends with Closed.
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, ErrClosed
	}
	if other := f.byURI[n.uri]; other != nil && !l.streams {
		// A permanent face to that peer waits to try again: it need not.
		select {
		case other.poke <- struct{}{}:
		default:
		}
	}
	f.wg.Add(1)
	f.mu.Unlock()
	fc, err := f.addFace(n)
	if err != nil {
		f.wg.Done()
		return nil, err
	}
	return &ingress{fc: fc, tr: tr, onClosed: func(err error) {
		defer f.wg.Done()
		// A face that was made permanent goes on with a socket of its own.
		if f.ended(fc, tr, err) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if !f.closed {
				f.wg.Go(func() { f.live(fc, nil, false) })
			}
		}
	}}, nil
}

// Channels lists the URIs of the listeners, in the order they were started.
func (f *Forwarder) Channels() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	uris := make([]string, len(f.listeners))
	for i, l := range f.listeners {
		uris[i] = l.uri
	}
	return uris
}

// RefusedFaces is how many peers the listeners turned away because they, or
// the face table, had too many faces.
func (f *Forwarder) RefusedFaces() (n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.listeners {
		n += l.refused
	}
	return n
}

// localFor is the address of a datagram listener from which a remote address can
// be reached, so that the peer sees one neighbour whoever spoke first.
func (f *Forwarder) localFor(to netip.Addr) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.listeners {
		if !isDatagram(l.uri) {
			continue
		}
		_, addr := splitURI(l.uri)
		ap, err := netip.ParseAddrPort(addr)
		if err == nil && ap.Addr().Is4() == to.Is4() && (to.IsLoopback() || !ap.Addr().IsLoopback()) {
			return addr
		}
	}
	return ""
}
