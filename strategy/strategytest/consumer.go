package strategytest

import (
	"strconv"
	"time"

	"ndnpop/ndn"
)

// Consumer is a scripted downstream that asks for one segment after the other
// of an object of its own. Without Resend it never repeats an Interest: what
// it gets late or not at all is the strategy's doing.
type Consumer struct {
	// Object is a component of the names: consumers with the same Object ask
	// for the same Data. Empty gives an object of its own.
	Object string
	// Start is the time of the first Interest.
	Start time.Duration
	// Segments is the number of segments; zero for no end.
	Segments int
	// Window is how many Interests it keeps pending; 1 if zero. What stays
	// unanswered for Lifetime leaves the window.
	Window int
	// Every, if positive, spaces its Interests instead, whatever the answers.
	Every time.Duration
	// Lifetime is the Interests' lifetime; 4 s if zero.
	Lifetime time.Duration
	// Resend, if positive, is the time after which it repeats an unanswered
	// Interest.
	Resend time.Duration
	// PathTag asks for path tags.
	PathTag bool
	// Remote consumers are on another node: their face is not local.
	Remote bool
	// NonDiscovery marks the Interests as not for discovery (self-learning).
	NonDiscovery bool

	// Arrivals are the Data it got, in order.
	Arrivals []Arrival
	// Nacks are the reasons of the Nacks it got; a Nack ends the segment.
	Nacks []ndn.NackReason
	// Sent counts its Interests, Resent those of them that were repetitions,
	// Lost the segments that were never answered.
	Sent, Resent, Lost int

	r       *Recorder
	face    ndn.FaceID
	prefix  ndn.Name
	next    uint64
	pending map[uint64]*request
	replica uint64 // counter for SelectReplica, put on the next Interest if ask
	ask     bool
}

// Arrival is a Data that a consumer got.
type Arrival struct {
	At      time.Duration
	Segment uint64
	RTT     time.Duration // since the segment's first Interest
	Marked  bool
	PathTag ndn.PathTag
	// ReplicaAck is set when the Data acknowledges a request for another
	// replica.
	ReplicaAck bool
	// Announced is set when it carries a prefix announcement.
	Announced bool
}

// afterNack is how long a consumer waits after a Nack before it asks for
// something else.
const afterNack = 10 * time.Millisecond

type request struct {
	segment uint64
	first   ndn.Time
	sends   int
}

func (c *Consumer) begin(r *Recorder) {
	c.r, c.face = r, r.newFace(c, !c.Remote)
	c.pending = make(map[uint64]*request)
	object := c.Object
	if object == "" {
		object = "c" + strconv.Itoa(int(c.face))
	}
	c.prefix = r.prefix.Clone().AppendGeneric(object)
	r.At(c.Start, func() {
		if c.Every > 0 {
			c.tick()
		} else {
			c.fill()
		}
	})
}

func (c *Consumer) done() bool { return c.Segments > 0 && c.next >= uint64(c.Segments) }

func (c *Consumer) tick() {
	if !c.done() {
		c.request()
		c.r.queue.push(c.r.now.Add(c.Every), c.tick)
	}
}

func (c *Consumer) fill() {
	for c.Every == 0 && !c.done() && len(c.pending) < max(1, c.Window) {
		c.request()
	}
}

func (c *Consumer) request() {
	q := &request{segment: c.next, first: c.r.now}
	c.next++
	c.pending[q.segment] = q
	c.r.queue.push(c.r.now.Add(orElse(c.Lifetime, ndn.DefaultLifetime)), func() {
		if c.pending[q.segment] == q && c.Resend == 0 {
			c.Lost++
			delete(c.pending, q.segment)
			c.fill()
		}
	})
	c.send(q)
}

func (c *Consumer) send(q *request) {
	c.Sent++
	c.r.nonce++
	q.sends++
	f := ndn.LpFields{HasPathTag: c.PathTag, HasReplicaSelect: c.ask, ReplicaSelect: c.replica, NonDiscovery: c.NonDiscovery}
	c.ask = false
	if c.Resend > 0 {
		sends := q.sends
		c.r.queue.push(c.r.now.Add(c.Resend), func() {
			if c.pending[q.segment] == q && q.sends == sends {
				c.Resent++
				c.send(q)
			}
		})
	}
	c.r.receive(c.face, ndn.AppendInterest(nil, &ndn.InterestFields{
		Name: c.Name(q.segment), Nonce: c.r.nonce, Lifetime: orElse(c.Lifetime, ndn.DefaultLifetime),
	}), &f)
}

// Name is the name of a segment.
func (c *Consumer) Name(segment uint64) ndn.Name {
	return c.prefix.Clone().AppendNumber(ndn.TypeSegment, segment)
}

// SelectReplica puts a request for another replica on the next Interest
// (2LCCM).
func (c *Consumer) SelectReplica() {
	c.replica++
	c.ask = true
}

// Repeat repeats the Interest of a pending segment now and reports whether
// there is one.
func (c *Consumer) Repeat(segment uint64) bool {
	q := c.pending[segment]
	if q == nil {
		return false
	}
	c.Resent++
	c.send(q)
	return true
}

// Ask asks for the next segment now, beside the window.
func (c *Consumer) Ask() { c.request() }

// Gap is the longest time between two arriving Data, or between one and the
// limits, from one time of the run to another.
func (c *Consumer) Gap(from, to time.Duration) time.Duration {
	last, gap := from, time.Duration(0)
	for _, a := range c.Arrivals {
		if a.At >= from && a.At <= to {
			gap, last = max(gap, a.At-last), a.At
		}
	}
	return max(gap, to-last)
}

// take implements peer. The answer reaches the consumer after the shard has
// returned.
func (c *Consumer) take(p *ndn.Packet) bool {
	n := p.Data.Name
	if p.Kind == ndn.KindNack {
		n = p.Interest.Name
	}
	if p.Kind == ndn.KindInterest || !n.HasPrefix(c.prefix) {
		return true
	}
	last, _ := n.At(-1)
	segment, ok := last.Number()
	if !ok {
		return true
	}
	reason, nack := p.NackReason, p.Kind == ndn.KindNack
	a := Arrival{
		Segment: segment, Marked: p.CongestionMark != 0, PathTag: p.PathTag, ReplicaAck: p.HasReplicaSelect,
		Announced: p.Announcement != nil,
	}
	c.r.queue.push(c.r.now, func() {
		q := c.pending[segment]
		if q == nil {
			return
		}
		delete(c.pending, segment)
		if nack {
			c.Nacks = append(c.Nacks, reason)
			c.r.queue.push(c.r.now.Add(afterNack), c.fill)
			return
		}
		a.At, a.RTT = c.r.Now(), c.r.now.Sub(q.first)
		c.Arrivals = append(c.Arrivals, a)
		c.fill()
	})
	return true
}
