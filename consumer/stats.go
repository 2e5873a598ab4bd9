package consumer

import (
	"time"

	"ndnpop/ndn"
)

// Stats counts what a fetch did so far.
type Stats struct {
	Started, Now    ndn.Time // when the fetch began, and of the latest event
	FirstByte       ndn.Time // when the first content was delivered, 0 before
	Finished        ndn.Time // when the last was, or the fetch failed; 0 before
	Bytes           uint64   // content bytes delivered in order
	Segments        uint64   // segments received
	Inlined         uint64   // segments that need not be, as the metadata brought their content
	Interests       uint64   // sent in all
	Retransmissions uint64   // of them, repetitions
	Timeouts        uint64
	EarlyLosses     uint64 // losses noticed by the order of arrival
	Nacks           uint64
	Marks           uint64 // Data with a congestion mark
	WindowDecreases uint64 // reactions to congestion
	ReplicaSwitches uint64
	Races           uint64 // Interests for what was in flight on a slower replica
	PathChanges     uint64
	Late            uint64 // segments that were taken for lost and came by themselves
	Duplicates      uint64 // Data for segments that were there already
	Unsolicited     uint64 // Data and Nacks that answer nothing of ours
	Rejected        uint64 // Data that were wrong and asked for again
	MaxGap          time.Duration
	RTTMin, RTTAvg  time.Duration
	RTTMax          time.Duration
	// Cwnd, Inflight, RTO and SRTT are of now.
	Cwnd      float64
	Inflight  int
	RTO, SRTT time.Duration
	// ReorderBytes is the memory held for reordering.
	ReorderBytes int
}

// TraceKind is the kind of a TraceEvent, as it is written.
type TraceKind string

// Kinds of trace events.
const (
	TraceSend    TraceKind = "send"
	TraceData    TraceKind = "data"
	TraceMark    TraceKind = "mark"
	TraceLoss    TraceKind = "loss"
	TraceTimeout TraceKind = "timeout"
	TraceNack    TraceKind = "nack"
	TraceSwitch  TraceKind = "switch"
	TraceWindow  TraceKind = "window"
)

// TraceEvent is one event of a fetch. Fields that do not apply are zero.
type TraceEvent struct {
	Now     ndn.Time
	Kind    TraceKind
	Segment uint64
	Tx      uint64
	RTT     time.Duration // measured with this event
	SRTT    time.Duration
	RTTVar  time.Duration
	RTO     time.Duration
	Cwnd    float64 // packets, after the event
	Rate    float64 // pacing rate in bytes per second, 0: unpaced
	Tag     uint64  // path tag
	Replica int     // place in Config.Replicas plus one; 0: without a hint
}

// Tracer is told every event, in order. The event is valid during the call.
type Tracer interface {
	Trace(*TraceEvent)
}
