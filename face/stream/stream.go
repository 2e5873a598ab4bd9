// Package stream carries frames over a connected byte stream: what TCP and
// Unix sockets share.
//
// Receiving reads as much as the socket has and delivers the frames where
// they lie. Sending writes straight to the socket, without waiting; what it
// does not take goes into a bounded queue that a goroutine of the transport
// drains. So a peer that does not read costs its own frames and nobody
// else's time.
package stream

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"ndnpop/face"
	"ndnpop/face/internal/outq"
	"ndnpop/face/internal/share"
	"ndnpop/ndn"
)

// DefaultQueue is the default bound on the bytes that wait for a peer that
// does not drain: the Data of a large window.
const DefaultQueue = 4 << 20

// ListenerQueue bounds the bytes that wait for all peers of one Listener
// together (package share).
const ListenerQueue = 64 * DefaultQueue

// Conn is a connection of the operating system's.
type Conn interface {
	net.Conn
	syscall.Conn
}

// Transport is a face.Server over a Conn.
type Transport struct {
	info  face.Info
	conn  Conn
	raw   syscall.RawConn
	outq  *outq.Meter
	limit int
	share *share.Memory // of a Listener's peers; nil: none

	// Set once, so that starting them does not allocate.
	readFn  func(fd uintptr) bool
	writeFn func(fd uintptr)
	drainFn func()

	in inbox // of Serve

	queued   atomic.Int64 // bytes in queue
	drainers sync.WaitGroup

	mu       sync.Mutex
	room     sync.Cond // the queue became shorter, or the transport ended
	waiting  int       // goroutines in WaitBelow
	queue    queue
	draining bool  // drain runs; only it writes to conn
	err      error // why the transport ends; nil while it lives
	out      []byte
	written  int
	writeErr error
}

// New makes a transport of conn and owns it. queue bounds the bytes that wait
// for the peer, 0 means DefaultQueue. info.Stream gets set.
func New(conn Conn, info face.Info, queue int) (*Transport, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	if queue <= 0 {
		queue = DefaultQueue
	}
	info.Stream = true
	t := &Transport{info: info, conn: conn, raw: raw, outq: outq.New(raw), limit: queue}
	t.writeFn = func(fd uintptr) { t.written, t.writeErr = writeNow(fd, t.out) }
	t.drainFn = t.drain
	t.readFn = t.readNow
	t.in.pool = new(buffers)
	t.room.L = &t.mu
	return t, nil
}

// Info implements face.Transport.
func (t *Transport) Info() face.Info { return t.info }

// MTU implements face.Transport.
func (t *Transport) MTU() int { return ndn.MaxPacketSize }

// QueueLen implements face.Transport.
func (t *Transport) QueueLen() int { return int(t.queued.Load()) + t.outq.Len() }

// Send implements face.Transport. It never sends a part of a frame without
// the rest following.
func (t *Transport) Send(b *face.Frames) (dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return b.Len()
	}
	n := 0
	if !t.draining {
		var err error
		if n, err = t.write(b.Buf[:end(b)]); err != nil {
			t.failLocked(err)
			return b.Len()
		}
		if n == end(b) {
			return 0
		}
	}
	return t.enqueue(b, n)
}

func end(b *face.Frames) int {
	if len(b.Ends) == 0 {
		return 0
	}
	return b.Ends[len(b.Ends)-1]
}

// write writes what the socket takes at once.
func (t *Transport) write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	t.out = p
	err := t.raw.Control(t.writeFn)
	t.out = nil
	if err != nil {
		return 0, err
	}
	return t.written, t.writeErr
}

// enqueue queues the frames of b after its first n bytes, which have been
// written. The frame that n lies in is completed even if the queue is full.
func (t *Transport) enqueue(b *face.Frames, n int) (dropped int) {
	start, limit := 0, t.share.Limit(t.limit)
	for _, e := range b.Ends {
		switch {
		case e <= n:
		case start < n:
			t.queue.append(b.Buf[n:e])
		case t.queue.len+e-start > limit:
			dropped++
		default:
			t.queue.append(b.Buf[start:e])
		}
		start = e
	}
	t.noteQueue()
	if t.queue.len > 0 && !t.draining {
		t.draining = true
		t.drainers.Add(1)
		go t.drainFn()
	}
	return dropped
}

// noteQueue makes the length of the queue known; the lock is held.
func (t *Transport) noteQueue() {
	n := int64(t.queue.len)
	t.share.Add(n - t.queued.Swap(n))
}

// drain writes the queue, and ends when it is empty.
func (t *Transport) drain() {
	defer t.drainers.Done()
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		p := t.queue.first()
		if len(p) == 0 || t.err != nil {
			t.draining = false
			return
		}
		t.mu.Unlock()
		n, err := t.conn.Write(p)
		t.mu.Lock()
		t.queue.drop(n)
		t.noteQueue()
		if t.waiting > 0 {
			t.room.Broadcast()
		}
		if err != nil {
			t.failLocked(err)
		}
	}
}

// WaitBelow waits until at most n bytes are queued, not counting what the
// socket holds, or the transport has ended. It is for an application that has
// only this peer; a forwarder waits for nobody.
func (t *Transport) WaitBelow(n int) {
	if t.queued.Load() <= int64(n) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting++
	for t.queue.len > n && t.err == nil {
		t.room.Wait()
	}
	t.waiting--
}

// failLocked ends the transport for the reason err, once.
func (t *Transport) failLocked(err error) {
	if t.err != nil {
		return
	}
	t.err = reason(err)
	// Closing wakes Serve and drain.
	_ = t.conn.Close()
	t.room.Broadcast()
}

// reason says what an error of the socket means for the face.
func reason(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return face.ErrPeerClosed
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w: %w", face.ErrPeerClosed, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: %w", face.ErrRefused, err)
	}
	return err
}

// Close implements face.Transport. Frames that wait are discarded.
func (t *Transport) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failLocked(face.ErrClosed)
	return nil
}

// Serve implements face.Server.
func (t *Transport) Serve(r face.Receiver) error {
	err := t.receive(r)
	t.mu.Lock()
	t.failLocked(err)
	err = t.err
	t.mu.Unlock()
	t.drainers.Wait()
	t.mu.Lock()
	t.queue.reset()
	t.noteQueue()
	t.mu.Unlock()
	r.Closed(err)
	return err
}

// deliver passes the whole frames in b to r, and says how many bytes they
// were. frames is memory to use.
func deliver(b []byte, frames [][]byte, r face.Receiver) (used int, err error) {
	flush := false
	for err == nil {
		frames = frames[:0]
		for len(frames) < cap(frames) {
			var size int
			size, err = ndn.PacketSize(b[used:], ndn.MaxPacketSize)
			if err != nil || size == 0 || size > len(b)-used {
				break
			}
			frames = append(frames, b[used:used+size:used+size])
			used += size
		}
		if len(frames) == 0 {
			break
		}
		r.Receive(frames)
		flush = true
	}
	if flush {
		r.Flush()
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", face.ErrFraming, err)
	}
	return used, err
}
