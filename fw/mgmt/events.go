package mgmt

import (
	"sync"
	"time"

	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// eventQueue carries the forwarder's events to Run. Whoever causes an event
// may hold a lock of the forwarder, so that nothing but this is touched.
type eventQueue struct {
	mu     sync.Mutex
	events []run.Event
	claims int // prefix announcements among them
	lost   uint64
	wake   chan struct{} // one token: there is something to do
}

func (q *eventQueue) init() { q.wake = make(chan struct{}, 1) }

func (q *eventQueue) wakeUp() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Bounds of the events that wait for Run, and of the prefix announcements among
// them, which strangers send, which are large and take long to verify: they must
// not push out what happens to faces and routes.
const (
	maxQueued = 1 << 16
	maxClaims = 256
)

func (q *eventQueue) put(e run.Event) {
	q.mu.Lock()
	claim := e.Kind == run.PrefixAnnounced
	switch {
	case len(q.events) >= maxQueued, claim && q.claims >= maxClaims:
		q.lost++
	case claim:
		q.claims++
		fallthrough
	default:
		q.events = append(q.events, e)
	}
	q.mu.Unlock()
	q.wakeUp()
}

func (q *eventQueue) lostEvents() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

func (q *eventQueue) take() []run.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	es := q.events
	q.events, q.claims = nil, 0
	return es
}

// Observe takes an event of the forwarder, on the goroutine that caused it.
// It neither blocks nor calls the forwarder.
func (s *Server) Observe(e run.Event) {
	s.generation.Add(1)
	switch e.Kind {
	case run.FaceCreated, run.FaceDestroyed, run.FaceUp, run.FaceDown, run.PrefixAnnounced:
	case run.RouteAdded, run.RouteRemoved:
		// Of a million routes that a routing daemon sets, none is advertised:
		// they need not wait in a queue.
		if !advertised(&e.Route) && !isDaemonPrefix(e.Route.Prefix) {
			return
		}
	default:
		return
	}
	s.queue.put(e)
}

// Bounds of the face event stream.
const (
	keepEvents  = 1024
	maxWaiting  = 256 // Interests that wait for an event
	eventsFresh = time.Second
)

// eventStream publishes events as <prefix>/seq=N.
type eventStream struct {
	prefix    ndn.Name
	keep      int      // events at least; at most twice as many
	next      uint64   // number of the next event
	kept      []event  // the latest ones, oldest first
	waiting   []waiter // Interests for what has not happened yet
	published uint64
}

type event struct {
	seq  uint64
	at   ndn.Time
	wire []byte
}

type waiter struct {
	name  ndn.Name // of the Interest
	any   bool     // it may be a prefix
	until ndn.Time
	reply func([]byte)
}

// ask answers an Interest or lets it wait for the event that it names. Without
// a number it means the latest event, if that is fresh enough, or the next. It
// reports false if the event is not kept any more: whoever follows the stream has
// fallen behind, and is to begin again.
func (e *eventStream) ask(now ndn.Time, i *ndn.Interest, reply func([]byte)) bool {
	rest := i.Name.Suffix(e.prefix.Len())
	if len(rest) == 0 {
		if !i.CanBePrefix {
			return true
		}
		if n := len(e.kept); n > 0 && (!i.MustBeFresh || now.Sub(e.kept[n-1].at) < eventsFresh) {
			reply(e.kept[n-1].wire)
			return true
		}
		e.wait(now, i, reply)
		return true
	}
	c, rest := rest.Next()
	seq, ok := c.NumberAs(ndn.TypeSequenceNum)
	if !ok || len(rest) > 0 {
		return true
	}
	if len(e.kept) > 0 && seq >= e.kept[0].seq && seq < e.next {
		reply(e.kept[seq-e.kept[0].seq].wire)
		return true
	}
	if seq < e.next {
		return false
	}
	e.wait(now, i, reply)
	return true
}

func (e *eventStream) wait(now ndn.Time, i *ndn.Interest, reply func([]byte)) {
	if len(e.waiting) >= maxWaiting {
		kept := e.waiting[:0]
		for _, w := range e.waiting {
			if w.until > now {
				kept = append(kept, w)
			}
		}
		clear(e.waiting[len(kept):])
		if e.waiting = kept; len(kept) >= maxWaiting {
			// The longest waiting asks again when its Interest expires.
			e.waiting = append(kept[:0], kept[1:]...)
		}
	}
	e.waiting = append(e.waiting, waiter{i.Name.Clone(), i.CanBePrefix, now.Add(i.Lifetime), reply})
}

// awaited reports whether an Interest waits for the next event.
func (e *eventStream) awaited(now ndn.Time) bool {
	for i := range e.waiting {
		if e.waiting[i].until > now {
			return true
		}
	}
	return false
}

// publish makes an event known.
func (e *eventStream) publish(now ndn.Time, content []byte) {
	name := append(ndn.Name(nil), e.prefix...).AppendNumber(ndn.TypeSequenceNum, e.next)
	wire, err := ndn.AppendData(nil, &ndn.DataFields{
		Name: name, Freshness: eventsFresh, Content: content,
	}, ndn.DigestSigner{})
	if err != nil || len(wire) > maxReply {
		return // a URI that fills a packet
	}
	if len(e.kept) >= 2*e.keep {
		n := copy(e.kept, e.kept[len(e.kept)-e.keep+1:])
		clear(e.kept[n:])
		e.kept = e.kept[:n]
	}
	e.kept = append(e.kept, event{e.next, now, wire})
	e.next++
	e.published++
	rest := e.waiting[:0]
	sent := false
	for _, w := range e.waiting {
		switch {
		case w.until <= now:
		case name.Equal(w.name) || (w.any && name.HasPrefix(w.name)):
			// One Data satisfies all the forwarder's pending Interests.
			if !sent {
				w.reply(wire)
				sent = true
			}
		default:
			rest = append(rest, w)
		}
	}
	clear(e.waiting[len(rest):])
	e.waiting = rest
}

func faceEvent(e *run.Event) (proto.FaceEvent, bool) {
	var kind uint64
	switch e.Kind {
	case run.FaceCreated:
		kind = proto.FaceEventCreated
	case run.FaceDestroyed:
		kind = proto.FaceEventDestroyed
	case run.FaceUp:
		kind = proto.FaceEventUp
	case run.FaceDown:
		kind = proto.FaceEventDown
	default:
		return proto.FaceEvent{}, false
	}
	f := &e.Face
	return proto.FaceEvent{
		Kind: kind, FaceID: uint64(f.ID), URI: f.RemoteURI, LocalURI: f.LocalURI,
		Scope: uint64(f.Scope), Persistency: uint64(f.Persistency), LinkType: uint64(f.Link),
		Flags: faceFlags(f),
	}, true
}
