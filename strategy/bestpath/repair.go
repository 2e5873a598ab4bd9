package bestpath

import (
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
)

// silence says when what is outstanding at a path goes elsewhere, as failover
// does. How many Interests were lost says the weight.
func silence() strategy.Silence {
	return strategy.Silence{Multiple: 1.5, Floor: 15 * time.Millisecond, Unknown: 250 * time.Millisecond}
}

// entry is what is known about a pending Interest.
type entry struct {
	strategy.Retry
	lost   [4]ndn.FaceID    // whose answer counts as lost already
	of     ndn.FaceID       // the path that is watched, or that failed
	spread *strategy.Spread // that place is one of
	place  strategy.Place
	again  bool // as forward takes it
	stuck  bool // its paths are silent, and there is nobody else to ask
}

// count notes that the answer of a face is lost, and reports whether it was not
// yet. Of more faces than it has room for nothing is counted.
func (e *entry) count(f ndn.FaceID) bool {
	for i := range e.lost {
		switch e.lost[i] {
		case f:
			return false
		case 0:
			e.lost[i] = f
			return true
		}
	}
	return false
}

// What a timer of an entry is for. Others are for the answer of the face that
// they have as a tag.
const (
	tagWatch = 1<<63 + iota // the path may be silent by now
	tagPlace                // all that are sent again are known
	tagTurn                 // the Interest is to be sent again
	tagNew                  // it is to be sent for the first time
)

// silentAt is when a path counts as silent, unless it is heard before, for an
// Interest that was sent there at a time.
func (b *bestPath) silentAt(p *path, sent ndn.Time) ndn.Time {
	return max(p.heard, min(p.waits, sent)).Add(b.silence.Limit(&p.rtt))
}

// Timer implements strategy.TimerHandler: an answer is late, a path may be silent,
// or an Interest that is sent again has its turn.
func (b *bestPath) Timer(c *strategy.Context, ev *strategy.Timer) {
	st := b.prefixes.Get(c)
	if ev.Tag < tagWatch {
		b.late(c, st, ndn.FaceID(ev.Tag))
		return
	}
	e := b.entries.Get(c)
	if !e.Due(ev) || len(c.Ins()) == 0 {
		return
	}
	switch ev.Tag {
	case tagWatch:
		b.look(c, st)
	case tagPlace:
		st.line = e.spread
		p := st.hops.Of(e.of)
		e.Queue(c, e.spread.Turn(c.Now(), e.place, b.silence.Failure(c, e.of, &p.rtt, p.heard)), tagTurn)
	default:
		b.turn(c, st, e, ev.Tag == tagNew)
	}
}

// late counts an answer that has not come, and looks for silence.
func (b *bestPath) late(c *strategy.Context, st *paths, face ndn.FaceID) {
	o := c.Out(face)
	if o == nil || o.Failed {
		return
	}
	p := st.hops.Of(face)
	if wait := late(p) - c.Now().Sub(o.SentAt); wait > 0 {
		c.Arm(wait, uint64(face))
	} else {
		b.lost(c, p, face)
	}
	if len(c.Ins()) > 0 && !b.entries.Get(c).Queued() {
		b.look(c, st)
	}
}

// look sends an Interest again if all paths that it waits at are silent, or watches on
// until the last of them is.
func (b *bestPath) look(c *strategy.Context, st *paths) {
	last, of := ndn.Time(0), ndn.FaceID(0)
	for i := range c.Outs() {
		if o := &c.Outs()[i]; !o.Failed {
			if at := b.silentAt(st.hops.Of(o.Face), o.SentAt); of == 0 || at > last {
				last, of = at, o.Face
			}
		}
	}
	if wait := last.Sub(c.Now()); wait > 0 {
		e := b.entries.Get(c)
		e.of = of
		e.Watch(c, wait, tagWatch)
	} else if of != 0 {
		b.queue(c, &st.spread, st, of, false)
	}
}

// queue sends an Interest again when its turn comes among all of a spread.
func (b *bestPath) queue(c *strategy.Context, s *strategy.Spread, st *paths, of ndn.FaceID, again bool) {
	e, p := b.entries.Get(c), st.hops.Of(of)
	e.of, e.again = of, again
	e.spread, e.place = s, s.Join(c.Now(), b.silence.Failure(c, of, &p.rtt, p.heard))
	if !e.place.First() {
		e.Queue(c, 0, tagPlace)
		return
	}
	e.Stop(c)
	b.turn(c, st, e, false)
}

// turn sends an Interest whose turn it is.
func (b *bestPath) turn(c *strategy.Context, st *paths, e *entry, isNew bool) {
	if hops := c.Candidates(); len(hops) > 0 {
		b.reconsider(c, st, hops)
	}
	if _, ok := b.forward(c, st, e.again); ok || !isNew && e.Later(c, tagTurn) {
		return
	}
	e.stuck = true
	if isNew || c.QueueFull() && !c.PendingOut() {
		c.NackAll(ndn.NackNoRoute)
	}
}

// NextHop implements strategy.NextHopHandler.
func (b *bestPath) NextHop(c *strategy.Context, ev *strategy.NextHop) {
	if !c.HasEntry() {
		return
	}
	st, e, down := b.prefixes.Get(c), b.entries.Get(c), ev.Change == strategy.HopDown
	if down {
		st.hops.Of(ev.Face).waits = 0
	}
	switch {
	case e.Queued():
		e.again = e.again || !down
	case !c.PendingOut() || e.stuck:
		b.queue(c, &b.killed, st, ev.Face, !down)
	}
}

// Inherit implements strategy.InheritHandler: the path that an Interest was last
// sent to is watched as if it had been sent from here.
func (b *bestPath) Inherit(c *strategy.Context) {
	st := b.prefixes.Get(c)
	o := c.LatestOut()
	if o == nil {
		if hops := c.Candidates(); len(hops) > 0 {
			b.queue(c, &b.killed, st, hops[0].Face, true)
		}
		return
	}
	p := st.hops.Of(o.Face)
	if p.waits == 0 || o.SentAt < p.waits {
		p.waits = o.SentAt
	}
	c.Arm(b.silentAt(p, o.SentAt).Sub(c.Now()), uint64(o.Face))
}
