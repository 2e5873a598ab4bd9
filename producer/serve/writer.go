package serve

import (
	"sync/atomic"

	"ndnpop/face"
	"ndnpop/ndn"
)

const (
	// aside is how many packets have to wait for their digests for a writer to
	// be worth waking.
	aside = 4
	// batches is how many batches a writer may be behind.
	batches = 4
)

// batch is what is sent at once.
type batch struct {
	frames   face.Frames
	unsigned []span // packets that lack their digests
}

// span is a packet in Frames.Buf.
type span struct{ from, to int }

func (b *batch) reset() {
	b.frames.Reset()
	b.unsigned = b.unsigned[:0]
}

// send completes the packets of a batch and sends them.
func (b *batch) send(s face.Server) (dropped int) {
	packet := func(i int) []byte { return b.frames.Buf[b.unsigned[i].from:b.unsigned[i].to] }
	i := 0
	for ; i+1 < len(b.unsigned); i += 2 {
		ndn.FillDigests(packet(i), packet(i+1))
	}
	if i < len(b.unsigned) {
		ndn.FillDigest(packet(i))
	}
	return s.Send(&b.frames)
}

// writer hashes and sends on a goroutine of its own, in order, so that the
// next packets are read and built meanwhile. Whoever is faster than it waits.
type writer struct {
	server  face.Server
	dropped *atomic.Uint64
	work    chan *batch
	free    chan *batch
	behind  atomic.Int32 // batches that it has not sent yet
	done    chan struct{}
}

func newWriter(s face.Server, dropped *atomic.Uint64) *writer {
	w := &writer{
		server: s, dropped: dropped, done: make(chan struct{}),
		work: make(chan *batch, batches), free: make(chan *batch, batches),
	}
	for range batches {
		w.free <- new(batch)
	}
	go w.run()
	return w
}

func (w *writer) run() {
	defer close(w.done)
	for b := range w.work {
		w.dropped.Add(uint64(b.send(w.server)))
		b.reset()
		w.behind.Add(-1)
		w.free <- b
	}
}

// wants reports whether the writer should send b: when there is enough to do,
// or something that has to leave before it.
func (w *writer) wants(b *batch) bool { return len(b.unsigned) >= aside || w.behind.Load() > 0 }

// take sends what is in b, which becomes another, empty batch.
func (w *writer) take(b *batch) {
	mine := <-w.free
	*mine, *b = *b, *mine
	w.behind.Add(1)
	w.work <- mine
}

// close waits until all is sent.
func (w *writer) close() {
	close(w.work)
	<-w.done
}
