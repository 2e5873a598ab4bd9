package run

import (
	"sync"
	"sync/atomic"
	"time"

	"ndnpop/fw/internal/due"
	"ndnpop/ndn"
)

// alarm is something that has a deadline: a shard, a face's link, the idle
// time of a face, the RIB.
type alarm struct {
	// fire runs on the timer goroutine without a lock, and returns when it
	// wants to run again, ndn.Never if not.
	fire  func(now ndn.Time) ndn.Time
	at    atomic.Int64 // when it will fire; ndn.Never when it is not armed
	place due.Place
}

// Before implements due.Item.
func (a *alarm) Before(b *alarm) bool { return a.at.Load() < b.at.Load() }

// Place implements due.Item.
func (a *alarm) Place() *due.Place { return &a.place }

func newAlarm(fire func(now ndn.Time) ndn.Time) *alarm {
	a := &alarm{fire: fire}
	a.at.Store(int64(ndn.Never))
	return a
}

// alarms is the one timer of a forwarder: the goroutine run sleeps until the
// earliest alarm and is not woken before.
type alarms struct {
	clock clock
	stop  chan struct{}
	timer *time.Timer

	mu     sync.Mutex
	queue  due.Queue[*alarm]
	wakeAt ndn.Time // what timer is set to
}

func newAlarms(c clock) *alarms {
	return &alarms{clock: c, stop: make(chan struct{}), timer: time.NewTimer(time.Hour), wakeAt: c.now().Add(time.Hour)}
}

// arm makes x fire at t, or when it would have fired if that is earlier. It
// costs one atomic read when there is nothing to do.
func (a *alarms) arm(x *alarm, t ndn.Time) {
	if int64(t) >= x.at.Load() {
		return
	}
	a.mu.Lock()
	if int64(t) < x.at.Load() {
		x.at.Store(int64(t))
		a.queue.Set(x)
		if t < a.wakeAt {
			a.wake(t)
		}
	}
	a.mu.Unlock()
}

// wake sets the timer; the lock is held.
func (a *alarms) wake(t ndn.Time) {
	a.wakeAt = t
	a.timer.Reset(max(0, t.Sub(a.clock.now())))
}

// disarm makes x not fire, unless it is firing now.
func (a *alarms) disarm(x *alarm) {
	a.mu.Lock()
	a.queue.Remove(x)
	x.at.Store(int64(ndn.Never))
	a.mu.Unlock()
}

// run fires alarms until stop is closed.
func (a *alarms) run() {
	defer a.timer.Stop()
	for {
		select {
		case <-a.stop:
			return
		case <-a.timer.C:
		}
		for x := a.due(); x != nil; x = a.due() {
			if next := x.fire(a.clock.now()); next != ndn.Never {
				a.arm(x, next)
			}
		}
	}
}

// due takes the next alarm whose time has come; when there is none it sets
// the timer and returns nil.
func (a *alarms) due() *alarm {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.now()
	if a.queue.Len() == 0 {
		// Nothing to wait for; arm wakes the goroutine when that changes.
		a.wakeAt = ndn.Never
		return nil
	}
	x := a.queue.First()
	if t := ndn.Time(x.at.Load()); t > now {
		a.wake(t)
		return nil
	}
	a.queue.Remove(x)
	x.at.Store(int64(ndn.Never))
	return x
}
