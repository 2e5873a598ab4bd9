package run

import (
	"ndnpop/ndn"
)

// Now is the forwarder's clock.
func (f *Forwarder) Now() ndn.Time { return 0 }

// Faces lists the faces by ascending id.
func (f *Forwarder) Faces() []FaceInfo { return nil }

// Face returns one face.
func (f *Forwarder) Face(id ndn.FaceID) (FaceInfo, bool) { return FaceInfo{}, false }

// FaceByURI returns the face whose canonical remote URI this is.
func (f *Forwarder) FaceByURI(remote string) (FaceInfo, bool) { return FaceInfo{}, false }

// CreateFace makes a face to spec.URI. When one exists it returns that one
// with ErrFaceExists. A permanent face is created even when the peer cannot
// be reached now.
func (f *Forwarder) CreateFace(spec FaceSpec) (FaceInfo, error) { return FaceInfo{}, ErrClosed }

// UpdateFace changes a face and returns how it is now.
func (f *Forwarder) UpdateFace(id ndn.FaceID, u FaceUpdate) (FaceInfo, error) {
	return FaceInfo{}, ErrClosed
}

// DestroyFace ends a face; its routes and next hops go with it.
func (f *Forwarder) DestroyFace(id ndn.FaceID) error { return ErrClosed }

// Channels lists the URIs of the listeners, in the order they were started.
func (f *Forwarder) Channels() []string { return nil }

// AddRoute adds a route, or changes the one with the same prefix, face and
// origin. It keeps no slice of r.
func (f *Forwarder) AddRoute(r Route) error { return ErrClosed }

// RemoveRoute removes a route and reports whether there was one.
func (f *Forwarder) RemoveRoute(prefix ndn.Name, id ndn.FaceID, origin uint64) bool { return false }

// Routes lists the RIB in canonical order of prefixes, then by face and
// origin.
func (f *Forwarder) Routes() []Route { return nil }

// SetNextHop sets a next hop of the FIB beside the RIB (NFD: fib/add-nexthop).
// The next change of a route to the same face and prefix overrides it.
func (f *Forwarder) SetNextHop(prefix ndn.Name, id ndn.FaceID, cost uint64) error { return ErrClosed }

// RemoveNextHop removes a next hop of the FIB, wherever it came from.
func (f *Forwarder) RemoveNextHop(prefix ndn.Name, id ndn.FaceID) error { return ErrClosed }

// FIB lists the FIB in canonical order.
func (f *Forwarder) FIB() []FibEntry { return nil }

// SetStrategy chooses the strategy of a prefix and returns its full,
// versioned name. An unknown strategy or parameter is an error that lists the
// choices.
func (f *Forwarder) SetStrategy(prefix, strategy ndn.Name) (ndn.Name, error) { return nil, ErrClosed }

// UnsetStrategy makes a prefix inherit its strategy again. The root's cannot
// be unset.
func (f *Forwarder) UnsetStrategy(prefix ndn.Name) error { return ErrClosed }

// Strategies lists the strategy choices in canonical order.
func (f *Forwarder) Strategies() []StrategyChoice { return nil }

// CS describes the content store.
func (f *Forwarder) CS() CSInfo { return CSInfo{} }

// ConfigureCS changes the content store.
func (f *Forwarder) ConfigureCS(c CSConfig) error { return ErrClosed }

// EraseCS erases at most limit Data under prefix and returns how many.
func (f *Forwarder) EraseCS(prefix ndn.Name, limit int) int { return 0 }

// Observe calls fn for every event from now on, one at a time and in order,
// on the goroutine that caused it. fn must not block and must not call the
// forwarder. cancel ends it.
func (f *Forwarder) Observe(fn func(Event)) (cancel func()) { return func() {} }

// HandleInternal makes h the receiver of what the forwarder sends to the
// internal face: Interests under the prefixes routed there, with
// p.IncomingFace set. h runs on one goroutine; p is a view valid during the
// call. h answers with SendInternal, during the call or later.
func (f *Forwarder) HandleInternal(h func(now ndn.Time, p *ndn.Packet)) {}

// SendInternal sends a packet from the internal face into the forwarder. The
// slices are the caller's again when it returns. It may be called from any
// goroutine; false means that the queue is full.
func (f *Forwarder) SendInternal(wire []byte, fields *ndn.LpFields) bool { return false }
