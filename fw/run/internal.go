package run

import (
	"fmt"
	"sync"

	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/face/mem"
	"ndnpop/ndn"
)

// internalURI names both ends of the internal face (NFD).
const internalURI = "internal://"

// internalEnd is the far end of the internal face: where management sits.
type internalEnd struct {
	tr face.Server

	mu   sync.Mutex // of the link and what follows
	link *lp.Link
	now  func() ndn.Time
	out  face.Frames
	in   ndn.Packet
	h    func(now ndn.Time, p *ndn.Packet)
}

// startInternal makes the internal face, permanent as NFD's.
func (f *Forwarder) startInternal() error {
	info := face.Info{RemoteURI: internalURI, LocalURI: internalURI}
	a, b := mem.NewPair(mem.Options{A: info, B: info})
	if _, err := f.attachFace(a, newFace{id: InternalFace, localFields: true, persistency: face.PersistencyPermanent}); err != nil {
		return fmt.Errorf("run: internal face: %w", err)
	}
	f.internal = &internalEnd{tr: b, now: f.clock.now,
		link: lp.New(lp.Config{Application: true, LocalFields: true, Marking: lp.Marking{Off: true}})}
	f.wg.Go(func() { _ = b.Serve(f.internal) })
	return nil
}

// HandleInternal makes h the receiver of what the forwarder sends to the
// internal face: Interests under the prefixes routed there, with
// p.IncomingFace set. h runs on one goroutine; p is a view valid during the
// call. h answers with SendInternal, during the call or later. Before
// HandleInternal, and with nil, Interests there stay unanswered.
func (f *Forwarder) HandleInternal(h func(now ndn.Time, p *ndn.Packet)) {
	f.internal.mu.Lock()
	f.internal.h = h
	f.internal.mu.Unlock()
}

// SendInternal sends a packet from the internal face into the forwarder. The
// slices are the caller's again when it returns. It may be called from any
// goroutine; false means that the queue is full, or that the packet is too
// large.
func (f *Forwarder) SendInternal(wire []byte, fields *ndn.LpFields) bool {
	e := f.internal
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out.Reset()
	if e.link.Send(e.now(), wire, fields, &e.out) != nil {
		return false
	}
	return e.tr.Send(&e.out) == 0
}

// Receive implements face.Receiver.
func (e *internalEnd) Receive(frames [][]byte) {
	for _, frame := range frames {
		now := e.now()
		e.mu.Lock()
		h := e.h
		ok, _ := e.link.Receive(now, frame, &e.in)
		e.mu.Unlock()
		// The view is this goroutine's: streams reassemble nothing.
		if ok && h != nil {
			h(now, &e.in)
		}
	}
}

// Flush implements face.Receiver.
func (e *internalEnd) Flush() {}

// Closed implements face.Receiver.
func (e *internalEnd) Closed(error) {}
