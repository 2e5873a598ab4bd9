package strategy

import (
	"time"

	"ndnpop/table"
)

// Retry says when a pending Interest is looked at next. It keeps the one timer
// of the entry, which either watches over the next hop that the Interest is at
// or waits for its turn to be sent. The tags are the strategy's, as those of
// [Context.Arm]. The zero Retry is ready; a strategy has it in what it keeps
// about an entry.
type Retry struct {
	timer   table.TimerID
	queued  bool
	refused uint8
}

// A full queue of a face takes up again soon.
const (
	maxRefused   = 6
	afterRefusal = 5 * time.Millisecond
)

// Queued reports whether the Interest waits for its turn to be sent.
func (r *Retry) Queued() bool { return r.queued }

// Watched reports whether the timer watches over a next hop.
func (r *Retry) Watched() bool { return r.timer.IsSet() && !r.queued }

// Watch arms the timer to look at the next hop after d.
func (r *Retry) Watch(c *Context, d time.Duration, tag uint64) {
	if r.timer.IsSet() {
		c.Disarm(r.timer)
	}
	r.timer, r.queued = c.Arm(d, tag), false
}

// Queue arms the timer for the Interest's turn after d, and reports whether it
// could.
func (r *Retry) Queue(c *Context, d time.Duration, tag uint64) bool {
	r.Watch(c, d, tag)
	r.queued = r.timer.IsSet()
	return r.queued
}

// Stop disarms the timer.
func (r *Retry) Stop(c *Context) {
	if r.timer.IsSet() {
		c.Disarm(r.timer)
	}
	r.timer, r.queued = table.TimerID{}, false
}

// Due reports whether a timer that is due is this one, and not one that was
// armed before. The Interest is no longer queued then.
func (r *Retry) Due(ev *Timer) bool {
	if ev.ID != r.timer {
		return false
	}
	r.timer, r.queued = table.TimerID{}, false
	return true
}

// LineUp makes a new Interest wait behind those that wait to be sent again, and
// reports whether there are any.
func (r *Retry) LineUp(c *Context, s *Spread, tag uint64) bool {
	if r.queued || len(c.Candidates()) == 0 {
		return false
	}
	wait := s.Follow(c.Now())
	return wait > 0 && r.Queue(c, wait, tag)
}

// Later tries the Interest again if it was a full queue that refused it in this
// event, and reports whether it will: after 5 ms at first, doubling to 160 ms,
// and then no more.
func (r *Retry) Later(c *Context, tag uint64) bool {
	if !c.QueueFull() || r.refused == maxRefused {
		return false
	}
	r.refused++
	return r.Queue(c, afterRefusal<<(r.refused-1), tag)
}
