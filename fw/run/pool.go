package run

import (
	"sync"

	"ndnpop/face"
	"ndnpop/ndn"
)

// freelist is a bounded pool: what would exceed the bound is left to the
// garbage collector. Unlike sync.Pool it holds on to what it has, so that a
// busy forwarder allocates nothing.
type freelist[T any] struct {
	mu   sync.Mutex
	free []*T
	max  int
	make func() *T
}

func newFreelist[T any](max int, make func() *T) *freelist[T] {
	return &freelist[T]{max: max, make: make}
}

func (l *freelist[T]) get() *T {
	l.mu.Lock()
	if n := len(l.free); n > 0 {
		x := l.free[n-1]
		l.free[n-1] = nil
		l.free = l.free[:n-1]
		l.mu.Unlock()
		return x
	}
	l.mu.Unlock()
	return l.make()
}

func (l *freelist[T]) put(x *T) {
	l.mu.Lock()
	if len(l.free) < l.max {
		l.free = append(l.free, x)
	}
	l.mu.Unlock()
}

// Bounds of what is kept for reuse. Faces hold frames and batches only while
// they have something in them, so their number does not count.
const (
	maxFreeFrames  = 32
	maxFreeBatches = 16
	maxFramesKept  = 1 << 20 // bytes; larger buffers are not kept
)

func newFramesPool() *freelist[face.Frames] {
	return newFreelist(maxFreeFrames, func() *face.Frames { return new(face.Frames) })
}

// batch is what a receive goroutine works with between two flushes.
type batch struct {
	packets [batchSize]ndn.Packet
	touched []*netFace // that got something to send
	since   int        // packets since the last flush
	sent    int        // bytes of packets to be sent since then
}

// What may wait for a flush while more is at hand: enough for large messages to
// the kernel. With the batch that reaches it, all of the largest packets, the
// bytes fit into a buffer that is kept.
const (
	flushPackets = 2 * batchSize
	flushBytes   = 128 << 10
)

// batchSize is how many packets a shard is locked for at most. With fewer, the
// receivers of two busy faces wait for each other, and wake each other up, more
// often; with more nothing was gained.
const batchSize = 64

func newBatchPool() *freelist[batch] {
	return newFreelist(maxFreeBatches, func() *batch { return new(batch) })
}

// putFrames gives back a batch that was sent.
func (f *Forwarder) putFrames(b *face.Frames) {
	b.Reset()
	if cap(b.Buf) <= maxFramesKept {
		f.frames.put(b)
	}
}
