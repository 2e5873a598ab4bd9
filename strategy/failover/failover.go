// Package failover is the strategy that keeps to the cheapest next hop that
// answers, and hides the death of a next hop from the consumer.
//
// A next hop counts as down
//   - when its face goes down, which the shard reports;
//   - when it is silent: Interests stay unanswered, and nothing at all has come
//     from it, for longer than a small multiple of its round-trip time;
//   - when the link service gave up on an Interest and nothing has been heard
//     since that was sent;
//   - when it answers with Nack NoRoute, and with no Data in between, as
//     often as the parameter evidence says: a name below the prefix to which it
//     has no route is not the end of its other routes;
//   - when other Nacks, such as Congestion, are all that has come from it for as
//     long as it might be silent, and then as often again. Each of them sends its
//     Interest to another next hop (NFD's best-route waits for the consumer to do
//     so), and a queue that is full for a moment is no more than that.
//
// What was outstanding there goes out on the next one, with fresh Nonces, before
// the consumer's timer runs out: beginning at once and spread out
// ([strategy.Spread]), so that it comes no faster than it did there and fits into
// the other path's queue. New Interests go behind. Every Interest outstanding at a
// silent next hop is repaired; it takes several of them without an answer in
// between (the parameter evidence), and not lost one by one while others were
// answered, until later Interests avoid the next hop as
// well, so that random loss does not turn the traffic away. A single loss among
// Data that keep coming is the consumer's to repair.
//
// A next hop that is down gets a copy of an Interest now and then, after times
// that double; Data from it, asked for or late, bring it back. Probes cost at
// most one Interest per next hop and back-off time.
//
// The next hops of a prefix are judged apart from those of other prefixes: a
// silent producer does not condemn the link to everything else.
package failover

import (
	"math"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// Factory returns the factory of failover.
func Factory() strategy.Factory {
	return strategy.Factory{
		Name:    "failover",
		Version: 1,
		Usage:   "lowest cost first, another next hop at once when one fails or falls silent",
		Params: append(strategy.SilenceParams(silence()),
			strategy.Param{Name: "retry-initial", Usage: "milliseconds until a next hop that is down is tried again (250)"},
			strategy.Param{Name: "retry-max", Usage: "longest time between trials in milliseconds (5000)"},
		),
		New: parse,
	}
}

// silence has the defaults.
func silence() strategy.Silence {
	return strategy.Silence{Multiple: 1.5, Floor: 15 * time.Millisecond, Unknown: 250 * time.Millisecond, Evidence: 4}
}

func parse(v strategy.Values) (strategy.Strategy, error) {
	f := &failover{}
	var err error
	if f.silence, err = strategy.ParseSilence(v, silence()); err != nil {
		return nil, err
	}
	if f.retry, err = v.MillisIn("retry-initial", 250*time.Millisecond, time.Millisecond, time.Hour); err != nil {
		return nil, err
	}
	f.retryMax, err = v.MillisIn("retry-max", max(5*time.Second, f.retry), f.retry, time.Hour)
	return f, err
}

// lingering is how long an answered Interest waits for what else was asked:
// late Data and answers to probes.
const lingering = time.Second

type failover struct {
	silence         strategy.Silence
	retry, retryMax time.Duration

	prefixes strategy.PrefixState[prefix]
	entries  strategy.EntryState[entry]
	// raised has the times at which faces came up again; only looked up.
	raised map[ndn.FaceID]ndn.Time
	killed strategy.Spread // what is sent again as a face went down, of all prefixes
}

// prefix is what is known about the next hops of a prefix.
type prefix struct {
	strategy.Hops[hop]
	spread strategy.Spread  // what is sent again for another reason
	line   *strategy.Spread // that new Interests go behind, nil without one
	down   int              // next hops that are down, at most
}

// hop is what is known about one next hop.
type hop struct {
	rtt   strategy.RTT
	heard ndn.Time // latest Data
	waits ndn.Time // first Interest since then, zero without one
	// unanswered counts Interests that were given up since heard.
	unanswered uint64
	refuses    ndn.Time // first Nack since heard, zero without one

	down    bool
	since   ndn.Time // when it went down
	retryAt ndn.Time
	backoff time.Duration
	healed  ndn.Time // when it last came back
}

// entry is the watch over one pending Interest: over the next hop that it was
// last sent to.
type entry struct {
	strategy.Retry
	watched      ndn.FaceID
	armed        ndn.Time
	spread       *strategy.Spread // that place is one of
	place        strategy.Place
	retry, again bool // as forward takes them
}

// What a timer of an entry is for.
const (
	tagWatch = iota // the watched next hop may be silent
	tagPlace        // all that are sent again are known
	tagTurn         // the Interest is to be sent again
	tagNew          // it is to be sent for the first time
)

// Interest implements strategy.Strategy.
func (f *failover) Interest(c *strategy.Context, ev *strategy.Interest) {
	st := f.prefixes.Get(c)
	if ev.New && st.line != nil {
		if e := f.entries.Get(c); e.LineUp(c, st.line, tagNew) {
			e.retry, e.again = false, true
			return
		}
		if st.line.Over(c.Now()) {
			st.line = nil
		}
	}
	if f.forward(c, st, ev.Retransmission, true) {
		f.probe(c, st)
	} else if ev.New {
		c.Nack(ev.In, ndn.NackNoRoute)
	}
}

// forward sends to the best next hop that this Interest has not been sent to.
// again allows those that it has, the one used longest ago first. retry allows
// the very same one if it has answered others since.
func (f *failover) forward(c *strategy.Context, st *prefix, retry, again bool) bool {
	hops := c.Candidates()
	for i := range hops {
		h := st.Of(hops[i].Face)
		if f.isDown(st, h, hops[i].Face) {
			continue
		}
		o := c.Out(hops[i].Face)
		if o != nil && !(retry && o.Sends < 2 && !o.Failed && h.heard > o.SentAt) {
			continue
		}
		if f.send(c, st, &hops[i], "cheapest that answers") {
			return true
		}
	}
	// Only next hops that are down or were tried remain.
	for refused := uint64(0); ; {
		best, key := -1, int64(0)
		for i := range hops {
			if k, ok := f.rank(c, st, hops[i].Face, again); ok && refused>>i&1 == 0 && (best < 0 || k < key) {
				best, key = i, k
			}
		}
		if best < 0 {
			return false
		}
		if f.send(c, st, &hops[best], "none is left that answers") {
			return true
		}
		refused |= 1 << best
	}
}

// rank orders next hops when there is none that is up and untried: first those
// untried, by cost, then the others by their last use.
func (f *failover) rank(c *strategy.Context, st *prefix, face ndn.FaceID, again bool) (int64, bool) {
	if o := c.Out(face); o != nil {
		return int64(o.SentAt), again
	}
	return 0, st.Of(face).down // otherwise it was refused above
}

// send sends to a next hop and watches for its answer.
func (f *failover) send(c *strategy.Context, st *prefix, to *table.NextHop, why string) bool {
	if c.Traced() {
		f.explain(c, st, to.Face, why)
	}
	if c.Send(to.Face) != strategy.Sent {
		return false
	}
	now, h := c.Now(), st.Of(to.Face)
	at := f.silentAt(h)
	if h.waits == 0 || at <= now { // that was long ago, and of no consequence
		h.waits = now
		at = f.silentAt(h)
	}
	f.watch(c, f.entries.Get(c), to.Face, at)
	return true
}

// watch arms the timer for when the silence of a next hop becomes too long.
func (f *failover) watch(c *strategy.Context, e *entry, face ndn.FaceID, at ndn.Time) {
	e.watched, e.armed = face, c.Now()
	e.Watch(c, at.Sub(e.armed), tagWatch)
}

// silentAt is when a next hop counts as silent unless it is heard before.
func (f *failover) silentAt(h *hop) ndn.Time {
	return max(h.heard, h.waits).Add(f.silence.Limit(&h.rtt))
}

// probe sends a copy to one next hop that is down and due for a trial.
func (f *failover) probe(c *strategy.Context, st *prefix) {
	if st.down == 0 {
		return
	}
	now, hops := c.Now(), c.Candidates()
	for i := range hops {
		face := hops[i].Face
		h := st.Of(face)
		if !h.down || h.retryAt > now || c.Out(face) != nil {
			continue
		}
		if c.Traced() {
			f.explain(c, st, face, "trial of a next hop that is down")
		}
		h.backoff = min(2*h.backoff, f.retryMax)
		h.retryAt = now.Add(h.backoff)
		c.Probe(face)
		return
	}
}

// Timer implements strategy.TimerHandler: the watched next hop is silent, or
// has been heard since and is watched on; or an Interest that is sent again has
// its turn.
func (f *failover) Timer(c *strategy.Context, ev *strategy.Timer) {
	e := f.entries.Get(c)
	if !e.Due(ev) || len(c.Ins()) == 0 {
		return
	}
	st := f.prefixes.Get(c)
	if ev.Tag == tagTurn || ev.Tag == tagNew {
		f.turn(c, st, e, ev.Tag == tagNew)
		return
	}
	h := st.Of(e.watched)
	if ev.Tag == tagPlace {
		st.line = e.spread
		e.Queue(c, e.spread.Turn(c.Now(), e.place, f.silence.Failure(c, e.watched, &h.rtt, h.heard)), tagTurn)
		return
	}
	o := c.Out(e.watched)
	if o == nil || o.Failed {
		return
	}
	if h.heard > e.armed {
		f.watch(c, e, e.watched, f.silentAt(h))
		return
	}
	if f.silence.Counts(&h.rtt, o.SentAt, h.heard) {
		f.unanswered(c, st, e.watched, h, 1)
	}
	f.queue(c, st, &st.spread, e.watched, false, false)
}

// queue sends an Interest again when its turn comes among all of a spread. The
// arguments are those of forward.
func (f *failover) queue(c *strategy.Context, st *prefix, s *strategy.Spread, of ndn.FaceID, retry, again bool) {
	e, h := f.entries.Get(c), st.Of(of)
	e.watched, e.retry, e.again = of, retry, again
	e.spread, e.place = s, s.Join(c.Now(), f.silence.Failure(c, of, &h.rtt, h.heard))
	if !e.place.First() {
		e.Queue(c, 0, tagPlace)
		return
	}
	e.Stop(c)
	f.turn(c, st, e, false)
}

// turn sends an Interest whose turn it is.
func (f *failover) turn(c *strategy.Context, st *prefix, e *entry, isNew bool) {
	if f.forward(c, st, e.retry, e.again) || !isNew && e.Later(c, tagTurn) {
		return
	}
	if isNew || c.QueueFull() && !c.PendingOut() {
		c.NackAll(ndn.NackNoRoute)
	}
}

// unanswered notes evidence against a next hop.
func (f *failover) unanswered(c *strategy.Context, st *prefix, face ndn.FaceID, h *hop, n uint64) {
	h.unanswered += n
	h.waits = 0
	if h.unanswered >= f.silence.Evidence {
		f.takeDown(c, st, face, h)
	}
}

func (f *failover) takeDown(c *strategy.Context, st *prefix, face ndn.FaceID, h *hop) {
	if f.isDown(st, h, face) {
		return
	}
	now := c.Now()
	// A next hop that fails soon after it came back has not healed.
	if h.backoff == 0 || now.Sub(h.healed) > 8*h.backoff {
		h.backoff = f.retry
	} else {
		h.backoff = min(2*h.backoff, f.retryMax)
	}
	st.down++
	h.down, h.since, h.retryAt = true, now, now.Add(h.backoff)
}

// isDown reports whether a next hop is down. One whose face came up anew is
// not.
func (f *failover) isDown(st *prefix, h *hop, face ndn.FaceID) bool {
	if h.down && f.raised[face] > h.since {
		st.down--
		h.down, h.unanswered, h.waits, h.refuses = false, 0, 0, 0
	}
	return h.down
}

// resend sends an Interest that a next hop refused to another one, or has the
// downstreams told. What failed beside the next hop that is being waited for, as
// trials do, is sent to nobody else.
func (f *failover) resend(c *strategy.Context, st *prefix, refused ndn.FaceID) {
	if len(c.Ins()) == 0 {
		return
	}
	e := f.entries.Get(c)
	if o := c.Out(e.watched); refused != e.watched && o != nil && o.Pending(c.Now()) {
		c.PassNacks()
		return
	}
	if f.forward(c, st, false, false) {
		return
	}
	e.retry, e.again = false, false
	if !e.Later(c, tagTurn) {
		c.PassNacks()
	}
}

// Data implements strategy.Strategy.
func (f *failover) Data(c *strategy.Context, ev *strategy.Data) {
	if ev.Out == nil {
		return
	}
	st := f.prefixes.Get(c)
	h := st.Of(ev.In)
	if ev.RTTCertain {
		h.rtt.Add(ev.RTT)
	}
	h.heard, h.waits, h.unanswered, h.refuses = c.Now(), 0, 0, 0
	if h.down {
		st.down--
		h.down, h.healed = false, c.Now()
		if c.Traced() {
			c.Explain(ev.In, "answers again", nil)
		}
	}
	if c.AwaitsOthers(ev.In) {
		c.Linger(lingering)
	}
}

// Nack implements strategy.NackHandler.
func (f *failover) Nack(c *strategy.Context, ev *strategy.Nack) {
	st := f.prefixes.Get(c)
	h := st.Of(ev.In)
	h.waits = 0
	if h.refuses == 0 {
		h.refuses = c.Now()
	}
	if ev.Reason == ndn.NackNoRoute || c.Now().Sub(h.refuses) >= f.silence.Limit(&h.rtt) {
		f.unanswered(c, st, ev.In, h, 1)
	}
	f.resend(c, st, ev.In)
}

// GaveUp implements strategy.GaveUpHandler.
func (f *failover) GaveUp(c *strategy.Context, ev *strategy.GaveUp) {
	st := f.prefixes.Get(c)
	h, n := st.Of(ev.On), uint64(1)
	if h.heard < ev.Out.SentAt {
		n = f.silence.Evidence
	}
	f.unanswered(c, st, ev.On, h, n)
	f.resend(c, st, ev.On)
}

// NextHop implements strategy.NextHopHandler.
func (f *failover) NextHop(c *strategy.Context, ev *strategy.NextHop) {
	if !c.HasEntry() {
		switch ev.Change {
		case strategy.HopUp:
			if f.raised == nil {
				f.raised = make(map[ndn.FaceID]ndn.Time)
			}
			f.raised[ev.Face] = c.Now()
		case strategy.HopDown:
			delete(f.raised, ev.Face)
		}
		return
	}
	st, e, down := f.prefixes.Get(c), f.entries.Get(c), ev.Change == strategy.HopDown
	if down {
		st.Of(ev.Face).waits = 0
	}
	switch {
	case e.Queued():
		e.again = e.again || !down
	// What nobody watches is at silent next hops, and there was nobody else to ask.
	case !c.PendingOut() || down && e.watched == ev.Face || !down && !e.Watched():
		f.queue(c, st, &f.killed, ev.Face, true, !down)
	}
}

// Expiry implements strategy.ExpiryHandler: an Interest that lived shorter than
// silence takes is evidence as well.
func (f *failover) Expiry(c *strategy.Context, _ *strategy.Expiry) {
	e := f.entries.Peek(c)
	if e == nil || !e.Watched() {
		return
	}
	st := f.prefixes.Get(c)
	h, o := st.Of(e.watched), c.Out(e.watched)
	if o != nil && !o.Failed && c.Now().Sub(o.SentAt) > h.rtt.Smooth && f.silence.Counts(&h.rtt, o.SentAt, h.heard) {
		f.unanswered(c, st, e.watched, h, 1)
	}
}

// Inherit implements strategy.InheritHandler: the next hop that an Interest was
// last sent to is watched as if it had been sent from here.
func (f *failover) Inherit(c *strategy.Context) {
	st := f.prefixes.Get(c)
	o := c.LatestOut()
	if o == nil {
		if hops := c.Candidates(); len(hops) > 0 {
			f.queue(c, st, &f.killed, hops[0].Face, true, true)
		}
		return
	}
	h := st.Of(o.Face)
	if h.waits == 0 || o.SentAt < h.waits {
		h.waits = o.SentAt
	}
	f.watch(c, f.entries.Get(c), o.Face, f.silentAt(h))
}

// Report implements strategy.Reporter. RTTs that are not known are infinite.
func (f *failover) Report(c *strategy.Context) strategy.Report {
	rep := strategy.Report{Columns: []string{"rtt_ms", "unanswered", "down"}}
	st := f.prefixes.Get(c)
	for _, r := range c.Routes() {
		h := st.Find(r.Face)
		if h == nil {
			continue
		}
		rtt, down := math.Inf(1), 0.0
		if h.rtt.N > 0 {
			rtt = h.rtt.Smooth.Seconds() * 1e3
		}
		if h.down || !c.Up(r.Face) {
			down = 1
		}
		rep.Rows = append(rep.Rows, strategy.ReportRow{Face: r.Face, Cells: []float64{rtt, float64(h.unanswered), down}})
	}
	return rep
}

// explain tells what is known about the next hops.
func (f *failover) explain(c *strategy.Context, st *prefix, to ndn.FaceID, why string) {
	hops := c.Candidates()
	all := make([]strategy.Candidate, len(hops))
	for i := range hops {
		h := st.Of(hops[i].Face)
		all[i] = strategy.Candidate{
			Face: hops[i].Face, Cost: hops[i].Cost, Weight: h.rtt.Smooth.Seconds() * 1000, Note: "ms RTT, answers",
		}
		switch {
		case h.down:
			all[i].Note = "ms RTT, down"
		case h.unanswered > 0:
			all[i].Note = "ms RTT, silent"
		case h.rtt.N == 0:
			all[i].Note = "RTT unknown"
		}
	}
	c.Explain(to, why, all)
}
