package serve

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/mgmt"
	"ndnpop/ndn"
)

// Handler is a core: a state machine that answers through App.Send.
type Handler interface {
	// Receive takes a packet, a view that is valid during the call. An error
	// is reported and changes nothing else.
	Receive(now ndn.Time, p *ndn.Packet) error
	Deadline() ndn.Time
	Tick(now ndn.Time)
}

// Config of an App.
type Config struct {
	// Dial connects to the forwarder.
	Dial func() (face.Server, error)
	// Prefixes are registered with the forwarder.
	Prefixes []ndn.Name
	// Origin of the routes: mgmt.OriginApp, or mgmt.OriginClient for prefixes
	// that the forwarder is to announce to its routing daemon.
	Origin uint64
	// Signer signs the commands; nil: DigestSha256.
	Signer ndn.Signer
	// Report, if set, hears what happens. It is called from several
	// goroutines, one at a time, and must not call the App.
	Report func(Event)
}

// Event is what an App reports.
type Event struct {
	Kind EventKind
	Err  error // of Lost, Failed and Unanswered
	// Wait is how long it is until the next attempt, with Lost and Failed.
	Wait time.Duration
}

// EventKind is the kind of an event.
type EventKind uint8

// Kinds of events.
const (
	Ready      EventKind = iota + 1 // connected, and the prefixes registered
	Lost                            // the connection ended
	Failed                          // an attempt to come back failed
	Unanswered                      // the core could not answer an Interest
)

// App runs one core over one connection at a time.
type App struct {
	cfg   Config
	began time.Time

	mu      sync.Mutex // held while the core or the link works
	handler Handler
	now     ndn.Time // of the call in progress
	server  face.Server
	link    *lp.Link
	out     batch
	whole   bool    // the connection is a stream
	writer  *writer // of a stream, where a processor may be free for it
	packet  ndn.Packet
	command command
	stamper mgmt.Stamper
	timer   *time.Timer
	armed   ndn.Time // when the timer fires; Never when it does not
	closed  bool
	dropped atomic.Uint64

	reporting sync.Mutex
}

// New returns an App that is not connected.
func New(cfg Config) *App { return &App{cfg: cfg, began: time.Now(), armed: ndn.Never} }

// Now is the core's time.
func (a *App) Now() ndn.Time { return ndn.Time(time.Since(a.began)) + 1 }

// flushAt is how many bytes gather before they are written: enough to spare
// system calls, little enough that the forwarder works meanwhile.
const flushAt = 128 << 10

// Send sends an Interest or a Data. The core calls it from within Receive,
// Tick, or a function given to Do; both arguments are copied. Without a
// connection the packet is dropped.
func (a *App) Send(wire []byte, f *ndn.LpFields) {
	if a.link == nil {
		return
	}
	// The link counts what it refuses.
	if a.link.Send(a.now, wire, f, &a.out.frames) == nil && len(a.out.frames.Buf) >= flushAt {
		a.flush()
	}
}

// SendUnsigned sends a Data whose digest is still to be filled in. On streams,
// which carry packets in one piece, that is done with the digests of others that
// are sent with it, and beside what the core does next if a processor may be free.
func (a *App) SendUnsigned(wire []byte, f *ndn.LpFields) {
	if !a.whole {
		ndn.FillDigest(wire)
		a.Send(wire, f)
		return
	}
	if a.link.Send(a.now, wire, f, &a.out.frames) != nil {
		return
	}
	end := len(a.out.frames.Buf)
	a.out.unsigned = append(a.out.unsigned, span{end - len(wire), end})
	if end >= flushAt {
		a.flush()
	}
}

func (a *App) flush() {
	switch {
	case a.out.frames.Len() == 0 || a.server == nil:
	case a.writer != nil && a.writer.wants(&a.out):
		a.writer.take(&a.out)
		return
	default:
		a.dropped.Add(uint64(a.out.send(a.server)))
	}
	a.out.reset()
}

// Dropped is how many frames were lost because the forwarder did not take them.
func (a *App) Dropped() uint64 { return a.dropped.Load() }

// Do calls f as if the core did something of itself, and sends what came of
// it. It may be called from any goroutine but the core's own.
func (a *App) Do(f func(now ndn.Time)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = a.Now()
	f(a.now)
	a.flush()
	a.arm()
}

// arm sets the timer for the next deadline.
func (a *App) arm() {
	due := ndn.Never
	if a.handler != nil {
		due = a.handler.Deadline()
	}
	if a.link != nil {
		due = min(due, a.link.Deadline())
	}
	if due == a.armed {
		return
	}
	a.armed = due
	switch {
	case a.closed || due == ndn.Never:
		if a.timer != nil {
			a.timer.Stop()
		}
	case a.timer == nil:
		a.timer = time.AfterFunc(due.Sub(a.Now()), a.tick)
	default:
		a.timer.Reset(due.Sub(a.Now()))
	}
}

func (a *App) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.armed = ndn.Never
	a.now = a.Now()
	if a.handler != nil {
		a.handler.Tick(a.now)
	}
	if a.link != nil {
		a.link.Tick(a.now, &a.out.frames)
	}
	a.flush()
	a.arm()
}

// waiter is a transport that can wait until less than n bytes are queued.
type waiter interface{ WaitBelow(n int) }

// connection receives for one transport.
type connection struct {
	app    *App
	server face.Server
	ended  chan struct{}
	err    error // after ended
}

// connect makes s the App's connection and starts to receive.
func (a *App) connect(s face.Server) *connection {
	info := s.Info()
	c := &connection{app: a, server: s, ended: make(chan struct{})}
	a.mu.Lock()
	a.server = s
	a.link = lp.New(lp.Config{
		MTU: s.MTU(), Fragment: !info.Stream, FirstSequence: rand.Uint64(),
		// Marks are the forwarder's business; an application is at the end.
		Marking: lp.Marking{Off: true},
	})
	a.whole = info.Stream
	if a.whole && runtime.GOMAXPROCS(0) > 1 {
		a.writer = newWriter(s, &a.dropped)
	}
	a.mu.Unlock()
	go func() {
		c.err = s.Serve(c)
		close(c.ended)
	}()
	return c
}

// end closes the connection and waits until it has ended. What the core has
// sent leaves first.
func (c *connection) end() {
	a := c.app
	a.mu.Lock()
	a.flush()
	w := a.writer
	a.writer = nil
	a.mu.Unlock()
	if w != nil {
		w.close()
	}
	_ = c.server.Close()
	<-c.ended
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server == c.server {
		a.server, a.link, a.whole = nil, nil, false
		a.out.reset()
	}
}

// backlog is how many bytes may wait for the forwarder before the next
// Interests are taken. What one Receive can ask for on top of it fits into the
// queue of a stream.
const backlog = 1 << 20

// Receive implements face.Receiver. While the forwarder does not take what was
// asked for, it is not asked what else it wants: waiting here, where nothing is
// locked, lets its Interests wait in the socket.
func (c *connection) Receive(frames [][]byte) {
	a := c.app
	if q, ok := c.server.(waiter); ok {
		q.WaitBelow(backlog)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = a.Now()
	if m := c.server.MTU(); m != a.link.MTU() {
		a.link.SetMTU(m)
	}
	for _, f := range frames {
		// The link counts what it cannot read.
		if ok, _ := a.link.Receive(a.now, f, &a.packet); ok {
			a.receive()
		}
	}
}

// Flush implements face.Receiver.
func (c *connection) Flush() {
	c.app.mu.Lock()
	defer c.app.mu.Unlock()
	c.app.flush()
	c.app.arm()
}

// Closed implements face.Receiver. Serve's return says the same.
func (c *connection) Closed(error) {}

func (a *App) receive() {
	if a.command.take(&a.packet) {
		return
	}
	if a.handler == nil {
		return
	}
	if err := a.handler.Receive(a.now, &a.packet); err != nil {
		a.report(Event{Kind: Unanswered, Err: err})
	}
}

func (a *App) report(e Event) {
	if a.cfg.Report == nil {
		return
	}
	a.reporting.Lock()
	defer a.reporting.Unlock()
	a.cfg.Report(e)
}

// ErrUnreachable wraps why the forwarder cannot be used.
var ErrUnreachable = errors.New("no forwarder")
