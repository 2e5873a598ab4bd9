// Package lp is the NDNLPv2 link service of one face, without I/O:
// fragmentation and reassembly, the header fields, congestion marking, and
// the reliability feature.
//
// A Link is told the time, takes and makes frames, and holds no lock,
// goroutine or clock. Its driver serialises the calls:
//
//	for each frame received:  ok, err := l.Receive(now, frame, &packet)
//	for each packet to send:  l.Send(now, wire, &fields, &frames)
//	when l.Deadline() is due:  l.Tick(now, &frames)
//	after each of these:      transport.Send(&frames), frames.Reset()
//
// The format and the rules are those of
// https://redmine.named-data.net/projects/nfd/wiki/NDNLPv2; where it leaves a
// choice, NFD's is taken.
package lp

import (
	"errors"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

// Errors that Receive and Send return beside those of package ndn. All of
// them are counted.
var (
	ErrOversize  = errors.New("lp: packet is larger than the link can carry")
	ErrFragment  = errors.New("lp: invalid fragment")
	ErrFields    = errors.New("lp: header field that this packet or face may not have")
	ErrQueueFull = errors.New("lp: too many packets wait for acknowledgement")
	ErrShaped    = errors.New("lp: too many Interests wait for the shaper")
)

// Link is the link service of one face.
type Link struct {
	cfg  Config
	seq  uint64 // of the next fragment
	ctr  Counters
	mark marker
	reas reassembler
	rel  *reliability // nil when off
	tx   uint64       // of the next offer of the reliability feature
	bid  ndn.Time     // when to offer it next
	bids int
	shp  *shaper // nil when off

	inside bool // the packet received lies in the link's memory

	ask, owed, heard           uint64 // Challenge to send, Response to send, Response received last
	asking, owing, wasAnswered bool
	asked                      bool // by the frame received last, which had no packet

	*scratch
}

// Scratch is memory that a Link uses within one call. Links that are driven by
// one goroutine may share it, so that it stays in the processor's caches.
type Scratch struct {
	in     ndn.LpPacket // being received
	fields ndn.LpFields // of the packet being sent
	hdr    ndn.LpHeader
}

type scratch = Scratch

// New makes the link service of one face.
func New(cfg Config) *Link {
	cfg.defaults()
	l := &Link{cfg: cfg, seq: cfg.FirstSequence, tx: cfg.FirstSequence, scratch: cfg.Scratch}
	if l.scratch == nil {
		l.scratch = &Scratch{}
	}
	l.reas.init(cfg.Reassembly)
	if cfg.Reliability.On {
		l.takeUp()
	}
	if cfg.Shaping.on() {
		l.shp = newShaper(cfg.Shaping)
	}
	return l
}

// Receive takes one frame. ok says that p now views a network packet: an
// Interest, Data or Nack with its fields. The view is of frame or of the
// link's own memory, and valid until the next call of Receive and while frame
// is. Not ok without an error is a fragment of a packet that is not complete,
// a repeated one, or a frame that only carried acknowledgements.
func (l *Link) Receive(now ndn.Time, frame []byte, p *ndn.Packet) (ok bool, err error) {
	return l.ReceiveFrom(now, 0, frame, p)
}

// ReceiveFrom is Receive on a link with several senders, which any number of
// them tells apart: each counts its fragments for itself.
func (l *Link) ReceiveFrom(now ndn.Time, sender uint64, frame []byte, p *ndn.Packet) (ok bool, err error) {
	l.ctr.InFrames++
	l.ctr.InBytes += uint64(len(frame))
	if len(frame) > ndn.MaxPacketSize {
		l.ctr.InOversize++
		return false, ErrOversize
	}
	in := &l.in
	l.wasAnswered, l.asked = false, false
	if err := in.Parse(frame); err != nil {
		l.ctr.InParse++
		return false, err
	}
	if in.HasChallenge {
		l.owed, l.owing = in.Challenge, true
		l.asked = in.Fragment == nil
	}
	l.heard, l.wasAnswered = in.Response, in.HasResponse
	if l.rel == nil && l.cfg.Reliability.Auto && (in.HasTx || in.HasAcks()) {
		l.takeUp()
		l.rel.hear()
	}
	if l.rel != nil && !l.rel.receive(now, l, in) {
		l.ctr.InDuplicate++
		return false, nil
	}
	if in.Fragment == nil {
		return false, nil
	}
	if in.FragIndex >= in.FragCount || in.FragCount > MaxFragments {
		l.ctr.InFragment++
		return false, ErrFragment
	}
	net, fields := in.Fragment, &in.LpFields
	l.inside = in.FragCount > 1
	if l.inside {
		net, fields, err = l.reas.add(now, sender, in, &l.ctr)
		if net == nil {
			return false, err
		}
	}
	if err := p.Parse(net, fields); err != nil {
		l.ctr.InNetParse++
		return false, err
	}
	if !l.admit(p) {
		l.ctr.InFields++
		return false, ErrFields
	}
	l.ctr.InPackets++
	if l.shp != nil {
		l.shp.received(now, p.Kind, max(len(frame), len(net)))
	}
	return true, nil
}

// Reassembled reports whether the packet that the last call of Receive made
// known lies in the link's memory, which the next call may reuse, and not in
// the frame. A driver that collects packets before it passes them on copies
// those.
func (l *Link) Reassembled() bool { return l.inside }

// admit checks which fields a packet may have, and clears those that do not
// concern us (NFD, GenericLinkService::decodeInterest and the like).
func (l *Link) admit(p *ndn.Packet) bool {
	if !l.cfg.Application {
		p.IncomingFace = 0
	}
	switch p.Kind {
	case ndn.KindInterest:
		if p.NoCache || p.Announcement != nil {
			return false
		}
		return !p.HasNextHopFace || l.cfg.LocalFields
	case ndn.KindData:
		if p.HasNextHopFace || p.NonDiscovery {
			return false
		}
		p.NoCache = p.NoCache && l.cfg.LocalFields
		return true
	}
	return !(p.HasNextHopFace || p.NoCache || p.NonDiscovery || p.Announcement != nil)
}

// Send appends the frames of one network packet (for a Nack, the Interest)
// to out. It keeps neither wire nor f, and drops fields that the face may not
// send. A nil f means no fields. On an error nothing is appended. With shaping
// or reliability a packet may wait: Tick sends it then.
func (l *Link) Send(now ndn.Time, wire []byte, f *ndn.LpFields, out *face.Frames) error {
	if len(wire) == 0 || len(wire) > ndn.MaxPacketSize {
		l.ctr.OutOversize++
		return ErrOversize
	}
	l.fields = ndn.LpFields{}
	if f != nil {
		l.fields = *f
		if !l.cfg.LocalFields {
			l.fields.IncomingFace = 0
			l.fields.NextHopFace, l.fields.HasNextHopFace = 0, false
			l.fields.NoCache = false
		}
	}
	if l.shp != nil && isInterest(wire) && !l.fields.IsNack {
		switch taken, free := l.shp.hold(now, wire, &l.fields); {
		case taken:
			l.ctr.OutShaped++
			return nil
		case !free:
			l.ctr.OutShapeFull++
			return ErrShaped
		}
	}
	return l.pass(now, wire, out)
}

// isInterest reports whether a network packet, or that of a Nack, is one.
func isInterest(wire []byte) bool { return wire[0] == byte(ndn.TypeInterest) }

// pass sends a packet under l.fields.
func (l *Link) pass(now ndn.Time, wire []byte, out *face.Frames) error {
	if l.rel != nil && l.rel.flying == 0 {
		// There is nothing of ours in a queue on the way.
		l.mark.empty(&l.rel.delay)
	}
	if l.mark.now(now, &l.cfg.Marking) {
		l.fields.CongestionMark = max(l.fields.CongestionMark, 1)
		l.ctr.OutMarked++
	}
	l.header()
	switch {
	case l.rel == nil:
		l.hdr.HasTx = l.offers(now)
	default:
		// Every fragment of a reliable link has both numbers.
		l.hdr.HasSequence, l.hdr.HasTx = true, true
		if !l.rel.open(now, wire, l.fields.IsNack) {
			l.ctr.OutQueue++
			return ErrQueueFull
		}
	}
	start := len(out.Buf)
	err := l.fit(now, wire, out)
	if l.rel != nil {
		l.rel.close()
	}
	if err != nil {
		l.ctr.OutOversize++
		return err
	}
	if l.shp != nil && !l.fields.IsNack {
		// What waits for the window of the reliability feature leaves soon.
		l.shp.sent(now, isInterest(wire), max(len(out.Buf)-start, len(wire)))
	}
	l.ctr.OutPackets++
	l.asking, l.owing = false, false
	return nil
}

// header begins l.hdr, in place: a literal would be made elsewhere and copied,
// before what is written word by word can be read in larger pieces.
func (l *Link) header() {
	h := &l.hdr
	*h = ndn.LpHeader{}
	h.LpFields = &l.fields
	h.Challenge, h.HasChallenge = l.ask, l.asking
	h.Response, h.HasResponse = l.owed, l.owing
}

// Challenge makes the next packet that is sent carry n, for the peer to send
// back. Peers that do not know the field ignore it.
func (l *Link) Challenge(n uint64) { l.ask, l.asking = n, true }

// Response is what the frame that was received last sent back of a Challenge.
// Who sees the number of a Challenge here knows that the peer gets what is
// sent to it. The link answers Challenges of the peer by itself, with the next
// packet that is sent.
func (l *Link) Response() (n uint64, ok bool) { return l.heard, l.wasAnswered }

// Asked reports whether the frame that was received last carried a Challenge
// and no packet: the peer waits for the Response now.
func (l *Link) Asked() bool { return l.asked }

// Idle appends a frame without a packet, which peers ignore but for the
// Challenge and the Response that are due.
func (l *Link) Idle(out *face.Frames) {
	l.fields = ndn.LpFields{}
	l.header()
	l.asking, l.owing = false, false
	start := len(out.Buf)
	out.Buf = ndn.AppendLpPacket(out.Buf, &l.hdr, nil)
	l.sent(start, out)
}

// fit sends wire in one frame or in several.
func (l *Link) fit(now ndn.Time, wire []byte, out *face.Frames) error {
	if l.rel == nil && l.hdr.HasTx && !l.fits(len(wire)) {
		// What is only offered costs neither a field nor a second frame.
		l.hdr.HasTx = false
		l.hdr.HasTx = l.cfg.Fragment && !l.fits(len(wire))
	}
	switch {
	case l.fits(len(wire)):
	case l.cfg.Fragment:
		return l.fragment(now, wire, out)
	case !l.shed(len(wire)):
		return ErrOversize
	}
	l.hdr.Sequence = l.seq
	if l.hdr.HasSequence {
		l.seq++
	}
	l.emit(now, wire, out)
	return nil
}

func (l *Link) fits(n int) bool { return ndn.LpPacketSize(&l.hdr, n) <= l.cfg.MTU }

// shed drops fields that a packet of n bytes can do without, so that it fits.
// A PIT token goes last: without it the peer finds the entry by name.
func (l *Link) shed(n int) bool {
	f := &l.fields
	l.hdr.HasChallenge, l.hdr.HasResponse = false, false
	f.PathTag, f.HasPathTag = ndn.PathTag{}, false
	f.ReplicaSelect, f.HasReplicaSelect = 0, false
	f.CongestionMark, f.Announcement, f.IncomingFace = 0, nil, 0
	if !l.fits(n) {
		f.PitToken = nil
	}
	if !l.fits(n) {
		return false
	}
	l.ctr.OutShed++
	return true
}

// emit sends one fragment under l.hdr.
func (l *Link) emit(now ndn.Time, payload []byte, out *face.Frames) {
	if l.rel != nil {
		l.rel.send(now, l, payload, out)
		return
	}
	if l.hdr.HasTx {
		l.hdr.TxSequence = l.tx
		l.tx++
	}
	start := len(out.Buf)
	out.Buf = ndn.AppendLpPacket(out.Buf, &l.hdr, payload)
	l.sent(start, out)
}

// What is offered comes with the first packets, of which some may be lost or
// reach a peer that does not believe us yet, and then now and then.
const (
	firstOffers = 64
	offerEvery  = time.Second
)

// offers reports whether the packet to be sent offers the reliability feature.
func (l *Link) offers(now ndn.Time) bool {
	if r := &l.cfg.Reliability; !r.Auto || !r.Offer || now < l.bid {
		return false
	}
	if l.bids++; l.bids > firstOffers {
		l.bid = now.Add(offerEvery)
	}
	return true
}

// sent ends and counts the frame that begins at start.
func (l *Link) sent(start int, out *face.Frames) {
	out.End()
	l.ctr.OutFrames++
	l.ctr.OutBytes += uint64(len(out.Buf) - start)
}

// Queue tells the length of the transport's outgoing queue in bytes, which
// decides on congestion marks. Drivers call it before a batch of packets.
func (l *Link) Queue(now ndn.Time, length int) { l.mark.queue(now, length, &l.cfg.Marking) }

// Deadline is when Tick is to be called next, ndn.Never when nothing waits.
// It may change with each call of Receive, Send and Tick.
func (l *Link) Deadline() ndn.Time {
	d := l.reas.deadline()
	if l.rel != nil {
		d = min(d, l.rel.deadline())
	}
	if l.shp != nil {
		d = min(d, l.shp.deadline())
	}
	return d
}

// Tick does what is due: drops incomplete packets that are too old, sends
// lost fragments again, acknowledgements that found no packet to ride on, and
// Interests whose turn the shaper has come to.
// It appends frames to out. Early calls do no harm.
func (l *Link) Tick(now ndn.Time, out *face.Frames) {
	l.reas.expire(now, &l.ctr)
	if l.rel != nil {
		l.rel.tick(now, l, out)
	}
	if l.shp != nil {
		l.shp.release(now, l, out)
	}
}

// GaveUp takes the wire of one Interest that the reliability feature gave up
// on. Drivers ask after Receive and Tick, until ok is false, and tell the
// forwarder. wire is valid until the next call of GaveUp, Send or Tick.
func (l *Link) GaveUp() (wire []byte, ok bool) {
	if l.rel == nil {
		return nil, false
	}
	return l.rel.gaveUp()
}

// SetMTU changes the MTU in bytes, within MinMTU and ndn.MaxPacketSize, for
// the packets sent from now on. A reliable link's fragments that wait for
// acknowledgement keep their size.
func (l *Link) SetMTU(mtu int) { l.cfg.MTU = min(max(mtu, MinMTU), ndn.MaxPacketSize) }

// MTU is the largest frame in bytes that is made.
func (l *Link) MTU() int { return l.cfg.MTU }

// SetLocalFields turns local fields on or off.
func (l *Link) SetLocalFields(on bool) { l.cfg.LocalFields = on }

// LocalFields reports whether local fields are on.
func (l *Link) LocalFields() bool { return l.cfg.LocalFields }

// SetReliable turns the reliability feature on or off, and Auto off. Off forgets
// what waits for acknowledgement.
func (l *Link) SetReliable(on bool) {
	l.cfg.Reliability.On, l.cfg.Reliability.Auto = on, false
	switch {
	case on && l.rel == nil:
		l.takeUp()
	case !on:
		l.drop()
	}
}

// SetAuto leaves it to the peer whether the reliability feature is used
// (Reliability.Auto), and offers it if offer is set. What is in use stays.
func (l *Link) SetAuto(offer bool) {
	l.cfg.Reliability.On, l.cfg.Reliability.Auto, l.cfg.Reliability.Offer = false, true, offer
}

// takeUp begins the use of the reliability feature.
func (l *Link) takeUp() {
	l.rel = newReliability(l.cfg.Reliability, l.tx)
	l.reas.cfg.Timeout = max(l.reas.cfg.Timeout, repairTime)
}

// drop ends the use of the reliability feature.
func (l *Link) drop() {
	if l.rel != nil {
		l.tx = l.rel.next
		l.rel = nil
	}
	l.mark.slow = false
}

// Reliable reports whether the reliability feature is on.
func (l *Link) Reliable() bool { return l.rel != nil }

// SetShaping changes the shaping of Interests; the zero value ends it, and passes
// over what waits, which is asked for again as what is lost is.
func (l *Link) SetShaping(s Shaping) {
	switch {
	case s == l.cfg.Shaping:
	case s.on():
		l.shp = newShaper(s)
	default:
		l.shp = nil
	}
	l.cfg.Shaping = s
}

// Waits reports whether a packet that was given to Send may wait for Tick.
func (l *Link) Waits() bool { return l.rel != nil || l.shp != nil }

// SetMarking changes the congestion marking; zero values mean the defaults.
func (l *Link) SetMarking(m Marking) {
	l.cfg.Marking = m
	l.cfg.defaults()
}

// Marking returns the settings of the congestion marking.
func (l *Link) Marking() Marking { return l.cfg.Marking }

// Counters returns a copy of the counters.
func (l *Link) Counters() Counters { return l.ctr }
