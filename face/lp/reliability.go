package lp

import (
	"encoding/binary"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

// The reliability feature of NDNLPv2. Differences from NFD's, none of them on
// the wire: the least RTO is max(10 ms, 2 srtt), because a repair on the link
// that takes longer than one end to end is of no use; time-outs of one
// fragment back off; repetitions give RTT samples as well, for an
// acknowledgement names the transmission that it is for (otherwise a link whose
// first packets are lost keeps its first RTO, and one that became slower never
// learns it); the first RTO is a quarter of a second, because consumers repeat
// after one, and none is more than four; an acknowledgement that comes after the
// repetition counts; the unacknowledged fragments are bounded; a peer of which no
// acknowledgement came for its first packets is taken for one without the feature,
// and so is one that has come to send packets without and acknowledges nothing.
const (
	laterAcks   = 3 // acknowledgements of later transmissions that mean loss (RFC 5681's three)
	firstRTO    = 250 * time.Millisecond
	leastRTO    = 10 * time.Millisecond
	mostRTO     = 4 * time.Second // whatever the peer's acknowledgements say
	backOffCap  = time.Second
	maxAcks     = 4096 // acknowledgements that may wait to be sent
	seenSlots   = 4096 // received Sequences that are remembered
	maxGivenUp  = 1024 // Interests that wait for GaveUp
	deafAfter   = 8    // time-outs, and packets without the feature, until nothing is waited for
	maxFree     = 128  // fragments, and packets, whose memory is kept for others
	history     = 64   // transmissions whose late acknowledgements still count
	ackSize     = 12
	txFieldSize = 12
)

// packet is a network packet of which fragments await acknowledgement.
type packet struct {
	left     int    // fragments not acknowledged, and others that use the record
	waiting  int    // fragments in the queue
	dead     bool   // given up
	interest []byte // the wire, if it is an Interest
	next     *packet
}

// fragment is one frame that awaits acknowledgement, or its turn.
type fragment struct {
	pkt      *packet
	body     []byte // the LpPacket's value with a TxSequence and no Ack
	tx       int    // where in body the TxSequence element is
	gen      uint32 // counts the uses of this record
	live     bool   // in flight
	acked    bool   // acknowledged while it waited to be sent again
	cur      uint64 // its latest transmission
	sent     ndn.Time
	prev     uint64 // the one before, if retx > 0
	prevSent ndn.Time
	deadline ndn.Time
	later    int // later transmissions that were acknowledged
	retx     int
	timeouts int
	next     *fragment
}

// fifo is a list of fragments.
type fifo struct{ head, tail *fragment }

func (q *fifo) push(f *fragment) {
	f.next = nil
	if q.tail == nil {
		q.head = f
	} else {
		q.tail.next = f
	}
	q.tail = f
}

func (q *fifo) pop() *fragment {
	f := q.head
	if q.head = f.next; q.head == nil {
		q.tail = nil
	}
	f.next = nil
	return f
}

// reliability is the state of both directions.
type reliability struct {
	cfg   Reliability
	rtt   estimator
	delay queueDelay

	// Sending. ring holds the fragment of each transmission from base to
	// next. Those in flight are from first on; before it are some whose
	// acknowledgements may come late.
	base, first, next uint64
	ring              []flight
	heard             bool // the peer has the feature on
	plain             int  // packets that it sent without since it showed that
	unheard           int  // time-outs since then
	unheardPackets    int  // packets given up since then
	flying, bytes     int  // fragments in flight, and their size
	lost              fifo // to be sent again
	queue             fifo // not sent yet
	queued            int  // packets with fragments in queue
	timer             ndn.Time
	pumpAt            ndn.Time // when the queues may move; ndn.Never if they may not
	cur               *packet  // being sent
	given             *packet  // given up and not asked for yet, oldest first
	givenLast         *packet
	givenN            int
	told              *packet // its wire is the caller's until the next call
	freeFrag          *fragment
	freePkt           *packet
	freeFrags         int // in the lists of those
	freePkts          int

	// Receiving.
	acks  []uint64
	ackAt ndn.Time
	seen  []seen
}

// flight is the fragment of one transmission, while it has the generation gen.
type flight struct {
	f   *fragment
	gen uint32
}

// seen is a Sequence that was received, remembered until a time.
type seen struct {
	seq   uint64
	until ndn.Time
}

func newReliability(cfg Reliability, first uint64) *reliability {
	return &reliability{
		cfg: cfg, base: first, first: first, next: first, ring: make([]flight, history),
		timer: ndn.Never, pumpAt: ndn.Never, ackAt: ndn.Never,
	}
}

// hear notes that the peer has the feature on.
func (r *reliability) hear() {
	r.heard, r.plain, r.unheard, r.unheardPackets = true, 0, 0, 0
}

// deaf reports whether the peer seems not to have the feature: it has never
// shown it, and packets were given up; or no longer: it sends packets without,
// which one that has it never does, so that nobody need be waited for that long.
// What it gets says what it always says, lest the peer turns it on, but nothing
// waits for acknowledgements or is repeated, nor given up: what is not acknowledged
// has most likely come, and a strategy has to notice by itself, as behind a link
// without the feature, when nothing is answered. A peer that never sent anything, or
// that has lost the feature, may be gone: what is in flight to it, and was repeated as
// often as may be, is given up.
func (r *reliability) deaf() bool {
	without := r.plain >= deafAfter
	if !r.heard {
		without = r.unheardPackets > 0
	}
	return without && r.unheard >= deafAfter
}

func (r *reliability) deadline() ndn.Time { return min(r.timer, r.pumpAt, r.ackAt) }

// receive handles the acknowledgements of a frame and notes its own. It says
// whether the frame is new.
func (r *reliability) receive(now ndn.Time, l *Link, in *ndn.LpPacket) bool {
	for {
		tx, ok := in.NextAck()
		if !ok {
			break
		}
		r.acked(now, tx, l)
	}
	if !in.HasTx {
		if in.Fragment != nil {
			r.plain++
		}
		return true
	}
	r.hear()
	if len(r.acks) == maxAcks {
		// Nobody calls Tick. The peer will send these fragments again.
		l.ctr.AcksDropped++
		copy(r.acks, r.acks[1:])
		r.acks = r.acks[:maxAcks-1]
	}
	r.acks = append(r.acks, in.TxSequence)
	switch {
	case len(r.acks) >= acksPerFrame(l.cfg.MTU):
		r.ackAt = now
	case r.ackAt == ndn.Never:
		r.ackAt = now.Add(r.cfg.AckDelay)
	}
	if !in.HasSequence {
		return true
	}
	if r.seen == nil {
		r.seen = make([]seen, seenSlots)
	}
	s := &r.seen[in.Sequence%seenSlots]
	dup := s.seq == in.Sequence && now < s.until
	// As long as a peer with our settings may send it again. Not for ever: a
	// peer that starts anew may count from the same number (NFD does).
	again := time.Duration(r.cfg.MaxRetx+1) * max(r.rtt.rto(), backOffCap)
	*s = seen{in.Sequence, now.Add(again)}
	return !dup
}

// acked handles the acknowledgement of transmission tx. That of one which was
// repeated since says just as well that the fragment came: the repetition was
// needless. Others mean nothing.
func (r *reliability) acked(now ndn.Time, tx uint64, l *Link) {
	ctr := &l.ctr
	if tx-r.base >= r.next-r.base {
		return
	}
	r.hear()
	f := r.of(tx)
	if f == nil || f.acked {
		return
	}
	ctr.Acked++
	sent := f.sent
	if f.cur != tx {
		sent = f.prevSent
	}
	if f.cur == tx || f.prev == tx {
		took := now.Sub(sent)
		r.rtt.sample(took)
		l.mark.delay(now, took, r.bytes, &r.delay, &l.cfg.Marking)
	}
	if f.live {
		r.ground(f)
		r.finish(f)
	} else {
		f.acked = true // pump finds it among the lost
	}
	if tx-r.first < r.next-r.first {
		for t := r.first; t != tx; t++ {
			if g := r.inFlight(t); g != nil {
				if g.later++; g.later >= laterAcks {
					r.ground(g)
					r.lose(g, ctr)
				}
			}
		}
	}
	r.trim()
	r.wantPump(now)
}

func (r *reliability) slot(tx uint64) *flight { return &r.ring[tx&uint64(len(r.ring)-1)] }

// of is the fragment of transmission tx, nil when that has ended.
func (r *reliability) of(tx uint64) *fragment {
	if s := r.slot(tx); s.f != nil && s.f.gen == s.gen {
		return s.f
	}
	return nil
}

// inFlight is the fragment of transmission tx if that awaits its
// acknowledgement.
func (r *reliability) inFlight(tx uint64) *fragment {
	if f := r.of(tx); f != nil && f.live && f.cur == tx {
		return f
	}
	return nil
}

// ground takes a fragment out of flight.
func (r *reliability) ground(f *fragment) {
	f.live = false
	r.flying--
	r.bytes -= len(f.body)
}

// trim moves first past what is settled, and base so that it keeps history.
func (r *reliability) trim() {
	for r.first != r.next && r.inFlight(r.first) == nil {
		r.first++
	}
	if n := r.next - r.base; n > history {
		r.base += min(n-history, r.first-r.base)
	}
	if r.flying == 0 {
		r.timer = ndn.Never
	}
}

// finish ends a fragment that is acknowledged, or whose packet was given up.
func (r *reliability) finish(f *fragment) {
	p := f.pkt
	r.recycle(f)
	if p.left--; p.left == 0 {
		r.recyclePacket(p)
	}
}

// lose decides what becomes of a lost fragment, which is in no list.
func (r *reliability) lose(f *fragment, ctr *Counters) {
	if f.pkt.dead {
		r.finish(f)
		return
	}
	if f.retx >= r.cfg.MaxRetx && (r.heard || r.plain == 0 || !r.deaf()) {
		ctr.RetxExhausted++
		r.giveUp(f)
		return
	}
	if r.deaf() {
		r.finish(f)
		return
	}
	f.retx++
	f.later = 0
	r.lost.push(f)
}

// giveUp ends the packet of f, which is in no list, with all its fragments.
// Those in lists are dropped when their turn comes.
func (r *reliability) giveUp(f *fragment) {
	p := f.pkt
	p.dead = true
	r.unheardPackets++
	if len(p.interest) > 0 && r.givenN < maxGivenUp {
		r.givenN++
		// One more user of the record, until it has been told.
		p.left++
		if r.givenLast == nil {
			r.given = p
		} else {
			r.givenLast.next = p
		}
		r.givenLast = p
	}
	r.finish(f)
	for t := r.first; t != r.next; t++ {
		if g := r.inFlight(t); g != nil && g.pkt == p {
			r.ground(g)
			r.finish(g)
		}
	}
}

// gaveUp takes the oldest Interest that was given up.
func (r *reliability) gaveUp() ([]byte, bool) {
	if p := r.told; p != nil {
		r.told = nil
		if p.left--; p.left == 0 {
			r.recyclePacket(p)
		}
	}
	p := r.given
	if p == nil {
		return nil, false
	}
	r.givenN--
	if r.given = p.next; r.given == nil {
		r.givenLast = nil
	}
	p.next = nil
	r.told = p
	return p.interest, true
}

// open begins a packet. It refuses when too many wait.
func (r *reliability) open(now ndn.Time, wire []byte, nack bool) bool {
	if r.queue.head != nil && r.queued >= r.cfg.Queue {
		return false
	}
	p := r.freePkt
	if p == nil {
		p = new(packet)
	} else {
		r.freePkt = p.next
		r.freePkts--
	}
	*p = packet{interest: p.interest[:0], left: 1}
	if !nack && isInterest(wire) {
		p.interest = append(p.interest, wire...)
	}
	r.cur = p
	return true
}

// close ends what open began.
func (r *reliability) close() {
	p := r.cur
	r.cur = nil
	if p.left--; p.left == 0 {
		r.recyclePacket(p)
	}
}

// send takes one fragment of the open packet: it leaves now or waits for the
// window.
func (r *reliability) send(now ndn.Time, l *Link, payload []byte, out *face.Frames) {
	f := r.freeFrag
	if f == nil {
		f = new(fragment)
	} else {
		r.freeFrag = f.next
		r.freeFrags--
	}
	*f = fragment{pkt: r.cur, body: f.body[:0], gen: f.gen}
	r.cur.left++
	f.body, f.tx = appendBody(f.body, &l.hdr, payload)
	if r.closed() || r.lost.head != nil || r.queue.head != nil {
		if r.cur.waiting++; r.cur.waiting == 1 {
			r.queued++
		}
		r.queue.push(f)
		r.wantPump(now)
		return
	}
	r.transmit(now, l, f, out)
}

// appendBody appends the value of the LpPacket, and says where its TxSequence
// element begins: there acknowledgements belong, too.
func appendBody(b []byte, h *ndn.LpHeader, payload []byte) ([]byte, int) {
	start := len(b)
	b = ndn.AppendLpPacket(b, h, payload)
	// The outer type and length are made anew for each transmission.
	_, n, tl, _ := ndn.ReadTL(b[start:])
	copy(b[start:], b[start+tl:])
	b = b[:start+n]
	link := ndn.LpHeader{HasChallenge: h.HasChallenge, HasResponse: h.HasResponse}
	after := link.Size() + ndn.TLVSize(ndn.TypeLpFragment, len(payload))
	if f := h.LpFields; f != nil {
		rest := ndn.LpFields{
			NonDiscovery: f.NonDiscovery, Announcement: f.Announcement,
			HasPathTag: f.HasPathTag, PathTag: f.PathTag,
			HasReplicaSelect: f.HasReplicaSelect, ReplicaSelect: f.ReplicaSelect,
		}
		after += rest.Size()
	}
	return b, len(b) - start - after - txFieldSize
}

// transmit sends a fragment under a new TxSequence, with the acknowledgements
// that fit beside it.
func (r *reliability) transmit(now ndn.Time, l *Link, f *fragment, out *face.Frames) {
	if r.next-r.base == uint64(len(r.ring)) {
		r.base = r.first
		if r.next-r.base == uint64(len(r.ring)) {
			r.grow()
		}
	}
	*r.slot(r.next) = flight{f, f.gen}
	r.flying++
	r.bytes += len(f.body)
	f.live, f.prev, f.prevSent = true, f.cur, f.sent
	f.cur, f.sent = r.next, now
	rto := r.rtt.rto()
	if f.timeouts > 0 {
		backed := float64(rto)
		for range f.timeouts {
			backed *= 1.5
		}
		rto = max(rto, time.Duration(min(backed, float64(backOffCap))))
	}
	f.deadline = now.Add(rto)
	r.timer = min(r.timer, f.deadline)

	space := valueRoom(l.cfg.MTU) - len(f.body)
	n := min(max(space, 0)/ackSize, len(r.acks))
	start := len(out.Buf)
	b := ndn.AppendTL(out.Buf, ndn.TypeLpPacket, len(f.body)+n*ackSize)
	b = append(b, f.body[:f.tx]...)
	b = r.appendAcks(b, n)
	tx := len(b)
	b = append(b, f.body[f.tx:]...)
	binary.BigEndian.PutUint64(b[tx+txFieldSize-8:], r.next)
	r.next++
	out.Buf = b
	l.sent(start, out)
	if r.deaf() {
		r.ground(f)
		r.finish(f)
		r.trim()
	}
}

// appendAcks takes the n oldest acknowledgements.
func (r *reliability) appendAcks(b []byte, n int) []byte {
	for _, a := range r.acks[:n] {
		b = binary.BigEndian.AppendUint64(ndn.AppendTL(b, ndn.TypeLpAck, 8), a)
	}
	r.acks = r.acks[:copy(r.acks, r.acks[n:])]
	if len(r.acks) == 0 {
		r.ackAt = ndn.Never
	}
	return b
}

func acksPerFrame(mtu int) int { return valueRoom(mtu) / ackSize }

// grow doubles the ring.
func (r *reliability) grow() {
	old := r.ring
	r.ring = make([]flight, 2*len(old))
	for t := r.base; t != r.next; t++ {
		*r.slot(t) = old[t&uint64(len(old)-1)]
	}
}

// closed reports whether the window lets nothing more out.
func (r *reliability) closed() bool { return r.flying >= r.cfg.Window && !r.deaf() }

// wantPump notes that fragments may be sent now, which needs a Tick.
func (r *reliability) wantPump(now ndn.Time) {
	if !r.closed() && (r.lost.head != nil || r.queue.head != nil) {
		r.pumpAt = min(r.pumpAt, now)
	}
}

func (r *reliability) tick(now ndn.Time, l *Link, out *face.Frames) {
	if r.timer <= now {
		r.timeouts(now, &l.ctr)
	}
	r.pump(now, l, out)
	if r.ackAt > now {
		return
	}
	for len(r.acks) > 0 {
		n := min(len(r.acks), acksPerFrame(l.cfg.MTU))
		start := len(out.Buf)
		out.Buf = r.appendAcks(ndn.AppendTL(out.Buf, ndn.TypeLpPacket, n*ackSize), n)
		l.ctr.OutAcks++
		l.sent(start, out)
	}
}

// timeouts finds the transmissions whose time is over. It looks at all of
// them, but not more often than the earliest of their deadlines.
func (r *reliability) timeouts(now ndn.Time, ctr *Counters) {
	for t := r.first; t != r.next; t++ {
		if f := r.inFlight(t); f != nil && f.deadline <= now {
			r.ground(f)
			f.timeouts++
			r.unheard++
			r.lose(f, ctr)
		}
	}
	r.timer = ndn.Never
	for t := r.first; t != r.next; t++ {
		if f := r.inFlight(t); f != nil {
			r.timer = min(r.timer, f.deadline)
		}
	}
	r.trim()
}

// pump sends what the window allows: lost fragments first.
func (r *reliability) pump(now ndn.Time, l *Link, out *face.Frames) {
	r.pumpAt = ndn.Never
	for !r.closed() {
		var f *fragment
		switch {
		case r.lost.head != nil:
			if f = r.lost.pop(); r.deaf() {
				r.finish(f)
				continue
			}
			if !f.pkt.dead && !f.acked {
				l.ctr.Retransmitted++
			}
		case r.queue.head != nil:
			f = r.queue.pop()
			if f.pkt.waiting--; f.pkt.waiting == 0 {
				r.queued--
			}
		default:
			return
		}
		if f.pkt.dead || f.acked {
			r.finish(f)
			continue
		}
		r.transmit(now, l, f, out)
	}
}

func (r *reliability) recycle(f *fragment) {
	f.pkt = nil
	f.gen++
	if r.freeFrags == maxFree {
		f.body = nil // the ring still has f
		return
	}
	r.freeFrags++
	f.next, r.freeFrag = r.freeFrag, f
}

func (r *reliability) recyclePacket(p *packet) {
	if r.freePkts < maxFree {
		r.freePkts++
		p.next, r.freePkt = r.freePkt, p
	}
}
