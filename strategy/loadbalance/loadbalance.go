// Package loadbalance is the strategy that spreads the Interests of a prefix
// over its next hops by shares that congestion marks move, as PCON does
// (K. Schneider et al., A Practical Congestion Control Scheme for Named Data
// Networking, 2016).
//
// All traffic starts on the cheapest next hop. Every Data with a congestion
// mark from a next hop moves step percent of that next hop's share to the
// others: in equal parts, or in proportion to the rates at which they have
// delivered Data (the parameter to). Nacks Congestion, reports of the link
// service that it gave up, and answers that do not come count as marks; a Nack
// Duplicate says that the Interest came there by another way, too, and moves
// nothing. Interests go to the next hops at random, by their shares.
//
// A next hop that leaves eight Interests in a row without Data is silent: its
// share goes to the others and it gets one copy of an Interest per second
// until Data come back from it. If probe is set, such copies also go to the
// next hop of the smallest share, as a part of the Interests.
//
// PCON leaves open what an unanswered Interest means; the counting of silence
// is ours, as is the distribution by rate.
package loadbalance

import (
	"fmt"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// Factory returns the factory of load-balance.
func Factory() strategy.Factory {
	return strategy.Factory{
		Name:    "load-balance",
		Version: 1,
		Usage:   "shares per next hop, moved by congestion marks (PCON)",
		Params: []strategy.Param{
			{Name: "step", Usage: "percent of a next hop's share that a mark moves (3)"},
			{Name: "to", Usage: "what is moved goes to the others in equal parts or by their measured rates: equal or rate (equal)"},
			{Name: "probe", Usage: "copies to the least used next hop, in percent of the Interests (0)"},
		},
		New: parse,
	}
}

func parse(v strategy.Values) (strategy.Strategy, error) {
	b := &balance{}
	var err error
	if b.step, err = v.FloatIn("step", 3, 0.01, 100); err != nil {
		return nil, err
	}
	if b.probe, err = v.FloatIn("probe", 0, 0, 10); err != nil {
		return nil, err
	}
	b.step, b.probe = b.step/100, b.probe/100
	switch to := v.String("to", "equal"); to {
	case "equal":
	case "rate":
		b.byRate = true
	default:
		return nil, fmt.Errorf("%w: load-balance: to~%s is unknown: the choices are equal, rate", strategy.ErrParam, to)
	}
	return b, nil
}

const (
	// silence is how many unanswered Interests in a row it takes.
	silence = 8
	retry   = time.Second
	// An answer is late after lateAfter round-trip times and not before
	// lateFloor; where no RTT is known, after lateUnknown.
	lateAfter   = 3
	lateFloor   = 100 * time.Millisecond
	lateUnknown = time.Second
	lingering   = time.Second
	// rateSpan is the time over which a rate is taken.
	rateSpan = 100 * time.Millisecond
)

type balance struct {
	step, probe float64
	byRate      bool
	prefixes    strategy.PrefixState[shares]
}

// shares is what is known about a prefix.
type shares struct {
	hops  strategy.Hops[hop]
	owed  float64  // probes
	retry ndn.Time // when silent next hops get a copy again
}

// hop is what is known about one next hop of a prefix.
type hop struct {
	share float64
	rtt   strategy.RTT
	inRow uint32 // unanswered since the last Data

	rate  float64 // Data per second, smoothed by 1/8
	count uint32  // Data since then
	since ndn.Time
}

func (h *hop) silent() bool { return h.inRow >= silence }

// Interest implements strategy.Strategy.
func (b *balance) Interest(c *strategy.Context, ev *strategy.Interest) {
	st := b.prefixes.Get(c)
	if !b.forward(c, st, true) {
		if ev.New {
			c.Nack(ev.In, ndn.NackNoRoute)
		}
		return
	}
	if ev.New {
		b.probes(c, st)
	}
}

// forward sends to a next hop picked by the shares, first among those that
// were not tried and then, if again is set, among all.
func (b *balance) forward(c *strategy.Context, st *shares, again bool) bool {
	hops := c.Candidates()
	tried := uint64(0)
	for i := range hops {
		if c.Out(hops[i].Face) != nil {
			tried |= 1 << i
		}
	}
	mask := tried
	for {
		i := b.pick(c, st, hops, mask)
		if i < 0 && again && tried != 0 {
			again, mask = false, mask&^tried
			i = b.pick(c, st, hops, mask)
		}
		if i < 0 {
			return false
		}
		if c.Traced() {
			b.explain(c, st, hops, hops[i].Face, "by the shares")
		}
		face, wait := hops[i].Face, late(st.hops.Of(hops[i].Face))
		armed := false
		if tried>>i&1 != 0 {
			o := c.Out(face)
			armed = o.Pending(c.Now()) && c.Now().Sub(o.SentAt) < wait
		}
		if c.Send(face) == strategy.Sent {
			if !armed { // one timer is enough, however often it is repeated
				c.Arm(wait, uint64(face))
			}
			return true
		}
		mask |= 1 << i
	}
}

// pick picks a next hop by the shares. Where all shares are zero, the cheapest
// next hop takes them, if possible one that is not silent.
func (b *balance) pick(c *strategy.Context, st *shares, hops []table.NextHop, mask uint64) int {
	sum, first, answers := 0.0, -1, -1
	for i := range hops {
		if mask>>i&1 != 0 {
			continue
		}
		h := st.hops.Of(hops[i].Face)
		sum += h.share
		if first < 0 {
			first = i
		}
		if answers < 0 && !h.silent() {
			answers = i
		}
	}
	if answers >= 0 {
		first = answers
	}
	if sum < 1e-9 {
		if first >= 0 && mask == 0 && b.vacant(c, st) {
			st.hops.Of(hops[first].Face).share = 1
		}
		return first
	}
	x := float64(c.Rand()>>11) / (1 << 53) * sum
	last := -1
	for i := range hops {
		if mask>>i&1 != 0 {
			continue
		}
		s := st.hops.Of(hops[i].Face).share
		if s > 0 {
			last = i
		}
		if x -= s; x < 0 {
			return i
		}
	}
	return last
}

// vacant takes the shares from next hops that are gone, and reports whether nobody
// has any then: a next hop to which this Interest alone may not go keeps its.
func (b *balance) vacant(c *strategy.Context, st *shares) bool {
	for i := range st.hops.Len() {
		if f, h := st.hops.At(i); h.share > 0 {
			if c.Barred(f) {
				return false
			}
			h.share = 0
		}
	}
	return true
}

func late(h *hop) time.Duration { return h.rtt.Timeout(lateAfter, lateFloor, lateUnknown) }

// probes sends copies to silent next hops and to the least used one.
func (b *balance) probes(c *strategy.Context, st *shares) {
	now, hops := c.Now(), c.Candidates()
	st.owed = min(2, st.owed+b.probe)
	if now < st.retry && st.owed < 1 {
		return
	}
	least := ndn.FaceID(0)
	share := 2.0
	for i := range hops {
		f := hops[i].Face
		h := st.hops.Of(f)
		if c.Out(f) != nil {
			continue
		}
		if h.silent() {
			if now >= st.retry {
				b.copyTo(c, st, hops, f, "trial of a silent next hop")
			}
		} else if h.share < share {
			least, share = f, h.share
		}
	}
	if now >= st.retry {
		st.retry = now.Add(retry)
	}
	if st.owed >= 1 && least != 0 {
		st.owed--
		b.copyTo(c, st, hops, least, "probe of the least used next hop")
	}
}

func (b *balance) copyTo(c *strategy.Context, st *shares, hops []table.NextHop, to ndn.FaceID, why string) {
	if c.Traced() {
		b.explain(c, st, hops, to, why)
	}
	if c.Probe(to) == strategy.Sent {
		c.Arm(late(st.hops.Of(to)), uint64(to))
	}
}

// move moves a part of a next hop's share to the others that answer.
func (b *balance) move(c *strategy.Context, st *shares, from ndn.FaceID, part float64) {
	hops := c.Candidates()
	delta := st.hops.Of(from).share * part
	if delta == 0 {
		return
	}
	sum, n := 0.0, 0
	for i := range hops {
		if h := st.hops.Of(hops[i].Face); hops[i].Face != from && !h.silent() {
			sum += h.rate
			n++
		}
	}
	if n == 0 {
		return
	}
	st.hops.Of(from).share -= delta
	// Half of what goes by rates goes in equal parts, so that a next hop
	// that carried nothing yet can show its rate.
	equal := delta
	if b.byRate && sum > 0 {
		equal = delta / 2
	}
	for i := range hops {
		if h := st.hops.Of(hops[i].Face); hops[i].Face != from && !h.silent() {
			h.share += equal / float64(n)
			if equal < delta {
				h.share += (delta - equal) * h.rate / sum
			}
		}
	}
}

// Data implements strategy.Strategy.
func (b *balance) Data(c *strategy.Context, ev *strategy.Data) {
	if ev.Out == nil {
		return
	}
	st, now := b.prefixes.Get(c), c.Now()
	h := st.hops.Of(ev.In)
	h.inRow = 0
	if ev.RTTCertain {
		h.rtt.Add(ev.RTT)
	}
	h.count++
	if span := now.Sub(h.since); span >= rateSpan {
		if h.since != 0 {
			h.rate += (float64(h.count)/span.Seconds() - h.rate) / 8
		}
		h.count, h.since = 0, now
	}
	if c.Marked() {
		b.move(c, st, ev.In, b.step)
	}
	if c.AwaitsOthers(ev.In) {
		c.Linger(lingering)
	}
}

// Timer implements strategy.TimerHandler: an answer is late.
func (b *balance) Timer(c *strategy.Context, ev *strategy.Timer) {
	face := ndn.FaceID(ev.Tag)
	o := c.Out(face)
	if o == nil || o.Failed {
		return
	}
	st := b.prefixes.Get(c)
	h := st.hops.Of(face)
	if wait := late(h) - c.Now().Sub(o.SentAt); wait > 0 {
		c.Arm(wait, ev.Tag)
		return
	}
	b.unanswered(c, st, face, h)
}

// unanswered counts an Interest without an answer.
func (b *balance) unanswered(c *strategy.Context, st *shares, face ndn.FaceID, h *hop) {
	h.inRow++
	part := b.step
	if h.silent() {
		part = 1
	}
	b.move(c, st, face, part)
}

// Nack implements strategy.NackHandler.
func (b *balance) Nack(c *strategy.Context, ev *strategy.Nack) {
	st := b.prefixes.Get(c)
	h := st.hops.Of(ev.In)
	switch ev.Reason {
	case ndn.NackNoRoute:
		h.inRow = max(h.inRow, silence)
		b.move(c, st, ev.In, 1)
	case ndn.NackDuplicate:
		if h.inRow++; h.silent() {
			b.move(c, st, ev.In, 1)
		}
	default:
		b.move(c, st, ev.In, b.step)
	}
	b.elsewhere(c, st)
}

// GaveUp implements strategy.GaveUpHandler.
func (b *balance) GaveUp(c *strategy.Context, ev *strategy.GaveUp) {
	st := b.prefixes.Get(c)
	b.unanswered(c, st, ev.On, st.hops.Of(ev.On))
	b.elsewhere(c, st)
}

// elsewhere sends an Interest that was refused to another next hop, or has the
// downstreams told. Where a next hop that is not silent may still answer, what was
// refused was a probe or has been repeated, and nobody else is asked.
func (b *balance) elsewhere(c *strategy.Context, st *shares) {
	now, outs := c.Now(), c.Outs()
	for i := range outs {
		if o := &outs[i]; o.Pending(now) && !st.hops.Of(o.Face).silent() {
			c.PassNacks()
			return
		}
	}
	if len(c.Ins()) > 0 && !b.forward(c, st, false) {
		c.PassNacks()
	}
}

// Expiry implements strategy.ExpiryHandler: what lived shorter than a late answer
// takes is unanswered as well.
func (b *balance) Expiry(c *strategy.Context, _ *strategy.Expiry) {
	st, outs := b.prefixes.Get(c), c.Outs()
	for i := range outs {
		o := &outs[i]
		h, d := st.hops.Of(o.Face), c.Now().Sub(o.SentAt)
		if !o.Failed && d > h.rtt.Smooth && d <= late(h) {
			b.unanswered(c, st, o.Face, h)
		}
	}
}

// NextHop implements strategy.NextHopHandler.
func (b *balance) NextHop(c *strategy.Context, ev *strategy.NextHop) {
	if c.HasEntry() && !c.PendingOut() {
		b.forward(c, b.prefixes.Get(c), ev.Change != strategy.HopDown)
	}
}

// Inherit implements strategy.InheritHandler.
func (b *balance) Inherit(c *strategy.Context) {
	st := b.prefixes.Get(c)
	if o := c.LatestOut(); o != nil {
		c.Arm(late(st.hops.Of(o.Face))-c.Now().Sub(o.SentAt), uint64(o.Face))
	} else {
		b.forward(c, st, true)
	}
}

func (b *balance) explain(c *strategy.Context, st *shares, hops []table.NextHop, to ndn.FaceID, why string) {
	all := make([]strategy.Candidate, len(hops))
	for i := range hops {
		h := st.hops.Of(hops[i].Face)
		all[i] = strategy.Candidate{
			Face: hops[i].Face, Cost: hops[i].Cost, Weight: h.share, Note: fmt.Sprintf("share; %.4g Data/s", h.rate),
		}
		if h.silent() {
			all[i].Note = "share; silent"
		}
	}
	c.Explain(to, why, all)
}

// Report implements strategy.Reporter.
func (b *balance) Report(c *strategy.Context) strategy.Report {
	rep := strategy.Report{Columns: []string{"share", "rate", "rtt_ms"}}
	st := b.prefixes.Get(c)
	for _, r := range c.Routes() {
		if h := st.hops.Find(r.Face); h != nil {
			rep.Rows = append(rep.Rows, strategy.ReportRow{Face: r.Face, Cells: []float64{h.share, h.rate, h.rtt.Smooth.Seconds() * 1000}})
		}
	}
	return rep
}
