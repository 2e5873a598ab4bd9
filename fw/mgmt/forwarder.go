package mgmt

import (
	"ndnpop/fw/run"
	"ndnpop/ndn"
	"ndnpop/strategy"
)

// What the server needs of a forwarder; *run.Forwarder has all of it. All
// methods may be called from several goroutines.

// Faces is the face table.
type Faces interface {
	// Faces lists the faces by ascending id.
	Faces() []run.FaceInfo
	Face(id ndn.FaceID) (run.FaceInfo, bool)
	// CreateFace may wait for the peer. With run.ErrFaceExists it returns the
	// face that exists.
	CreateFace(spec run.FaceSpec) (run.FaceInfo, error)
	UpdateFace(id ndn.FaceID, u run.FaceUpdate) (run.FaceInfo, error)
	DestroyFace(id ndn.FaceID) error
	// Channels lists the listeners' URIs.
	Channels() []string
}

// RIB is the routing information base.
type RIB interface {
	AddRoute(r run.Route) error
	RemoveRoute(prefix ndn.Name, id ndn.FaceID, origin uint64) bool
	// Routes lists the routes in canonical order of prefixes.
	Routes() []run.Route
}

// FIB is the forwarding information base.
type FIB interface {
	SetNextHop(prefix ndn.Name, id ndn.FaceID, cost uint64) error
	RemoveNextHop(prefix ndn.Name, id ndn.FaceID) error
	FIB() []run.FibEntry
}

// Strategies is the strategy choice table.
type Strategies interface {
	// SetStrategy returns the full, versioned name of the strategy.
	SetStrategy(prefix, strategy ndn.Name) (ndn.Name, error)
	UnsetStrategy(prefix ndn.Name) error
	Strategies() []run.StrategyChoice
	// StrategyFactories lists what can be chosen, by name and version.
	StrategyFactories() []strategy.Factory
	// StrategyReport is what the strategy of a name, also returned, knows about
	// the name's next hops; ok is false when it has nothing to show.
	StrategyReport(name ndn.Name) (r strategy.Report, full ndn.Name, ok bool)
	// TraceStrategies makes t see decisions; nil turns it off. t must not block
	// or call the forwarder.
	TraceStrategies(t strategy.Tracer)
}

// ContentStore is the content store.
type ContentStore interface {
	CS() run.CSInfo
	ConfigureCS(c run.CSConfig) error
	// EraseCS erases at most limit Data under prefix and returns how many.
	EraseCS(prefix ndn.Name, limit int) int
}

// Internal is the forwarder's internal face and its clock.
type Internal interface {
	Now() ndn.Time
	// SendInternal sends a packet into the forwarder; false: its queue is full.
	SendInternal(wire []byte, f *ndn.LpFields) bool
}

// Totals are the numbers of status/general.
type Totals struct {
	NameTree, Fib, Pit, Measurements, Cs uint64 // entries

	InInterests, InData, InNacks    uint64
	OutInterests, OutData, OutNacks uint64
	Satisfied, Unsatisfied          uint64 // Interests

	Shards []run.ShardLoad
}

// Status tells the totals.
type Status interface {
	Totals() Totals
}

// Forwarder is what a server manages. All fields are required.
type Forwarder struct {
	Faces        Faces
	RIB          RIB
	FIB          FIB
	Strategies   Strategies
	ContentStore ContentStore
	Internal     Internal
	Status       Status
}
