package ndn

import (
	"encoding/binary"
)

// FaceID identifies a face of one forwarder. Zero is no face; ids below 256
// are reserved (NFD).
type FaceID uint64

// NDNLPv2 field types. Challenge, Response, PathTag and ReplicaSelect are this
// project's, in the range that peers ignore when they do not know a field.
const (
	TypeLpPacket        uint32 = 0x64
	TypeLpFragment      uint32 = 0x50
	TypeLpSequence      uint32 = 0x51
	TypeLpFragIndex     uint32 = 0x52
	TypeLpFragCount     uint32 = 0x53
	TypeLpPitToken      uint32 = 0x62
	TypeLpNack          uint32 = 0x320
	TypeLpNackReason    uint32 = 0x321
	TypeLpIncomingFace  uint32 = 0x32c
	TypeLpNextHopFace   uint32 = 0x330
	TypeLpCachePolicy   uint32 = 0x334
	TypeLpCacheType     uint32 = 0x335
	TypeLpCongestion    uint32 = 0x340
	TypeLpAck           uint32 = 0x344
	TypeLpTxSequence    uint32 = 0x348
	TypeLpNonDiscovery  uint32 = 0x34c
	TypeLpAnnouncement  uint32 = 0x350
	TypeLpChallenge     uint32 = 944
	TypeLpResponse      uint32 = 948
	TypeLpPathTag       uint32 = 952
	TypeLpReplicaSelect uint32 = 956
)

// NackReason says why an Interest was not forwarded. Higher is more severe.
type NackReason uint64

// Nack reasons (NDNLPv2, "Network Nack"). NackNone stands for a Nack without
// a reason, and for an unknown one.
const (
	NackNone       NackReason = 0
	NackCongestion NackReason = 50
	NackDuplicate  NackReason = 100
	NackNoRoute    NackReason = 150
)

// String names the reason as NFD does.
func (r NackReason) String() string {
	switch r {
	case NackCongestion:
		return "Congestion"
	case NackDuplicate:
		return "Duplicate"
	case NackNoRoute:
		return "NoRoute"
	}
	return "None"
}

// Severity orders reasons from the least severe: Congestion, Duplicate,
// NoRoute, and last a Nack without a known reason (ndn-cxx,
// isLessSevere).
func (r NackReason) Severity() int {
	if r == NackNone {
		return 1 << 30
	}
	return int(r)
}

// PathTag tells which source and path a Data came from (field 952). On an
// Interest only its presence counts.
type PathTag struct {
	Tag   uint64
	Hops  uint8
	Flags uint8 // PathFromCache
}

// PathFromCache is set in PathTag.Flags when the tag began at a content store.
const PathFromCache uint8 = 1

// LpFields are the link header fields that travel with one network packet,
// as opposed to those that serve the link alone. Slices are views.
type LpFields struct {
	PitToken         []byte // 1 to 32 bytes; nil when absent
	Announcement     []byte // a whole Data element; nil when absent
	IncomingFace     FaceID // 0 when absent
	NextHopFace      FaceID // valid if HasNextHopFace
	CongestionMark   uint64 // 0 when absent
	ReplicaSelect    uint64 // valid if HasReplicaSelect
	PathTag          PathTag
	HasNextHopFace   bool
	HasPathTag       bool
	HasReplicaSelect bool
	NoCache          bool // CachePolicy NoCache
	NonDiscovery     bool
	IsNack           bool
	NackReason       NackReason
}

// LpPacket is a view of a link packet: an LpPacket element, or a bare
// Interest or Data, which has no fields and is its own fragment.
type LpPacket struct {
	LpFields
	Fragment   []byte // nil when there is none (an idle packet)
	Sequence   uint64
	TxSequence uint64
	FragIndex  uint64
	FragCount  uint64 // 1 when absent
	// Challenge is a number that the peer wants to see in the Response of a
	// frame sent to it, which shows that frames reach the address they come
	// from. They serve the link alone.
	Challenge    uint64 // valid if HasChallenge
	Response     uint64 // valid if HasResponse
	HasSequence  bool
	HasTx        bool
	HasChallenge bool
	HasResponse  bool
	acks         []byte // consecutive Ack elements
}

const lpIgnoreMin, lpIgnoreMax = 800, 959

// Parse makes p a view of wire, which must hold exactly one LpPacket,
// Interest or Data. The fragment is not looked into.
func (p *LpPacket) Parse(wire []byte) error {
	*p = LpPacket{}
	p.FragCount = 1
	t, l, h, err := ReadTL(wire)
	switch {
	case err != nil:
		return err
	case h+l != len(wire):
		return ErrTrailing
	case t == TypeInterest || t == TypeData:
		p.Fragment = wire
		return nil
	case t != TypeLpPacket:
		return ErrType
	}
	last := uint32(0)
	for b := wire[h:]; len(b) > 0; {
		t, l, h, err := ReadTL(b)
		if err != nil {
			return err
		}
		v, el := b[h:h+l:h+l], b[:h+l]
		b = b[h+l:]
		if t == TypeLpFragment {
			// The fragment ends the packet.
			if len(b) > 0 {
				return ErrLpOrder
			}
			if l > 0 {
				p.Fragment = v
			}
			return nil
		}
		if t < last || (t == last && t != TypeLpAck) {
			return ErrLpOrder
		}
		last = t
		if err := p.field(t, v, el); err != nil {
			return err
		}
	}
	return nil
}

func (p *LpPacket) field(t uint32, v, el []byte) (err error) {
	switch t {
	case TypeLpSequence:
		p.HasSequence = true
		p.Sequence, err = parse8(v)
	case TypeLpFragIndex:
		p.FragIndex, err = ParseNat(v)
	case TypeLpFragCount:
		p.FragCount, err = ParseNat(v)
	case TypeLpPitToken:
		if len(v) < 1 || len(v) > 32 {
			return ErrLength
		}
		p.PitToken = v
	case TypeLpNack:
		p.IsNack = true
		return p.parseNack(v)
	case TypeLpIncomingFace:
		var n uint64
		n, err = ParseNat(v)
		p.IncomingFace = FaceID(n)
	case TypeLpNextHopFace:
		var n uint64
		n, err = ParseNat(v)
		p.NextHopFace, p.HasNextHopFace = FaceID(n), true
	case TypeLpCachePolicy:
		return p.parseCachePolicy(v)
	case TypeLpCongestion:
		p.CongestionMark, err = ParseNat(v)
	case TypeLpAck:
		if len(v) != 8 {
			return ErrLength
		}
		if p.acks == nil {
			p.acks = el
		} else {
			p.acks = p.acks[:len(p.acks)+len(el)]
		}
	case TypeLpTxSequence:
		p.HasTx = true
		p.TxSequence, err = parse8(v)
	case TypeLpNonDiscovery:
		if len(v) != 0 {
			return ErrLength
		}
		p.NonDiscovery = true
	case TypeLpAnnouncement:
		p.Announcement = v
	case TypeLpChallenge:
		p.HasChallenge = true
		p.Challenge, err = parse8(v)
	case TypeLpResponse:
		p.HasResponse = true
		p.Response, err = parse8(v)
	case TypeLpPathTag:
		p.HasPathTag = true
		switch len(v) {
		case 0:
		case 10:
			p.PathTag = PathTag{binary.BigEndian.Uint64(v), v[8], v[9]}
		default:
			return ErrLength
		}
	case TypeLpReplicaSelect:
		p.HasReplicaSelect = true
		p.ReplicaSelect, err = ParseNat(v)
	default:
		if t < lpIgnoreMin || t > lpIgnoreMax || t&3 != 0 {
			return ErrLpField
		}
	}
	return err
}

func parse8(v []byte) (uint64, error) {
	if len(v) != 8 {
		return 0, ErrLength
	}
	return binary.BigEndian.Uint64(v), nil
}

func (p *LpPacket) parseNack(v []byte) error {
	for len(v) > 0 {
		e, rest, err := NextElement(v)
		if err != nil {
			return err
		}
		if e.Type == TypeLpNackReason {
			n, err := ParseNat(e.Value)
			if err != nil {
				return err
			}
			switch r := NackReason(n); r {
			case NackCongestion, NackDuplicate, NackNoRoute:
				p.NackReason = r
			}
		}
		v = rest
	}
	return nil
}

func (p *LpPacket) parseCachePolicy(v []byte) error {
	for len(v) > 0 {
		e, rest, err := NextElement(v)
		if err != nil {
			return err
		}
		if e.Type == TypeLpCacheType {
			n, err := ParseNat(e.Value)
			if err != nil {
				return err
			}
			p.NoCache = n == 1
		}
		v = rest
	}
	return nil
}

// HasAcks reports whether the packet carries acknowledgements.
func (p *LpPacket) HasAcks() bool { return len(p.acks) > 0 }

// NextAck takes the next acknowledged TxSequence off the packet.
func (p *LpPacket) NextAck() (tx uint64, ok bool) {
	if len(p.acks) == 0 {
		return 0, false
	}
	e, rest, err := NextElement(p.acks)
	if err != nil {
		return 0, false
	}
	p.acks = rest
	return binary.BigEndian.Uint64(e.Value), true
}

// LpHeader is what to encode before a fragment.
type LpHeader struct {
	*LpFields          // nil: none
	Sequence    uint64 // if HasSequence
	TxSequence  uint64 // if HasTx
	FragIndex   uint64 // if FragCount > 1
	FragCount   uint64 // 0 and 1 are not encoded
	HasSequence bool
	HasTx       bool
	Acks        []uint64
	// As in LpPacket.
	Challenge    uint64 // if HasChallenge
	Response     uint64 // if HasResponse
	HasChallenge bool
	HasResponse  bool
}

// Size is the number of bytes of the encoded header fields, without the type
// and length of the LpPacket and of the fragment.
func (h *LpHeader) Size() int {
	n := 12 * len(h.Acks)
	if h.HasSequence {
		n += 10
	}
	if h.FragCount > 1 {
		n += 4 + NatSize(h.FragIndex) + NatSize(h.FragCount)
	}
	if h.HasTx {
		n += 12
	}
	if h.HasChallenge {
		n += 12
	}
	if h.HasResponse {
		n += 12
	}
	if h.LpFields != nil {
		n += h.LpFields.Size()
	}
	return n
}

// Size is the number of bytes of the encoded fields.
func (f *LpFields) Size() int {
	n := 0
	if len(f.PitToken) > 0 {
		n += 2 + len(f.PitToken)
	}
	if f.IsNack {
		n += 4
		if f.NackReason != NackNone {
			n += 4 + NatSize(uint64(f.NackReason))
		}
	}
	if f.IncomingFace != 0 {
		n += 4 + NatSize(uint64(f.IncomingFace))
	}
	if f.HasNextHopFace {
		n += 4 + NatSize(uint64(f.NextHopFace))
	}
	if f.NoCache {
		n += 4 + 4 + 1
	}
	if f.CongestionMark != 0 {
		n += 4 + NatSize(f.CongestionMark)
	}
	if f.NonDiscovery {
		n += 4
	}
	if f.Announcement != nil {
		n += TLVSize(TypeLpAnnouncement, len(f.Announcement))
	}
	if f.HasPathTag {
		n += 4
		if f.PathTag != (PathTag{}) {
			n += 10
		}
	}
	if f.HasReplicaSelect {
		n += 4 + NatSize(f.ReplicaSelect)
	}
	return n
}

// LpPacketSize is the number of bytes of a link packet with this header and a
// fragment of n bytes. Without header fields a whole packet is sent bare.
func LpPacketSize(h *LpHeader, n int) int {
	s := h.Size()
	if s == 0 && n > 0 {
		return n
	}
	if n > 0 {
		s += TLVSize(TypeLpFragment, n)
	}
	return TLVSize(TypeLpPacket, s)
}

// AppendLpPacket appends a link packet. A whole network packet without header
// fields is appended bare.
func AppendLpPacket(b []byte, h *LpHeader, fragment []byte) []byte {
	s := h.Size()
	if s == 0 && len(fragment) > 0 {
		return append(b, fragment...)
	}
	if len(fragment) > 0 {
		s += TLVSize(TypeLpFragment, len(fragment))
	}
	b = AppendTL(b, TypeLpPacket, s)
	if h.HasSequence {
		b = binary.BigEndian.AppendUint64(append(b, byte(TypeLpSequence), 8), h.Sequence)
	}
	if h.FragCount > 1 {
		b = AppendNatTLV(b, TypeLpFragIndex, h.FragIndex)
		b = AppendNatTLV(b, TypeLpFragCount, h.FragCount)
	}
	f := h.LpFields
	if f == nil {
		f = &LpFields{}
	}
	if len(f.PitToken) > 0 {
		b = AppendTLV(b, TypeLpPitToken, f.PitToken)
	}
	if f.IsNack {
		if f.NackReason == NackNone {
			b = AppendTL(b, TypeLpNack, 0)
		} else {
			b = AppendTL(b, TypeLpNack, 4+NatSize(uint64(f.NackReason)))
			b = AppendNatTLV(b, TypeLpNackReason, uint64(f.NackReason))
		}
	}
	if f.IncomingFace != 0 {
		b = AppendNatTLV(b, TypeLpIncomingFace, uint64(f.IncomingFace))
	}
	if f.HasNextHopFace {
		b = AppendNatTLV(b, TypeLpNextHopFace, uint64(f.NextHopFace))
	}
	if f.NoCache {
		b = AppendTL(b, TypeLpCachePolicy, 5)
		b = AppendNatTLV(b, TypeLpCacheType, 1)
	}
	if f.CongestionMark != 0 {
		b = AppendNatTLV(b, TypeLpCongestion, f.CongestionMark)
	}
	for _, a := range h.Acks {
		b = binary.BigEndian.AppendUint64(AppendTL(b, TypeLpAck, 8), a)
	}
	if h.HasTx {
		b = binary.BigEndian.AppendUint64(AppendTL(b, TypeLpTxSequence, 8), h.TxSequence)
	}
	if f.NonDiscovery {
		b = AppendTL(b, TypeLpNonDiscovery, 0)
	}
	if f.Announcement != nil {
		b = AppendTLV(b, TypeLpAnnouncement, f.Announcement)
	}
	if h.HasChallenge {
		b = binary.BigEndian.AppendUint64(AppendTL(b, TypeLpChallenge, 8), h.Challenge)
	}
	if h.HasResponse {
		b = binary.BigEndian.AppendUint64(AppendTL(b, TypeLpResponse, 8), h.Response)
	}
	if f.HasPathTag {
		if f.PathTag == (PathTag{}) {
			b = AppendTL(b, TypeLpPathTag, 0)
		} else {
			b = binary.BigEndian.AppendUint64(AppendTL(b, TypeLpPathTag, 10), f.PathTag.Tag)
			b = append(b, f.PathTag.Hops, f.PathTag.Flags)
		}
	}
	if f.HasReplicaSelect {
		b = AppendNatTLV(b, TypeLpReplicaSelect, f.ReplicaSelect)
	}
	if len(fragment) > 0 {
		b = AppendTLV(b, TypeLpFragment, fragment)
	}
	return b
}
