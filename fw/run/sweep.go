package run

import (
	"runtime"
	"sync"

	"ndnpop/fw"
	"ndnpop/ndn"
)

// sweeper is the goroutine that takes out of the tables what may take long:
// the routes of faces that have gone, and those that have expired. The RIB may
// be busy for seconds with a route that many prefixes inherit, and neither
// those who receive nor the timers can wait for it.
type sweeper struct {
	wake chan struct{} // one token: there is something to do
	stop chan struct{}

	mu      sync.Mutex
	queue   []*leaving // at most one for each face that had routes
	expired bool
}

// leaving is a face that is known to nobody any more but has routes.
type leaving struct {
	id   ndn.FaceID
	done chan struct{} // closed when it has none
}

func newSweeper() *sweeper {
	return &sweeper{wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

func (s *sweeper) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// add gives it a face and returns what tells the end.
func (s *sweeper) add(id ndn.FaceID) <-chan struct{} {
	l := &leaving{id: id, done: make(chan struct{})}
	s.mu.Lock()
	s.queue = append(s.queue, l)
	s.mu.Unlock()
	s.signal()
	return l.done
}

// take returns what there is to do.
func (s *sweeper) take() (queue []*leaving, expired bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue, expired = s.queue, s.expired
	s.queue, s.expired = nil, false
	return queue, expired
}

// sweep works until stop is closed and nothing is left.
func (f *Forwarder) sweep() {
	s := f.sweeper
	for stopped := false; ; {
		queue, expired := s.take()
		if expired {
			f.removeExpired()
		}
		for _, l := range queue {
			f.removeFaceFromShards(l.id)
			f.removeFaceRoutes(l.id)
			close(l.done)
		}
		switch {
		case len(queue) > 0 || expired:
		case stopped:
			return
		default:
			select {
			case <-s.wake:
			case <-s.stop:
				stopped = true
			}
		}
	}
}

// removeFaceFromShards removes the next hops of a face in parts.
func (f *Forwarder) removeFaceFromShards(id ndn.FaceID) {
	for more := true; more; {
		more = false
		f.call(func(now ndn.Time, s *fw.Shard) {
			more = !s.RemoveFacePart(now, id, fibBatch) || more
		})
		runtime.Gosched() // whoever waits for the lock is next
	}
}

// removeFaceRoutes removes the routes of a face that has gone, in parts as
// well.
func (f *Forwarder) removeFaceRoutes(id ndn.FaceID) {
	f.removeRoutes(func() *route { return f.rib.byFace[id] })
}

// removeExpired removes the routes whose time has come.
func (f *Forwarder) removeExpired() {
	now := f.clock.now()
	f.removeRoutes(func() *route { return f.rib.expired(now) })
	f.ribMu.Lock()
	f.alarms.arm(f.ribTimer, f.rib.deadline())
	f.ribMu.Unlock()
}

// removeRoutes removes routes as long as next, which is called with the RIB's
// lock held, finds one.
func (f *Forwarder) removeRoutes(next func() *route) {
	for more := true; more; {
		f.ribMu.Lock()
		n := 0
		for r := next(); r != nil && n < fibBatch; r = next() {
			f.removeRoute(r)
			n++
		}
		f.applyFIB()
		f.ribMu.Unlock()
		more = n == fibBatch
		runtime.Gosched()
	}
}

// routesDue is the RIB's timer.
func (f *Forwarder) routesDue(ndn.Time) ndn.Time {
	s := f.sweeper
	s.mu.Lock()
	s.expired = true
	s.mu.Unlock()
	s.signal()
	return ndn.Never // removeExpired arms it again
}
