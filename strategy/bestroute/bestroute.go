// Package bestroute is the strategy that follows the routing costs (NFD:
// best-route version 5).
//
// A new Interest goes to the next hop of the lowest cost. When the consumer
// retransmits it, it goes to the cheapest next hop that has not been tried,
// and once all have been, to the one tried longest ago. Nacks are collected
// from all upstreams; the least severe then goes down. Without a next hop the
// answer is Nack NoRoute.
//
// It differs from NFD's in two points. An Interest from a further downstream
// only joins the pending one, where NFD treats it like a retransmission. And
// when a next hop goes down, or the link service gives up on an Interest, what is
// pending there is sent on at once, as soon as there is another.
package bestroute

import (
	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// Factory returns the factory of best-route.
func Factory() strategy.Factory {
	return strategy.SuppressingFactory("best-route", 5, "lowest cost first, the next one on a consumer's retransmission", func(s strategy.Suppression) strategy.Strategy {
		return &bestRoute{suppression: s}
	})
}

type bestRoute struct{ suppression strategy.Suppression }

// Suppression implements strategy.Suppressor.
func (b *bestRoute) Suppression() strategy.Suppression { return b.suppression }

// Interest implements strategy.Strategy.
func (b *bestRoute) Interest(c *strategy.Context, ev *strategy.Interest) {
	if !b.forward(c) && ev.New {
		c.Nack(ev.In, ndn.NackNoRoute)
	}
}

// forward sends to the best next hop and reports whether it could.
func (b *bestRoute) forward(c *strategy.Context) bool {
	hops := c.NextHops()
	for _, h := range hops {
		if o := c.Out(h.Face); o == nil || !o.Pending(c.Now()) && !o.Failed {
			c.ExplainCost(h.Face, "cheapest not tried yet")
			if c.Send(h.Face) == strategy.Sent {
				return true
			}
		}
	}
	// All have been tried: the one used longest ago, then the next.
	for after := ndn.Time(-1 << 63); ; {
		var best *table.OutRecord
		for _, h := range hops {
			if o := c.Out(h.Face); o != nil && o.SentAt > after && (best == nil || o.SentAt < best.SentAt) {
				best = o
			}
		}
		if best == nil {
			return false
		}
		after = best.SentAt
		c.ExplainCost(best.Face, "all tried, this one longest ago")
		if c.Send(best.Face) == strategy.Sent {
			return true
		}
	}
}

// Data implements strategy.Strategy.
func (b *bestRoute) Data(*strategy.Context, *strategy.Data) {}

// GaveUp implements strategy.GaveUpHandler: the Interest goes to the cheapest
// next hop that has not been tried. A Nack while there is one would make the
// consumer begin anew, with the same next hop.
func (b *bestRoute) GaveUp(c *strategy.Context, _ *strategy.GaveUp) {
	if len(c.Ins()) > 0 {
		for _, h := range c.NextHops() {
			if c.Out(h.Face) != nil {
				continue
			}
			c.ExplainCost(h.Face, "the link of another one gave up")
			if c.Send(h.Face) == strategy.Sent {
				return
			}
		}
	}
	c.PassNacks()
}

// NextHop implements strategy.NextHopHandler.
func (b *bestRoute) NextHop(c *strategy.Context, _ *strategy.NextHop) {
	if c.HasEntry() && !c.PendingOut() {
		b.forward(c)
	}
}

// Inherit implements strategy.InheritHandler.
func (b *bestRoute) Inherit(c *strategy.Context) {
	if !c.PendingOut() {
		b.forward(c)
	}
}
