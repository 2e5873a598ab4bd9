package sim

import (
	"fmt"
	"time"

	"ndnpop/ndn"
)

// zone is nodes that share an event queue: all of them or, in batches, one
// with its applications.
type zone struct {
	scheduler
	all *zones
	id  int32 // among the zones
}

// zones run the events of the nodes. In batches this is conservative
// synchronisation (Chandy and Misra, IEEE TSE SE-5(5), 1979) on one processor:
// the zone whose event is the earliest, at t, runs all that it has before t +
// ahead. Whatever the others do at t or later reaches it after that, and what
// it sends reaches nobody who has run past the time of arrival.
type zones struct {
	net     *Network
	one     *zone     // without batches
	order   scheduler // with batches: the zones
	ahead   time.Duration
	barrier ndn.Time // no zone runs past this
	running *zone
}

// maxSame is how many events at one time are taken for a fault.
const maxSame = 1 << 20

func (z *zones) init(n *Network) {
	z.net, z.order = n, newScheduler(&n.now)
	if !n.cfg.Batch {
		z.one = &zone{scheduler: newScheduler(&n.now), all: z}
	}
}

// zoneOf returns the zone of a new node.
func (n *Network) zoneOf() *zone {
	if n.zones.one != nil {
		return n.zones.one
	}
	z := &zone{scheduler: newScheduler(&n.now), all: &n.zones}
	z.id = n.zones.order.join(z)
	return z
}

// next is when the next event is.
func (z *zones) next() ndn.Time {
	if z.one != nil {
		return z.one.next()
	}
	return z.order.next()
}

// step runs the next event, or in batches the next zone, and reports whether
// there was one until end.
func (z *zones) step(end ndn.Time) bool {
	if z.one != nil {
		z.running = z.one
		ok := z.one.step(end)
		z.running = nil
		z.check(z.one)
		return ok
	}
	if z.net.stale {
		z.ahead, z.net.stale = z.net.lookahead(), false
	}
	z.barrier = min(end, z.net.calls.next()-1)
	return z.order.step(z.barrier)
}

func (z *zones) check(x *zone) {
	if x.same > maxSame && z.net.err == nil {
		z.net.err = fmt.Errorf("%w at %v", ErrStuck, z.net.Now())
	}
}

// fire implements actor: the zone runs ahead.
func (x *zone) fire(now ndn.Time) ndn.Time {
	z := x.all
	z.running = x
	if z.ahead > 0 {
		for end := min(z.barrier, now.Add(z.ahead)-1); x.step(end) && x.same < maxSame; {
		}
	} else {
		x.step(now)
	}
	z.running = nil
	z.check(x)
	return x.next()
}

// wake is the scheduler's, and wakes the zone too when another one calls it.
func (x *zone) wake(id int32, at ndn.Time) {
	x.scheduler.wake(id, at)
	if z := x.all; z.one == nil && z.running != x {
		z.order.wake(x.id, x.next())
	}
}

// lookahead is how long anything takes at least from one node to another.
func (n *Network) lookahead() time.Duration {
	least := time.Hour
	for _, l := range n.links {
		for _, d := range []*Direction{l.AB, l.BA} {
			if d.twin != nil {
				return 0
			}
			p := d.Params()
			least = min(least, p.Delay-p.Jitter)
		}
	}
	return least
}
