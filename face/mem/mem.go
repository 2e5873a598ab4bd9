// Package mem is an in-memory link: two transports, what one sends the other
// receives. Tests use it, and the forwarder for its internal face.
package mem

import (
	"fmt"
	"sync"
	"sync/atomic"

	"ndnpop/face"
	"ndnpop/ndn"
)

// DefaultQueue is how many bytes wait for a receiver, unless Options say
// otherwise.
const DefaultQueue = 4 << 20

// Options of a pair. The zero value is usable.
type Options struct {
	// A and B describe the two ends. Empty URIs become mem://N and mem://N+1
	// for a number of this process. The scope is local and Stream is set
	// unless Datagram is.
	A, B face.Info
	// Datagram makes a link that may lose and reorder for all its users know,
	// of the given MTU: frames get fragmented. It does neither itself.
	Datagram bool
	// MTU in bytes, at most and by default ndn.MaxPacketSize.
	MTU int
	// Queue bounds the bytes that wait for each end; 0 is DefaultQueue.
	Queue int
}

var pairs atomic.Uint64

// Pair makes the two ends of a link.
func Pair() (a, b face.Server) { return NewPair(Options{}) }

// NewPair makes the two ends of a link with options.
func NewPair(o Options) (a, b face.Server) {
	if o.MTU <= 0 || o.MTU > ndn.MaxPacketSize {
		o.MTU = ndn.MaxPacketSize
	}
	if o.Queue <= 0 {
		o.Queue = DefaultQueue
	}
	n := 2 * (pairs.Add(1) - 1)
	ea := &end{info: o.A, mtu: o.MTU, limit: o.Queue}
	eb := &end{info: o.B, mtu: o.MTU, limit: o.Queue}
	for i, e := range []*end{ea, eb} {
		e.wake.L = &e.mu
		e.info.Scope, e.info.Stream = face.ScopeLocal, !o.Datagram
		if e.info.LocalURI == "" {
			e.info.LocalURI = fmt.Sprintf("mem://%d", n+uint64(i))
		}
		if e.info.RemoteURI == "" {
			e.info.RemoteURI = fmt.Sprintf("mem://%d", n+1-uint64(i))
		}
	}
	ea.peer, eb.peer = eb, ea
	return ea, eb
}

// end is one end of a link. in holds what the peer sent and this end has not
// received yet.
type end struct {
	info  face.Info
	mtu   int
	limit int
	peer  *end

	mu   sync.Mutex
	wake sync.Cond
	in   face.Frames
	err  error // why the end is closed; nil while it lives
}

func (e *end) Info() face.Info { return e.info }
func (e *end) MTU() int        { return e.mtu }

// Send puts the frames into the peer's queue.
func (e *end) Send(b *face.Frames) (dropped int) {
	p := e.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return b.Len()
	}
	was := p.in.Len()
	for i := range b.Len() {
		f := b.Frame(i)
		if len(f) > e.mtu || len(p.in.Buf)+len(f) > p.limit {
			dropped++
			continue
		}
		p.in.Buf = append(p.in.Buf, f...)
		p.in.End()
	}
	if was == 0 && p.in.Len() > 0 {
		p.wake.Signal()
	}
	return dropped
}

// QueueLen is what the peer has not taken yet.
func (e *end) QueueLen() int {
	e.peer.mu.Lock()
	defer e.peer.mu.Unlock()
	return len(e.peer.in.Buf)
}

func (e *end) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
		e.wake.Broadcast()
	}
}

// Close ends both ends: the peer still receives what was sent, and then
// face.ErrPeerClosed.
func (e *end) Close() error {
	e.fail(face.ErrClosed)
	e.peer.fail(face.ErrPeerClosed)
	return nil
}

// Serve receives until one end closes.
func (e *end) Serve(r face.Receiver) error {
	var batch face.Frames
	var frames [][]byte
	for {
		e.mu.Lock()
		for e.in.Len() == 0 && e.err == nil {
			e.wake.Wait()
		}
		err := e.err
		if err == face.ErrClosed || e.in.Len() == 0 {
			e.mu.Unlock()
			r.Closed(err)
			return err
		}
		e.in, batch = batch, e.in
		e.mu.Unlock()

		frames = frames[:0]
		for i := range batch.Len() {
			frames = append(frames, batch.Frame(i))
		}
		r.Receive(frames)
		r.Flush()
		clear(frames)
		batch.Reset()
	}
}
