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
	chunk     int
	chunkBits int64
	ends      ndn.Time

	flight  ring[transit]
	last    ndn.Time // latest arrival so far
	held    int64    // bytes under way
	most    int64    // that may be under way
	scratch []byte   // made when a super-packet is split
	lent    *Packet  // whose buffer the last Deliver returned

	c      Counters
	prompt int64      // deliveries on time before the first late one
	late   *histogram // nil while all were on time
}

// run is consecutive segments of a packet that wait.
type run struct {
	p        *Packet
	from, to int
	since    ndn.Time // when it joined the queue
}

// transit is a run that travels.
type transit struct {
	run
	due ndn.Time
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
		for ; k < l.chunk && done >= l.bits(r.p, k); k++ {
			done -= l.bits(r.p, k)
		}
		l.depart(now, k)
	}
	l.params = p
	l.begun, l.sent, l.waitingBits = now, -done, 0
	for i := range l.waiting.n { // the overhead may have changed
		r := l.waiting.at(i)
		for k := r.from; k < r.to; k++ {
			l.waitingBits += l.bits(r.p, k)
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
	p.refs++ // ours, while we look at it
	progress := l.progress(now)
	limit := l.params.queue() * 8
	from := 0
	for i := range p.n {
		size, wire := l.bits(p, i), int64(p.wire(i))
		l.c.InPackets++
		l.c.InBytes += wire
		lost := l.lose()
		switch {
		case l.state != Up:
			l.drop(now, DropCut, &l.c.CutDrops, p, i)
		case lost:
			l.drop(now, DropLoss, &l.c.LossDrops, p, i)
		case l.held+wire > l.most:
			l.drop(now, DropOverload, &l.c.OverloadDrops, p, i)
		case l.params.Rate > 0 && l.waitingBits > 0 && l.waitingBits-progress+size > limit,
			l.params.QueuePackets > 0 && l.c.WaitingPackets >= int64(l.params.QueuePackets):
			l.drop(now, DropQueue, &l.c.QueueDrops, p, i)
		default:
			l.waitingBits += size
			l.held += wire
			l.c.WaitingPackets++
			continue
		}
		l.enqueue(now, p, from, i)
		from = i + 1
	}
	l.enqueue(now, p, from, p.n)
	l.pool.release(p)
	if !l.sending && (l.peer == nil || !l.peer.sending) {
		l.start(now)
		l.advance(now)
	}
}

// Deadline is when Deliver should be called next, ndn.Never if nothing is
// under way: not later than the next packet arrives, and possibly earlier.
func (l *Line) Deadline() ndn.Time {
	d := ndn.Never
	if l.flight.n > 0 {
		d = l.flight.front().due
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
	if l.flight.n == 0 || l.flight.front().due > now {
		return nil, false
	}
	t := l.flight.pop()
	l.lateness(now.Sub(t.due))
	for k := t.from; k < t.to; k++ {
		wire := int64(t.p.wire(k))
		l.c.OutBytes += wire
		l.held -= wire
	}
	l.c.OutPackets += int64(t.to - t.from)
	l.c.InFlightPackets -= int64(t.to - t.from)
	l.lent = t.p
	if t.to-t.from < t.p.n && l.scratch == nil {
		l.scratch = make([]byte, 0, MaxPacket)
	}
	return t.p.bytes(l.scratch, t.from, t.to), true
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

// bits is what segment k of p takes from the rate.
func (l *Line) bits(p *Packet, k int) int64 { return 8 * int64(p.wire(k)+l.params.Overhead) }

func (l *Line) enqueue(now ndn.Time, p *Packet, from, to int) {
	if from < to {
		p.refs++
		l.waiting.push(run{p, from, to, now})
	}
}

// drop counts segment k of p as lost.
func (l *Line) drop(at ndn.Time, why Drop, counter *int64, p *Packet, k int) {
	*counter++
	if l.OnDrop != nil {
		l.OnDrop(at, why, p.buf, p.wire(k))
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
	budget := int64(muldiv(uint64(rate), uint64(ChunkTime), 1e9))
	l.chunk, l.chunkBits = r.from+1, l.bits(r.p, r.from)
	for l.chunk < r.to {
		b := l.bits(r.p, l.chunk)
		if l.chunkBits+b > budget {
			break
		}
		l.chunkBits += b
		l.chunk++
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
func (l *Line) depart(at ndn.Time, to int) {
	r := l.waiting.front()
	if to == r.from {
		return
	}
	for k := r.from; k < to; k++ {
		l.waitingBits -= l.bits(r.p, k)
	}
	n := int64(to - r.from)
	l.c.WaitingPackets -= n
	l.c.InFlightPackets += n
	piece := run{p: r.p, from: r.from, to: to}
	piece.p.refs++
	if r.from = to; r.from == r.to {
		l.pool.release(l.waiting.pop().p)
	}
	due := at.Add(l.params.Delay)
	draw := l.jitter.next()
	if l.params.Jitter > 0 {
		due += ndn.Time((2*l.jitter.unit(draw, 0) - 1) * float64(l.params.Jitter))
	}
	if l.params.Noise > 0 {
		due = due.Add(min(10*l.params.Noise, time.Duration(l.jitter.exp(draw, 1)*float64(l.params.Noise))))
	}
	if !l.params.Reorder {
		due = max(due, l.last)
	}
	l.last = max(l.last, due)
	i := l.flight.push(transit{piece, due})
	for ; i > 0 && l.flight.at(i-1).due > due; i-- {
		*l.flight.at(i) = *l.flight.at(i - 1)
		*l.flight.at(i - 1) = transit{piece, due}
	}
}

// discardAt drops all that is under way and returns how many packets that
// were.
func (l *Line) discardAt(now ndn.Time) int64 {
	if l.OnDrop != nil {
		for i := range l.flight.n {
			l.tellCut(now, l.flight.at(i).run)
		}
		for i := range l.waiting.n {
			l.tellCut(now, *l.waiting.at(i))
		}
	}
	return l.discard()
}

func (l *Line) tellCut(now ndn.Time, r run) {
	for k := r.from; k < r.to; k++ {
		l.OnDrop(now, DropCut, r.p.buf, r.p.wire(k))
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
