package lp

import (
	"time"

	"ndnpop/ndn"
)

// Config of a link service. The zero value is a stream's: no fragmentation,
// no local fields, congestion marking as NFD's, no reliability.
type Config struct {
	// MTU is the largest frame in bytes; 0 means ndn.MaxPacketSize, which is
	// also the limit.
	MTU int
	// Fragment allows packets to be sent as several frames. Datagram faces
	// set it; peers on streams do not reassemble (NFD, ndnd).
	Fragment bool
	// LocalFields lets NextHopFaceId, CachePolicy and IncomingFaceId pass. A
	// forwarder turns it on for a local face whose application asked.
	LocalFields bool
	// Application marks an application's end of the link: IncomingFaceId from
	// the forwarder is passed up. A forwarder ignores it, as NFD does.
	Application bool
	// FirstSequence numbers the first fragment. Drivers choose it at random,
	// so that a restarted peer's fragments do not mix with its old ones.
	FirstSequence uint64

	Reassembly  Reassembly
	Marking     Marking
	Reliability Reliability
	Shaping     Shaping

	// Scratch, if set, is used instead of memory of the link's own.
	Scratch *Scratch
}

// Reassembly bounds what incomplete packets may hold.
type Reassembly struct {
	// Packets that may be incomplete at a time; the oldest makes room. 0
	// means 128. Each holds what has come, at most ndn.MaxPacketSize bytes, and
	// an index of its fragments.
	Packets int
	// Timeout of an incomplete packet, since its first fragment came. 0 means
	// 500 ms (NFD), and 3 s with reliability, whose retransmissions take
	// longer.
	Timeout time.Duration
}

// MaxFragments is the largest FragCount that is accepted or sent (NFD).
const MaxFragments = 400

// Marking sets when congestion of the outgoing queue is signalled on the
// packets sent (NFD's GenericLinkService, after CoDel, RFC 8289): when the
// queue has been over Threshold for Interval one packet is marked, and further
// ones at Interval/sqrt(n+1) until the queue is shorter again. On a link with
// reliability, which sees how long its frames take and hides what a full queue
// on their way drops, a queue there counts as well (queueDelay).
type Marking struct {
	Off       bool
	Threshold int           // bytes; 0 means 64 KiB
	Interval  time.Duration // 0 means 100 ms
}

// Reliability sets the NDNLPv2 reliability feature: each fragment carries a
// TxSequence, the peer acknowledges it, and what is lost is sent again. Both
// ends turn it on. Off in the zero value. Where the settings differ from
// NFD's they only change our own timing: the wire is NFD's.
type Reliability struct {
	On bool
	// Auto, where On is not set, turns the feature on once the peer shows that it
	// has it, by a TxSequence or an acknowledgement. Offer gives it an occasion:
	// until then the first frames, and later one each second, have a TxSequence,
	// which a peer without the feature ignores. Nothing waits for an answer.
	Auto, Offer bool
	// MaxRetx is how often one fragment is sent again before its packet is
	// given up. 0 means 3 (NFD).
	MaxRetx int
	// AckDelay is how long an acknowledgement waits for a packet to ride on.
	// 0 means 5 ms (NFD); below 0 there is no wait.
	AckDelay time.Duration
	// Window bounds the unacknowledged fragments; more wait in a queue. 0
	// means 4096, which only bounds memory.
	Window int
	// StopAndWait is a window of one fragment (Lien and Yu, APSCC 2008).
	StopAndWait bool
	// Queue bounds the packets that wait for the window. 0 means 50.
	Queue int
}

// HopByHop is reliability for links that lose a good part of what they carry,
// after Lien and Yu's Hop-by-Hop TCP (APSCC 2008): a packet is repaired on the
// link that lost it, up to five times, before anybody further away notices. A
// window of four fragments keeps the link busy while an acknowledgement is
// under way; theirs, one at a time, is StopAndWait. The consumers of such paths
// wait longer before they repeat anything (consumer.Config.HopByHop) and bound
// their windows.
func HopByHop() Reliability { return Reliability{On: true, MaxRetx: 5, Window: 4} }

// Counters count frames, packets, and each reason for a drop. They only grow.
type Counters struct {
	InFrames, OutFrames   uint64
	InBytes, OutBytes     uint64 // of frames
	InPackets, OutPackets uint64 // Interests, Data and Nacks passed up and sent

	InParse         uint64 // frames that are not NDNLPv2
	InNetParse      uint64 // fragments or reassembled packets that are not Interest or Data
	InFields        uint64 // header fields that their packet may not have, or local fields not enabled
	InOversize      uint64 // frames or reassembled packets over 8800 bytes
	InFragment      uint64 // fragments without Sequence, FragIndex >= FragCount, too many, or of another count
	InDuplicate     uint64 // fragments that had come before
	InReassemblyOld uint64 // incomplete packets dropped after the timeout
	InReassemblyMax uint64 // incomplete packets dropped to make room

	OutOversize uint64 // packets that fit into no frame, or need too many
	OutShed     uint64 // packets sent without optional fields, because only so they fitted
	OutMarked   uint64 // packets that got a congestion mark
	OutQueue    uint64 // packets dropped because the reliability queue was full
	OutAcks     uint64 // frames that carried nothing but acknowledgements

	OutShaped    uint64 // Interests that waited in the shaper
	OutShapeFull uint64 // Interests refused because its queue was full
	OutShapeLost uint64 // Interests that had waited and could not be sent then

	Retransmitted uint64 // fragments sent again
	Acked         uint64 // fragments acknowledged
	RetxExhausted uint64 // packets given up after MaxRetx
	AcksDropped   uint64 // acknowledgements dropped because too many waited
}

func (c *Config) defaults() {
	if c.MTU <= 0 || c.MTU > ndn.MaxPacketSize {
		c.MTU = ndn.MaxPacketSize
	}
	c.MTU = max(c.MTU, MinMTU)
	set(&c.Reassembly.Packets, 128)
	if c.Reliability.On {
		set(&c.Reassembly.Timeout, repairTime)
	}
	set(&c.Reassembly.Timeout, 500*time.Millisecond)
	set(&c.Marking.Threshold, 64<<10)
	set(&c.Marking.Interval, 100*time.Millisecond)
	r := &c.Reliability
	set(&r.MaxRetx, 3)
	if r.AckDelay == 0 {
		r.AckDelay = 5 * time.Millisecond
	}
	r.AckDelay = max(r.AckDelay, 0)
	if r.StopAndWait {
		r.Window = 1
	}
	set(&r.Window, maxUnacked)
	r.Window = min(r.Window, maxUnacked)
	set(&r.Queue, 50)
}

// set gives *v the default d if it is not positive.
func set[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// MinMTU is the smallest MTU in bytes (NFD's MIN_MTU).
const MinMTU = 64

// repairTime is how long the fragments of a packet may be apart on a reliable
// link.
const repairTime = 3 * time.Second

// maxUnacked bounds the fragments that await an acknowledgement.
const maxUnacked = 4096
