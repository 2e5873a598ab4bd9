package consumer

import (
	"errors"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/consumer/replica"
	"ndnpop/consumer/rtt"
	"ndnpop/ndn"
)

// Errors that end a fetch. What Err returns wraps one of them.
var (
	// ErrNoContent: the producer answered that the content does not exist.
	ErrNoContent = errors.New("no such content")
	// ErrUnreachable: nobody answered for as long as the retries allow.
	ErrUnreachable = errors.New("no answer")
	// ErrNoRoute: the network has no route to the content.
	ErrNoRoute = errors.New("no route")
	// ErrChanged: segments contradict what was known of the object, although
	// its version is the same.
	ErrChanged = errors.New("the object changed under the same name")
	// ErrMetadata: the metadata is malformed.
	ErrMetadata = errors.New("malformed metadata")
	// ErrRange: the wanted range does not exist in the object.
	ErrRange = errors.New("range not satisfiable")
)

// ErrLater is what Sink.Metadata returns when it cannot say yet whether the
// packet may be believed; Fetch.Verified says so later.
var ErrLater = errors.New("not verified yet")

// Config says what to fetch and how. DefaultConfig fills it with defaults;
// zero values of the fields below mean what is said there.
type Config struct {
	Name ndn.Name
	// NoDiscovery takes Name as the prefix of the segments. A name that ends
	// with a version component is not discovered either.
	NoDiscovery bool
	// Fresh asks for segments with MustBeFresh (discovery always does).
	Fresh bool
	Range Range

	// Lifetime of Interests; more when the timeout needs it. 0: 4 s.
	Lifetime time.Duration
	// Retries of one segment before the fetch gives up; it does not give up
	// before Retries lifetimes have passed since the segment was first asked
	// for, so that an outage shorter than that loses nothing. Negative: never
	// gives up.
	Retries int
	// RTT bounds the retransmission timeout.
	RTT rtt.Config
	// Rho is the reordering tolerance ρ of early loss detection as a share of
	// the RTT.
	Rho float64
	// NoEarlyLoss leaves loss detection to timeouts and Nacks, for paths that
	// repair losses hop by hop and reorder thereby.
	NoEarlyLoss bool
	// IgnoreMarks: congestion marks are counted and otherwise ignored.
	IgnoreMarks bool
	// PathTags asks forwarders to tell the path of each Data.
	PathTags bool
	// Pacing, in bytes of Data per second, replaces the controller's rate when
	// positive; MaxRate caps any rate.
	Pacing, MaxRate float64
	// ReorderBytes bounds the memory for segments that arrived before their
	// turn, and by it what may be in flight. 0: 24 MiB.
	ReorderBytes int
	// Replicas are further places that the content lies at, at most 7. Without
	// TwoLevel or MultiSource the first that tells of the object is used.
	Replicas []Replica
	// First is the number of the replica to begin with: 0, without a hint, or the
	// place in Replicas plus one.
	First int
	// TwoLevel, if not nil, leaves a replica whose path is heavily congested or
	// silent for another one (2LCCM).
	TwoLevel *replica.Config
	// MultiSource fetches from all replicas at once, with a controller for each,
	// in place of TwoLevel. NewController makes those of Replicas.
	MultiSource   bool
	NewController func() (cc.Controller, error)
	// Seed of the Nonces.
	Seed uint64
}

// Defaults of Config.
const (
	DefaultRetries      = 15 // ndn-tools
	DefaultRho          = 0.25
	defaultReorderBytes = 24 << 20
)

// DefaultConfig is the configuration that cat starts from.
func DefaultConfig(name ndn.Name) Config {
	return Config{Name: name, Retries: DefaultRetries, Rho: DefaultRho, PathTags: true}
}

// HopByHop suits a path whose links repair their own losses (lp.HopByHop):
// packets that are late or out of order are no sign of loss there, and a
// repetition end to end must outlast the repetitions on a link. The window
// should have a bound then (cc.Params.MaxCwnd): about what is in service on the
// path and two more, on h links that store and forward 2h+2.
func (c *Config) HopByHop() {
	c.NoEarlyLoss = true
	c.RTT.Min = max(c.RTT.Min, time.Second)
	c.RTT.Multiple = max(c.RTT.Multiple, 2)
}

func (c Config) withDefaults() Config {
	if c.Lifetime <= 0 {
		c.Lifetime = ndn.DefaultLifetime
	}
	if c.ReorderBytes <= 0 {
		c.ReorderBytes = defaultReorderBytes
	}
	if c.RTT.MaxBackoff <= 0 {
		// During an outage the path is probed at least once per lifetime.
		c.RTT.MaxBackoff = c.Lifetime
	}
	return c
}

// giveUpAfter is how long a segment is asked for before it can be given up.
func (c *Config) giveUpAfter() time.Duration {
	return time.Duration(c.Retries) * c.Lifetime
}

// Object is what is known of the content before its segments are asked for.
type Object struct {
	Name       ndn.Name // prefix of the segments, with the version if there is one
	Version    uint64   // valid if HasVersion
	HasVersion bool
	// SegmentSize is the payload of every segment but the last, 0 if unknown.
	SegmentSize uint64
	Size        uint64 // bytes, valid if HasSize
	HasSize     bool
	Final       uint64 // number of the last segment, valid if HasFinal
	HasFinal    bool
	// Sha256 of the whole content as the producer states it, nil if it does
	// not.
	Sha256 []byte
	// Manifest is the name of the roots of the signed manifest, without the
	// segment (package ndn/manifest), below Name; nil if the producer names none.
	Manifest ndn.Name
}

// Resume says where to go on with an interrupted fetch.
type Resume struct {
	Segment uint64 // first segment that is still needed
	Skip    uint64 // bytes of it and its successors that are there already
	Done    uint64 // bytes of the output that are there already
	// Final is the object's last segment, valid if HasFinal.
	Final    uint64
	HasFinal bool
}

// Piece is a part of the content in its turn. Its memory is valid during the
// call of Deliver only.
type Piece struct {
	// Wire is the whole Data packet, for verification; nil for the start of
	// the content that came with the metadata, which Sink.Metadata has seen.
	Wire    []byte
	Content []byte // what to write; may be empty
	// Head is the number of bytes of the packet's content before Content that
	// are not wanted.
	Head    int
	Segment uint64
	// Then is where a fetch would go on after this piece.
	Then Resume
}

// Sink takes what the fetch core produces. Its methods are called from within
// the core's.
type Sink interface {
	// Metadata is called with each metadata packet, and each segment that is
	// asked for only to learn sizes, before it is believed. ErrLater puts the
	// fetch off until Fetch.Verified, ErrWrong asks for the packet again for
	// some times, and another error ends it.
	Metadata(*ndn.Data) error
	// Object is called once, before the first Deliver, and says where to start
	// (the zero Resume for the beginning). An error ends the fetch.
	Object(*Object) (Resume, error)
	// Ready reports whether Deliver may be called. After a false the core
	// keeps what arrives within its bounds until Drain is called. The start of
	// the content that came with the metadata is delivered right after Object,
	// whatever Ready says.
	Ready() bool
	// Deliver takes the next piece of the content.
	Deliver(*Piece)
}
