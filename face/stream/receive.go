package stream

import (
	"sync"

	"ndnpop/face"
	"ndnpop/ndn"
)

// A connection has a receive buffer from when the socket has something until
// all of that has been delivered. While it waits it keeps only what a frame
// that has not arrived whole needs, so that thousands of quiet connections,
// and such as were busy once, cost no memory for it.
const (
	bufferSize  = 128 << 10
	batchFrames = 256
)

// buffer is what one read fills.
type buffer struct {
	bytes  [bufferSize]byte
	frames [batchFrames][]byte // views of it
}

// begun is where the beginning of a frame waits for the rest.
type begun [ndn.MaxPacketSize]byte

// buffers recycles both for the connections of one listener. What is not used
// goes with the garbage.
type buffers struct{ whole, begun sync.Pool }

func (b *buffers) get() *buffer {
	if x, ok := b.whole.Get().(*buffer); ok {
		return x
	}
	return new(buffer)
}

func (b *buffers) getBegun() *begun {
	if x, ok := b.begun.Get().(*begun); ok {
		return x
	}
	return new(begun)
}

// inbox is the receiving side of a transport, used by Serve alone.
type inbox struct {
	pool *buffers
	buf  *buffer // nil while the connection waits
	rest *begun  // the beginning of a frame, while there is no buf
	have int     // bytes in buf or rest
	n    int     // of the latest read
	err  error
}

// take makes sure that there is a buffer, with what has arrived already at its
// beginning.
func (in *inbox) take() {
	if in.buf != nil {
		return
	}
	in.buf = in.pool.get()
	if in.rest != nil {
		copy(in.buf.bytes[:], in.rest[:in.have])
		in.pool.begun.Put(in.rest)
		in.rest = nil
	}
}

// release gives the buffer away before the connection waits.
func (in *inbox) release() {
	if in.buf == nil {
		return
	}
	if in.have > 0 {
		in.rest = in.pool.getBegun()
		copy(in.rest[:], in.buf.bytes[:in.have])
	}
	in.pool.whole.Put(in.buf)
	in.buf = nil
}

// deliver passes the whole frames that are there to r. Less than a frame
// remains, at the beginning of the buffer.
func (in *inbox) deliver(r face.Receiver) error {
	in.have += in.n
	b := in.buf.bytes[:in.have]
	used, err := deliver(b, in.buf.frames[:0], r)
	in.have = copy(b, b[used:])
	return err
}

// close gives everything back.
func (in *inbox) close() {
	in.have = 0
	in.release()
	if in.rest != nil {
		in.pool.begun.Put(in.rest)
		in.rest = nil
	}
}

func (t *Transport) receive(r face.Receiver) error {
	in := &t.in
	defer in.close()
	for {
		if err := t.read(); err != nil {
			return err
		}
		if err := in.deliver(r); err != nil {
			return err
		}
	}
}
