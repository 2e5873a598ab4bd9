// Package bestpath is the strategy that follows the path of the lowest weight
//
//	f = delay-weight · delay (ms) + loss-weight · loss (%) + further terms
//
// measured per prefix and next hop. The delay is the smoothed round-trip time;
// the loss is the part of the Interests that stayed unanswered or got a Nack.
// The form and the default weights (100 and 100) are those of the thesis on NDN
// for content delivery networks that the project follows (its experiment S3 F).
//
// Further terms are the route's cost times cost-weight, fixed points per next
// hop (penalty), and what the author of a main program adds as a [Term].
//
// Deviations and additions, since the thesis says nothing about them:
//   - Loss is known from samples only. The path in use is judged by the lower
//     and the others by the upper limit of their loss (Wilson's score interval,
//     90 % two-sided), over the last 2 s or, where that agrees with it, over
//     about the last 16 s. So a path in use must be worse, and another one
//     better, beyond chance, and random loss does not make the traffic flap.
//   - Another path must be better by hysteresis percent, and a choice holds for
//     the time hold, unless the path in use is dead: at least 90 % lost.
//   - A path that looks better as long as it carries nothing, and is worse when it
//     does, would be taken and left for ever. When it is left as soon as hold
//     allows after a return, it is not returned to for 1 s, then 2, and so on to
//     32, unless the one in use is dead.
//   - A dead path has an infinite weight, where the formula gives it 10,000
//     points, no more than 100 ms of delay.
//   - The other paths are measured by copies of Interests with fresh Nonces,
//     also when the current path is perfect: per second at most probe-min plus
//     probe-share percent of the Interests, and at most probe-max.
//
// An Interest that gets a Nack or is given up by the link goes at once to the
// next best path that it has not tried, and so does a consumer's repetition.
// What is outstanding at a path whose face goes down, or that is silent for longer
// than 1.5 round-trip times, goes there as well, as fast as it was sent first
// ([strategy.Spread]), and new Interests behind.
package bestpath

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// Term is a further term of the weight: load, price, and the like. It is
// multiplied by the parameter Name-weight, which is 1 by default.
type Term struct {
	Name, Usage string
	// Of is the term for a next hop; lower is better. It is called often and
	// must not allocate.
	Of func(h table.NextHop) float64
}

// Factory returns the factory of best-path with further terms.
func Factory(terms ...Term) strategy.Factory {
	f := strategy.Factory{
		Name:    "best-path",
		Version: 1,
		Usage:   "the path of the lowest measured weight of delay and loss",
		Params: []strategy.Param{
			{Name: "delay-weight", Usage: "points per millisecond of round-trip time (100)"},
			{Name: "loss-weight", Usage: "points per percent of loss (100)"},
			{Name: "cost-weight", Usage: "points per unit of the route's cost (0)"},
			{Name: "penalty", Usage: "points for next hops, as face:points,face:points (none)"},
			{Name: "hysteresis", Usage: "percent by which another path must be better (10)"},
			{Name: "hold", Usage: "milliseconds for which a choice holds (500)"},
			{Name: "probe-share", Usage: "probes in percent of the Interests (5)"},
			{Name: "probe-min", Usage: "probes per second in any case, if there are Interests (5)"},
			{Name: "probe-max", Usage: "most probes per second (50)"},
		},
	}
	for _, t := range terms {
		f.Params = append(f.Params, strategy.Param{Name: t.Name + "-weight", Usage: t.Usage + " (1)"})
	}
	f.New = func(v strategy.Values) (strategy.Strategy, error) { return parse(v, terms) }
	return f
}

func parse(v strategy.Values, terms []Term) (strategy.Strategy, error) {
	b := &bestPath{silence: silence()}
	for _, p := range []struct {
		to               *float64
		name             string
		def, least, most float64
	}{
		{&b.delayWeight, "delay-weight", 100, 0, 1e9},
		{&b.lossWeight, "loss-weight", 100, 0, 1e9},
		{&b.costWeight, "cost-weight", 0, 0, 1e9},
		{&b.hysteresis, "hysteresis", 10, 0, 90},
		{&b.probeShare, "probe-share", 5, 0, 100},
		{&b.probeMin, "probe-min", 5, 0, 10000},
		{&b.probeMax, "probe-max", 50, 0.01, 10000},
	} {
		var err error
		if *p.to, err = v.FloatIn(p.name, p.def, p.least, p.most); err != nil {
			return nil, err
		}
	}
	b.keep = 1 - b.hysteresis/100
	b.probeShare /= 100
	b.probeMin /= float64(time.Second)
	b.spacing = time.Duration(float64(time.Second) / b.probeMax)
	for _, t := range terms {
		w, err := v.FloatIn(t.Name+"-weight", 1, 0, 1e9)
		if err != nil {
			return nil, err
		}
		b.terms = append(b.terms, term{t.Of, w})
	}
	var err error
	if b.hold, err = v.MillisIn("hold", 500*time.Millisecond, 0, time.Hour); err != nil {
		return nil, err
	}
	b.penalties, err = parsePenalties(v)
	return b, err
}

func parsePenalties(v strategy.Values) (map[ndn.FaceID]float64, error) {
	list := v.String("penalty", "")
	if list == "" {
		return nil, nil
	}
	m := make(map[ndn.FaceID]float64)
	for _, item := range strings.Split(list, ",") {
		f, p, ok := strings.Cut(item, ":")
		face, err := strconv.ParseUint(f, 10, 64)
		points, err2 := strconv.ParseFloat(p, 64)
		if !ok || err != nil || err2 != nil || !(points >= 0 && points <= 1e12) {
			return nil, fmt.Errorf("%w: best-path: penalty~%s is not of the form face:points,face:points", strategy.ErrParam, list)
		}
		m[ndn.FaceID(face)] = points
	}
	return m, nil
}

type term struct {
	of     func(table.NextHop) float64
	weight float64
}

type bestPath struct {
	delayWeight, lossWeight, costWeight float64
	terms                               []term
	penalties                           map[ndn.FaceID]float64 // only looked up
	hysteresis, keep                    float64
	hold                                time.Duration
	probeShare, probeMin, probeMax      float64       // per Interest, nanosecond, second
	spacing                             time.Duration // between probes

	silence  strategy.Silence
	prefixes strategy.PrefixState[paths]
	entries  strategy.EntryState[entry]
	killed   strategy.Spread // what is sent again as a face went down, of all prefixes
}

// paths is what is known about a prefix.
type paths struct {
	hops     strategy.Hops[path]
	current  ndn.FaceID
	switched ndn.Time
	looked   ndn.Time         // when the choice was last reconsidered
	budget   float64          // probes that may be sent
	filled   ndn.Time         // when the budget was last filled
	probed   ndn.Time         // the latest probe
	spread   strategy.Spread  // what is sent again for another reason
	line     *strategy.Spread // that new Interests go behind, nil without one
}

// path is what is known about one next hop of a prefix.
type path struct {
	rtt    strategy.RTT
	loss   window
	probed ndn.Time
	heard  ndn.Time // latest Data or Nack
	waits  ndn.Time // first Interest since then, zero without one
	// left is when it was in use last. It is not taken again until a time for
	// having been left as soon as it could after a return.
	left, until ndn.Time
	regret      time.Duration
}

const (
	// review is how often a choice is reconsidered.
	review = 20 * time.Millisecond
	// lingering is how long an answered Interest waits for other answers.
	lingering = time.Second
	// An answer is late after lateAfter round-trip times and not before
	// lateFloor; where no RTT is known, after lateUnknown.
	lateAfter   = 2
	lateFloor   = 20 * time.Millisecond
	lateUnknown = time.Second
	// soon is how long after the time hold a path is left that was not worth its
	// return.
	soon = 100 * time.Millisecond
	// Such a path is not returned to for that long, twice as long each time.
	leastRegret, mostRegret = time.Second, 32 * time.Second
	// burst is how many probes may be saved up.
	burst = 2
)

// Interest implements strategy.Strategy.
func (b *bestPath) Interest(c *strategy.Context, ev *strategy.Interest) {
	hops := c.Candidates()
	if len(hops) == 0 {
		if ev.New {
			c.Nack(ev.In, ndn.NackNoRoute)
		}
		return
	}
	st, now := b.prefixes.Get(c), c.Now()
	if ev.New && st.line != nil {
		if e := b.entries.Get(c); e.LineUp(c, st.line, tagNew) {
			e.again = true
			return
		}
		if st.line.Over(now) {
			st.line = nil
		}
	}
	if now.Sub(st.looked) >= review {
		st.looked = now
		b.reconsider(c, st, hops)
	}
	to, ok := b.forward(c, st, true)
	if !ok {
		if ev.New {
			c.Nack(ev.In, ndn.NackNoRoute)
		}
		return
	}
	if ev.New && len(hops) > 1 {
		b.probe(c, st, hops, to)
	}
}

// reconsider moves to another path if that is better beyond doubt.
func (b *bestPath) reconsider(c *strategy.Context, st *paths, hops []table.NextHop) {
	now, usable := c.Now(), false
	used := 0.0
	for i := range hops {
		if hops[i].Face == st.current {
			usable = true
			used = b.weight(st.hops.Of(st.current), &hops[i], now, false)
		}
	}
	if !usable && c.Barred(st.current) {
		return // to this Interest alone
	}
	dead := math.IsInf(used, 1)
	best, least := -1, math.Inf(1)
	for i := range hops {
		p := st.hops.Of(hops[i].Face)
		if hops[i].Face == st.current || p.rtt.N == 0 || usable && !dead && now < p.until {
			continue
		}
		if w := b.weight(p, &hops[i], now, true); w < least {
			best, least = i, w
		}
	}
	switch {
	case !usable && best >= 0:
		b.moveTo(c, st, hops, best, "the path in use is gone")
	case !usable:
		b.moveTo(c, st, hops, 0, "nothing is measured: lowest cost")
	case best < 0 || least >= used*b.keep || (!dead && now.Sub(st.switched) < b.hold):
	case dead:
		b.moveTo(c, st, hops, best, "the path in use is dead")
	default:
		b.moveTo(c, st, hops, best, "lower weight")
	}
}

func (b *bestPath) moveTo(c *strategy.Context, st *paths, hops []table.NextHop, to int, why string) {
	now := c.Now()
	if old := st.hops.Find(st.current); old != nil {
		if now.Sub(st.switched) >= b.hold+soon {
			old.regret = 0
		} else if old.left != 0 {
			old.regret = min(max(2*old.regret, leastRegret), mostRegret)
			old.until = now.Add(old.regret)
		}
		old.left = now
	}
	st.current, st.switched = hops[to].Face, now
	if c.Traced() {
		b.explain(c, st, hops, st.current, why)
	}
}

// weight is f of a path, with the upper limit of its loss or the lower.
func (b *bestPath) weight(p *path, h *table.NextHop, now ndn.Time, upper bool) float64 {
	p.loss.advance(now)
	if p.loss.dead() {
		return math.Inf(1)
	}
	delay := p.rtt.Smooth
	if p.rtt.N == 0 {
		delay = lateUnknown
	}
	f := b.delayWeight*float64(delay)/float64(time.Millisecond) +
		b.lossWeight*100*p.loss.limit(upper) + b.costWeight*float64(h.Cost)
	for i := range b.terms {
		f += b.terms[i].weight * b.terms[i].of(*h)
	}
	if b.penalties != nil {
		f += b.penalties[h.Face]
	}
	return f
}

// forward sends to the current path, or to the best one that this Interest has
// not tried. again allows those that it has, the one used longest ago first.
func (b *bestPath) forward(c *strategy.Context, st *paths, again bool) (ndn.FaceID, bool) {
	hops := c.Candidates()
	refused := uint64(0)
	for i := range hops {
		if hops[i].Face == st.current && c.Out(st.current) == nil {
			if c.Traced() {
				b.explain(c, st, hops, st.current, "the path in use")
			}
			if b.send(c, st, st.current, c.Send(st.current)) {
				return st.current, true
			}
			refused |= 1 << i
		}
	}
	const tried, unknown = 1e30, 1e20
	for {
		best, least := -1, math.Inf(1)
		for i := range hops {
			if refused>>i&1 != 0 {
				continue
			}
			p, o := st.hops.Of(hops[i].Face), c.Out(hops[i].Face)
			w := unknown + float64(hops[i].Cost)
			switch {
			case o != nil && !again:
				continue
			case o != nil:
				w = tried + float64(o.SentAt)*tried
			case p.rtt.N > 0:
				w = min(b.weight(p, &hops[i], c.Now(), true), 2*unknown)
			}
			if best < 0 || w < least {
				best, least = i, w
			}
		}
		if best < 0 {
			return 0, false
		}
		to := hops[best].Face
		if c.Traced() {
			b.explain(c, st, hops, to, "the best that is left for this Interest")
		}
		if b.send(c, st, to, c.Send(to)) {
			return to, true
		}
		refused |= 1 << best
	}
}

// send watches for the answer to what was sent.
func (b *bestPath) send(c *strategy.Context, st *paths, to ndn.FaceID, r strategy.Refusal) bool {
	if r != strategy.Sent {
		return false
	}
	p, now := st.hops.Of(to), c.Now()
	limit := b.silence.Limit(&p.rtt)
	if p.waits == 0 || max(p.heard, p.waits).Add(limit) <= now { // that was long ago, and of no consequence
		p.waits = now
	}
	wait := max(p.heard, p.waits).Add(limit).Sub(now)
	if c.Out(to).Sends > 1 { // one timer is enough, however often it is repeated
		e := b.entries.Get(c)
		e.stuck = false
		e.Watch(c, wait, tagWatch)
		return true
	}
	if e := b.entries.Peek(c); e != nil {
		e.Stop(c)
		e.stuck = false
	}
	c.Arm(wait, uint64(to))
	return true
}

func late(p *path) time.Duration { return p.rtt.Timeout(lateAfter, lateFloor, lateUnknown) }

// probe measures the other path that was measured longest ago, if the budget
// allows.
func (b *bestPath) probe(c *strategy.Context, st *paths, hops []table.NextHop, used ndn.FaceID) {
	now := c.Now()
	if st.filled != 0 {
		st.budget += b.probeMin * float64(now.Sub(st.filled))
	}
	st.filled = now
	st.budget = min(burst, st.budget+b.probeShare)
	if st.budget < 1 || now.Sub(st.probed) < b.spacing {
		return
	}
	var to *path
	var face ndn.FaceID
	for i := range hops {
		f := hops[i].Face
		if f == used || c.Out(f) != nil {
			continue
		}
		if p := st.hops.Of(f); to == nil || p.probed < st.hops.Find(face).probed {
			to, face = p, f
		}
	}
	if to == nil {
		return
	}
	if c.Traced() {
		b.explain(c, st, hops, face, "probe of the path measured longest ago")
	}
	if b.send(c, st, face, c.Probe(face)) {
		st.budget--
		st.probed = now
	}
	st.hops.Of(face).probed = now
}

// lost counts a loss, once per Interest and face.
func (b *bestPath) lost(c *strategy.Context, p *path, face ndn.FaceID) {
	if b.entries.Get(c).count(face) {
		p.loss.add(c.Now(), true)
	}
}

// Data implements strategy.Strategy.
func (b *bestPath) Data(c *strategy.Context, ev *strategy.Data) {
	if ev.Out == nil {
		return
	}
	st, now := b.prefixes.Get(c), c.Now()
	p := st.hops.Of(ev.In)
	if ev.RTTCertain {
		p.rtt.Add(ev.RTT)
	}
	if e := b.entries.Peek(c); e != nil && slices.Contains(e.lost[:], ev.In) {
		p.loss.forgive(now) // it was only late
	}
	p.heard, p.waits = now, 0
	p.loss.add(now, false)
	if c.AwaitsOthers(ev.In) {
		c.Linger(lingering)
	}
}

// Nack implements strategy.NackHandler.
func (b *bestPath) Nack(c *strategy.Context, ev *strategy.Nack) {
	p := b.prefixes.Get(c).hops.Of(ev.In)
	p.heard, p.waits = c.Now(), 0
	b.failed(c, ev.In)
}

// GaveUp implements strategy.GaveUpHandler.
func (b *bestPath) GaveUp(c *strategy.Context, ev *strategy.GaveUp) { b.failed(c, ev.On) }

// failed counts a loss that is certain and tries another path.
func (b *bestPath) failed(c *strategy.Context, face ndn.FaceID) {
	st := b.prefixes.Get(c)
	b.lost(c, st.hops.Of(face), face)
	if len(c.Ins()) == 0 || c.PendingOut() && face != st.current {
		return // a probe failed
	}
	if _, ok := b.forward(c, st, false); ok {
		return
	}
	e := b.entries.Get(c)
	if e.again = false; !e.Later(c, tagTurn) {
		c.PassNacks()
	}
}

// Expiry implements strategy.ExpiryHandler: what is unanswered is lost, also
// when the Interest lived shorter than a late answer takes.
func (b *bestPath) Expiry(c *strategy.Context, _ *strategy.Expiry) {
	st, outs := b.prefixes.Get(c), c.Outs()
	for i := range outs {
		o := &outs[i]
		if p := st.hops.Of(o.Face); !o.Failed && c.Now().Sub(o.SentAt) > p.rtt.Smooth {
			b.lost(c, p, o.Face)
		}
	}
}

// Report implements strategy.Reporter: the weights as a choice would see them
// now. Weights and RTTs that are not known are infinite, and so is the weight of
// a path whose face is down.
func (b *bestPath) Report(c *strategy.Context) strategy.Report {
	rep := strategy.Report{Columns: []string{"weight", "rtt_ms", "loss_percent", "in_use"}}
	st, hops := b.prefixes.Get(c), c.Routes()
	hops = hops[:min(len(hops), strategy.MaxHops)]
	for i := range hops {
		face := hops[i].Face
		p, w, rtt, used := st.hops.Of(face), math.Inf(1), math.Inf(1), 0.0
		if p.rtt.N > 0 {
			rtt = p.rtt.Smooth.Seconds() * 1e3
			if c.Up(face) {
				w = b.weight(p, &hops[i], c.Now(), face != st.current)
			}
		}
		if face == st.current {
			used = 1
		}
		rep.Rows = append(rep.Rows, strategy.ReportRow{Face: face, Cells: []float64{w, rtt, 100 * p.loss.rate(), used}})
	}
	return rep
}

// explain tells the weights of all paths.
func (b *bestPath) explain(c *strategy.Context, st *paths, hops []table.NextHop, to ndn.FaceID, why string) {
	all := make([]strategy.Candidate, len(hops))
	for i := range hops {
		p := st.hops.Of(hops[i].Face)
		all[i] = strategy.Candidate{
			Face: hops[i].Face, Cost: hops[i].Cost, Weight: b.weight(p, &hops[i], c.Now(), hops[i].Face != st.current),
			Note: "no answer yet",
		}
		if p.rtt.N > 0 {
			all[i].Note = fmt.Sprintf("%.3g ms, %.2g %% lost of %d", p.rtt.Smooth.Seconds()*1e3, 100*p.loss.rate(), p.loss.n)
		}
	}
	c.Explain(to, why, all)
}
