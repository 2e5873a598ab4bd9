// Package random is the strategy that sends every Interest to a next hop
// picked at random, all with the same probability (NFD: random version 1).
//
// It differs from NFD's in these points: a repetition prefers next hops that
// have not been tried, repetitions that come too fast are suppressed, and when
// a next hop goes down, what is pending there is sent on at once, and what its
// link gives up to a next hop that was not tried. Nacks are collected from all
// upstreams; the least severe then goes down. Without a next hop the answer is
// Nack NoRoute.
package random

import (
	"ndnpop/ndn"
	"ndnpop/strategy"
)

// Factory returns the factory of random.
func Factory() strategy.Factory {
	return strategy.SuppressingFactory("random", 1, "a next hop at random", func(s strategy.Suppression) strategy.Strategy {
		return &random{suppression: s}
	})
}

type random struct{ suppression strategy.Suppression }

// Suppression implements strategy.Suppressor.
func (r *random) Suppression() strategy.Suppression { return r.suppression }

// Interest implements strategy.Strategy.
func (r *random) Interest(c *strategy.Context, ev *strategy.Interest) {
	if !r.forward(c, true) && ev.New {
		c.Nack(ev.In, ndn.NackNoRoute)
	}
}

// forward sends to one of the next hops that were not tried or, without any and
// if again is set, to one of all.
func (r *random) forward(c *strategy.Context, again bool) bool {
	hops := c.Candidates()
	tried, n := uint64(0), 0
	for i := range hops {
		if c.Out(hops[i].Face) != nil {
			tried |= 1 << i
		} else {
			n++
		}
	}
	for _, mask := range [2]uint64{tried, ^tried} {
		for ; n > 0; n-- {
			k := int(c.Rand() % uint64(n))
			for i := range hops {
				if mask>>i&1 != 0 {
					continue
				}
				if k--; k >= 0 {
					continue
				}
				c.ExplainCost(hops[i].Face, "at random")
				if c.Send(hops[i].Face) == strategy.Sent {
					return true
				}
				mask |= 1 << i
				break
			}
		}
		if !again {
			return false
		}
		n = len(hops)
		for i := range hops {
			if tried>>i&1 == 0 {
				n--
			}
		}
	}
	return false
}

// Data implements strategy.Strategy.
func (r *random) Data(*strategy.Context, *strategy.Data) {}

// GaveUp implements strategy.GaveUpHandler. For one that has been repeated since,
// nobody else need be asked.
func (r *random) GaveUp(c *strategy.Context, ev *strategy.GaveUp) {
	o := c.LatestOut()
	elsewhere := o != nil && o.SentAt >= ev.Out.SentAt
	if elsewhere || len(c.Ins()) == 0 || !r.forward(c, false) {
		c.PassNacks()
	}
}

// NextHop implements strategy.NextHopHandler.
func (r *random) NextHop(c *strategy.Context, _ *strategy.NextHop) {
	if c.HasEntry() && !c.PendingOut() {
		r.forward(c, true)
	}
}

// Inherit implements strategy.InheritHandler.
func (r *random) Inherit(c *strategy.Context) {
	if !c.PendingOut() {
		r.forward(c, true)
	}
}
