package line

import (
	"math/bits"
	"time"

	"ndnpop/ndn"
)

// ChunkTime is the longest serialisation time after which part of a
// super-packet travels on as one piece.
const ChunkTime = 250 * time.Microsecond

// maxHeld bounds the bytes that one direction holds, waiting and travelling.
const maxHeld = 256 << 20

// State says whether packets pass.
type State uint8

// The states of a direction. The driver tells an interface without carrier
// (Down) from silence (BlackHole); a Line drops everything in both.
const (
	Up State = iota
	BlackHole
	Down
)

func (s State) String() string { return [...]string{"up", "black hole", "down"}[s] }

// Counters of one direction. Packets are single segments; bytes are those of
// their IP packets.
type Counters struct {
	InPackets, InBytes   int64
	OutPackets, OutBytes int64
	LossDrops            int64 // lost by Params.Loss or Burst
	QueueDrops           int64 // the queue was full
	CoDelDrops           int64 // waited too long, with Params.CoDel
	CutDrops             int64 // the direction was not Up
	OverloadDrops        int64 // more bytes under way than a Line may hold
	WaitingPackets       int64 // now in the queue or being sent
	InFlightPackets      int64 // now travelling
	// How late Deliver was called, per piece delivered.
	LateP50, LateP99, LateMax time.Duration
}

// Line is one direction of a link. It is not safe for concurrent use.
type Line struct {
	params Params
	state  State
	pool   *Pool

	// OnDrop, if set, is told of every packet that is lost, with its size in
	// bytes. It must not call the Line.
	OnDrop func(at ndn.Time, why Drop, packet []byte, size int)

	// Lazy is for drivers whose receiving end may be ahead of the sending one
	// in time, by less than Delay - Jitter: Deliver then leaves alone what
	// the sender may still change.
	Lazy bool

	loss, jitter dice
	bad          bool // Gilbert-Elliott state
	codel        codel
	peer         *Line // the other direction of a half-duplex link

	waiting     ring[run]
	waitingBits int64 // with overhead, all of the piece being sent included
	sending     bool
	// While sending: the serialiser has sent `sent` bits since `begun` without a pause, and is
	// sending segments [from, chunk) of the first run until `ends`. sent is
	// negative by what of that piece was sent before begun.
	begun     ndn.Time
	sent      int64
	chunk     int32
	chunkBits int64
	ends      ndn.Time

	flight  ring[run]
	last    ndn.Time // latest arrival so far
	held    int64    // bytes under way
	most    int64    // that may be under way
	scratch []byte   // made when a super-packet is split
	lent    *Packet  // whose buffer the last Deliver returned

	c      Counters
	prompt int64      // deliveries on time before the first late one
	late   *histogram // nil while all were on time
}

// run is consecutive segments of a packet that wait or travel.
type run struct {
	p        *Packet
	from, to int32
	// single is the size of a packet of one segment, 0 of others: that of most
	// packets is known without a look at them.
	single int32
	when   ndn.Time // when it joined the queue, or will arrive
}

// wire is the size in bytes of segment k as an IP packet.
func (r *run) wire(k int32) int64 {
	if r.single > 0 {
		return int64(r.single)
	}
	return int64(r.p.wire(int(k)))
}

// New returns a direction that is Up. Which packets are lost is a function of
// seed, of stream, which tells the directions of one network apart, and of the
// index of the packet: not of time, rate or queue. Jitter is drawn per piece
// that leaves the serialiser.
func New(p Params, pool *Pool, seed, stream uint64) (*Line, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	l := &Line{params: p, pool: pool, most: maxHeld}
	l.Reset(seed, stream)
	return l, nil
}

// Reset forgets what is under way and all counters, and starts loss and
// jitter anew from seed. Parameters and state stay.
func (l *Line) Reset(seed, stream uint64) {
	l.discard()
	l.loss, l.jitter = newDice(seed, 2*stream), newDice(seed, 2*stream+1)
	l.bad = false
	l.last = 0
	l.codel = codel{}
	l.c = Counters{}
	l.prompt, l.late = 0, nil
}

// Share makes two directions one half-duplex link: only one of them sends at a
// time, and they take turns, packet by packet, while both have something to
// send. What happens to one may change the Deadline of the other.
func Share(a, b *Line) { a.peer, b.peer = b, a }

// Params returns those in force.
func (l *Line) Params() Params { return l.params }

// State returns the state in force.
func (l *Line) State() State { return l.state }

// Counters returns a copy of the counters, as of the last call that gave the
// time.
func (l *Line) Counters() Counters {
	c := l.c
	if h := l.late; h != nil {
		c.LateP50, c.LateP99, c.LateMax = h.quantile(.5), h.quantile(.99), h.max
	}
	return c
}

// Backlog is the number of bytes that wait at now, with what is left of the
// piece that is being sent.
func (l *Line) Backlog(now ndn.Time) int64 {
	l.advance(now)
	return (l.waitingBits - l.progress(now) + 7) / 8
}

// SetState changes the state. What is under way when a direction stops being
// Up is lost.
func (l *Line) SetState(now ndn.Time, s State) {
	l.advance(now)
	l.state = s
	if s != Up {
		l.c.CutDrops += l.discardAt(now)
		l.passTurn(now)
	}
}

// SetParams changes the parameters from now on. The piece that is being sent
// continues at the new rate from the bit that was reached.
func (l *Line) SetParams(now ndn.Time, p Params) error {
	if err := p.Validate(); err != nil {
		return err
	}
	l.advance(now)
	var done int64
	if l.sending {
		done = l.progress(now)
		r := l.waiting.front()
		k := r.from
		for ; k < l.chunk && done >= l.bits(r, k); k++ {
			done -= l.bits(r, k)
		}
		l.depart(now, k)
	}
	l.params = p
	l.begun, l.sent, l.waitingBits = now, -done, 0
	for i := range l.waiting.n { // the overhead may have changed
		r := l.waiting.at(i)
		for k := r.from; k < r.to; k++ {
			l.waitingBits += l.bits(r, k)
		}
	}
	if l.sending {
		if l.sending = l.waiting.n > 0; l.sending {
			l.begin()
		} else {
			l.passTurn(now)
		}
	}
	l.advance(now)
	return nil
}

// Push takes over a packet that its sender put on the link.
func (l *Line) Push(now ndn.Time, p *Packet) {
	l.advance(now)
	r := run{p: p, when: now}
	if p.n == 1 {
		r.single = int32(p.wire(0))
	}
	if r.single > 0 && l.params.Rate == 0 && l.waiting.n == 0 && l.peer == nil && !l.params.CoDel.On {
		// Nothing holds it up.
		if l.admit(now, &r, 0) {
			p.refs++
			r.to = 1
			l.travel(now, &r)
		} else {
			l.pool.Put(p)
		}
		return
	}
	for k := range int32(p.n) {
		if !l.admit(now, &r, k) {
			l.enqueue(&r, k)
			r.from = k + 1
		}
	}
	l.enqueue(&r, int32(p.n))
	if p.refs == 0 {
		l.pool.Put(p)
	}
	if !l.sending && (l.peer == nil || !l.peer.sending) {
		l.start(now)
		l.advance(now)
	}
}

// admit reports whether segment k of a packet joins the queue, and counts it.
func (l *Line) admit(now ndn.Time, r *run, k int32) bool {
	size, wire := l.bits(r, k), r.wire(k)
	l.c.InPackets++
	l.c.InBytes += wire
	lost := l.lose()
	switch {
	case l.state != Up:
		l.drop(now, DropCut, &l.c.CutDrops, r, k)
	case lost:
		l.drop(now, DropLoss, &l.c.LossDrops, r, k)
	case l.held+wire > l.most:
		l.drop(now, DropOverload, &l.c.OverloadDrops, r, k)
	case l.params.Rate > 0 && l.full(now, size),
		l.params.QueuePackets > 0 && l.c.WaitingPackets >= int64(l.params.QueuePackets):
		l.drop(now, DropQueue, &l.c.QueueDrops, r, k)
	default:
		l.waitingBits += size
		l.held += wire
		l.c.WaitingPackets++
		return true
	}
	return false
}

// full reports whether so many bits more exceed the queue.
func (l *Line) full(now ndn.Time, bits int64) bool {
	limit := l.params.queue() * 8
	if l.waitingBits == 0 || l.waitingBits+bits <= limit {
		return false
	}
	return l.waitingBits-l.progress(now)+bits > limit
}

// Deadline is when Deliver should be called next, ndn.Never if nothing is
// under way: not later than the next packet arrives, and possibly earlier.
func (l *Line) Deadline() ndn.Time {
	d := ndn.Never
	if l.flight.n > 0 {
		d = l.flight.front().when
	}
	if l.sending {
		switch {
		case (l.params.CoDel.On || l.peer != nil) && !l.Lazy:
			d = min(d, l.ends)
		case d == ndn.Never || l.params.Reorder:
			d = min(d, l.ends.Add(l.params.Delay-l.params.Jitter))
		}
	}
	return d
}

// Deliver returns the next packet that has arrived by now, in the form in
// which it was pushed (with a virtio header or without). The bytes are valid
// until the next call of Deliver or Reset.
func (l *Line) Deliver(now ndn.Time) (packet []byte, ok bool) {
	if l.Lazy {
		l.advance(now.Add(l.params.Jitter - l.params.Delay))
	} else {
		l.advance(now)
	}
	l.unlend()
	if l.flight.n == 0 || l.flight.front().when > now {
		return nil, false
	}
	t := l.flight.pop()
	l.lateness(now.Sub(t.when))
	for k := t.from; k < t.to; k++ {
		wire := t.wire(k)
		l.c.OutBytes += wire
		l.held -= wire
	}
	l.c.OutPackets += int64(t.to - t.from)
	l.c.InFlightPackets -= int64(t.to - t.from)
	l.lent = t.p
	if t.single > 0 {
		return t.p.buf, true
	}
	if int(t.to-t.from) < t.p.n && l.scratch == nil {
		l.scratch = make([]byte, 0, MaxPacket)
	}
	return t.p.bytes(l.scratch, int(t.from), int(t.to)), true
}

func (l *Line) lateness(d time.Duration) {
	if l.late == nil {
		if d <= 0 {
			l.prompt++
			return
		}
		l.late = &histogram{n: l.prompt}
		l.late.count[0] = l.prompt
	}
	l.late.add(d)
}

func (l *Line) unlend() {
	if l.lent != nil {
		l.pool.release(l.lent)
		l.lent = nil
	}
}

// lose decides about the next packet, by its index alone.
func (l *Line) lose() bool {
	i, g := l.loss.next(), l.params.Burst
	if g == (GilbertElliott{}) {
		return l.params.Loss > 0 && l.loss.unit(i, 0) < l.params.Loss
	}
	u, v := l.loss.unit(i, 0), l.loss.unit(i, 1)
	if l.bad {
		l.bad = v >= g.ToGood
	} else {
		l.bad = v < g.ToBad
	}
	if l.bad {
		return u < g.LossBad
	}
	return u < g.LossGood
}

// bits is what segment k of r takes from the rate.
func (l *Line) bits(r *run, k int32) int64 { return 8 * (r.wire(k) + int64(l.params.Overhead)) }

// enqueue lets the segments of r before `to` wait.
func (l *Line) enqueue(r *run, to int32) {
	if r.from < to {
		r.p.refs++
		q := *r
		q.to = to
		l.waiting.push(q)
	}
}

// drop counts segment k of r as lost.
func (l *Line) drop(at ndn.Time, why Drop, counter *int64, r *run, k int32) {
	*counter++
	if l.OnDrop != nil {
		l.OnDrop(at, why, r.p.buf, int(r.wire(k)))
	}
}

// start lets the serialiser work after a pause.
func (l *Line) start(at ndn.Time) {
	if l.waiting.n > 0 {
		l.begun, l.sent = at, 0
		l.next(at)
	}
}

// passTurn lets whoever may send next begin, if nobody is sending.
func (l *Line) passTurn(at ndn.Time) {
	switch {
	case l.sending:
	case l.peer == nil:
		l.start(at)
	case l.peer.sending:
	case l.peer.waiting.n > 0:
		l.peer.start(at)
	default:
		l.start(at)
	}
}

// next turns to the packet that is sent next.
func (l *Line) next(at ndn.Time) {
	if l.params.CoDel.On {
		l.dequeue(at)
	}
	if l.sending = l.waiting.n > 0; l.sending {
		l.begin()
	}
}

// begin chooses the next piece of the first run and when it is sent.
func (l *Line) begin() {
	r := l.waiting.front()
	rate := l.params.Rate
	if rate == 0 {
		l.chunk, l.chunkBits, l.ends = r.to, 0, l.begun
		return
	}
	l.chunk, l.chunkBits = r.from+1, l.bits(r, r.from)
	if l.chunk < r.to {
		budget := int64(muldiv(uint64(rate), uint64(ChunkTime), 1e9))
		for l.chunk < r.to && l.chunkBits+l.bits(r, l.chunk) <= budget {
			l.chunkBits += l.bits(r, l.chunk)
			l.chunk++
		}
	}
	if l.sent >= rate { // keep the sums small; whole seconds are exact
		l.begun += ndn.Time(l.sent / rate * 1e9)
		l.sent %= rate
	}
	total := uint64(max(0, l.sent+l.chunkBits))
	l.ends = l.begun + ndn.Time(muldiv(total, 1e9, uint64(rate)))
}

// progress is how many bits of the piece being sent are out by now.
func (l *Line) progress(now ndn.Time) int64 {
	if !l.sending || l.params.Rate == 0 {
		return 0
	}
	out := int64(muldiv(uint64(max(0, now-l.begun)), uint64(l.params.Rate), 1e9)) - l.sent
	return min(max(0, out), l.chunkBits)
}

// advance lets depart what has been sent by now.
func (l *Line) advance(now ndn.Time) {
	for {
		x := l
		if !x.sending && x.peer != nil {
			x = x.peer
		}
		if !x.sending || x.ends > now {
			return
		}
		at := x.ends
		x.sent += x.chunkBits
		x.depart(at, x.chunk)
		if x.peer == nil {
			x.next(at)
		} else {
			x.sending = false
			x.passTurn(at)
		}
	}
}

// depart moves the segments of the first run before `to` from the serialiser
// to the wire.
func (l *Line) depart(at ndn.Time, to int32) {
	r := l.waiting.front()
	if to == r.from {
		return
	}
	piece := *r
	if piece.to = to; to == r.to {
		l.waiting.pop()
	} else {
		r.p.refs++
		r.from = to
	}
	l.travel(at, &piece)
}

// travel puts what has been sent on the wire.
func (l *Line) travel(at ndn.Time, r *run) {
	for k := r.from; k < r.to; k++ {
		l.waitingBits -= l.bits(r, k)
	}
	n := int64(r.to - r.from)
	l.c.WaitingPackets -= n
	l.c.InFlightPackets += n
	p := &l.params
	due := at.Add(p.Delay)
	draw := l.jitter.next()
	if p.Jitter > 0 {
		due += ndn.Time((2*l.jitter.unit(draw, 0) - 1) * float64(p.Jitter))
	}
	if p.Noise > 0 {
		due = due.Add(min(10*p.Noise, time.Duration(l.jitter.exp(draw, 1)*float64(p.Noise))))
	}
	if !p.Reorder {
		due = max(due, l.last)
	}
	l.last = max(l.last, due)
	r.when = due
	i := l.flight.push(*r)
	for ; i > 0 && l.flight.at(i-1).when > due; i-- {
		*l.flight.at(i) = *l.flight.at(i - 1)
		*l.flight.at(i - 1) = *r
	}
}

// discardAt drops all that is under way and returns how many packets that
// were.
func (l *Line) discardAt(now ndn.Time) int64 {
	if l.OnDrop != nil {
		for i := range l.flight.n {
			l.tellCut(now, l.flight.at(i))
		}
		for i := range l.waiting.n {
			l.tellCut(now, l.waiting.at(i))
		}
	}
	return l.discard()
}

func (l *Line) tellCut(now ndn.Time, r *run) {
	for k := r.from; k < r.to; k++ {
		l.OnDrop(now, DropCut, r.p.buf, int(r.wire(k)))
	}
}

func (l *Line) discard() int64 {
	l.unlend()
	l.sending = false
	for l.waiting.n > 0 {
		l.pool.release(l.waiting.pop().p)
	}
	for l.flight.n > 0 {
		l.pool.release(l.flight.pop().p)
	}
	n := l.c.WaitingPackets + l.c.InFlightPackets
	l.c.WaitingPackets, l.c.InFlightPackets = 0, 0
	l.waitingBits, l.held = 0, 0
	return n
}

// muldiv is a*b/c, rounded down, with a 128-bit product; the result must fit.
func muldiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}
