// Package websocket carries frames in the binary messages of WebSocket
// connections (RFC 6455), one link packet in each, as NFD and NDNts do: the
// way for browsers to reach a forwarder.
//
// Its faces are never of local scope, not even on one host: a web page of
// anybody's may run in a browser there, and must not manage the forwarder.
package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"ndnpop/face"
	"ndnpop/face/internal/outq"
	"ndnpop/face/internal/share"
	"ndnpop/ndn"
)

// Options of a connection or a listener. The zero value is usable.
type Options struct {
	// Queue bounds the bytes that wait when the peer does not drain; 0 means
	// DefaultQueue.
	Queue int
	// Origins are the web pages that may connect, beside those of the
	// listener's own host, by patterns of their host (example.com,
	// *.example.com) or scheme and host (https://example.com). "*" lets every
	// page. Programs that are not browsers send no origin, and may connect.
	Origins []string
	// Failed is told of what keeps a listener from accepting for a while, such as
	// want of descriptors.
	Failed func(error)
}

// DefaultQueue is the default bound on the bytes that wait for a peer that
// does not drain.
const DefaultQueue = 4 << 20

// ListenerQueue bounds the bytes that wait for all peers of one Listener
// together (package share).
const ListenerQueue = 64 * DefaultQueue

const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 5 * time.Second
	// handshakes is how many connections of a listener may be no faces: not yet,
	// or refused. There are others to make room (package crowd).
	handshakes = 64
)

// A peer that vanished without a word is noticed after about half a minute of
// silence.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// Dial connects to a URL such as ws://192.0.2.7:9696 or wss://example.com/ndn,
// within 5 seconds.
func Dial(rawURL string, o Options) (face.Server, error) {
	return DialContext(context.Background(), rawURL, o)
}

// DialContext is Dial that ends early when ctx does.
func DialContext(ctx context.Context, rawURL string, o Options) (face.Server, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return nil, fmt.Errorf("websocket: %q is not a URL such as ws://192.0.2.7:9696", rawURL)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	// The connection below is needed for its addresses and its queue.
	var under net.Conn
	d := net.Dialer{KeepAliveConfig: keepAlive}
	tr := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := d.DialContext(ctx, network, addr)
			under = c
			return c, err
		},
		TLSHandshakeTimeout: dialTimeout, DisableKeepAlives: true,
	}
	c, _, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("websocket: %w: %w", face.ErrRefused, err)
	}
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	info := face.Info{RemoteURI: rawURL, LocalURI: "wsclient://" + addrOf(under.LocalAddr())}
	return newTransport(c, under, info, o)
}

func addrOf(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()).String()
	}
	return a.String()
}

// transport is a face.Server over a connection.
type transport struct {
	info   face.Info
	c      *websocket.Conn
	outq   *outq.Meter
	limit  int
	share  *share.Memory   // of a Listener's peers; nil: none
	ctx    context.Context // ends with the transport
	cancel context.CancelFunc

	queued  atomic.Int64 // bytes that wait here
	writers sync.WaitGroup

	mu      sync.Mutex
	queue   *face.Frames // waits; nil: nothing does
	writing bool
	err     error // why the transport ends; nil while it lives
}

func newTransport(c *websocket.Conn, under net.Conn, info face.Info, o Options) (*transport, error) {
	sc, ok := under.(syscall.Conn)
	if !ok {
		_ = c.CloseNow()
		return nil, fmt.Errorf("websocket: connection of type %T", under)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		_ = c.CloseNow()
		return nil, fmt.Errorf("websocket: %w", err)
	}
	if o.Queue <= 0 {
		o.Queue = DefaultQueue
	}
	info.Stream = true
	t := &transport{info: info, c: c, outq: outq.New(raw), limit: o.Queue}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	c.SetReadLimit(ndn.MaxPacketSize)
	return t, nil
}

// Info implements face.Transport.
func (t *transport) Info() face.Info { return t.info }

// MTU implements face.Transport.
func (t *transport) MTU() int { return ndn.MaxPacketSize }

// QueueLen implements face.Transport.
func (t *transport) QueueLen() int { return int(t.queued.Load()) + t.outq.Len() }

// Send implements face.Transport.
func (t *transport) Send(b *face.Frames) (dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return b.Len()
	}
	added, limit := 0, int64(t.share.Limit(t.limit))
	for i := range b.Len() {
		f := b.Frame(i)
		if t.queued.Load()+int64(len(f)) > limit {
			dropped++
			continue
		}
		if t.queue == nil {
			t.queue = queues.Get().(*face.Frames)
		}
		t.queue.Buf = append(t.queue.Buf, f...)
		t.queue.End()
		t.waits(len(f))
		added++
	}
	if added > 0 && !t.writing {
		t.writing = true
		t.writers.Go(t.write)
	}
	return dropped
}

// waits notes that n bytes more wait here.
func (t *transport) waits(n int) {
	t.queued.Add(int64(n))
	t.share.Add(int64(n))
}

// write writes the queue, and ends when it is empty.
func (t *transport) write() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.err == nil && t.queue != nil {
		b := t.queue
		t.queue = nil
		t.mu.Unlock()
		var err error
		for i := 0; i < b.Len() && err == nil; i++ {
			f := b.Frame(i)
			err = t.c.Write(t.ctx, websocket.MessageBinary, f)
			t.waits(-len(f))
		}
		if cap(b.Buf) <= keepQueue {
			b.Reset()
			queues.Put(b)
		}
		t.mu.Lock()
		if err != nil {
			t.failLocked(reason(err))
		}
	}
	t.writing = false
}

// queues recycles the queues of all transports, so that memory follows the
// backlog and not the number of faces.
var queues = sync.Pool{New: func() any { return new(face.Frames) }}

// keepQueue is the largest queue that is recycled, in bytes.
const keepQueue = 1 << 20

// reason says what an error of the connection means for the face.
func reason(err error) error {
	switch {
	case errors.Is(err, websocket.ErrMessageTooBig):
		return fmt.Errorf("%w: %w", face.ErrFraming, err)
	case websocket.CloseStatus(err) == websocket.StatusNormalClosure, websocket.CloseStatus(err) == websocket.StatusGoingAway:
		return face.ErrPeerClosed
	case websocket.CloseStatus(err) != -1, errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		// The reader has answered the peer's closing handshake; a closing of
		// ours has set its reason before.
		errors.Is(err, net.ErrClosed):
		return fmt.Errorf("%w: %w", face.ErrPeerClosed, err)
	}
	return err
}

// failLocked ends the transport for the reason err, once. A goroutine that
// reads or writes wakes up.
func (t *transport) failLocked(err error) {
	if t.err != nil {
		return
	}
	t.err = err
	t.cancel()
}

// Close implements face.Transport. Frames that wait are discarded.
func (t *transport) Close() error {
	t.mu.Lock()
	t.failLocked(face.ErrClosed)
	t.mu.Unlock()
	// Waiting for the peer's part of the closing handshake is not for a caller
	// that must not wait.
	_ = t.c.CloseNow()
	return nil
}

// Serve implements face.Server.
func (t *transport) Serve(r face.Receiver) error {
	err := t.receive(r)
	t.mu.Lock()
	t.failLocked(reason(err))
	err = t.err
	t.mu.Unlock()
	t.writers.Wait()
	_ = t.c.CloseNow()
	t.mu.Lock()
	t.queue = nil
	t.mu.Unlock()
	t.share.Add(-t.queued.Swap(0))
	r.Closed(err)
	return err
}

var errText = errors.New("a text message")

func (t *transport) receive(r face.Receiver) error {
	buf := make([]byte, ndn.MaxPacketSize)
	frames := make([][]byte, 1)
	for {
		typ, in, err := t.c.Reader(t.ctx)
		if err != nil {
			return err
		}
		if typ != websocket.MessageBinary {
			return fmt.Errorf("%w: %w", face.ErrFraming, errText)
		}
		n, err := readAll(in, buf)
		if err != nil {
			return err
		}
		size, err := ndn.PacketSize(buf[:n], ndn.MaxPacketSize)
		switch {
		case err != nil:
		case size == 0 || size > n:
			err = ndn.ErrTruncated
		case size < n:
			err = ndn.ErrTrailing
		}
		if err != nil {
			return fmt.Errorf("%w: %w", face.ErrFraming, err)
		}
		frames[0] = buf[:n:n]
		r.Receive(frames)
		// Whether another message is at hand cannot be asked.
		r.Flush()
	}
}

// readAll reads a message to its end, of at most len(buf) bytes.
func readAll(in io.Reader, buf []byte) (n int, err error) {
	for {
		m, err := in.Read(buf[n:])
		n += m
		switch {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		case m == 0 && n == len(buf):
			// The end may still be outstanding.
			var one [1]byte
			if m, err := in.Read(one[:]); m > 0 || err != nil && !errors.Is(err, io.EOF) {
				return n, websocket.ErrMessageTooBig
			}
			return n, nil
		}
	}
}
