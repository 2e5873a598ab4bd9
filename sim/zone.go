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
	in  []inlet
	// soon is the least that anything takes from another zone to here.
	soon time.Duration
	// leaves are zones that get packets from this one only.
	leaves []*zone
}

// inlet is where packets come to a zone from another one.
type inlet struct {
	from  *zone
	least time.Duration // that they take
}

// zones run the events of the nodes. In batches this is conservative
// synchronisation (Chandy and Misra, IEEE TSE SE-5(5), 1979) on one processor:
// the zone whose event is the earliest, at t, runs all that it has before
// anything can reach it. No other zone does anything before t, and each of its
// neighbours nothing before its own next event, or what somebody sends it at t
// has come. What the zone sends meanwhile reaches nobody who has run past the
// time of arrival. The same holds for the leaves that hang on it, which run at once.
type zones struct {
	net     *Network
	one     *zone     // without batches
	order   scheduler // with batches: the zones
	barrier ndn.Time  // no zone runs past this
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
		z.net.check(&z.one.scheduler)
		return ok
	}
	if z.net.stale {
		z.net.stale = false
		z.measure()
	}
	z.barrier = min(end, z.net.calls.next()-1)
	return z.order.step(z.barrier)
}

func (n *Network) check(s *scheduler) {
	if s.same > maxSame && n.err == nil {
		n.err = fmt.Errorf("%w at %v", ErrStuck, n.Now())
	}
}

// fire implements actor: the zone runs ahead.
func (x *zone) fire(now ndn.Time) ndn.Time {
	z := x.all
	z.running = x
	done := 0
	if x.soon > 0 {
		done = x.run(min(z.barrier, now.Add(x.soon)-1))
	} else if x.step(now) {
		done = 1
	}
	// It may go on for longer where its neighbours have, which costs a look at
	// each of them: worth it after as many events.
	if done >= len(x.in) && x.next() <= z.barrier {
		x.run(min(z.barrier, x.safe(now)-1))
	}
	z.net.check(&x.scheduler)
	// What it has sent to leaves is still in the processor's caches.
	for _, y := range x.leaves {
		if y.next() <= z.barrier {
			z.running = y
			if y.run(min(z.barrier, y.safe(now)-1)) > 0 {
				z.order.move(y.id, y.next())
			}
			z.net.check(&y.scheduler)
		}
	}
	z.running = nil
	return x.next()
}

// run does what the zone has until end, and returns how many events that were.
func (x *zone) run(end ndn.Time) (done int) {
	for x.same < maxSame && x.step(end) {
		done++
	}
	return done
}

// safe is the earliest that anything can still reach the zone, when nobody does
// anything before now.
func (x *zone) safe(now ndn.Time) ndn.Time {
	at := ndn.Never
	for i := range x.in {
		y := &x.in[i]
		at = min(at, min(y.from.next(), now.Add(y.from.soon)).Add(y.least))
	}
	return at
}

// wake is the scheduler's, and wakes the zone too when another one calls it.
func (x *zone) wake(id int32, at ndn.Time) {
	x.scheduler.wake(id, at)
	if z := x.all; z.one == nil && z.running != x {
		z.order.wake(x.id, x.next())
	}
}

// measure finds out how long anything takes at least from one zone to another.
func (z *zones) measure() {
	for _, x := range z.net.nodes {
		x.zone.in, x.zone.soon = x.zone.in[:0], time.Hour
	}
	for _, l := range z.net.links {
		for _, d := range []*Direction{l.AB, l.BA} {
			p := d.Params()
			least := p.Delay - p.Jitter
			if d.twin != nil {
				least = 0 // who shares a medium notices at once
			}
			x := d.to.zone
			x.in = append(x.in, inlet{d.to.peer.zone, least})
			x.soon = min(x.soon, least)
		}
	}
	for _, x := range z.net.nodes {
		x.zone.leaves = x.zone.leaves[:0]
	}
	for _, x := range z.net.nodes {
		if y := x.zone; len(y.in) == 1 && y.soon > 0 {
			y.in[0].from.leaves = append(y.in[0].from.leaves, y)
		}
	}
}
