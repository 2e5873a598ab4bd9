// Package consumer fetches segmented objects: a state machine that is told
// what arrives and what time it is, and says which Interests to send.
//
// The machine (Fetch) has no goroutine, clock, socket or lock. A driver calls
//
//	f.Data, f.Nack      for every packet that arrives
//	f.Verified          when a packet has been verified that its Sink kept
//	f.Tick              when f.Deadline has come
//	f.Drain             when its Sink became ready again
//	f.Rejected          after Data and Verified, to have a wrong packet
//	                    removed from caches
//	f.Next              after any of these, until it returns false,
//	                    and sends what it returns
//
// until Done. Content leaves through the Sink, in order. Memory is bounded: by
// Config.ReorderBytes for what arrived before its turn, and a constant. In the
// steady state nothing is allocated.
//
// The algorithms are those of the subpackages cc (congestion control) and rtt
// (timeouts). The drivers are consumer/run, on sockets, and the simulator.
package consumer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

type stage uint8

const (
	stageMeta  stage = iota // waits for the metadata
	stageFirst              // byte range, segment size unknown: waits for segment 0
	stageLast               // size unknown: waits for the last segment
	stageFetch
	stageDone
	stageFailed
)

const (
	initialRing = 64
	maxRing     = 1 << 16
	// unknownEndWindow bounds what is asked for beyond the first segment
	// before anything is known of the object's end.
	unknownEndWindow = 10
	// fastNoRoutes is the number of Nacks NoRoute in a row, with growing
	// pauses, after which a fetch that never got an answer gives up.
	fastNoRoutes = 4
	noRoutePause = 100 * time.Millisecond
)

var metadataComponent = ndn.Component{Type: ndn.TypeKeyword, Value: []byte("metadata")}

// Fetch is the state of one fetch. It is not safe for concurrent use.
type Fetch struct {
	cfg   Config
	lanes []*lane
	cur   *lane // the one that is used, or the first of several
	level *twoLevel
	multi bool // all lanes are used at once
	turn  int  // of the lanes that are, the next one to send
	sink  Sink
	trace Tracer
	rng   *rand.Rand
	stage stage
	err   error
	stats Stats

	one      request // the metadata or probe request of the stages before stageFetch
	heldWire []byte  // its answer while that is verified

	obj       Object
	nameBuf   []byte // obj.Name and room for a segment component
	prefixLen int
	fields    ndn.InterestFields
	lp        ndn.LpFields
	plan      plan
	head      uint64 // content bytes still to drop before the first delivery
	left      uint64 // content bytes still wanted, noLimit when to the end
	done      uint64 // output bytes, those before a resume included

	ring     ring
	base     uint64 // next segment to deliver
	next     uint64 // next segment to ask for the first time
	stopAt   uint64 // do not ask for this or later ones: one was refused
	short    uint64 // a segment that was shorter than the others, none: MaxUint64
	retx     queue
	unrep    int // segments lost and not yet received
	meanSize float64
	lastData ndn.Time
	anyData  bool
	// silent is since when nothing was answered, once something has timed out since
	// then; 0 before. noRouteAt is when the first Nack NoRoute came since anything
	// was answered.
	silent, noRouteAt ndn.Time

	wake     ndn.Time       // when Next may go on after a false, if nothing arrives
	rtts     uint64         // samples
	nextAny  ndn.Time       // pacing of all lanes together
	sources  []ReplicaStats // by replica
	switches []ReplicaSwitch
	rttSum   time.Duration

	free     [][]byte
	bufSize  int // of new reorder buffers
	bufBytes int // of all reorder buffers

	sendEv                cc.Send
	sampleEv              cc.Sample
	lossEv                cc.Loss
	traceEv               TraceEvent
	piece                 Piece
	view                  ndn.Data // for buffered Data
	rejected, rejectedBuf ndn.Name
}

// New begins a fetch at the time now. The controller must be fresh. trace may
// be nil.
func New(cfg Config, ctrl cc.Controller, sink Sink, trace Tracer, now ndn.Time) (*Fetch, error) {
	if len(cfg.Name) == 0 {
		return nil, errors.New("consumer: the name is empty")
	}
	cfg = cfg.withDefaults()
	f := &Fetch{
		cfg: cfg, sink: sink, trace: trace,
		rng:  rand.New(rand.NewPCG(cfg.Seed, 0x6e646e706f70)),
		ring: newRing(initialRing),
		wake: now, lastData: now, stopAt: math.MaxUint64, short: math.MaxUint64,
	}
	f.cur = f.newLane(0, ctrl)
	if err := f.addReplicas(now); err != nil {
		return nil, err
	}
	f.stats.Started = now
	f.lp.HasPathTag = cfg.PathTags
	last, _ := cfg.Name.At(-1)
	v, versioned := last.NumberAs(ndn.TypeVersion)
	if !cfg.NoDiscovery && !versioned {
		f.one.start(cfg.Name.Clone().Append(metadataComponent), true, true)
		return f, nil
	}
	f.known(now, Object{Name: cfg.Name.Clone(), Version: v, HasVersion: versioned}, nil)
	return f, nil
}

// Done reports whether the fetch has ended, well or not.
func (f *Fetch) Done() bool { return f.stage >= stageDone }

// Err is why the fetch failed, nil otherwise.
func (f *Fetch) Err() error { return f.err }

// Object is what is known of the object; ok is false before it has been
// discovered.
func (f *Fetch) Object() (o Object, ok bool) { return f.obj, f.obj.Name != nil }

// Fields are the link header fields of the Interest that Next returned last.
func (f *Fetch) Fields() *ndn.LpFields { return &f.lp }

// Stats returns the counters.
func (f *Fetch) Stats() Stats {
	s := f.stats
	if f.rtts > 0 {
		s.RTTAvg = f.rttSum / time.Duration(f.rtts)
	}
	est := &f.cur.paths.controlled().est
	s.Inflight, s.RTO, s.SRTT = f.inflight(), est.RTO(), est.SRTT()
	for _, l := range f.lanes {
		if !l.retired {
			s.Cwnd += l.ctrl.Cwnd()
		}
	}
	s.ReorderBytes = f.bufBytes
	return s
}

// Total is the number of output bytes that are wanted in all, if known, and of
// those that have been delivered, before a resume included.
func (f *Fetch) Total() (total uint64, known bool, done uint64) {
	if f.left != noLimit && f.stage >= stageFetch {
		return f.done + f.left, true, f.done
	}
	return 0, false, f.done
}

// Fail ends the fetch from outside (an output that cannot be written, a
// verification that failed).
func (f *Fetch) Fail(now ndn.Time, err error) {
	if f.Done() {
		return
	}
	f.err, f.stage = err, stageFailed
	f.stats.Finished = now
}

func (f *Fetch) finish(now ndn.Time) {
	if !f.Done() {
		f.stage, f.stats.Finished = stageDone, now
	}
}

// Deadline is when Tick has to be called, or Next again, if nothing arrives
// before; ndn.Never when there is no such time.
func (f *Fetch) Deadline() ndn.Time {
	if f.Done() {
		return ndn.Never
	}
	if f.stage < stageFetch {
		return min(f.one.deadline(), f.wake)
	}
	_, at := f.ring.due()
	at = min(at, f.wake)
	for _, l := range f.lanes {
		at = min(at, l.early)
	}
	if f.level != nil {
		at = min(at, f.levelDeadline())
	}
	return at
}

// Tick lets timers act whose time has come.
func (f *Fetch) Tick(now ndn.Time) {
	if f.Done() {
		return
	}
	f.stats.Now = now
	if f.stage < stageFetch {
		f.oneTick(now)
		return
	}
	for _, l := range f.lanes {
		if l.early <= now {
			f.detect(now, l)
		}
	}
	for !f.Done() {
		i, at := f.ring.due()
		if at > now {
			break
		}
		f.ring.disarm(i)
		s := &f.ring.slots[i]
		if s.state == slotWaiting {
			s.state = slotQueued
			f.retx.push(s.seg)
			continue
		}
		// The path may have become slower since the Interest left, and the
		// smoothed estimate follows slowly when many packets are in flight. What
		// has come in its order starts the timer anew (RFC 6298, rule 5.3): behind
		// a pause in which the network goes to another path, nothing is lost. The
		// order of arrival is judged first.
		l := f.lane(s)
		if at := l.timed(s).Add(max(l.paths.controlled().est.Base(), l.patience(f.cfg.Rho)+time.Millisecond)); at > now {
			f.ring.arm(i, at)
			continue
		}
		f.lose(now, i, cc.LossTimeout)
	}
	if f.level != nil && f.levelDeadline() <= now {
		f.judge(now)
	}
}

// Next appends the next Interest to b, if one may leave now. The driver sends
// it with Fields. Otherwise it returns b and false.
func (f *Fetch) Next(now ndn.Time, b []byte) ([]byte, bool) {
	f.wake = ndn.Never
	if f.Done() {
		return b, false
	}
	if f.stage < stageFetch {
		return f.oneNext(now, b)
	}
	if f.multi {
		return f.nextOfAll(now, b)
	}
	return f.nextOn(now, f.cur, b)
}

// nextOn appends the next Interest of a lane, if one may leave there now.
func (f *Fetch) nextOn(now ndn.Time, l *lane, b []byte) ([]byte, bool) {
	if now < l.holdUntil {
		f.wake = min(f.wake, l.holdUntil)
		return b, false
	}
	if l.noRoutes > 0 && l.inflight > 0 {
		return b, false // one probe at a time until something answers
	}
	if float64(l.inflight) > l.ctrl.Cwnd()-1 && l.inflight > 0 {
		l.limited = true
		return b, false
	}
	rate := f.rate(l)
	if rate > 0 && now < l.nextSend {
		f.wake = min(f.wake, l.nextSend)
		if own := l.ctrl.PacingRate(); own <= 0 || own > rate {
			l.limited = false // a rate that the controller did not choose
		}
		return b, false
	}
	seg, ok := f.pick()
	if !ok {
		l.limited = false
		p := l.paths.controlled()
		p.appLimitedUntil = max(1, p.delivered+uint64(float64(l.inflight)*f.meanSize))
		if l.early == ndn.Never && l.inflight > 0 && f.tail(l) {
			f.detect(now, l) // when to look again, should nothing arrive
		}
		return b, false
	}
	l.pace(now, rate, f.size())
	return f.send(now, l, seg, b), true
}

// size is the expected size of a Data on the wire.
func (f *Fetch) size() float64 {
	switch {
	case f.meanSize > 0:
		return f.meanSize
	case f.obj.SegmentSize > 0:
		return float64(f.obj.SegmentSize) + 150
	}
	return 8192
}

// pick chooses the next segment: lost ones first, then new ones.
func (f *Fetch) pick() (uint64, bool) {
	for {
		seg, ok := f.retx.peek()
		if !ok {
			break
		}
		f.retx.pop()
		if seg >= f.base && seg < f.next && f.ring.at(seg).state == slotQueued {
			return seg, true
		}
	}
	switch {
	case f.plan.ends && f.next > f.plan.last, f.next >= f.stopAt:
		return 0, false
	case !f.plan.ends && f.stats.Segments == 0 && f.next-f.plan.first >= unknownEndWindow:
		return 0, false
	case f.next-f.base >= f.maxSpan():
		return 0, false
	}
	if f.next-f.base == uint64(len(f.ring.slots)) {
		f.ring.grow(f.base, f.next)
	}
	*f.ring.at(f.next) = slot{seg: f.next, heapAt: -1, next: none, prev: none}
	f.next++
	return f.next - 1, true
}

// maxSpan is how many segments may be known at once, so that all but the
// first fit into the memory for reordering.
func (f *Fetch) maxSpan() uint64 {
	size := f.bufSize
	if size == 0 {
		size = bufferSize(int(f.size()))
	}
	return uint64(min(maxRing, max(16, f.cfg.ReorderBytes/size)))
}

func (f *Fetch) send(now ndn.Time, l *lane, seg uint64, b []byte) []byte {
	i := f.ring.index(seg)
	s := &f.ring.slots[i]
	if s.firstAt.IsSet() {
		s.retx++
		f.stats.Retransmissions++
	} else {
		s.firstAt = now
	}
	f.stats.Interests++
	l.tx++
	s.lane = l.index
	s.tx, s.sentAt, s.nonce = l.tx, now, f.rng.Uint32()
	l.paths.onSend(now, s, l.inflight)
	s.state = slotOutstanding
	l.inflight++
	f.ring.link(i)
	rto := f.timeout(now, l, s)
	f.ring.arm(i, now.Add(rto))
	if f.level != nil {
		f.levelSend(now, l)
	}

	n := ndn.Name(f.nameBuf[:f.prefixLen]).AppendNumber(ndn.TypeSegment, seg)
	f.fields.Name, f.fields.Nonce = n, s.nonce
	f.fields.MustBeFresh, f.fields.ForwardingHint = f.cfg.Fresh, l.hint
	f.fields.Lifetime = max(f.cfg.Lifetime, 2*rto)
	b = ndn.AppendInterest(b, &f.fields)

	f.sendEv = cc.Send{Now: now, Tx: s.tx, Segment: seg, Retx: int(s.retx), Inflight: l.inflight}
	l.ctrl.OnSend(&f.sendEv)
	if f.trace != nil {
		f.emit(now, l, TraceSend, seg, s.tx, 0, 0)
	}
	return b
}

// timeout is the retransmission timeout of a transmission: the path's, and
// doubling with each timeout of the segment itself, so that a segment that
// nobody answers is asked for less and less often while others go on.
func (f *Fetch) timeout(now ndn.Time, l *lane, s *slot) time.Duration {
	rto := l.paths.rto(now)
	if s.timeouts == 0 {
		return rto
	}
	own := l.paths.controlled().est.Base() << min(s.timeouts, 16)
	return max(rto, min(own, f.cfg.RTT.MaxBackoff))
}

// emit writes a trace event.
func (f *Fetch) emit(now ndn.Time, l *lane, kind TraceKind, seg, tx uint64, rtt time.Duration, tag uint64) {
	est := &l.paths.controlled().est
	f.traceEv = TraceEvent{
		Now: now, Kind: kind, Segment: seg, Tx: tx, RTT: rtt,
		SRTT: est.SRTT(), RTTVar: est.Var(), RTO: est.RTO(),
		Cwnd: l.ctrl.Cwnd(), Rate: f.rate(l), Tag: tag, Replica: l.replica,
	}
	f.trace.Trace(&f.traceEv)
}

// known takes what is known of the object and begins, or probes for what the
// range needs. inline is the start of the content, if it is known.
func (f *Fetch) known(now ndn.Time, o Object, inline []byte) {
	o.Name, o.Sha256 = o.Name.Clone(), append([]byte(nil), o.Sha256...)
	if len(o.Sha256) == 0 {
		o.Sha256 = nil
	}
	o.Manifest = o.Manifest.Clone()
	f.obj = o
	f.nameBuf = append(make([]byte, 0, len(o.Name)+16), o.Name...)
	f.prefixLen = len(o.Name)
	r := f.cfg.Range
	switch {
	case (r.Kind == RangeBytes || r.Kind == RangeSuffix) && o.SegmentSize == 0:
		f.stage = stageFirst
		f.probe(now, 0)
	case r.Kind == RangeSuffix && !o.HasSize:
		if !o.HasFinal {
			f.Fail(now, fmt.Errorf("%w: the producer does not say where the object ends, which -N needs", ErrRange))
			return
		}
		f.stage = stageLast
		f.probe(now, o.Final)
	default:
		f.begin(now, inline)
	}
}

// begin starts fetching segments.
func (f *Fetch) begin(now ndn.Time, inline []byte) {
	res, err := f.sink.Object(&f.obj)
	if err != nil {
		f.Fail(now, err)
		return
	}
	o, r := &f.obj, f.cfg.Range
	if r.Kind == RangeSegments {
		f.plan = plan{first: r.From, last: r.To, ends: r.To != math.MaxUint64, limit: noLimit}
		inline = nil
		if o.HasFinal && r.From > o.Final {
			f.Fail(now, fmt.Errorf("%w: %s of an object with segments 0-%d", ErrRange, r, o.Final))
			return
		}
	} else {
		from, to, err := r.window(o.Size, o.HasSize)
		if err != nil {
			f.Fail(now, err)
			return
		}
		if o.HasSize && to == math.MaxUint64 && o.Size > 0 {
			to = o.Size - 1
		}
		f.plan = planBytes(from, to, o.SegmentSize)
		if o.HasSize && o.Size == 0 {
			f.plan.limit = 0
		}
		if res == (Resume{}) && from < uint64(len(inline)) {
			f.inline(now, inline, from, to)
		} else if res == (Resume{}) && o.HasSize && o.Size == 0 && inline != nil {
			f.stage = stageFetch
			f.finish(now)
			return
		}
	}
	if res.HasFinal && !o.HasFinal {
		o.Final, o.HasFinal = res.Final, true
	}
	if res != (Resume{}) {
		f.plan.first, f.plan.skip = res.Segment, res.Skip
		f.done = res.Done
		if f.plan.limit != noLimit {
			if res.Done > f.plan.limit {
				f.Fail(now, fmt.Errorf("%w: more has been written than there is", ErrChanged))
				return
			}
			f.plan.limit -= res.Done
		}
	}
	if o.HasFinal && (!f.plan.ends || f.plan.last > o.Final) {
		f.plan.last, f.plan.ends = o.Final, true
	}
	f.stage = stageFetch
	f.base, f.next = f.plan.first, f.plan.first
	f.head, f.left = f.plan.skip, f.plan.limit
	f.wake = now
	f.settle(now)
}

// inline delivers the wanted part of the content that came with the metadata
// and moves the plan behind it.
func (f *Fetch) inline(now ndn.Time, content []byte, from, to uint64) {
	end := min(uint64(len(content)), to+1)
	if to == math.MaxUint64 {
		end = uint64(len(content))
	}
	then := plan{limit: 0}
	if end <= to {
		then = planBytes(end, to, f.obj.SegmentSize)
	}
	n := end - from
	f.done = n
	f.stats.Bytes += n
	f.stats.FirstByte = now
	f.piece = Piece{Content: content[from:end], Then: Resume{
		Segment: then.first, Skip: then.skip, Done: n, Final: f.obj.Final, HasFinal: f.obj.HasFinal,
	}}
	f.sink.Deliver(&f.piece)
	f.plan = then
	if f.obj.HasSize && end == f.obj.Size {
		f.plan.limit = 0
	}
	switch size := f.obj.SegmentSize; {
	case f.plan.limit > 0 && size > 0:
		f.stats.Inlined = then.first - from/size
	case f.plan.limit == 0 && size > 0:
		f.stats.Inlined = (end-1)/size - from/size + 1
	case f.plan.limit == 0:
		f.stats.Inlined = 1 // at least
	}
}

// setFinal takes the number of the object's last segment from the Data of slot
// i. It reports whether that Data may be used.
func (f *Fetch) setFinal(now ndn.Time, i int32, d *ndn.Data, final uint64) bool {
	switch {
	case f.obj.HasFinal && final == f.obj.Final:
		return true
	case f.obj.HasFinal:
		f.contradicts(now, i, d, "its last segment was %d and is now %d", f.obj.Final, final)
		return false
	case f.short < final:
		f.contradicts(now, i, d, "segment %d is shorter than the others and not the last", f.short)
		return false
	case final+1 < f.base:
		f.contradicts(now, i, d, "segment %d arrived, %d is said to be the last", f.base-1, final)
		return false
	}
	f.obj.Final, f.obj.HasFinal = final, true
	if f.plan.first > final {
		f.Fail(now, fmt.Errorf("%w: %s of an object with segments 0-%d", ErrRange, f.cfg.Range, final))
		return false
	}
	if f.plan.ends && f.plan.last <= final {
		return true
	}
	f.plan.last, f.plan.ends = final, true
	for s := max(f.base, final+1); s < f.next; s++ {
		f.cancel(s)
	}
	f.next = min(f.next, final+1)
	for s := f.base; s < f.next; s++ {
		if sl := f.ring.at(s); sl.state == slotFailed {
			f.Fail(now, sl.reason)
			return false
		}
	}
	// All of it may have been delivered already.
	f.settle(now)
	return !f.Done()
}

// cancel forgets a segment that is not part of the object.
func (f *Fetch) cancel(seg uint64) {
	i := f.ring.index(seg)
	s := &f.ring.slots[i]
	if s.state == slotOutstanding {
		f.ring.unlink(i)
		f.lane(s).inflight--
	}
	f.ring.disarm(i)
	if s.lost && s.state != slotReceived {
		f.unrep--
	}
	if s.buf != nil {
		f.free = append(f.free, s.buf[:0])
		s.buf = nil
	}
	s.state = slotFree
}
