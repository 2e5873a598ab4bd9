package strategytest

import (
	"time"

	"ndnpop/ndn"
)

// Hop is a scripted upstream. Its fields may be changed at any time of the
// run, usually by Recorder.At, and take effect on what is sent from then on;
// Silent and Down also on what is under way.
type Hop struct {
	Name string
	Cost uint64
	// NoRoute leaves it without a route: only the face exists.
	NoRoute bool

	// RTT is the time from an Interest to its answer, without queueing.
	RTT time.Duration
	// Jitter is added to it, evenly distributed from zero.
	Jitter time.Duration
	// Loss is the probability that an Interest or its answer is lost.
	Loss float64
	// Silent hops are black holes: nothing comes back, and the face is up.
	Silent bool
	// Refuse makes the face refuse everything, as when its queue is full.
	Refuse bool
	// GiveUp, if positive, is the time after which the link service of the
	// face gives up on an Interest that was lost.
	GiveUp time.Duration
	// Nacks makes it answer every Interest with a Nack of this reason.
	Nacks ndn.NackReason
	// Reflect, if set, sends every Interest back into the shard from that
	// hop, as a loop of routes does.
	Reflect *Hop

	// Rate, if positive, is the number of Data per second that the hop
	// serves; more wait. What would wait longer than Queue (100 ms) is lost.
	// Data that waited longer than MarkAfter (5 ms) carry a congestion mark.
	Rate             float64
	Queue, MarkAfter time.Duration

	// Size is the content's size in bytes.
	Size int
	// PathTag is put on the Data of Interests that ask for one.
	PathTag ndn.PathTag
	// Announce puts a prefix announcement on the Data of Interests that are
	// for discovery.
	Announce bool

	r      *Recorder
	face   ndn.FaceID
	busy   ndn.Time // until when it serves what it has
	dead   bool
	epoch  int // counts deaths: what was under way then is lost
	served int
}

// Face is the hop's face.
func (h *Hop) Face() ndn.FaceID { return h.face }

// Served counts the Data it sent that arrived.
func (h *Hop) Served() int { return h.served }

// Down takes the face down, as when the peer was killed: what is under way is
// lost and the shard is told.
func (h *Hop) Down() {
	h.dead = true
	h.epoch++
	h.r.shard.FaceDown(h.r.now, h.face)
}

// Up brings the face up again.
func (h *Hop) Up() {
	h.dead = false
	h.r.shard.FaceUp(h.r.now, h.face)
}

// Remove removes the face and with it its routes.
func (h *Hop) Remove() {
	h.dead = true
	h.epoch++
	h.r.shard.RemoveFace(h.r.now, h.face)
}

// SetCost changes the cost of the route, or adds the route.
func (h *Hop) SetCost(cost uint64) {
	h.Cost = cost
	h.r.must(h.r.shard.SetNextHop(h.r.now, h.r.prefix, h.face, cost))
}

// RemoveRoute removes the route; the face stays.
func (h *Hop) RemoveRoute() { h.r.shard.RemoveNextHop(h.r.now, h.r.prefix, h.face) }

// take implements peer.
func (h *Hop) take(p *ndn.Packet) bool {
	if h.Refuse || h.dead {
		return false
	}
	if p.Kind != ndn.KindInterest {
		return true
	}
	r := h.r
	a := &answer{
		hop: h, epoch: h.epoch, token: append([]byte(nil), p.PitToken...),
		interest: append([]byte(nil), p.Wire()...),
	}
	a.name = ndn.Name(append([]byte(nil), p.Interest.Name...))
	a.tagged, a.tag, a.announced = p.HasPathTag, h.PathTag, h.Announce && !p.NonDiscovery
	r.Sends = append(r.Sends, Send{
		At: r.Now(), Hop: h, Name: a.name, Nonce: p.Interest.Nonce,
		Again: r.again(a.name), NonDiscovery: p.NonDiscovery,
	})
	h.script(a)
	return true
}

// script decides what becomes of an Interest.
func (h *Hop) script(a *answer) {
	r, at := h.r, h.r.now.Add(h.RTT)
	if h.Jitter > 0 {
		at = at.Add(time.Duration(r.rng.Int64N(int64(h.Jitter))))
	}
	lost := h.Loss > 0 && r.rng.Float64() < h.Loss || h.Silent
	switch {
	case lost:
		a.giveUp()
		return
	case h.Reflect != nil:
		r.queue.push(at, func() { r.receive(h.Reflect.face, a.interest, &ndn.LpFields{}) })
		return
	case h.Nacks != 0:
		a.nack = h.Nacks
	case h.Rate > 0:
		wait := max(0, h.busy.Sub(at))
		if wait > orElse(h.Queue, 100*time.Millisecond) {
			return
		}
		a.marked = wait > orElse(h.MarkAfter, 5*time.Millisecond)
		h.busy = max(h.busy, at).Add(time.Duration(float64(time.Second) / h.Rate))
		at = h.busy
	}
	r.queue.push(at, a.arrive)
}

func orElse(d, def time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return def
}

// answer is the reply to one Interest, under way.
type answer struct {
	hop       *Hop
	epoch     int
	name      ndn.Name
	interest  []byte
	token     []byte
	nack      ndn.NackReason
	marked    bool
	tagged    bool
	tag       ndn.PathTag
	announced bool
}

// giveUp has the link service give up on the Interest, if it does that.
func (a *answer) giveUp() {
	h, r := a.hop, a.hop.r
	if h.GiveUp <= 0 {
		return
	}
	r.queue.push(r.now.Add(h.GiveUp), func() {
		if a.epoch == h.epoch {
			r.shard.GaveUp(r.now, h.face, a.interest)
		}
	})
}

func (a *answer) arrive() {
	h := a.hop
	if h.Silent {
		a.giveUp()
		return
	}
	if a.epoch != h.epoch {
		return
	}
	f := ndn.LpFields{PitToken: a.token}
	if a.nack != 0 {
		f.IsNack, f.NackReason = true, a.nack
		h.r.receive(h.face, a.interest, &f)
		return
	}
	if a.marked {
		f.CongestionMark = 1
	}
	if a.tagged {
		f.HasPathTag, f.PathTag = true, a.tag
	}
	if a.announced {
		f.Announcement = data(ndn.MustName(Prefix+"/32=PA").AppendNumber(ndn.TypeVersion, 1), 0)
	}
	h.served++
	h.r.receive(h.face, data(a.name, h.Size), &f)
}

func data(n ndn.Name, size int) []byte {
	b, _ := ndn.AppendData(nil, &ndn.DataFields{Name: n, Content: make([]byte, size)}, ndn.DigestSigner{})
	return b
}
