package stream

import (
	"fmt"
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
	met  bool    // the peer speaks NDN
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
	if !in.met {
		var foreign bool
		if in.met, foreign = greeting(b); foreign {
			return errForeign
		}
		if !in.met {
			return nil
		}
	}
	used, err := deliver(b, in.buf.frames[:0], r)
	in.have = copy(b, b[used:])
	return err
}

var errForeign = fmt.Errorf("%w: it does not begin as NDN does", face.ErrFraming)

// greetingSize is how many bytes tell NDN from text: in a link packet no more
// than a PIT token of 32 bytes comes before the type of another element. Browsers
// have said the host's name and more of their own by then.
const greetingSize = 40

// greeting looks at the first bytes of a stream. They tell NDN, or what is not;
// neither says that there are too few.
//
// A web page may have a browser on this host connect to any port, and choose much
// of what is sent: the text of an HTTP request, too, is a sequence of elements,
// and behind it a command could follow, from a face of local scope. So a stream
// begins with an Interest, a Data or a link packet, whose type is a letter: there
// is always another byte than of text near its beginning.
func greeting(b []byte) (known, foreign bool) {
	if len(b) == 0 {
		return false, false
	}
	switch uint32(b[0]) {
	case ndn.TypeInterest, ndn.TypeData:
		return true, false
	case ndn.TypeLpPacket:
	default:
		return false, true
	}
	b = b[:min(len(b), greetingSize)]
	for _, c := range b[1:] {
		if c >= 0x7f || c < ' ' && c != '\t' && c != '\r' && c != '\n' {
			return true, false
		}
	}
	return false, len(b) == greetingSize
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
