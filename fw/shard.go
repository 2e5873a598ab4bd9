package fw

import (
	"errors"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// Sender is how the shard sends.
type Sender interface {
	// Send queues one network packet for a face: an Interest, a Data or, with
	// f.IsNack, the Interest of a Nack. Both arguments are valid during the
	// call only. false says that it was refused: no such face, or queue full.
	// f.IncomingFace is always set; the link service sends it only where
	// local fields are enabled.
	Send(face ndn.FaceID, wire []byte, f *ndn.LpFields) bool
}

// ContentStoreFace is the IncomingFace of Data out of the content store (NFD:
// face::FACEID_CONTENT_STORE).
const ContentStoreFace ndn.FaceID = 254

// Errors of updates. Those of package table are returned as well.
var (
	ErrNoFace    = errors.New("fw: no such face")
	ErrNoChoice  = errors.New("fw: no strategy is set for this prefix")
	ErrFaceInUse = errors.New("fw: face exists already")
)

// FaceInfo is what the shard knows about a face.
type FaceInfo struct {
	ID ndn.FaceID
	// Local faces end on this host and may carry /localhost.
	Local bool
	// MultiAccess links have several peers: no Nack is sent there, and the
	// same Nonce again is a loop.
	MultiAccess bool
	// AdHoc links are multi-access links whose peers do not all hear one
	// another: packets may go back to where they came from.
	AdHoc bool
}

// Shard is one forwarding shard. It is not safe for concurrent use.
type Shard struct{}

// New returns a shard without faces and routes. The default strategy must be
// among the strategies.
func New(cfg Config, strategies *strategy.Set, out Sender) (*Shard, error) { panic("") }

// Receive takes one network packet from a face. p and what it points to are
// the caller's again afterwards.
func (s *Shard) Receive(now ndn.Time, in ndn.FaceID, p *ndn.Packet) {}

// GaveUp reports that the link service of a face could not deliver an
// Interest, given by its wire.
func (s *Shard) GaveUp(now ndn.Time, on ndn.FaceID, interest []byte) {}

// AddFace makes a face known. Ids are not used again.
func (s *Shard) AddFace(now ndn.Time, f FaceInfo) error { return nil }

// RemoveFace forgets a face: its routes and records go, and the strategies of
// Interests pending there hear of it.
func (s *Shard) RemoveFace(now ndn.Time, id ndn.FaceID) {}

// FaceDown marks a face down: nothing is sent there until FaceUp, and the
// strategies of Interests pending there hear of it.
func (s *Shard) FaceDown(now ndn.Time, id ndn.FaceID) {}

// FaceUp marks a face up again.
func (s *Shard) FaceUp(now ndn.Time, id ndn.FaceID) {}

// SetNextHop adds a next hop to a prefix, or changes its cost.
func (s *Shard) SetNextHop(now ndn.Time, prefix ndn.Name, face ndn.FaceID, cost uint64) error {
	return nil
}

// RemoveNextHop removes a next hop and reports whether it existed.
func (s *Shard) RemoveNextHop(now ndn.Time, prefix ndn.Name, face ndn.FaceID) bool { return false }

// EachRoute calls fn for every FIB entry until it returns false. fn must not
// change the shard.
func (s *Shard) EachRoute(fn func(*table.FibEntry) bool) {}

// SetStrategy chooses the strategy of a prefix by name, as NFD:
// /localhost/nfd/strategy/<name>[/v=<version>][/<param>~<value>…]. It returns
// the full name. Interests that are pending stay so.
func (s *Shard) SetStrategy(now ndn.Time, prefix, name ndn.Name) (ndn.Name, error) { return nil, nil }

// UnsetStrategy removes the choice of a prefix; ErrNoChoice if there is none.
// The choice of the empty prefix returns to the default strategy.
func (s *Shard) UnsetStrategy(now ndn.Time, prefix ndn.Name) error { return nil }

// EachStrategy calls fn for every strategy choice until it returns false.
func (s *Shard) EachStrategy(fn func(prefix, strategy ndn.Name) bool) {}

// SetTracer makes t see the decisions of all strategies; nil turns it off.
func (s *Shard) SetTracer(t strategy.Tracer) {}

// Deadline is when Tick should be called; ndn.Never without timers.
func (s *Shard) Deadline() ndn.Time { return ndn.Never }

// Tick fires the timers that are due.
func (s *Shard) Tick(now ndn.Time) {}

// Counters returns the counters and gauges.
func (s *Shard) Counters() Counters { return Counters{} }

// SetCS changes the content store's configuration. Data that no longer fit
// are evicted; a change of the policy empties the store.
func (s *Shard) SetCS(c table.CSConfig) error { return nil }

// CSInfo returns the content store's state.
func (s *Shard) CSInfo() table.CSInfo { return table.CSInfo{} }

// EraseCS erases Data under a prefix from the content store, at most limit (0:
// all), and returns how many.
func (s *Shard) EraseCS(prefix ndn.Name, limit int) int { return 0 }
