package consumer

import (
	"fmt"
	"math"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/consumer/rtt"
	"ndnpop/ndn"
)

// Data takes a Data packet. p is a view that is valid during the call.
func (f *Fetch) Data(now ndn.Time, p *ndn.Packet) {
	if f.Done() {
		return
	}
	f.stats.Now = now
	if f.stage < stageFetch {
		f.oneData(now, p)
		return
	}
	d := &p.Data
	seg, ok := f.segmentOf(d.Name)
	if !ok {
		f.stats.Unsolicited++
		return
	}
	if seg < f.base {
		f.duplicate(now, f.cur)
		return
	}
	if seg >= f.next {
		f.stats.Unsolicited++
		return
	}
	i := f.ring.index(seg)
	s := &f.ring.slots[i]
	l := f.lane(s)
	if s.state == slotReceived {
		f.duplicate(now, l)
		return
	}
	if d.ContentType == ndn.ContentNack {
		f.refused(now, i, d.Name)
		return
	}
	f.progress(now, l)
	if d.FinalBlock != nil {
		if final, ok := d.FinalBlockNumber(ndn.TypeSegment); ok {
			if !f.setFinal(now, i, d, final) || seg >= f.next { // beyond the end
				return
			}
		}
	}
	if !f.checkSize(now, i, d) {
		return
	}
	if f.level != nil {
		l = f.levelAnswer(now, i, p)
	}
	f.account(now, l, i, p)
	f.detect(now, l)
	f.tell(now, l)
	f.store(now, i, d)
	if f.level != nil && f.sampleEv.RoundStart {
		f.judge(now)
	}
}

// segmentOf returns the segment number of a Data's name.
func (f *Fetch) segmentOf(n ndn.Name) (uint64, bool) {
	if len(n) <= f.prefixLen || !n.HasPrefix(f.nameBuf[:f.prefixLen]) {
		return 0, false
	}
	c, rest := n[f.prefixLen:].Next()
	if len(rest) > 0 {
		return 0, false
	}
	return c.NumberAs(ndn.TypeSegment)
}

// progress notes that the network answers.
func (f *Fetch) progress(now ndn.Time, l *lane) {
	if f.anyData {
		f.stats.MaxGap = max(f.stats.MaxGap, now.Sub(f.lastData))
	}
	f.anyData, f.lastData = true, now
	l.noRoutes, l.holdUntil, f.silent, f.noRouteAt = 0, 0, 0, 0
}

// checkSize refuses segments that contradict the known sizes: a wrong one
// would move all bytes after it.
func (f *Fetch) checkSize(now ndn.Time, i int32, d *ndn.Data) bool {
	o, seg := &f.obj, f.ring.slots[i].seg
	if o.SegmentSize == 0 {
		return true
	}
	want, exact := o.SegmentSize, true
	if o.HasFinal && seg == o.Final {
		exact = o.HasSize
		if exact {
			want = o.Size - seg*o.SegmentSize
		}
	}
	n := uint64(len(d.Content))
	if n == want || (!exact && n <= want) {
		return true
	}
	if !o.HasFinal && n < want && (f.short == seg || f.short == math.MaxUint64) {
		f.short = seg // the end is not known yet; this may be it
		return true
	}
	f.contradicts(now, i, d, "segment %d has %d bytes, not %d", seg, n, want)
	return false
}

// account takes a segment out of flight and fills sampleEv.
func (f *Fetch) account(now ndn.Time, l *lane, i int32, p *ndn.Packet) {
	s := &f.ring.slots[i]
	prior := l.inflight
	if s.state == slotOutstanding {
		earliest := f.ring.lists[l.index].head == i
		f.ring.unlink(i)
		if earliest {
			l.headAt, l.headSent = now, now
			if next := f.ring.lists[l.index].head; next != none {
				l.headSent = f.ring.slots[next].sentAt
			}
		}
		l.inflight--
	}
	f.ring.disarm(i)
	if s.state == slotFailed {
		f.stopAt = math.MaxUint64 // it exists after all
	}
	if s.lost {
		f.unrep--
	}
	size := len(p.Data.Wire)
	if f.meanSize == 0 {
		f.meanSize = float64(size)
	}
	f.meanSize += (float64(size) - f.meanSize) / 16

	var rtt time.Duration
	if s.retx == 0 {
		rtt = now.Sub(s.sentAt)
	}
	near := rtt > 0 && !p.HasPathTag && f.tellApart(now, l, i, rtt)
	pi := l.paths.of(&p.LpFields, near)
	if s.lost {
		f.came(now, l, s, pi, p.HasPathTag)
	}
	f.sampleRTT(l, pi, rtt, prior)
	if l.paths.arrived(now, pi, size) {
		f.changePath(now, l, pi)
		l.compared = false
	}
	if f.multi && !l.compared {
		l.compared = true
		f.samePath(l)
	}
	f.stats.Segments++
	l.timeouts = 0
	src := &f.sources[l.replica]
	src.Segments++
	src.Bytes += uint64(size)
	if rtt > 0 && (src.RTTMin == 0 || rtt < src.RTTMin) {
		src.RTTMin = rtt
	}
	marked := p.CongestionMark != 0
	if marked {
		f.stats.Marks++
		marked = !f.cfg.IgnoreMarks
	}
	c := l.paths.controlled()
	f.sampleEv = cc.Sample{
		Now: now, Tx: s.tx, HighTx: l.tx, Segment: s.seg, RTT: rtt, SRTT: c.est.SRTT(),
		Size: size, MeanSize: f.meanSize,
		PriorInflight: prior, Inflight: l.inflight, CwndLimited: l.limited,
		Unrepaired: f.unrep, Marked: marked, Tag: l.paths.all[pi].tag,
	}
	e := &f.sampleEv
	if pi != l.paths.ctl || s.raced > 0 {
		e.Tx = 0 // not for the controller
	} else {
		r := l.paths.onData(now, s, size)
		e.Rate, e.RateAppLimited, e.RoundStart = r.rate, r.appLimited, r.roundStart
		e.Delivered, e.Round = c.delivered, c.round
		// A repetition that seems to be answered faster than the path can is
		// the late answer to an earlier one.
		if s.retx == 0 || now.Sub(s.sentAt) >= c.est.Min() {
			c.hi = max(c.hi, s.tx)
		}
	}
	if f.trace != nil {
		f.emit(now, l, TraceData, s.seg, s.tx, rtt, e.Tag)
	}
	if l.retired {
		e.Tx = 0
	}
}

// tellApart reports whether a Data without a path tag, of slot i, comes from a
// source nearer than the one that is controlled.
func (f *Fetch) tellApart(now ndn.Time, l *lane, i int32, took time.Duration) bool {
	head := f.ring.lists[l.index].head
	overtook := head != none && f.ring.slots[head].tx < f.ring.slots[i].tx
	near, began := l.paths.guard.sample(took, overtook)
	if c := l.paths.controlled(); began && !c.near && c.tag == 0 {
		// What was measured so far is a mixture.
		c.est = rtt.New(f.cfg.RTT)
		c.est.Sample(l.paths.guard.far, 1)
		f.changePath(now, l, l.paths.ctl)
	}
	return near
}

// tell passes sampleEv to the lane's controller.
func (f *Fetch) tell(now ndn.Time, l *lane) {
	e := &f.sampleEv
	if e.Tx == 0 {
		return
	}
	e.Losses, l.lossNew = l.lossNew, 0
	e.Unrepaired = f.unrep
	e.Inflight = l.inflight
	if e.Marked && e.Tx > l.recPoint {
		l.recPoint = l.tx
		l.lossEvent.real = true // the window has another reason to be small
		before := l.ctrl.Cwnd()
		l.ctrl.OnMark(e)
		f.decreased(now, l, before)
		if f.trace != nil {
			f.emit(now, l, TraceMark, e.Segment, e.Tx, 0, e.Tag)
		}
	}
	l.ctrl.OnData(e)
	if f.level != nil {
		f.levelData(e)
	}
}

// decreased counts a reaction of the controller.
func (f *Fetch) decreased(now ndn.Time, l *lane, before float64) {
	if l.ctrl.Cwnd() < before {
		f.stats.WindowDecreases++
		if f.trace != nil {
			f.emit(now, l, TraceWindow, 0, 0, 0, 0)
		}
	}
}

// changePath lets another path of a lane be the one that is controlled.
func (f *Fetch) changePath(now ndn.Time, l *lane, i int8) {
	l.paths.take(now, i)
	l.lossEvent.real = true // of the old path
	f.stats.PathChanges++
	p := l.paths.controlled()
	change := cc.PathChange{Now: now, Tag: p.tag, RTT: p.est.Min()}
	if f.level != nil && l == f.cur {
		change.Rate, _ = f.level.sw.Moved(now, p.tag)
	}
	if l.pc != nil && !l.retired {
		l.pc.OnPathChange(&change)
	}
	if f.trace != nil {
		f.emit(now, l, TraceSwitch, 0, 0, 0, p.tag)
	}
}

// store delivers a Data in its turn, or keeps a copy until then.
func (f *Fetch) store(now ndn.Time, i int32, d *ndn.Data) {
	s := &f.ring.slots[i]
	s.state = slotReceived
	if s.seg == f.base && f.sink.Ready() {
		f.deliver(now, d, s.seg)
		s.state = slotFree
		f.base++
		f.Drain(now)
		return
	}
	s.buf = append(f.buffer(len(d.Wire)), d.Wire...)
	f.settle(now)
}

// Drain delivers what waits for the Sink to become ready.
func (f *Fetch) Drain(now ndn.Time) {
	if f.stage != stageFetch {
		return
	}
	for f.base < f.next && !f.Done() {
		s := f.ring.at(f.base)
		if s.state != slotReceived || !f.sink.Ready() {
			break
		}
		if err := f.view.Parse(s.buf); err != nil {
			// It was parsed when it arrived.
			f.Fail(now, fmt.Errorf("consumer: reorder buffer: %w", err))
			return
		}
		f.deliver(now, &f.view, s.seg)
		f.free = append(f.free, s.buf[:0])
		s.buf, s.state = nil, slotFree
		f.base++
	}
	f.settle(now)
}

// settle ends the fetch when nothing is left to wait for.
func (f *Fetch) settle(now ndn.Time) {
	if f.Done() {
		return
	}
	if f.plan.ends && f.base > f.plan.last || f.left == 0 && f.done > 0 {
		if f.head > 0 || (f.done == 0 && f.cfg.Range.Kind == RangeBytes) {
			f.Fail(now, fmt.Errorf("%w: the object ends before %s", ErrRange, f.cfg.Range))
			return
		}
		if f.left != 0 && f.left != noLimit && f.obj.HasSize {
			f.Fail(now, fmt.Errorf("%w: %d bytes are missing at its end", ErrChanged, f.left))
			return
		}
		f.finish(now)
		return
	}
	if f.base < f.next {
		if s := f.ring.at(f.base); s.state == slotFailed {
			f.Fail(now, s.reason)
		}
	}
}

// deliver passes the wanted part of a segment to the sink.
func (f *Fetch) deliver(now ndn.Time, d *ndn.Data, seg uint64) {
	c := d.Content
	cut := min(f.head, uint64(len(c)))
	f.head -= cut
	c = c[cut:]
	if uint64(len(c)) > f.left {
		c = c[:f.left]
	}
	if f.left != noLimit {
		f.left -= uint64(len(c))
	}
	if len(c) > 0 && f.stats.FirstByte == 0 {
		f.stats.FirstByte = now
	}
	f.done += uint64(len(c))
	f.stats.Bytes += uint64(len(c))
	f.piece = Piece{
		Wire: d.Wire, Content: c, Head: int(cut), Segment: seg,
		Then: Resume{
			Segment: seg + 1, Skip: f.head, Done: f.done, Final: f.obj.Final, HasFinal: f.obj.HasFinal,
		},
	}
	f.sink.Deliver(&f.piece)
}

// bufferSize rounds a packet size up so that packets of an object, whose
// sizes differ by a few bytes, fit into the same buffers.
func bufferSize(n int) int { return (n + 511) &^ 511 }

// buffer returns an empty buffer with room for n bytes.
func (f *Fetch) buffer(n int) []byte {
	if k := len(f.free); k > 0 {
		b := f.free[k-1]
		f.free[k-1] = nil
		f.free = f.free[:k-1]
		if cap(b) >= n {
			return b
		}
		f.bufBytes -= cap(b)
	}
	f.bufSize = max(f.bufSize, bufferSize(n))
	f.bufBytes += f.bufSize
	return make([]byte, 0, f.bufSize)
}

// refused takes the producer's answer that a segment does not exist.
func (f *Fetch) refused(now ndn.Time, i int32, name ndn.Name) {
	s := &f.ring.slots[i]
	l := f.lane(s)
	f.progress(now, l)
	switch {
	case l.replica > 0 && (f.multi || f.level != nil):
		f.leave(now, l)
		return
	case s.doubt:
		s.doubt = false // of that replica, perhaps; if not, it is said again
		return
	case f.obj.HasFinal && s.seg <= f.obj.Final && f.wrong(now, i, name):
		return // it must be there, so this is somebody's lie, or the object has gone
	}
	if f.obj.HasFinal && s.seg <= f.obj.Final {
		f.failSegment(now, i, fmt.Errorf("%w: the producer does not have %s any more (segment %d); it has changed, or gone", ErrNoContent, f.obj.Name, s.seg))
		return
	}
	f.failSegment(now, i, fmt.Errorf("%w: the producer has no segment %d of %s", ErrNoContent, s.seg, f.obj.Name))
}

// failSegment gives a segment up. Beyond an unknown end that is an error only
// when the segment turns out to belong to the object.
func (f *Fetch) failSegment(now ndn.Time, i int32, reason error) {
	s := &f.ring.slots[i]
	if s.state == slotOutstanding {
		f.ring.unlink(i)
		f.lane(s).inflight--
	}
	f.ring.disarm(i)
	if s.lost {
		s.lost = false
		f.unrep--
	}
	s.state, s.reason = slotFailed, reason
	if f.plan.ends && s.seg <= f.plan.last {
		f.Fail(now, reason)
		return
	}
	f.stopAt = min(f.stopAt, s.seg)
	f.settle(now)
}
