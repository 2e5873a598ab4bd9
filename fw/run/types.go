package run

import (
	"errors"
	"time"

	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/ndn"
)

// Face ids below FirstFaceID are reserved (NFD, FaceTable).
const (
	// InternalFace is the face behind which management answers.
	InternalFace ndn.FaceID = 1
	// FirstFaceID is the id of the first face that is not reserved.
	FirstFaceID ndn.FaceID = 256
)

// Errors of the control functions; those with details wrap them.
var (
	ErrNoFace        = errors.New("no such face")
	ErrFaceExists    = errors.New("a face to this remote exists already")
	ErrTooManyFaces  = errors.New("face table is full")
	ErrTooManyRoutes = errors.New("route table is full")
	ErrReservedFace  = errors.New("reserved face")
	ErrPersistency   = errors.New("persistency not possible for this face")
	ErrNotLocal      = errors.New("local fields are for faces of local scope only")
	ErrMTU           = errors.New("mtu out of bounds")
	ErrNameTooLong   = errors.New("name has too many components")
	ErrClosed        = errors.New("forwarder is closed")
	ErrMulticast     = errors.New("multicast faces are configured by interface, not created")
)

// FaceSpec asks for a face to be created.
type FaceSpec struct {
	URI         string           // remote, e.g. udp4://192.0.2.7:6363
	Persistency face.Persistency // persistent or permanent
	Name        string           // the configuration's name of it; may be empty
	MTU         int              // bytes; 0: the transport's own
	LocalFields bool             // allow the local link fields (local scope only)
	// Background lets CreateFace return before a permanent face has connected.
	Background bool
	Reliable   Reliability
	Shaping    lp.Shaping // of Interests
}

// Reliability is when a datagram face uses the NDNLPv2 reliability feature:
// acknowledgements and repetition on the link.
type Reliability uint8

// Choices of Reliability. Where it is on, the peer must have it on, too.
const (
	ReliabilityOff Reliability = iota
	ReliabilityOn
	// ReliabilityAuto uses it with a peer that shows that it has it, as one with
	// the same setting does; never with loopback addresses, where nothing is
	// lost, and with a peer that became a face on demand only once it was proven
	// (Allowance).
	ReliabilityAuto
)

// FaceUpdate changes a face. Nil fields stay as they are.
type FaceUpdate struct {
	Name        *string // the configuration's name of it
	Persistency *face.Persistency
	MTU         *int // bytes; 0: the transport's own
	LocalFields *bool
	Reliable    *Reliability
	Shaping     *lp.Shaping // of Interests; the zero value ends it
	// CongestionMarking turns marking on or off; CongestionThreshold (bytes)
	// and CongestionInterval are its parameters (NDNLPv2, "Congestion
	// Marking").
	CongestionMarking   *bool
	CongestionThreshold *int
	CongestionInterval  *time.Duration
}

// FaceInfo is a snapshot of a face.
type FaceInfo struct {
	face.Info
	ID          ndn.FaceID
	Name        string
	Persistency face.Persistency
	Up          bool
	// DownFor is how long it has been down, and DownWhy the latest reason: why
	// its transport ended or could not be opened. Both are zero while it is up.
	DownFor time.Duration
	DownWhy string
	// Proven is false for peers whose address may be forged: of a datagram
	// listener, before they have shown that they receive what is sent there.
	Proven bool
	MTU    int // bytes, in force now
	// ExpiresIn is what is left of the idle time of an on-demand face that
	// idleness destroys; 0 for others.
	ExpiresIn           time.Duration
	LocalFields         bool
	Reliable            bool // in use
	CongestionMarking   bool
	CongestionThreshold int
	CongestionInterval  time.Duration
	Counters            FaceCounters
}

// FaceCounters count since the face was created.
type FaceCounters struct {
	InInterests, InData, InNacks    uint64
	OutInterests, OutData, OutNacks uint64
	// InBytes and OutBytes count frames as the transport sees them.
	InFrames, InBytes   uint64
	OutFrames, OutBytes uint64
	Drops               FaceDrops
	CongestionMarks     uint64 // set on packets sent
	Retransmissions     uint64 // frames sent again by a reliable link
	QueueBytes          int    // waiting to be sent, now
}

// FaceDrops count what a face lost, by reason.
type FaceDrops struct {
	InMalformed  uint64 // frames that are no valid link packet or carry no valid packet
	InFragments  uint64 // fragments given up: lost peers, bounds, time
	OutQueue     uint64 // packets refused because the face's queue was full
	OutDown      uint64 // packets refused because the face was down
	OutOversize  uint64 // packets larger than the face can carry
	OutTransport uint64 // frames that the transport dropped
	OutBudget    uint64 // packets over the allowance of a peer that is not proven
	OutUnacked   uint64 // packets that a reliable link did not get across
}

// add adds what o counted.
func (c *FaceCounters) add(o *FaceCounters) {
	c.InInterests += o.InInterests
	c.InData += o.InData
	c.InNacks += o.InNacks
	c.OutInterests += o.OutInterests
	c.OutData += o.OutData
	c.OutNacks += o.OutNacks
	c.InFrames += o.InFrames
	c.InBytes += o.InBytes
	c.OutFrames += o.OutFrames
	c.OutBytes += o.OutBytes
	c.CongestionMarks += o.CongestionMarks
	c.Retransmissions += o.Retransmissions
	d, e := &c.Drops, &o.Drops
	d.InMalformed += e.InMalformed
	d.InFragments += e.InFragments
	d.OutQueue += e.OutQueue
	d.OutDown += e.OutDown
	d.OutOversize += e.OutOversize
	d.OutTransport += e.OutTransport
	d.OutBudget += e.OutBudget
	d.OutUnacked += e.OutUnacked
}

// Sum adds up counters; QueueBytes is left out.
func Sum(cs ...FaceCounters) (sum FaceCounters) {
	for i := range cs {
		sum.add(&cs[i])
	}
	return sum
}

// Route is one entry of the RIB, identified by prefix, face and origin.
type Route struct {
	Prefix       ndn.Name
	Face         ndn.FaceID
	Origin       uint64 // NFD's numbers: 0 app, 65 client, 128 nlsr, 255 static
	Cost         uint64
	ChildInherit bool     // longer prefixes inherit it
	Capture      bool     // its prefix inherits nothing from shorter ones
	Expires      ndn.Time // 0: never
}

// Origins of routes (NFD Management, RIB).
const (
	OriginApp       uint64 = 0
	OriginAutoreg   uint64 = 64
	OriginClient    uint64 = 65
	OriginAutoconf  uint64 = 66
	OriginPrefixAnn uint64 = 129
	OriginNLSR      uint64 = 128
	OriginStatic    uint64 = 255
)

// NextHop is one next hop of a FIB entry.
type NextHop struct {
	Face ndn.FaceID
	Cost uint64
}

// FibEntry is a copy of a FIB entry.
type FibEntry struct {
	Prefix   ndn.Name
	NextHops []NextHop
}

// StrategyChoice is the strategy of a prefix.
type StrategyChoice struct {
	Prefix   ndn.Name
	Strategy ndn.Name // versioned, with parameters
}

// CSInfo describes the content store.
type CSInfo struct {
	CapacityBytes uint64
	UsedBytes     uint64 // memory, with all overhead
	DataBytes     uint64 // of the packets held
	Entries       uint64
	Admit, Serve  bool
	Hits, Misses  uint64
	Inserts       uint64
	Evicted       uint64
	Policy        string
}

// CSConfig changes the content store. Nil fields stay as they are.
type CSConfig struct {
	CapacityBytes *uint64
	Admit, Serve  *bool
	Policy        *string // a change of it empties the store
}

// EventKind tells what happened.
type EventKind uint8

// Kinds of events. A face is created up, except one that has not reached its
// peer yet; it is destroyed without going down first.
const (
	FaceCreated EventKind = iota + 1
	FaceDestroyed
	FaceUp
	FaceDown
	RouteAdded   // or changed
	RouteRemoved // by command, by expiry or with its face
	ListenerDown // a listener ended by an error
	// FaceUnreachable: the first try to reach the peer of a permanent face that
	// is down has failed; others follow in silence.
	FaceUnreachable
	// PrefixAnnounced: a strategy wants the prefix announcement of a Data
	// learnt. Whether it is believed is the observer's to decide.
	PrefixAnnounced
	// ListenerFull: a listener refuses a peer because it, or the face table, has as
	// many faces as it may, for the first time in a while.
	ListenerFull
)

// String names the kind.
func (k EventKind) String() string {
	switch k {
	case FaceCreated:
		return "face created"
	case FaceDestroyed:
		return "face destroyed"
	case FaceUp:
		return "face up"
	case FaceDown:
		return "face down"
	case RouteAdded:
		return "route added"
	case RouteRemoved:
		return "route removed"
	case ListenerDown:
		return "listener down"
	case FaceUnreachable:
		return "face unreachable"
	case PrefixAnnounced:
		return "prefix announced"
	case ListenerFull:
		return "listener full"
	}
	return "unknown event"
}

// Announcement is a prefix announcement that came with a Data. The observer
// may keep it.
type Announcement struct {
	Face ndn.FaceID // that the Data came from
	Data ndn.Name   // of the Data
	Wire []byte     // the announcement: a Data packet, not verified
}

// Event is something that happened to a face, a route or a listener, or a
// prefix announcement.
type Event struct {
	Kind         EventKind
	Announcement Announcement // of PrefixAnnounced
	Face         FaceInfo     // of face events
	Route        Route        // of route events; Prefix is the observer's to keep
	Listener     string       // its URI, of events of listeners
	Err          error        // why, where there is a reason
}
