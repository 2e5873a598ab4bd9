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
)

// Link is the link service of one face.
type Link struct {
	cfg  Config
	seq  uint64
	ctr  Counters
	mark marker
	reas reassembler
	rel  *reliability // nil when off

	in     ndn.LpPacket
	fields ndn.LpFields // of the packet being sent
	hdr    ndn.LpHeader
}

// New makes the link service of one face.
func New(cfg Config) *Link {
	cfg.defaults()
	l := &Link{cfg: cfg, seq: cfg.FirstSequence}
	return l
}

// Receive takes one frame. ok says that p now views a network packet: an
// Interest, Data or Nack with its fields. The view is of frame or of the
// link's own memory, and valid until the next call of Receive and while frame
// is. Not ok without an error is a fragment of a packet that is not complete,
// a repeated one, or a frame that only carried acknowledgements.
func (l *Link) Receive(now ndn.Time, frame []byte, p *ndn.Packet) (ok bool, err error) {
	return false, nil
}

// Send appends the frames of one network packet (for a Nack, the Interest)
// to out. It keeps neither wire nor f, and drops fields that the face may not
// send. A nil f means no fields. On an error nothing is appended.
func (l *Link) Send(now ndn.Time, wire []byte, f *ndn.LpFields, out *face.Frames) error {
	return nil
}

// Queue tells the length of the transport's outgoing queue in bytes, which
// decides on congestion marks. Drivers call it before a batch of packets.
func (l *Link) Queue(now ndn.Time, length int) {}

// Deadline is when Tick is to be called next, ndn.Never when nothing waits.
// It may change with each call of Receive, Send and Tick.
func (l *Link) Deadline() ndn.Time { return ndn.Never }

// Tick does what is due: drops incomplete packets that are too old, sends
// lost fragments again and acknowledgements that found no packet to ride on.
// It appends frames to out. Early calls do no harm.
func (l *Link) Tick(now ndn.Time, out *face.Frames) {}

// GaveUp takes the wire of one Interest that the reliability feature gave up
// on. Drivers ask after Tick, until ok is false, and tell the forwarder. wire
// is valid until the next call of a method.
func (l *Link) GaveUp() (wire []byte, ok bool) { return nil, false }

// SetMTU changes the MTU in bytes for the packets sent from now on.
func (l *Link) SetMTU(mtu int) {}

// MTU is the largest frame in bytes that is made.
func (l *Link) MTU() int { return l.cfg.MTU }

// SetLocalFields turns local fields on or off.
func (l *Link) SetLocalFields(on bool) { l.cfg.LocalFields = on }

// LocalFields reports whether local fields are on.
func (l *Link) LocalFields() bool { return l.cfg.LocalFields }

// Reliable reports whether the reliability feature is on.
func (l *Link) Reliable() bool { return l.rel != nil }

// Counters returns a copy of the counters.
func (l *Link) Counters() Counters { return l.ctr }

type marker struct{}
type reassembler struct{}
type reliability struct{}
