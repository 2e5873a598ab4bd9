// Package cc is the congestion control of a receiver-driven fetch: what a
// controller is told, what it decides, and one file per algorithm.
//
// A controller is a plain state machine. The fetch core tells it what was
// sent, what arrived and what was lost, each with its time; it answers with a
// window and a pacing rate. It has no clock, and its randomness is seeded. One
// Interest brings back one Data, so a Data is both the acknowledgement and the
// delivered packet; windows count Data packets, rates count bytes of Data per
// second on the wire.
//
// Registration is explicit: a Registry is made of a list of Factories,
// Builtin or longer, and an unknown name fails with the list of known ones.
package cc

import (
	"time"

	"ndnpop/ndn"
)

// Controller decides how many Interests may be in flight and how fast they
// leave. Events are valid only during the call. A controller may implement
// PathChanger and Undoer too.
type Controller interface {
	// OnSend follows the transmission of an Interest.
	OnSend(*Send)
	// OnData follows the arrival of a Data for an Interest that was
	// outstanding, or declared lost and not yet repeated, on the controlled
	// path. The Data has left the flight already. Duplicates and Data of other
	// paths are not reported.
	OnData(*Sample)
	// OnLoss follows a transmission being declared lost. It has left the
	// flight already.
	OnLoss(*Loss)
	// OnMark precedes the OnData of a Data that carried a congestion mark, at
	// most once per window of data: marks of Interests that were sent before
	// the last reaction to a loss or mark are not reported here (they show in
	// Sample.Marked).
	OnMark(*Sample)
	// Cwnd is the window in packets, at least 1.
	Cwnd() float64
	// PacingRate is in bytes of Data per second; 0 means unpaced.
	PacingRate() float64
}

// PathChanger is a Controller that wants to know when the path changed under
// it: another replica, or another path tag became the one it controls.
type PathChanger interface {
	// OnPathChange precedes the first event of the new path.
	OnPathChange(*PathChange)
}

// Undoer is a Controller that can take back its answer to a loss.
type Undoer interface {
	// OnUndo follows the arrival of all that was taken for lost since the
	// latest Loss with NewEvent: late, but not lost. It precedes the OnData of the
	// last of them.
	OnUndo(now ndn.Time)
}

// Send is the transmission of an Interest.
type Send struct {
	Now      ndn.Time
	Tx       uint64 // transmission number, strictly increasing from 1
	Segment  uint64
	Retx     int // earlier transmissions of this segment
	Inflight int // packets in flight, this one included
}

// Sample is what the arrival of one Data tells.
type Sample struct {
	Now     ndn.Time
	Tx      uint64 // the segment's latest transmission
	HighTx  uint64 // the highest transmission number used so far
	Segment uint64
	// RTT is 0 when the segment was asked for more than once (Karn).
	RTT  time.Duration
	SRTT time.Duration // of the path, RTT included; 0 before the first sample
	// Size of this Data and its running mean, in bytes on the wire.
	Size     int
	MeanSize float64
	// Delivered is the count of bytes that the path has delivered so far.
	Delivered uint64
	// Rate is the delivery rate in bytes per second over the flight of this
	// packet, 0 when there is no valid sample. RateAppLimited says that it may
	// be low because there was nothing to ask for.
	Rate           float64
	RateAppLimited bool
	// RoundStart is set on the first Data of a new round trip counted in
	// deliveries; Round is its number.
	RoundStart bool
	Round      uint64
	// PriorInflight and Inflight are the packets in flight before and after.
	PriorInflight, Inflight int
	// CwndLimited: it was the window that stopped the last burst of Interests.
	CwndLimited bool
	// Losses since the previous Sample, and segments lost and not yet
	// received.
	Losses, Unrepaired int
	Marked             bool
	Tag                uint64 // path tag, 0 when unknown
}

// LossKind says how a loss was noticed.
type LossKind uint8

// Kinds of loss.
const (
	LossReorder    LossKind = iota + 1 // later transmissions were answered first
	LossTimeout                        // the retransmission timeout passed
	LossNack                           // the network refused the Interest (Congestion)
	LossLinkGiveUp                     // one-hop reliability ran out of retries
)

// String names the kind.
func (k LossKind) String() string {
	switch k {
	case LossReorder:
		return "reorder"
	case LossTimeout:
		return "timeout"
	case LossNack:
		return "nack"
	case LossLinkGiveUp:
		return "give-up"
	}
	return "unknown"
}

// Loss is one transmission declared lost.
type Loss struct {
	Now      ndn.Time
	Tx       uint64
	HighTx   uint64
	Segment  uint64
	Kind     LossKind
	Inflight int // packets in flight after it
	// NewEvent is set on the first loss of a window of data: the transmission
	// left after the last reaction to a loss or mark. Controllers that reduce
	// their window do so on these only (conservative window adaptation).
	NewEvent bool
	// Silent: it was a timeout, and nothing has come on the controlled path for as
	// long as a timeout is. All that is in flight is most likely lost as well.
	Silent bool
	// RTTNow is the latest RTT sample, 0 when there is none.
	RTTNow time.Duration
}

// PathChange is a new path under the controller.
type PathChange struct {
	Now ndn.Time
	// Tag is the path tag that is controlled from now on, 0 when unknown.
	Tag uint64
	// Rate in bytes per second known from earlier use of the path, 0 if none.
	Rate float64
	// RTT is the path's smallest known round-trip time, 0 if none.
	RTT time.Duration
	// Replica is set when the fetch goes on with another replica: nothing that
	// was learnt holds any more. Without it, another path tag is followed.
	Replica bool
	// Window in packets that Rate and RTT amount to, 0 if unknown.
	Window float64
}
