package strategy

import (
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/table"
)

// oneEntry is a Core for one pending Interest, whose only next hop has a full
// queue.
type oneEntry struct {
	armed  map[table.TimerID]time.Duration
	timers table.Timers
	none   bool // no timer is left
}

func (o *oneEntry) Send(*Context, Output) Refusal                  { return RefusedQueue }
func (o *oneEntry) Check(*Context, ndn.FaceID) Refusal             { return Sent }
func (o *oneEntry) Nack(*Context, ndn.FaceID, ndn.NackReason) bool { return false }
func (o *oneEntry) Lookup(*Context) ([]table.NextHop, *table.FibEntry) {
	return []table.NextHop{{Face: 1}}, nil
}
func (o *oneEntry) Disarm(_ *Context, id table.TimerID) bool {
	delete(o.armed, id)
	return o.timers.Disarm(id)
}
func (o *oneEntry) Arm(c *Context, at ndn.Time, tag uint64, _ bool) table.TimerID {
	if o.none {
		return table.TimerID{}
	}
	id := o.timers.Arm(at, 0, 0, tag)
	o.armed[id] = at.Sub(c.Now())
	return id
}

func newRetry() (*oneEntry, *Context) {
	o := &oneEntry{armed: make(map[table.TimerID]time.Duration)}
	c := NewContext(o, ndn.NewHasher(1), table.NewMeasurements(1), 1)
	*c.Begin() = Setup{Now: 1000, Entry: &table.PitEntry{}}
	return o, c
}

// due is the only armed timer that fires.
func (o *oneEntry) due(t *testing.T) (ev *Timer, after time.Duration) {
	t.Helper()
	if len(o.armed) != 1 {
		t.Fatalf("%d timers are armed", len(o.armed))
	}
	for id, d := range o.armed {
		ev, after = &Timer{ID: id}, d
		delete(o.armed, id)
		o.timers.Disarm(id)
	}
	return ev, after
}

// TestRetryLater: what a full queue refuses is tried six times more.
func TestRetryLater(t *testing.T) {
	o, c := newRetry()
	var r Retry
	if r.Later(c, 1) {
		t.Error("nothing was refused")
	}
	c.Send(1)
	sum, n := time.Duration(0), 0
	for r.Later(c, 1) {
		ev, d := o.due(t)
		if !r.Queued() || !r.Due(ev) || r.Queued() {
			t.Error("not queued until its turn")
		}
		sum, n = sum+d, n+1
	}
	if n != 6 || sum != 315*ms {
		t.Errorf("%d times in %v", n, sum)
	}
}

// TestRetryHasOneTimer: the latest one, and none at all is no queue.
func TestRetryHasOneTimer(t *testing.T) {
	o, c := newRetry()
	var r Retry
	r.Watch(c, 40*ms, 1)
	if !r.Watched() || r.Queued() {
		t.Error("does not watch")
	}
	var first Timer
	for id := range o.armed {
		first.ID = id
	}
	if !r.Queue(c, 10*ms, 2) || r.Watched() || r.Due(&first) {
		t.Error("does not wait for its turn alone")
	}
	if _, d := o.due(t); d != 10*ms {
		t.Errorf("after %v", d)
	}
	o.none = true
	if r.Queue(c, 10*ms, 2) || r.Queued() {
		t.Error("queued without a timer")
	}
	o.none = false
	r.Watch(c, ms, 1)
	r.Stop(c)
	if r.Watched() || len(o.armed) > 0 {
		t.Error("goes on after Stop")
	}
}

// TestRetryLinesUp: behind a line, once.
func TestRetryLinesUp(t *testing.T) {
	o, c := newRetry()
	var s Spread
	var r Retry
	if r.LineUp(c, &s, 1) {
		t.Error("behind nobody")
	}
	for _, p := range join(&s, 1000, 4) {
		s.Turn(1000, p, outstanding)
	}
	if !r.LineUp(c, &s, 1) || r.LineUp(c, &s, 1) {
		t.Error("lines up once")
	}
	if _, d := o.due(t); d != 37500*time.Microsecond {
		t.Errorf("after %v", d)
	}
}
