// Package face is the forwarder's and the applications' side of links: what a
// transport is and what it promises. The transports are in its
// subpackages (udp, tcp, unix, mem), the NDNLPv2 link service, which has no
// I/O, in lp, and the choice of a transport by URI in dial.
package face

import "errors"

// Errors that end a transport. Receiver.Closed gets one that Is one of these
// or wraps the operating system's own.
var (
	// ErrClosed: closed from our side.
	ErrClosed = errors.New("face: closed")
	// ErrPeerClosed: the peer closed the stream.
	ErrPeerClosed = errors.New("face: closed by the peer")
	// ErrRefused: an ICMP error or a reset says that nobody listens there.
	ErrRefused = errors.New("face: refused by the peer's host")
	// ErrFraming: a stream carried what is not a packet of at most
	// ndn.MaxPacketSize bytes, and cannot be re-synchronised.
	ErrFraming = errors.New("face: malformed stream")
)

// Scope of a face (NFD: FaceScope). Local faces end on this host.
type Scope uint8

// Scopes, with NFD's numbers.
const (
	ScopeNonLocal Scope = 0
	ScopeLocal    Scope = 1
)

// LinkType of a face (NFD: LinkType).
type LinkType uint8

// Link types, with NFD's numbers.
const (
	LinkPointToPoint LinkType = 0
	LinkMultiAccess  LinkType = 1
	LinkAdHoc        LinkType = 2
)

// Persistency of a face (NFD: FacePersistency).
type Persistency uint8

// Persistencies, with NFD's numbers.
const (
	PersistencyPersistent Persistency = 0
	PersistencyOnDemand   Persistency = 1
	PersistencyPermanent  Persistency = 2
)

// Info describes a transport. It does not change during its life.
type Info struct {
	RemoteURI string // canonical, e.g. udp4://192.0.2.7:6363
	LocalURI  string
	Scope     Scope
	Link      LinkType
	// Stream is set when the transport keeps frame order and loses none while
	// it lives; frames are then not fragmented.
	Stream bool
}

// Frames is a batch of frames (whole link packets) for one peer, one after
// another in one buffer, so that a stream can write them at once and UDP can
// segment them in the kernel. Reset keeps the memory.
type Frames struct {
	Buf  []byte
	Ends []int // Ends[i] is the end of frame i in Buf
}

// Reset empties the batch.
func (f *Frames) Reset() { f.Buf, f.Ends = f.Buf[:0], f.Ends[:0] }

// Len is the number of frames.
func (f *Frames) Len() int { return len(f.Ends) }

// Frame returns frame i as a view of Buf.
func (f *Frames) Frame(i int) []byte {
	start := 0
	if i > 0 {
		start = f.Ends[i-1]
	}
	return f.Buf[start:f.Ends[i]:f.Ends[i]]
}

// End marks the end of a frame that has been appended to Buf.
func (f *Frames) End() { f.Ends = append(f.Ends, len(f.Buf)) }

// Transport sends frames to one peer. Its user serialises calls of Send; the
// other methods may be called at any time.
type Transport interface {
	Info() Info
	// MTU is the largest frame in bytes, at most ndn.MaxPacketSize. It follows
	// the path and may change between two batches.
	MTU() int
	// Send transmits a batch without waiting for the peer: what does not fit
	// into the transport's bounded queue is dropped, and the number of dropped
	// frames returned. The batch is the caller's again when Send returns. A
	// fatal error ends Serve; Send itself reports none.
	Send(b *Frames) (dropped int)
	// QueueLen is the number of bytes waiting to be sent, as far as is known.
	QueueLen() int
	// Close ends the transport; Serve returns. It may be called repeatedly.
	Close() error
}

// Receiver takes what arrives for one transport, on one goroutine at a time.
// That may receive for other transports too.
type Receiver interface {
	// Receive takes a batch of frames. Their memory is the transport's and is
	// reused after the call.
	Receive(frames [][]byte)
	// Flush is called after one or more Receive calls, and before the transport
	// waits. What has been queued for sending leaves now.
	Flush()
	// Closed is called once, after the last Receive, with the reason.
	Closed(err error)
}

// SenderReceiver is a Receiver that can tell the senders on a multi-access link
// apart. A transport with several senders calls ReceiveFrom instead of Receive
// if its Receiver has it.
type SenderReceiver interface {
	Receiver
	// ReceiveFrom is Receive of frames that one sender sent; the number is the
	// transport's own.
	ReceiveFrom(sender uint64, frames [][]byte)
}

// Server is a transport whose frames are received by a call of Serve.
type Server interface {
	Transport
	// Serve receives until the transport ends, passing frames to r, and
	// returns the reason that r.Closed got.
	Serve(r Receiver) error
}

// Acceptor makes a Receiver for a peer that a listener heard of for the first
// time. An error refuses the peer: a stream is closed, the frames of a
// datagram peer are dropped and counted, and the acceptor is asked again when
// that peer sends again. It runs on the listener's goroutine and returns
// without waiting. A listener of datagrams delivers the frames that revealed
// the peer too.
type Acceptor func(t Transport) (Receiver, error)

// Listener waits for peers on one local address. The listeners of udp, tcp and
// unix implement it, so that a driver needs one loop for all.
type Listener interface {
	// Serve accepts peers until Close, and then returns ErrClosed, or the error
	// that ended the listener.
	//
	// A listener of streams serves each accepted peer on a goroutine of its
	// own, that Serve starts: the Acceptor only returns the Receiver. Those
	// transports outlive the listener; whoever holds them closes them, and
	// sees Receiver.Closed when they are gone. A listener of datagrams
	// receives for all its peers on one goroutine, and they end with it.
	Serve(accept Acceptor) error
	// URI is the canonical address that is listened on, e.g.
	// tcp4://0.0.0.0:6363, with the port that was chosen if it was 0.
	URI() string
	// Close stops listening. It may be called repeatedly.
	Close() error
}
