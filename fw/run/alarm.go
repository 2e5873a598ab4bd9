package run

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"

	"ndnpop/ndn"
)

// alarm is something that has a deadline: a shard, a face's link, the idle
// time of a face, the RIB.
type alarm struct {
	// fire runs on the timer goroutine without a lock, and returns when it
	// wants to run again, ndn.Never if not.
	fire  func(now ndn.Time) ndn.Time
	at    atomic.Int64 // when it will fire; ndn.Never when it is not armed
	index int          // in the heap
}

func newAlarm(fire func(now ndn.Time) ndn.Time) *alarm {
	a := &alarm{fire: fire, index: -1}
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
	heap   alarmHeap
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
		if x.index < 0 {
			heap.Push(&a.heap, x)
		} else {
			heap.Fix(&a.heap, x.index)
		}
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
	if x.index >= 0 {
		heap.Remove(&a.heap, x.index)
		x.at.Store(int64(ndn.Never))
	}
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
	if len(a.heap) == 0 {
		// Nothing to wait for; arm wakes the goroutine when that changes.
		a.wakeAt = ndn.Never
		return nil
	}
	if t := ndn.Time(a.heap[0].at.Load()); t > now {
		a.wake(t)
		return nil
	}
	x := heap.Pop(&a.heap).(*alarm)
	x.at.Store(int64(ndn.Never))
	return x
}

// alarmHeap orders alarms by time (container/heap).
type alarmHeap []*alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Load() < h[j].at.Load() }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *alarmHeap) Push(x any) {
	a := x.(*alarm)
	a.index = len(*h)
	*h = append(*h, a)
}

// Pop implements heap.Interface.
func (h *alarmHeap) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	a.index = -1
	return a
}
