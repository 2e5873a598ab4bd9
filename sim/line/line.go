package line

import (
	"math/bits"
	"math/rand/v2"
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

	loss, jitter *rand.Rand
	bad          bool // Gilbert-Elliott state

	waiting     ring[run]
	waitingBits int64 // with overhead, all of the piece being sent included
	// The serialiser has sent `sent` bits since `begun` without a pause, and is
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
	scratch []byte
	lent    *Packet // whose buffer the last Deliver returned

	c    Counters
	late histogram
}

// run is consecutive segments of a packet that wait.
type run struct {
	p        *Packet
	from, to int
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
	l := &Line{params: p, pool: pool, most: maxHeld, scratch: make([]byte, 0, MaxPacket)}
	l.Reset(seed, stream)
	return l, nil
}

// Reset forgets what is under way and all counters, and starts loss and
// jitter anew from seed. Parameters and state stay.
func (l *Line) Reset(seed, stream uint64) {
	l.discard()
	l.loss = rand.New(rand.NewPCG(seed, 2*stream))
	l.jitter = rand.New(rand.NewPCG(seed, 2*stream+1))
	l.bad = false
	l.last = 0
	l.c = Counters{}
	l.late = histogram{}
}

// Params returns those in force.
func (l *Line) Params() Params { return l.params }

// State returns the state in force.
func (l *Line) State() State { return l.state }

// Counters returns a copy of the counters.
func (l *Line) Counters() Counters {
	c := l.c
	c.LateP50, c.LateP99, c.LateMax = l.late.quantile(.5), l.late.quantile(.99), l.late.max
	return c
}

// SetState changes the state. What is under way when a direction stops being
// Up is lost.
func (l *Line) SetState(now ndn.Time, s State) {
	l.advance(now)
	l.state = s
	if s != Up {
		l.c.CutDrops += l.discard()
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
	if l.waiting.n > 0 {
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
	l.begin()
	l.advance(now)
	return nil
}

// Push takes over a packet that its sender put on the link.
func (l *Line) Push(now ndn.Time, p *Packet) {
	l.advance(now)
	p.refs++ // ours, while we look at it
	idle := l.waiting.n == 0
	if idle {
		l.begun, l.sent = now, 0
	}
	var progress int64
	if !idle {
		progress = l.progress(now)
	}
	limit := l.params.queue() * 8
	from := 0
	for i := range p.n {
		size, wire := l.bits(p, i), int64(p.wire(i))
		l.c.InPackets++
		l.c.InBytes += wire
		lost := l.lose()
		switch {
		case l.state != Up:
			l.c.CutDrops++
		case lost:
			l.c.LossDrops++
		case l.held+wire > l.most:
			l.c.OverloadDrops++
		case l.params.Rate > 0 && l.waitingBits > 0 && l.waitingBits-progress+size > limit:
			l.c.QueueDrops++
		default:
			l.waitingBits += size
			l.held += wire
			l.c.WaitingPackets++
			continue
		}
		l.enqueue(p, from, i)
		from = i + 1
	}
	l.enqueue(p, from, p.n)
	l.pool.release(p)
	if idle {
		l.begin()
		l.advance(now)
	}
}

// Deadline is when Deliver has something to do, ndn.Never if nothing waits.
func (l *Line) Deadline() ndn.Time {
	d := ndn.Never
	if l.waiting.n > 0 {
		d = l.ends
	}
	if l.flight.n > 0 {
		d = min(d, l.flight.front().due)
	}
	return d
}

// Deliver returns the next packet that has arrived by now, in the form in
// which it was pushed (with a virtio header or without). The bytes are valid
// until the next call of Deliver or Reset.
func (l *Line) Deliver(now ndn.Time) (packet []byte, ok bool) {
	l.advance(now)
	l.unlend()
	if l.flight.n == 0 || l.flight.front().due > now {
		return nil, false
	}
	t := l.flight.pop()
	l.late.add(now.Sub(t.due))
	for k := t.from; k < t.to; k++ {
		wire := int64(t.p.wire(k))
		l.c.OutBytes += wire
		l.held -= wire
	}
	l.c.OutPackets += int64(t.to - t.from)
	l.c.InFlightPackets -= int64(t.to - t.from)
	l.lent = t.p
	return t.p.bytes(l.scratch, t.from, t.to), true
}

func (l *Line) unlend() {
	if l.lent != nil {
		l.pool.release(l.lent)
		l.lent = nil
	}
}

// lose decides about the next packet. It draws the same number of variates
// whatever the parameters, so that changing them does not shift the rest.
func (l *Line) lose() bool {
	u, v := l.loss.Float64(), l.loss.Float64()
	g := l.params.Burst
	if g == (GilbertElliott{}) {
		return u < l.params.Loss
	}
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

func (l *Line) enqueue(p *Packet, from, to int) {
	if from < to {
		p.refs++
		l.waiting.push(run{p, from, to})
	}
}

// begin chooses the next piece of the first run and when it is sent.
func (l *Line) begin() {
	if l.waiting.n == 0 {
		return
	}
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
	if l.params.Rate == 0 {
		return 0
	}
	out := int64(muldiv(uint64(max(0, now-l.begun)), uint64(l.params.Rate), 1e9)) - l.sent
	return min(max(0, out), l.chunkBits)
}

// advance lets depart what has been sent by now.
func (l *Line) advance(now ndn.Time) {
	for l.waiting.n > 0 && l.ends <= now {
		l.sent += l.chunkBits
		l.depart(l.ends, l.chunk)
		l.begin()
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
	piece := run{r.p, r.from, to}
	piece.p.refs++
	if r.from = to; r.from == r.to {
		l.pool.release(l.waiting.pop().p)
	}
	due := at.Add(l.params.Delay)
	// Drawn always, for the same reason as in lose.
	if u := l.jitter.Float64(); l.params.Jitter > 0 {
		due += ndn.Time((2*u - 1) * float64(l.params.Jitter))
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

// discard drops all that is under way and returns how many packets that were.
func (l *Line) discard() int64 {
	l.unlend()
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
