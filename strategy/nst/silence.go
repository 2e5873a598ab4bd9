package nst

import (
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
)

// silence has the defaults.
func silence() strategy.Silence {
	return strategy.Silence{Multiple: 2, Floor: 50 * time.Millisecond, Unknown: time.Second, Evidence: 4}
}

// lingering is how long an Interest that another replica answered waits for the
// one that was silent: that may only have become slow.
const lingering = time.Second

// Back-off of the limit after silence that was none.
const (
	maxWrong = 3
	doubtful = 30 * time.Second
)

// life is what is known about whether a replica answers at all.
type life struct {
	rtt     strategy.RTT
	last    ndn.Time // latest Data or Nack
	waits   ndn.Time // first Interest since then, zero without one
	missing uint64   // Interests that waited too long since then
	silent  ndn.Time // until when it counts as silent
	backoff time.Duration
	// wrong counts how often silence was none, the last time at wrongAt.
	wrong   uint8
	wrongAt ndn.Time
}

// watch is over the replica that one pending Interest was last sent to.
type watch struct {
	strategy.Retry
	face    ndn.FaceID
	missing bool             // it has been counted
	spread  *strategy.Spread // that place is one of
	place   strategy.Place
}

// What a timer of an entry is for.
const (
	tagWatch = iota // the watched replica may be silent
	tagCount        // all that have waited as long are counted
	tagPlace        // all that are sent again are known
	tagTurn         // the Interest is to be sent again
	tagNew          // it is to be sent for the first time
)

// limit is how long a replica may be silent: each time that this was too short,
// twice as long as before, at most maxWrong times and until a while after.
func (n *nst) limit(l *life, now ndn.Time) time.Duration {
	d := n.silence.Limit(&l.rtt)
	if l.wrong > 0 && now.Sub(l.wrongAt) < doubtful {
		d <<= l.wrong
	}
	return d
}

func (l *life) isSilent(now ndn.Time) bool { return now < l.silent }

func (l *life) sent(now ndn.Time) {
	if l.waits == 0 {
		l.waits = now
	}
}

func (l *life) heard(now ndn.Time) {
	l.last, l.waits, l.missing = now, 0, 0
	l.silent, l.backoff = 0, 0
}

// watch arms the timer for when the silence of a replica becomes too long.
func (n *nst) watch(c *strategy.Context, w *watch, face ndn.FaceID, l *life) {
	if w.face == face && w.Watched() {
		return // repetitions do not put it off
	}
	d := max(l.last, l.waits).Add(n.limit(l, c.Now())).Sub(c.Now())
	if d <= 0 { // too long already, on too little evidence
		d = n.limit(l, c.Now())
	}
	w.face = face
	w.Watch(c, d, tagWatch)
}

// Timer implements strategy.TimerHandler: the replica that an Interest is at
// may have become silent, or an Interest that is sent again has its turn.
func (n *nst) Timer(c *strategy.Context, ev *strategy.Timer) {
	p := n.entries.Get(c)
	if !p.Due(ev) || len(c.Ins()) == 0 {
		return
	}
	if ev.Tag == tagTurn || ev.Tag == tagNew { // of one that is new, no replica is watched
		n.again(c, n.tables.Get(c), p, ev.Tag == tagNew)
		return
	}
	st, now := n.tables.Get(c), c.Now()
	l := &st.Of(p.face).life
	switch ev.Tag {
	case tagWatch:
		o := c.Out(p.face)
		if o == nil || o.Failed {
			return
		}
		if max(l.last, l.waits).Add(n.limit(l, c.Now())) > now {
			n.watch(c, &p.watch, p.face, l)
			return
		}
		if !p.missing && n.silence.Counts(&l.rtt, o.SentAt, l.last) {
			p.missing = true
			l.missing++
		}
		p.spread, p.place = &st.spread, st.spread.Join(now, n.silence.Failure(c, p.face, &l.rtt, l.last))
		p.Watch(c, 0, tagCount)
	case tagCount:
		if !n.leave(c, st, p.face, l) || c.Barred(n.object(c).replica) {
			n.watch(c, &p.watch, p.face, l)
			return
		}
		n.turn(c, st, p, l)
	case tagPlace:
		n.turn(c, st, p, l)
	}
}

// leave takes a replica for silent if there is evidence, and reports whether there
// is. The event's object, if it is there, moves to another replica.
func (n *nst) leave(c *strategy.Context, st *nodes, face ndn.FaceID, l *life) bool {
	now := c.Now()
	if l.missing < n.silence.Evidence {
		return false
	}
	if !l.isSilent(now) {
		least := max(n.avoid, time.Second)
		l.backoff = min(max(2*l.backoff, least), 8*least)
		l.silent = now.Add(l.backoff)
	}
	if o := n.object(c); o.replica == face {
		before := undo{o.replica, o.left, o.switched}
		if n.choose(c, st, o, c.Candidates(), "the replica is silent", false); o.replica != before.replica {
			o.undo = before
		}
	}
	return true
}

// Expiry implements strategy.ExpiryHandler: an Interest that lived shorter than
// silence takes is evidence as well.
func (n *nst) Expiry(c *strategy.Context, _ *strategy.Expiry) {
	p := n.entries.Peek(c)
	if p == nil || !p.Watched() || p.missing {
		return
	}
	st, now := n.tables.Get(c), c.Now()
	l, o := &st.Of(p.face).life, c.Out(p.face)
	if o == nil || o.Failed || now.Sub(o.SentAt) <= l.rtt.Smooth || !n.silence.Counts(&l.rtt, o.SentAt, l.last) {
		return
	}
	if l.missing++; max(l.last, l.waits).Add(n.limit(l, now)) <= now {
		n.leave(c, st, p.face, l)
	}
}

// queue sends an Interest again when its turn comes among all that a change of
// a replica concerns.
func (n *nst) queue(c *strategy.Context, of ndn.FaceID) {
	p, st := n.entries.Get(c), n.tables.Get(c)
	l := &st.Of(of).life
	p.face, p.spread = of, &n.killed
	p.place = n.killed.Join(c.Now(), n.silence.Failure(c, of, &l.rtt, l.last))
	p.Queue(c, 0, tagPlace)
}

// turn arms the timer for an Interest's turn among those that go elsewhere.
func (n *nst) turn(c *strategy.Context, st *nodes, p *pending, l *life) {
	st.line = p.spread
	wait := p.spread.Turn(c.Now(), p.place, n.silence.Failure(c, p.face, &l.rtt, l.last))
	if wait == 0 {
		n.again(c, st, p, false)
		return
	}
	p.Queue(c, wait, tagTurn)
}

// again sends an Interest whose turn it is to where its object is now. If that
// is the replica that is being waited for, it is watched on.
func (n *nst) again(c *strategy.Context, st *nodes, p *pending, isNew bool) {
	refusal := strategy.RefusedNoFace
	if o := n.object(c); !c.PendingOut() || c.Out(o.replica) == nil {
		refusal = n.forward(c, st, p, o)
	}
	switch {
	case refusal == strategy.Sent:
	case !isNew && p.Later(c, tagTurn):
	case c.PendingOut():
		n.watch(c, &p.watch, p.face, &st.Of(p.face).life)
	case isNew || refusal == strategy.RefusedQueue:
		c.NackAll(ndn.NackNoRoute)
	}
}

// undo is what an object was before its replica was taken for silent.
type undo struct {
	replica, left ndn.FaceID
	switched      ndn.Time
}

// late brings an object back to a replica that was left as silent, when that
// answers what it was asked before: its round trips have only become longer.
func (o *object) late(l *life, now ndn.Time, ev *strategy.Data) {
	if u := o.undo; u.replica == ev.In && ev.Out.SentAt < o.switched {
		if now.Sub(l.wrongAt) >= doubtful {
			l.wrong = 0
		}
		if o.switched > l.wrongAt { // once for all objects that it was left with
			l.wrong, l.wrongAt = min(l.wrong+1, maxWrong), now
		}
		o.replica, o.left, o.switched, o.undo = u.replica, u.left, u.switched, undo{}
	}
}
