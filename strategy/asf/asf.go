// Package asf is NFD's adaptive strategy by smoothed round-trip times (ASF
// version 5): Interests go to the next hop of the smallest smoothed RTT;
// next hops that were not measured come after those that were, and those that
// timed out come last; equal ones go by cost.
//
// From time to time one other next hop is probed with a copy of an Interest:
// the first time within 5 s, then every probing-interval. A next hop without a
// measurement is probed first; otherwise the one of rank j among n is chosen
// with the probability (n+1-j)/(1+…+n), those that timed out last. A next hop
// times out after max-timeouts answers in a row that came later than its RTO
// (at least 200 ms; 1 s without a measurement), or at once by a Nack; any
// Data from it ends that. One answer is watched at a time. Retransmissions go
// to the best next hop that has not been tried, and then to the one tried
// longest ago; they are suppressed per upstream. What is known of a next hop
// that was not used for 5 minutes is forgotten.
//
// It differs from NFD in these points. RTTs follow Karn's rule. Timeouts take
// effect with the next Interest. An Interest from a further downstream joins
// the pending one. A probe's answer is awaited for 1 s after the Interest was
// satisfied. When a next hop goes down, what is pending there is sent on at
// once; so is what its link gives up, which counts as a timeout, while there is
// a next hop that was not tried.
package asf

import (
	"fmt"
	"math"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// Factory returns the factory of asf.
func Factory() strategy.Factory {
	return strategy.Factory{
		Name:    "asf",
		Version: 5,
		Usage:   "the smallest smoothed RTT, with probing (NFD)",
		Params: append([]strategy.Param{
			{Name: "probing-interval", Usage: "milliseconds between probes, at least 1000 (60000)"},
			{Name: "max-timeouts", Usage: "timeouts in a row that take a next hop out (3)"},
		}, strategy.SuppressionParams()...),
		New: func(v strategy.Values) (strategy.Strategy, error) {
			a := &asf{}
			var err error
			if a.interval, err = v.MillisIn("probing-interval", time.Minute, time.Second, 24*time.Hour); err != nil {
				return nil, err
			}
			if a.maxTimeouts, err = v.UintIn("max-timeouts", 3, 1, 1e6); err != nil {
				return nil, err
			}
			a.suppression, err = strategy.ParseSuppression(v)
			a.suppression.Scope = strategy.SuppressUpstream
			return a, err
		},
	}
}

const (
	minRTO     = 200 * time.Millisecond
	initialRTO = time.Second
	firstProbe = 5 * time.Second
	lifetime   = 5 * time.Minute
	lingering  = time.Second
)

type asf struct {
	interval    time.Duration
	maxTimeouts uint64
	suppression strategy.Suppression
	prefixes    strategy.PrefixState[namespace]
}

// namespace is what is known about a prefix.
type namespace struct {
	hops strategy.Hops[hop]
	due  ndn.Time // of the next probe, zero before the first Interest
}

// hop is what is known about one next hop of a prefix.
type hop struct {
	rtt      strategy.RTT
	used     ndn.Time
	timedOut bool
	timeouts uint64
	// The answer that is watched: to which Interest, and when it is late.
	watched []byte
	late    ndn.Time // zero when none is
}

// Suppression implements strategy.Suppressor.
func (a *asf) Suppression() strategy.Suppression { return a.suppression }

// Interest implements strategy.Strategy.
func (a *asf) Interest(c *strategy.Context, ev *strategy.Interest) {
	hops := c.Candidates()
	ns := a.prefixes.Get(c)
	for i := range hops {
		a.refresh(ns.hops.Of(hops[i].Face), c.Now())
	}
	if !ev.New {
		if ev.Retransmission && !a.send(c, ns, hops, true) {
			a.sendAgain(c, ns, hops)
		}
		return
	}
	if !a.send(c, ns, hops, false) {
		c.Nack(ev.In, ndn.NackNoRoute)
		return
	}
	a.probe(c, ns, hops)
}

// refresh notes a timeout that is over, and forgets what is too old.
func (a *asf) refresh(h *hop, now ndn.Time) {
	if h.used != 0 && now.Sub(h.used) > lifetime {
		*h = hop{watched: h.watched[:0]}
	}
	if h.late != 0 && now >= h.late {
		a.timeout(h)
	}
}

func (a *asf) timeout(h *hop) {
	h.late = 0
	if h.timeouts++; h.timeouts >= a.maxTimeouts {
		h.timedOut, h.timeouts = true, 0
	}
}

// value orders next hops, the best first.
func (h *hop) value() float64 {
	switch {
	case h.timedOut:
		return 2 * float64(math.MaxInt64)
	case h.rtt.N == 0:
		return float64(math.MaxInt64)
	}
	return float64(h.rtt.Smooth)
}

// best returns the place of the best next hop but those in the mask, -1
// without one. Of equal ones the first wins, which is the cheapest.
func best(ns *namespace, hops []table.NextHop, mask uint64) int {
	at, least := -1, 0.0
	for i := range hops {
		if mask>>i&1 != 0 {
			continue
		}
		if v := ns.hops.Of(hops[i].Face).value(); at < 0 || v < least {
			at, least = i, v
		}
	}
	return at
}

// send sends to the best next hop, or to the best that was not tried.
func (a *asf) send(c *strategy.Context, ns *namespace, hops []table.NextHop, untried bool) bool {
	mask := uint64(0)
	for i := range hops {
		if untried && c.Out(hops[i].Face) != nil {
			mask |= 1 << i
		}
	}
	for {
		i := best(ns, hops, mask)
		if i < 0 {
			return false
		}
		if c.Traced() {
			a.explain(c, ns, hops, hops[i].Face, "smallest smoothed RTT")
		}
		if c.Send(hops[i].Face) == strategy.Sent {
			a.watch(c, ns.hops.Of(hops[i].Face))
			return true
		}
		mask |= 1 << i
	}
}

// sendAgain sends to the next hop that was tried longest ago.
func (a *asf) sendAgain(c *strategy.Context, ns *namespace, hops []table.NextHop) {
	var oldest *table.OutRecord
	for i := range hops {
		if o := c.Out(hops[i].Face); o != nil && (oldest == nil || o.SentAt < oldest.SentAt) {
			oldest = o
		}
	}
	if oldest != nil {
		if to := oldest.Face; c.Send(to) == strategy.Sent {
			a.watch(c, ns.hops.Of(to))
		}
	}
}

// watch watches for the answer from a next hop, if no other is watched.
func (a *asf) watch(c *strategy.Context, h *hop) {
	h.used = c.Now()
	if h.late == 0 {
		h.watched = append(h.watched[:0], c.Name()...)
		h.late = c.Now().Add(h.rtt.Timeout(1, minRTO, initialRTO))
	}
}

// probe sends a copy to another next hop when it is time.
func (a *asf) probe(c *strategy.Context, ns *namespace, hops []table.NextHop) {
	now := c.Now()
	if ns.due == 0 {
		ns.due = now.Add(time.Duration(c.Rand() % uint64(firstProbe)))
	}
	if now < ns.due {
		return
	}
	mask, n := uint64(0), uint64(0)
	at := -1
	for i := range hops {
		switch {
		case c.Out(hops[i].Face) != nil:
			mask |= 1 << i
		case at < 0 && ns.hops.Of(hops[i].Face).rtt.N == 0:
			at = i
		default:
			n++
		}
	}
	if at < 0 && n > 0 {
		// Of n ranks, rank j has n+1-j chances out of 1+…+n.
		chance := int64(c.Rand() % (n * (n + 1) / 2))
		for chance >= 0 {
			at = best(ns, hops, mask)
			mask |= 1 << at
			chance -= int64(n)
			n--
		}
	}
	if at < 0 {
		return
	}
	if c.Traced() {
		a.explain(c, ns, hops, hops[at].Face, "probe")
	}
	if c.Probe(hops[at].Face) == strategy.Sent {
		a.watch(c, ns.hops.Of(hops[at].Face))
		ns.due = now.Add(a.interval)
	}
}

// Data implements strategy.Strategy.
func (a *asf) Data(c *strategy.Context, ev *strategy.Data) {
	if ev.Out == nil {
		return
	}
	h := a.prefixes.Get(c).hops.Of(ev.In)
	if ev.RTTCertain {
		h.rtt.Add(ev.RTT)
	}
	h.timedOut, h.timeouts, h.used = false, 0, c.Now()
	if h.late != 0 && c.Name().Equal(h.watched) {
		h.late = 0
	}
	if c.AwaitsOthers(ev.In) {
		c.Linger(lingering)
	}
}

// Nack implements strategy.NackHandler.
func (a *asf) Nack(c *strategy.Context, ev *strategy.Nack) {
	h := a.prefixes.Get(c).hops.Of(ev.In)
	h.timedOut, h.timeouts, h.late = true, 0, 0
	c.PassNacks()
}

// GaveUp implements strategy.GaveUpHandler. A Nack while there is another next
// hop would make the consumer slow down, and begin anew with the same one. For a
// probe, or one that has been repeated since, nobody else need be asked.
func (a *asf) GaveUp(c *strategy.Context, ev *strategy.GaveUp) {
	ns := a.prefixes.Get(c)
	a.timeout(ns.hops.Of(ev.On))
	o := c.LatestOut()
	elsewhere := o != nil && o.SentAt >= ev.Out.SentAt
	if elsewhere || len(c.Ins()) == 0 || !a.send(c, ns, c.Candidates(), true) {
		c.PassNacks()
	}
}

// NextHop implements strategy.NextHopHandler.
func (a *asf) NextHop(c *strategy.Context, _ *strategy.NextHop) {
	if c.HasEntry() && !c.PendingOut() {
		hops, ns := c.Candidates(), a.prefixes.Get(c)
		if !a.send(c, ns, hops, true) {
			a.sendAgain(c, ns, hops)
		}
	}
}

// Inherit implements strategy.InheritHandler.
func (a *asf) Inherit(c *strategy.Context) {
	ns := a.prefixes.Get(c)
	if o := c.LatestOut(); o != nil {
		a.watch(c, ns.hops.Of(o.Face))
		return
	}
	if hops := c.Candidates(); !a.send(c, ns, hops, true) {
		a.sendAgain(c, ns, hops)
	}
}

func (a *asf) explain(c *strategy.Context, ns *namespace, hops []table.NextHop, to ndn.FaceID, why string) {
	all := make([]strategy.Candidate, len(hops))
	for i := range hops {
		h := ns.hops.Of(hops[i].Face)
		all[i] = strategy.Candidate{Face: hops[i].Face, Cost: hops[i].Cost, Weight: h.rtt.Smooth.Seconds() * 1000}
		switch {
		case h.timedOut:
			all[i].Note = "timed out"
		case h.rtt.N == 0:
			all[i].Note = "not measured"
		default:
			all[i].Note = fmt.Sprintf("ms, %d timeouts", h.timeouts)
		}
	}
	c.Explain(to, why, all)
}
