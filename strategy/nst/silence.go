package nst

import (
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// silence has the defaults.
func silence() strategy.Silence {
	return strategy.Silence{Multiple: 2, Floor: 50 * time.Millisecond, Unknown: time.Second, Evidence: 4}
}

// life is what is known about whether a replica answers at all.
type life struct {
	rtt     strategy.RTT
	last    ndn.Time // latest Data or Nack
	waits   ndn.Time // first Interest since then, zero without one
	missing uint64   // Interests that waited too long since then
	silent  ndn.Time // until when it counts as silent
	backoff time.Duration
}

// watch is over the replica that one pending Interest was last sent to.
type watch struct {
	timer   table.TimerID
	face    ndn.FaceID
	missing bool // it has been counted
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
	if w.timer.IsSet() {
		if w.face == face {
			return // repetitions do not put it off
		}
		c.Disarm(w.timer)
	}
	d := max(l.last, l.waits).Add(n.silence.Limit(&l.rtt)).Sub(c.Now())
	if d <= 0 { // too long already, on too little evidence
		d = n.silence.Limit(&l.rtt)
	}
	w.timer, w.face = c.Arm(d, 0), face
}

// Timer implements strategy.TimerHandler: the replica that an Interest is at
// may have become silent.
func (n *nst) Timer(c *strategy.Context, ev *strategy.Timer) {
	p := n.entries.Get(c)
	if ev.ID != p.timer {
		return
	}
	p.timer = table.TimerID{}
	from := p.face
	o := c.Out(from)
	if o == nil || o.Failed || len(c.Ins()) == 0 {
		return
	}
	l, now := &n.tables.Get(c).Of(from).life, c.Now()
	if max(l.last, l.waits).Add(n.silence.Limit(&l.rtt)) > now {
		n.watch(c, &p.watch, from, l)
		return
	}
	if !p.missing {
		p.missing = true
		l.missing++
	}
	if l.missing < n.silence.Evidence {
		n.watch(c, &p.watch, from, l)
		return
	}
	if !l.isSilent(now) {
		least := max(n.avoid, time.Second)
		l.backoff = min(max(2*l.backoff, least), 8*least)
		l.silent = now.Add(l.backoff)
	}
	if !n.fail(c, from, "the replica is silent", false) {
		n.watch(c, &p.watch, from, &n.tables.Get(c).Of(from).life)
	}
}
