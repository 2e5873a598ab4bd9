// Package selflearning is the strategy that finds content without routing and
// learns routes from the answers (NFD: self-learning version 1; J. Shi,
// E. Newberry, B. Zhang, On Broadcast-based Self-Learning in Named Data
// Networking, 2017).
//
// An Interest for discovery without a route goes to all faces that do not end
// on this host. Data that come back may carry a prefix announcement; it is
// handed to the operator's routing, which checks it and adds a route, and
// passed on to downstreams that discover too. With a route, the Interest goes
// to all next hops, marked as not for discovery. An Interest so marked is
// never broadcast: without a route the answer is Nack NoRoute.
//
// It differs from NFD's where that asks its RIB. A discovery Interest of
// another node follows a route without the mark, so that the announcement for
// that node comes from further upstream instead of from our RIB. A next hop
// that answers NoRoute does not lose its route, but is not used for 10 s, unless
// Data have come from it since it was asked; without another one, discovery begins
// again, and so it does when an Interest for
// discovery is repeated and nothing has come from any next hop since it was sent
// there: at most once a second for a prefix, since content that is yet to be made is
// silent, too. What is pending goes to a next hop that is found as well. Where there is
// nobody to ask the answer is Nack NoRoute, and Congestion where the queues are full;
// NFD's leaves the Interest pending. Repetitions that come too fast are suppressed.
package selflearning

import (
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
)

// Factory returns the factory of self-learning.
func Factory() strategy.Factory {
	return strategy.SuppressingFactory("self-learning", 1, "broadcast where there is no route, and learn from prefix announcements", func(s strategy.Suppression) strategy.Strategy {
		return &learner{suppression: s}
	})
}

const (
	// refused is how long a next hop without a route is left alone.
	refused = 10 * time.Second
	// again is the least time between discoveries because of silence.
	again = time.Second
)

type learner struct {
	suppression strategy.Suppression
	prefixes    strategy.PrefixState[prefix]
	entries     strategy.EntryState[entry]
}

// prefix is what is known about a prefix.
type prefix struct {
	hops  strategy.Hops[hop]
	again ndn.Time // no discovery because of silence before
}

// hop is what is known about one next hop of a prefix.
type hop struct {
	noRoute ndn.Time // until then
	heard   ndn.Time // when the latest Data came from it
}

// entry is what is known about a pending Interest.
type entry struct {
	out bool // sent for discovery
	in  bool // some downstream discovers
}

// Suppression implements strategy.Suppressor.
func (l *learner) Suppression() strategy.Suppression { return l.suppression }

// Interest implements strategy.Strategy.
func (l *learner) Interest(c *strategy.Context, ev *strategy.Interest) {
	marked := c.Link() != nil && c.Link().NonDiscovery
	e := l.entries.Get(c)
	e.in = e.in || !marked
	if ev.Retransmission && !marked && l.silent(c) && l.broadcast(c, e) {
		return
	}
	if l.follow(c, e, marked || c.FromLocal()) {
		return
	}
	if marked {
		if ev.New {
			c.Nack(ev.In, ndn.NackNoRoute)
		}
		return
	}
	// Where only the hop limit keeps it from others there may be a way.
	if i := ev.Interest; !l.broadcast(c, e) && ev.New && !(i.HasHopLimit && i.HopLimit <= 1) {
		c.Nack(ev.In, ndn.NackNoRoute)
	}
}

// silent reports whether all next hops had the Interest and nothing has come from
// any of them since.
func (l *learner) silent(c *strategy.Context) bool {
	st := l.prefixes.Get(c)
	if c.Now() < st.again {
		return false
	}
	for _, n := range c.NextHops() {
		h, o := st.hops.Find(n.Face), c.Out(n.Face)
		switch {
		case h != nil && h.noRoute > c.Now():
		case o == nil, h != nil && h.heard > o.SentAt:
			return false
		}
	}
	st.again = c.Now().Add(again)
	return true
}

// follow sends to all next hops and reports whether there is one.
func (l *learner) follow(c *strategy.Context, e *entry, marked bool) bool {
	hops := c.NextHops()
	if len(hops) == 0 {
		return false
	}
	st, sent := l.prefixes.Get(c), false
	if marked {
		c.NonDiscovery()
	}
	for i := range hops {
		if h := st.hops.Find(hops[i].Face); h != nil && h.noRoute > c.Now() {
			continue
		}
		c.ExplainCost(hops[i].Face, "there is a route")
		if c.Send(hops[i].Face) == strategy.Sent {
			sent = true
		}
	}
	e.out = e.out || sent && !marked
	return sent
}

// broadcast sends to all faces that do not end on this host, but not to those
// that have answered NoRoute to a discovery, and reports whether there is one.
func (l *learner) broadcast(c *strategy.Context, e *entry) (sent bool) {
	discovered := e.out
	for _, f := range c.Faces() {
		if o := c.Out(f); o != nil && o.Failed && discovered {
			continue
		}
		if c.Traced() {
			c.Explain(f, "discovery", nil)
		}
		if c.Send(f) == strategy.Sent {
			e.out, sent = true, true
		}
	}
	return sent
}

// Data implements strategy.Strategy.
func (l *learner) Data(c *strategy.Context, ev *strategy.Data) {
	l.prefixes.Get(c).hops.Of(ev.In).heard = c.Now()
	if ev.Out == nil || c.Link() == nil || c.Link().Announcement == nil {
		return
	}
	if e := l.entries.Get(c); e.out {
		c.Learn()
		if e.in {
			c.PassAnnouncement()
		}
	}
}

// Nack implements strategy.NackHandler.
func (l *learner) Nack(c *strategy.Context, ev *strategy.Nack) {
	if ev.Reason == ndn.NackNoRoute {
		if h := l.prefixes.Get(c).hops.Of(ev.In); h.heard <= ev.Out.SentAt {
			h.noRoute = c.Now().Add(refused)
		}
	}
	if c.PendingOut() || len(c.Ins()) == 0 {
		return
	}
	e := l.entries.Get(c)
	if e.in && !e.out {
		// Nothing is left to wait for, and nobody was asked who was not on a
		// route.
		if l.broadcast(c, e); e.out {
			return
		}
	}
	if !e.out {
		c.NonDiscovery()
	}
	if !c.ResendDuplicates() {
		c.PassNacks()
	}
}

// NextHop implements strategy.NextHopHandler. When the last next hop of an
// Interest goes, the way is to be found anew: from here if a downstream
// discovers, otherwise from there.
func (l *learner) NextHop(c *strategy.Context, ev *strategy.NextHop) {
	if !c.HasEntry() {
		return
	}
	if c.PendingOut() {
		if ev.Change != strategy.HopDown && c.Out(ev.Face) == nil && len(c.Ins()) > 0 {
			c.NonDiscovery()
			c.ExplainCost(ev.Face, "a next hop that is new or up again")
			c.Send(ev.Face)
		}
		return
	}
	e := l.entries.Get(c)
	if l.follow(c, e, true) || ev.Change != strategy.HopDown {
		return
	}
	if e.in {
		l.broadcast(c, e)
	}
	if !c.PendingOut() {
		c.NackAll(ndn.NackNoRoute)
	}
}

// Inherit implements strategy.InheritHandler.
func (l *learner) Inherit(c *strategy.Context) {
	if !c.PendingOut() {
		l.follow(c, l.entries.Get(c), true)
	}
}
