package line

import (
	"math"
	"time"

	"ndnpop/ndn"
)

// Drop is the reason why a packet was lost.
type Drop uint8

// Reasons, each with a counter of its own.
const (
	DropLoss     Drop = iota + 1 // Params.Loss or Burst
	DropQueue                    // the queue was full
	DropCoDel                    // waited too long
	DropCut                      // the direction was not Up
	DropOverload                 // too much is under way
)

func (d Drop) String() string {
	return [...]string{"", "loss", "queue", "codel", "cut", "overload"}[d]
}

// codel is the state of RFC 8289, with the names that it has there.
type codel struct {
	dropping   bool
	firstAbove ndn.Time
	dropNext   ndn.Time
	count      int
	lastCount  int
	maxPacket  int64 // bits of the largest packet so far
}

func (p *Params) target() time.Duration {
	if p.CoDel.Target == 0 {
		return 5 * time.Millisecond
	}
	return p.CoDel.Target
}

func (p *Params) interval() time.Duration {
	if p.CoDel.Interval == 0 {
		return 100 * time.Millisecond
	}
	return p.CoDel.Interval
}

// dequeue drops from the head of the queue what CoDel would (RFC 8289,
// section 5.5: deque).
func (l *Line) dequeue(now ndn.Time) {
	c, interval := &l.codel, l.params.interval()
	ok := l.tooLong(now)
	switch {
	case c.dropping:
		c.dropping = ok
		for c.dropping && now >= c.dropNext {
			l.dropHead(now)
			c.count++
			if c.dropping = l.tooLong(now); c.dropping {
				c.dropNext = c.dropNext.Add(controlLaw(interval, c.count))
			}
		}
	case ok:
		l.dropHead(now)
		l.tooLong(now)
		c.dropping = true
		// When it stopped dropping lately, it goes on at about that rate.
		if delta := c.count - c.lastCount; delta > 1 && now.Sub(c.dropNext) < 16*interval {
			c.count = delta
		} else {
			c.count = 1
		}
		c.dropNext = now.Add(controlLaw(interval, c.count))
		c.lastCount = c.count
	}
}

func controlLaw(interval time.Duration, count int) time.Duration {
	return time.Duration(float64(interval) / math.Sqrt(float64(count)))
}

// tooLong reports whether the packet at the head may be dropped (section 5.5:
// dodequeue).
func (l *Line) tooLong(now ndn.Time) bool {
	c := &l.codel
	if l.waiting.n == 0 {
		c.firstAbove = 0
		return false
	}
	r := l.waiting.front()
	size := l.bits(r, r.from)
	c.maxPacket = max(c.maxPacket, size)
	switch {
	case now.Sub(r.when) < l.params.target() || l.waitingBits-size <= c.maxPacket:
		c.firstAbove = 0
	case c.firstAbove == 0:
		c.firstAbove = now.Add(l.params.interval())
	default:
		return now >= c.firstAbove
	}
	return false
}

// dropHead drops the first packet of the queue.
func (l *Line) dropHead(now ndn.Time) {
	r := l.waiting.front()
	l.drop(now, DropCoDel, &l.c.CoDelDrops, r, r.from)
	l.waitingBits -= l.bits(r, r.from)
	l.held -= r.wire(r.from)
	l.c.WaitingPackets--
	if r.from++; r.from == r.to {
		l.pool.release(l.waiting.pop().p)
	}
}
