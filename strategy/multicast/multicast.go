// Package multicast is the strategy that sends every Interest to all next
// hops (NFD: multicast version 5). Retransmissions are suppressed per
// upstream. New next hops get the Interests that are pending.
//
// NFD's neither sends nor heeds Nacks since its version 22.02. Here they are
// collected from all upstreams, and the least severe then goes down; without a
// next hop the answer is Nack NoRoute, and an Interest that loops gets Nack
// Duplicate. An upstream that refused an Interest as a duplicate is asked once
// more when the upstream that had the other copy is lost.
package multicast

import (
	"ndnpop/ndn"
	"ndnpop/strategy"
)

// Factory returns the factory of multicast.
func Factory() strategy.Factory {
	return strategy.SuppressingFactory("multicast", 5, "every Interest to all next hops", func(s strategy.Suppression) strategy.Strategy {
		s.Scope = strategy.SuppressUpstream
		return &multicast{suppression: s}
	})
}

type multicast struct{ suppression strategy.Suppression }

// Suppression implements strategy.Suppressor.
func (m *multicast) Suppression() strategy.Suppression { return m.suppression }

// Interest implements strategy.Strategy.
func (m *multicast) Interest(c *strategy.Context, ev *strategy.Interest) {
	sent := false
	for _, h := range c.NextHops() {
		c.ExplainCost(h.Face, "all next hops")
		switch c.Send(h.Face) {
		case strategy.Sent, strategy.RefusedSuppressed:
			sent = true
		}
	}
	if !sent && !c.PendingOut() {
		c.Nack(ev.In, ndn.NackNoRoute)
	}
}

// Data implements strategy.Strategy.
func (m *multicast) Data(*strategy.Context, *strategy.Data) {}

// Nack implements strategy.NackHandler.
func (m *multicast) Nack(c *strategy.Context, _ *strategy.Nack) {
	if !c.ResendDuplicates() {
		c.PassNacks()
	}
}

// NextHop implements strategy.NextHopHandler.
func (m *multicast) NextHop(c *strategy.Context, ev *strategy.NextHop) {
	if !c.HasEntry() {
		return
	}
	if ev.Change == strategy.HopDown {
		c.ResendDuplicates()
		return
	}
	for _, h := range c.NextHops() {
		if h.Face == ev.Face {
			c.ExplainCost(h.Face, "a next hop that is new or up again")
			c.Send(h.Face)
		}
	}
}

// Inherit implements strategy.InheritHandler.
func (m *multicast) Inherit(c *strategy.Context) {
	if c.PendingOut() {
		return
	}
	for _, h := range c.NextHops() {
		c.ExplainCost(h.Face, "all next hops")
		c.Send(h.Face)
	}
}
