// Package run drives a fetch core on a real transport.
//
// Three goroutines take part: the transport's receiving one, which hands each
// batch of frames to the core and sends the Interests that the batch allows
// with one write; one that waits for the core's next deadline; and the output
// Pipe's, which verifies and writes. The first two share the core under one
// lock, taken once per batch.
package run

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"sync"
	"time"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/consumer/output"
	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/ndn/verify"
)

// ErrTransport is wrapped by the errors of a connection to the forwarder that
// ended during the fetch.
var ErrTransport = errors.New("the connection to the forwarder ended")

// Options of a fetch.
type Options struct {
	// Transport is connected to the forwarder. Run owns and closes it.
	Transport face.Server
	// Redial, if not nil, connects again when the connection ends; Run tries
	// for as long as the retries of a segment allow.
	Redial func() (face.Server, error)
	// Connection, if not nil, is told why the connection ended when Run begins to
	// try again, and nil once the forwarder is heard again. It runs on the
	// receiving goroutine, and no lock is held.
	Connection func(ended error)
	Fetch      consumer.Config
	Controller cc.Controller
	Tracer     consumer.Tracer // may be nil
	// Target gets the content; Output says how it is checked on the way.
	Target output.Target
	Output output.Config
	// Trust, if not nil, decides which packets are believed. It may be shared
	// with other fetches.
	Trust *verify.Verifier
	// Prefix is the hash state of what Target already holds, nil if nothing.
	Prefix hash.Hash
	// Progress, if not nil, is called about every Interval (100 ms) from a
	// goroutine of its own.
	Progress func(Progress)
	Interval time.Duration
}

// Progress of a fetch.
type Progress struct {
	Object consumer.Object // Name is nil before it is known
	Stats  consumer.Stats
	Total  uint64 // output bytes wanted, if known
	Known  bool
	Done   uint64 // output bytes delivered, earlier ones included
}

// Result of a fetch, as far as it came.
type Result struct {
	Progress
	Output output.Result
	// Complete: everything was fetched, verified and written.
	Complete bool
	Elapsed  time.Duration
	// Replicas is what each replica did, by number, Replica the one that was used
	// last, and Switches the changes.
	Replicas []consumer.ReplicaStats
	Replica  int
	Switches []consumer.ReplicaSwitch
}

// Run fetches until everything is written, the fetch fails, or ctx ends. The
// result is valid in each case. After an end of ctx the error is ctx's cause.
func Run(ctx context.Context, o Options) (Result, error) {
	d := &driver{start: time.Now(), redial: o.Redial, tell: o.Connection, poke: make(chan struct{}, 1), over: make(chan struct{}), armed: ndn.Never}
	d.use(o.Transport, o.Fetch.Seed)
	out := o.Output
	out.OnRoom, out.OnError = d.room, d.fail
	trusting, cancel := context.WithCancel(ctx)
	defer cancel()
	d.replicas = o.Fetch.Replicas
	out.Again = func(name ndn.Name, check func(*ndn.Data) error) ([]byte, error) {
		return d.another(trusting, name, check)
	}
	if o.Trust != nil {
		out.Verify, out.OnMetadata = output.VerifyTrust, d.verified
		d.trusts(trusting, o.Trust)
		out.Check = d.check
	}
	d.pipe = output.NewPipe(out, o.Target, o.Prefix)
	f, err := consumer.New(o.Fetch, o.Controller, d.pipe, o.Tracer, d.now())
	if err != nil {
		o.Transport.Close()
		_, err = d.pipe.Close(err, false)
		return Result{}, err
	}
	d.f = f

	var wg sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); d.serve(&o) }()
	go func() { defer wg.Done(); d.timers() }()
	if o.Progress != nil {
		wg.Add(1)
		go func() { defer wg.Done(); d.report(o.Progress, o.Interval) }()
	}
	d.mu.Lock()
	d.pump(d.now())
	d.mu.Unlock()

	select {
	case <-d.over:
	case <-ctx.Done():
		d.fail(context.Cause(ctx))
	}
	d.mu.Lock()
	failed := f.Err() != nil
	d.mu.Unlock()
	if !failed {
		// The last packets may need certificates, or copies of them.
		d.pipe.Settle()
	}
	cancel()
	d.mu.Lock()
	tr := d.tr
	d.mu.Unlock()
	tr.Close()
	wg.Wait()
	if d.checker != nil {
		d.checker.wg.Wait()
	}
	res := Result{Progress: d.progress(), Replicas: f.Replicas(), Replica: f.Replica(), Switches: f.Switches()}
	whole := o.Fetch.Range.Kind == consumer.RangeAll
	d.pipe.Ended(&res.Object)
	res.Output, err = d.pipe.Close(d.explain(f.Err()), whole)
	res.Stats.Rejected += res.Output.Repaired
	res.Complete = err == nil
	res.Elapsed = time.Since(d.start)
	return res, err
}

// driver connects core, link service, transport and output.
type driver struct {
	start    time.Time
	redial   func() (face.Server, error)
	tell     func(ended error) // may be nil
	pipe     *output.Pipe
	replicas []consumer.Replica
	// checker is nil when nothing is verified by keys.
	checker *checker
	begun   sync.Once     // of the checker
	poke    chan struct{} // the deadline came nearer
	over    chan struct{} // closed when the fetch is done

	mu      sync.Mutex
	tr      face.Server
	f       *consumer.Fetch
	link    *lp.Link
	frames  face.Frames
	buf     []byte
	p       ndn.Packet
	armed   ndn.Time // when timers will look next
	asks    []*ask
	stamper mgmt.Stamper
	heard   bool  // anything, from whoever is at the other end
	cut     error // why a connection ended, until anything comes over another
	none    error // why there is no other yet
	ended   bool
}

// use makes tr the transport, with a link service of its own.
func (d *driver) use(tr face.Server, seed uint64) {
	d.tr = tr
	d.link = lp.New(lp.Config{
		MTU: tr.MTU(), Fragment: !tr.Info().Stream, Application: true,
		FirstSequence: seed, Marking: lp.Marking{Off: true},
	})
}

const (
	firstRedial = 50 * time.Millisecond
	lastRedial  = 2 * time.Second
)

// serve receives until the fetch is over, from one connection after another.
func (d *driver) serve(o *Options) {
	tr := o.Transport
	wait := time.Duration(0)
	for {
		began := time.Now()
		err := tr.Serve(d)
		tr.Close()
		if time.Since(began) > lastRedial {
			wait = 0
		}
		if tr, wait = d.again(o, err, wait); tr == nil {
			d.mu.Lock()
			why := fmt.Errorf("%w: %w", ErrTransport, err)
			if d.cut != nil {
				why = d.away()
			}
			d.mu.Unlock()
			d.fail(why)
			return
		}
		d.mu.Lock()
		d.none = nil
		over := d.ended
		if !over {
			d.use(tr, o.Fetch.Seed)
			d.pump(d.now())
		}
		d.mu.Unlock()
		if over {
			tr.Close()
			return
		}
	}
}

// again connects once more, after a connection ended with cause, first after
// wait. It returns nil when the fetch is over or nothing can be reached, and how
// long to wait when the new connection does not last: a forwarder that has no
// place for us takes connections and ends them.
func (d *driver) again(o *Options, cause error, wait time.Duration) (face.Server, time.Duration) {
	if d.redial == nil || errors.Is(cause, face.ErrClosed) || errors.Is(cause, face.ErrFraming) {
		return nil, wait
	}
	// A datagram socket learns only by sending that nobody is there.
	d.mu.Lock()
	nobody := !d.heard && errors.Is(cause, face.ErrRefused)
	d.mu.Unlock()
	if nobody {
		return nil, wait
	}
	d.lost(cause)
	deadline := time.Now().Add(time.Duration(o.Fetch.Retries) * max(o.Fetch.Lifetime, ndn.DefaultLifetime))
	t := time.NewTimer(wait)
	defer t.Stop()
	for {
		select {
		case <-d.over:
			return nil, wait
		case <-t.C:
		}
		wait = min(max(2*wait, firstRedial), lastRedial)
		tr, err := d.redial()
		if err == nil {
			return tr, wait
		}
		d.mu.Lock()
		d.none = err
		d.mu.Unlock()
		if o.Fetch.Retries >= 0 && time.Now().After(deadline) {
			return nil, wait
		}
		t.Reset(wait)
	}
}

// lost notes that the connection ended, unless nothing has come since it did so
// before.
func (d *driver) lost(cause error) {
	d.mu.Lock()
	news := d.cut == nil && !d.ended
	if news {
		d.cut = cause
	}
	d.mu.Unlock()
	if news && d.tell != nil {
		d.tell(cause)
	}
}

// away says that the connection ended, and what came of trying again. The lock is
// held.
func (d *driver) away() error {
	after := "and nothing came over another"
	if d.none != nil {
		after = fmt.Sprintf("and there is no other (%v)", d.none)
	}
	return fmt.Errorf("%w (%v), %s", ErrTransport, d.cut, after)
}

// explain adds to what a fetch failed with that the forwarder is away, if that is
// why nobody answers.
func (d *driver) explain(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut != nil && (errors.Is(err, consumer.ErrUnreachable) || errors.Is(err, ErrNoAnswer)) {
		return fmt.Errorf("%w: %w", d.away(), err)
	}
	return err
}

// now is the core's time: nanoseconds since the start, never zero.
func (d *driver) now() ndn.Time { return ndn.Time(time.Since(d.start)) + 1 }

// Receive implements face.Receiver.
func (d *driver) Receive(frames [][]byte) {
	if d.take(frames) && d.tell != nil {
		d.tell(nil)
	}
}

// take is Receive under the lock. It reports whether these are the first frames
// since a connection ended.
func (d *driver) take(frames [][]byte) (back bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard, back, d.cut = true, d.cut != nil, nil
	now := d.now()
	for _, fr := range frames {
		ok, err := d.link.Receive(now, fr, &d.p)
		if err != nil || !ok {
			continue // counted by the link
		}
		if len(d.asks) > 0 && d.answered() {
			continue
		}
		switch d.p.Kind {
		case ndn.KindData:
			d.f.Data(now, &d.p)
			d.rejected()
		case ndn.KindNack:
			d.f.Nack(now, &d.p)
		}
	}
	d.pump(now)
	return back
}

// rejected has a packet that the core asks for again removed from the own
// forwarder's store.
func (d *driver) rejected() {
	if n, ok := d.f.Rejected(); ok {
		d.disown(n)
	}
}

// Flush implements face.Receiver.
func (d *driver) Flush() { d.pipe.Kick() }

// Closed implements face.Receiver. What follows is serve's to decide.
func (d *driver) Closed(error) {}

// pump sends what may leave, and sees to timers and the end.
func (d *driver) pump(now ndn.Time) {
	for {
		var ok bool
		if d.buf, ok = d.f.Next(now, d.buf[:0]); !ok {
			break
		}
		if err := d.link.Send(now, d.buf, d.f.Fields(), &d.frames); err != nil {
			d.f.Fail(now, fmt.Errorf("send %d bytes of Interest: %w", len(d.buf), err))
		}
	}
	if d.frames.Len() > 0 {
		d.tr.Send(&d.frames) // what is dropped times out
		d.frames.Reset()
	}
	d.after()
}

func (d *driver) after() {
	if d.f.Done() {
		if !d.ended {
			d.ended = true
			close(d.over)
		}
		return
	}
	if min(d.f.Deadline(), d.link.Deadline()) < d.armed {
		select {
		case d.poke <- struct{}{}:
		default:
		}
	}
}

// After a stall of this length, of the whole process most likely, what has
// arrived meanwhile is taken before timers may act, within the grace.
const (
	stall = 2 * time.Millisecond
	grace = 2 * time.Millisecond
)

// minWait is the least that timers sleeps. A paced fetch wants to send every
// few microseconds; woken for each Interest, everybody on the way works in
// batches of one. Pacing catches up for what is late by up to 1 ms.
const minWait = 500 * time.Microsecond

// timers waits for deadlines. A deadline that moved away is noticed when it
// would have come; one that came nearer, by a poke.
func (d *driver) timers() {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	waited := false
	for {
		select {
		case <-d.over:
			return
		case <-d.poke:
		case <-t.C:
		}
		d.mu.Lock()
		now := d.now()
		due := min(d.f.Deadline(), d.link.Deadline())
		if due <= now && now.Sub(due) > stall && !waited {
			waited = true
			d.armed = now.Add(grace)
			d.mu.Unlock()
			t.Reset(grace)
			continue
		}
		waited = false
		if due <= now {
			d.link.Tick(now, &d.frames)
			for wire, ok := d.link.GaveUp(); ok; wire, ok = d.link.GaveUp() {
				var in ndn.Interest
				if in.Parse(wire) == nil {
					d.f.LinkGaveUp(now, &in)
				}
			}
			d.f.Tick(now)
			d.armed = 0 // this goroutine looks by itself
			d.pump(now)
		}
		d.armed = min(d.f.Deadline(), d.link.Deadline())
		wait := time.Hour
		if d.armed != ndn.Never {
			wait = max(d.armed.Sub(now), minWait)
		}
		d.mu.Unlock()
		t.Reset(wait)
	}
}

// room is the Pipe's news that content may be delivered again.
func (d *driver) room() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	d.f.Drain(now)
	d.pump(now)
	d.pipe.Kick()
}

// verified is the Pipe's verdict on a metadata packet.
func (d *driver) verified(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	d.f.Verified(now, err)
	d.rejected()
	d.pump(now)
	d.pipe.Kick()
}

// fail ends the fetch from outside. Once it is done this does nothing.
func (d *driver) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.f.Fail(d.now(), err)
	d.after()
}

func (d *driver) progress() Progress {
	d.mu.Lock()
	defer d.mu.Unlock()
	var p Progress
	p.Object, _ = d.f.Object()
	p.Stats = d.f.Stats()
	p.Total, p.Known, p.Done = d.f.Total()
	return p
}

func (d *driver) report(to func(Progress), every time.Duration) {
	if every <= 0 {
		every = 100 * time.Millisecond
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-d.over:
			to(d.progress())
			return
		case <-t.C:
			to(d.progress())
		}
	}
}
