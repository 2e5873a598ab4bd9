package sim

import "ndnpop/ndn"

// actor is something with a deadline: a direction of a link, a node, an
// application, a scheduled call.
type actor interface {
	// fire is called when the deadline that it gave has come, or earlier, and
	// returns the next one, ndn.Never for none.
	fire(now ndn.Time) ndn.Time
}

// scheduler is an event queue: a heap of actors ordered by the time that each
// wants to be called at and, among equals, by when it asked. An actor is in it
// at most once, so its size does not grow with the traffic.
type scheduler struct {
	clock  *ndn.Time
	heap   []entry
	pos    []int32 // of each actor in the heap, -1 when absent
	actors []actor
	free   []int32
	seq    uint64
	firing int32 // the actor that is being called, at the root of the heap
	gone   bool  // it left meanwhile
	last   ndn.Time
	same   int // events at time last so far
}

func newScheduler(clock *ndn.Time) scheduler { return scheduler{clock: clock, firing: noActor} }

// next is when the next actor is to be called.
func (s *scheduler) next() ndn.Time {
	if len(s.heap) == 0 {
		return ndn.Never
	}
	return s.heap[0].at
}

type entry struct {
	at  ndn.Time
	seq uint64
	id  int32
}

const noActor int32 = -1

func (a *entry) before(b *entry) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// join gives an actor its number.
func (s *scheduler) join(a actor) int32 {
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		s.actors[id] = a
		return id
	}
	s.actors = append(s.actors, a)
	s.pos = append(s.pos, noActor)
	return int32(len(s.actors) - 1)
}

// leave takes an actor out for good; its number will be used again.
func (s *scheduler) leave(id int32) {
	if id == s.firing {
		s.gone = true
		return
	}
	if p := s.pos[id]; p >= 0 {
		s.remove(int(p))
	}
	s.actors[id] = nil
	s.free = append(s.free, id)
}

// wake makes sure that an actor is called at a time or before. A time that is
// later than the one it waits for has no effect: it will be asked then.
func (s *scheduler) wake(id int32, at ndn.Time) {
	if at == ndn.Never {
		return
	}
	at = max(at, *s.clock)
	p := s.pos[id]
	if p >= 0 {
		if s.heap[p].at <= at {
			return
		}
	} else {
		p = int32(len(s.heap))
		s.heap = append(s.heap, entry{id: id})
	}
	s.seq++
	s.heap[p].at, s.heap[p].seq = at, s.seq
	s.up(int(p))
}

// move has an actor that waits called at another time.
func (s *scheduler) move(id int32, at ndn.Time) {
	p := s.pos[id]
	if p < 0 {
		s.wake(id, at)
		return
	}
	if at == ndn.Never {
		s.remove(int(p))
		return
	}
	s.seq++
	s.heap[p].at, s.heap[p].seq = at, s.seq
	s.down(int(p))
	s.up(int(s.pos[id]))
}

// step calls the next actor and reports whether there was one until then.
func (s *scheduler) step(until ndn.Time) bool {
	if len(s.heap) == 0 || s.heap[0].at > until {
		return false
	}
	top := &s.heap[0]
	now := top.at
	if s.same++; now != s.last {
		s.last, s.same = now, 0
	}
	*s.clock, s.firing = now, top.id
	next := s.actors[s.firing].fire(now)
	id := s.firing
	s.firing = noActor
	switch {
	case s.gone:
		s.gone = false
		s.leave(id)
	case next == ndn.Never:
		s.remove(0)
	default:
		s.seq++
		s.heap[0].at, s.heap[0].seq = max(next, now), s.seq
		s.down(0)
	}
	return true
}

func (s *scheduler) remove(p int) {
	last := len(s.heap) - 1
	s.pos[s.heap[p].id] = noActor
	moved := s.heap[last]
	s.heap = s.heap[:last]
	if p == last {
		return
	}
	s.heap[p] = moved
	s.pos[moved.id] = int32(p)
	s.down(p)
	s.up(int(s.pos[moved.id]))
}

// The heap has four children per node: fewer levels to descend, and children
// that share cache lines.

func (s *scheduler) up(p int) {
	e := s.heap[p]
	for p > 0 {
		parent := (p - 1) / 4
		if !e.before(&s.heap[parent]) {
			break
		}
		s.heap[p] = s.heap[parent]
		s.pos[s.heap[p].id] = int32(p)
		p = parent
	}
	s.heap[p] = e
	s.pos[e.id] = int32(p)
}

func (s *scheduler) down(p int) {
	e := s.heap[p]
	n := len(s.heap)
	for {
		c := 4*p + 1
		if c >= n {
			break
		}
		best := c
		for i := c + 1; i < min(c+4, n); i++ {
			if s.heap[i].before(&s.heap[best]) {
				best = i
			}
		}
		if !s.heap[best].before(&e) {
			break
		}
		s.heap[p] = s.heap[best]
		s.pos[s.heap[p].id] = int32(p)
		p = best
	}
	s.heap[p] = e
	s.pos[e.id] = int32(p)
}

// call is a function that is called once.
type call struct {
	s  *scheduler
	id int32
	fn func()
}

func (c *call) fire(ndn.Time) ndn.Time {
	c.fn()
	c.s.leave(c.id)
	return ndn.Never
}

// at schedules a call.
func (s *scheduler) at(at ndn.Time, fn func()) {
	c := &call{s: s, fn: fn}
	c.id = s.join(c)
	s.wake(c.id, at)
}
