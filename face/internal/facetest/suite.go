package facetest

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"ndnpop/face"
	"ndnpop/ndn"
)

// Case is a transport under test.
type Case struct {
	// Listen makes a listener, and a way to connect to it.
	Listen func(t testing.TB) (l face.Listener, dial func() (face.Server, error))
	// Raw connects to a listener of Listen without the transport; nil if that
	// is not possible.
	Raw func(t *testing.T, l face.Listener) net.Conn
	// Refused connects to where nobody listens; nil if that is not possible.
	Refused func(t *testing.T) (face.Server, error)
	// Datagram is set when frames may be lost and peers are known only by
	// their frames.
	Datagram bool
	// Deaf is set when the listener does not learn that a peer is gone.
	Deaf bool
	// Bounded is set when Send knows what a peer that does not drain cannot
	// take.
	Bounded bool
	// Allocates is set when a library below the transport allocates.
	Allocates bool
}

// Run runs the suite.
func Run(t *testing.T, c Case) {
	t.Run("exchange", c.exchange)
	t.Run("order", c.order)
	t.Run("slow peer", c.slow)
	t.Run("peer closes", c.peerCloses)
	t.Run("we close", c.weClose)
	t.Run("close before serve", c.closeFirst)
	t.Run("listener closes", c.listenerCloses)
	t.Run("acceptor refuses", c.acceptorRefuses)
	t.Run("accepted peer closes and comes back", c.comesBack)
	t.Run("refused", c.refused)
	t.Run("bad input", c.badInput)
	t.Run("many peers at once", c.many)
	t.Run("no allocation", c.allocs)
}

// Side is one end of a link under test.
type Side struct {
	face.Transport
	*Sink
}

// Net is a listener that is being served, with all that was opened on it.
type Net struct {
	t    *testing.T
	L    face.Listener
	dial func() (face.Server, error)
	wg   sync.WaitGroup
	done chan error

	mu       sync.Mutex
	refuse   bool
	accepted []Side
	all      []Side
}

// Open listens and serves. Everything is closed when the test ends.
func (c *Case) Open(t *testing.T) *Net {
	n := &Net{t: t, done: make(chan error, 1)}
	n.L, n.dial = c.Listen(t)
	go func() { n.done <- n.L.Serve(n.accept) }()
	t.Cleanup(n.close)
	return n
}

var errRefuse = errors.New("refused by the test")

func (n *Net) accept(tr face.Transport) (face.Receiver, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refuse {
		return nil, errRefuse
	}
	if m := tr.MTU(); m <= 0 || m > ndn.MaxPacketSize {
		n.t.Errorf("MTU %d", m)
	}
	s := Side{tr, new(Sink)}
	n.accepted = append(n.accepted, s)
	n.all = append(n.all, s)
	return s.Sink, nil
}

func (n *Net) close() {
	_ = n.L.Close()
	if err := <-n.done; !errors.Is(err, face.ErrClosed) {
		n.t.Errorf("Serve of the listener returned %v", err)
	}
	n.mu.Lock()
	all := n.all
	n.mu.Unlock()
	for _, s := range all {
		_ = s.Transport.Close()
	}
	n.wg.Wait()
	for _, s := range all {
		Eventually(n.t, "end of "+s.Info().RemoteURI, func() bool { return s.Reason() != nil })
		s.Check(n.t)
	}
}

// Accepted returns what was accepted so far.
func (n *Net) Accepted() []Side {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.accepted)
}

// Dial connects, and serves.
func (n *Net) Dial() Side {
	n.t.Helper()
	s, err := n.dial()
	if err != nil {
		n.t.Fatal(err)
	}
	return n.Serve(s)
}

// Serve serves a transport until the test ends.
func (n *Net) Serve(s face.Server) Side {
	side := Side{s, new(Sink)}
	n.mu.Lock()
	n.all = append(n.all, side)
	n.mu.Unlock()
	n.wg.Go(func() {
		if err := s.Serve(side.Sink); err == nil || side.Reason() != err {
			n.t.Errorf("Serve returned %v, and Closed got %v", err, side.Reason())
		}
	})
	return side
}

// Pair connects, and makes the other side known by one frame.
func (n *Net) Pair() (dialed, accepted Side) {
	n.t.Helper()
	before := len(n.Accepted())
	d := n.Dial()
	var b face.Frames
	Frame(&b, 0, 16)
	if d.Send(&b) != 0 {
		n.t.Fatal("the first frame was dropped")
	}
	Eventually(n.t, "accept", func() bool { return len(n.Accepted()) > before })
	a := n.Accepted()[before]
	Eventually(n.t, "the first frame", func() bool { return a.Count() == 1 })
	return d, a
}

func (c *Case) exchange(t *testing.T) {
	n := c.Open(t)
	d, a := n.Pair()
	if d.Info().Stream == c.Datagram || a.Info().Stream == c.Datagram {
		t.Error("Info.Stream is wrong")
	}
	for _, s := range []Side{d, a} {
		if i := s.Info(); !strings.Contains(i.RemoteURI, "://") || !strings.Contains(i.LocalURI, "://") {
			t.Errorf("URIs of %+v", i)
		}
	}
	if !strings.Contains(n.L.URI(), "://") {
		t.Errorf("URI %q", n.L.URI())
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var b face.Frames
	next := uint64(1)
	for round := range 60 {
		from, to := d, a
		if round%2 == 1 {
			from, to = a, d
		}
		b.Reset()
		size := 16 + rng.IntN(from.MTU()-15)
		for range 1 + rng.IntN(100) {
			// Runs of one size, as fragments make them, and others.
			if rng.IntN(8) == 0 {
				size = 16 + rng.IntN(from.MTU()-15)
			}
			if round < 3 {
				size = []int{16, 300, from.MTU()}[round]
			}
			Frame(&b, next, size)
			next++
		}
		before := to.Count()
		if dropped := from.Send(&b); dropped != 0 {
			t.Fatalf("dropped %d of %d", dropped, b.Len())
		}
		Eventually(t, "a batch", func() bool { return to.Count() == before+b.Len() })
		from.Check(t)
		to.Check(t)
		if t.Failed() {
			t.FailNow()
		}
	}
	var empty face.Frames
	if d.Send(&empty) != 0 {
		t.Error("an empty batch was dropped")
	}
}

func (c *Case) order(t *testing.T) {
	n := c.Open(t)
	d, a := n.Pair()
	var b face.Frames
	sent := 0
	for sent < 3000 {
		b.Reset()
		for range 1 + sent%37 {
			sent++
			Frame(&b, uint64(sent), 16+sent*7%8000)
		}
		if d.Send(&b) != 0 {
			t.Fatal("dropped")
		}
		// Within any queue and buffer.
		Eventually(t, "the frames before", func() bool { return a.Count() > sent-100 })
	}
	Eventually(t, "all", func() bool { return a.Count() == sent+1 })
	if !slices.IsSorted(a.Numbers()) {
		t.Error("out of order")
	}
}

// slow has one peer that does not drain, and another that must not notice.
func (c *Case) slow(t *testing.T) {
	n := c.Open(t)
	d, a := n.Pair()
	other, b := n.Pair()
	// The listener's side floods: it serves the others too.
	d.Hold.Lock()
	var f face.Frames
	const batches, frames = 800, 10
	dropped, queue := 0, 0
	for i := range batches {
		f.Reset()
		for j := range frames {
			Frame(&f, uint64(i*frames+j+1), 8000)
		}
		dropped += a.Send(&f)
		queue = max(queue, a.QueueLen())
		if i%100 == 0 {
			f.Reset()
			Frame(&f, uint64(i), 5000)
			before := b.Count()
			other.Send(&f)
			Eventually(t, "the other peer's frame", func() bool { return b.Count() > before })
		}
	}
	if c.Bounded {
		if dropped == 0 {
			t.Error("64 MB were queued for a peer that does not drain")
		}
		if queue < 1<<20 || queue > 32<<20 {
			t.Errorf("queue of %d bytes", queue)
		}
	}
	d.Hold.Unlock()
	if !c.Datagram {
		Eventually(t, "what was not dropped", func() bool { return d.Count() == batches*frames-dropped })
	}
	// The link is of use again.
	Eventually(t, "an empty queue", func() bool { return a.QueueLen() == 0 })
	before := d.Count()
	f.Reset()
	Frame(&f, 7, 100)
	Eventually(t, "a frame after it", func() bool { a.Send(&f); return d.Count() > before })
}

func (c *Case) peerCloses(t *testing.T) {
	n := c.Open(t)
	d, a := n.Pair()
	_, b := n.Pair()
	d.Close()
	if c.Datagram {
		// It shows when something is sent there.
		if c.Deaf {
			t.Skip("cannot be noticed")
		}
		var f face.Frames
		Frame(&f, 1, 100)
		Eventually(t, "refusal", func() bool { a.Send(&f); return a.Reason() != nil })
		if !errors.Is(a.Reason(), face.ErrRefused) {
			t.Errorf("reason %v", a.Reason())
		}
		if a.Send(&f) != 1 {
			t.Error("a frame to a refused peer was not dropped")
		}
	} else {
		Eventually(t, "end", func() bool { return a.Reason() != nil })
		if !errors.Is(a.Reason(), face.ErrPeerClosed) {
			t.Errorf("reason %v", a.Reason())
		}
	}
	if b.Reason() != nil {
		t.Errorf("another peer ended: %v", b.Reason())
	}
}

func (c *Case) weClose(t *testing.T) {
	n := c.Open(t)
	d, a := n.Pair()
	_, b := n.Pair()
	for _, s := range []Side{d, a} {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { s.Transport.Close() })
		}
		wg.Wait()
		Eventually(t, "end", func() bool { return s.Reason() != nil })
		if r := s.Reason(); !errors.Is(r, face.ErrClosed) && (s == d || !errors.Is(r, face.ErrPeerClosed)) {
			t.Errorf("reason %v", r)
		}
		var f face.Frames
		Frame(&f, 1, 100)
		if s.Send(&f) != 1 {
			t.Error("a frame was not dropped")
		}
		s.QueueLen()
	}
	if b.Reason() != nil {
		t.Errorf("another peer ended: %v", b.Reason())
	}
}

func (c *Case) closeFirst(t *testing.T) {
	n := c.Open(t)
	s, err := n.dial()
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := s.Serve(new(Sink)); !errors.Is(err, face.ErrClosed) {
		t.Errorf("Serve returned %v", err)
	}
}

func (c *Case) listenerCloses(t *testing.T) {
	n := c.Open(t)
	d, a := n.Pair()
	n.L.Close()
	err := <-n.done
	n.done <- err
	if !errors.Is(err, face.ErrClosed) {
		t.Errorf("Serve returned %v", err)
	}
	if c.Datagram {
		if !errors.Is(a.Reason(), face.ErrClosed) {
			t.Errorf("reason %v", a.Reason())
		}
		return
	}
	// Accepted streams go on.
	var f face.Frames
	Frame(&f, 1, 100)
	d.Send(&f)
	Eventually(t, "a frame", func() bool { return a.Count() == 2 })
}

func (c *Case) acceptorRefuses(t *testing.T) {
	n := c.Open(t)
	n.mu.Lock()
	n.refuse = true
	n.mu.Unlock()
	d := n.Dial()
	var f face.Frames
	Frame(&f, 1, 100)
	d.Send(&f)
	if !c.Datagram {
		Eventually(t, "end", func() bool { return d.Reason() != nil })
		if !errors.Is(d.Reason(), face.ErrPeerClosed) {
			t.Errorf("reason %v", d.Reason())
		}
	}
	n.mu.Lock()
	n.refuse = false
	n.mu.Unlock()
	n.Pair()
	if c.Datagram {
		// The same peer may ask again.
		Eventually(t, "accept", func() bool { d.Send(&f); return len(n.Accepted()) == 2 })
	}
}

func (c *Case) comesBack(t *testing.T) {
	n := c.Open(t)
	d, a := n.Pair()
	a.Transport.Close()
	Eventually(t, "end", func() bool { return a.Reason() != nil })
	if !c.Datagram {
		Eventually(t, "end of the other side", func() bool { return d.Reason() != nil })
		return
	}
	var f face.Frames
	Frame(&f, 5, 100)
	d.Send(&f)
	Eventually(t, "a new peer", func() bool { return len(n.Accepted()) == 2 })
	b := n.Accepted()[1]
	Eventually(t, "its frame", func() bool { return b.Count() == 1 })
}

func (c *Case) refused(t *testing.T) {
	if c.Refused == nil {
		t.Skip("cannot happen")
	}
	s, err := c.Refused(t)
	if !c.Datagram {
		if !errors.Is(err, face.ErrRefused) {
			t.Fatalf("error %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	sink := new(Sink)
	done := make(chan error, 1)
	go func() { done <- s.Serve(sink) }()
	var f face.Frames
	Frame(&f, 1, 100)
	Eventually(t, "refusal", func() bool { s.Send(&f); return sink.Reason() != nil })
	if err := <-done; !errors.Is(err, face.ErrRefused) {
		t.Errorf("Serve returned %v", err)
	}
	s.Close()
	sink.Check(t)
}

func (c *Case) badInput(t *testing.T) {
	if c.Raw == nil {
		t.Skip("cannot happen")
	}
	n := c.Open(t)
	d, a := n.Pair()
	for _, in := range []struct {
		name  string
		bytes []byte
	}{
		{"length 2^63", []byte{0x05, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0}},
		{"length 8801", []byte{0x06, 0xfd, 0x22, 0x61}},
		{"8800 and a header", []byte{0x06, 0xfd, 0x22, 0x60}},
		{"type 0", []byte{0x00, 0x01, 0x00}},
		{"length not shortest", []byte{0x06, 0xfd, 0x00, 0x01, 0x00}},
		{"type over 32 bits", []byte{0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 0}},
	} {
		before := len(n.Accepted())
		raw := c.Raw(t, n.L)
		// One good frame before it gets through.
		var f face.Frames
		Frame(&f, 9, 20)
		if _, err := raw.Write(append(slices.Clone(f.Buf), in.bytes...)); err != nil {
			t.Fatal(err)
		}
		Eventually(t, "accept", func() bool { return len(n.Accepted()) > before })
		x := n.Accepted()[before]
		if !c.Datagram {
			Eventually(t, "end", func() bool { return x.Reason() != nil })
			if !errors.Is(x.Reason(), face.ErrFraming) {
				t.Errorf("%s: reason %v", in.name, x.Reason())
			}
			if x.Count() != 1 {
				t.Errorf("%s: %d frames before it", in.name, x.Count())
			}
			if m, err := raw.Read(make([]byte, 1)); err == nil {
				t.Errorf("%s: read %d bytes instead of the end", in.name, m)
			}
		}
		raw.Close()
		if c.Datagram {
			// The link service judges what is in a datagram; this check of
			// the suite does not concern it.
			Eventually(t, "the frame", func() bool { return x.Count() == 1 })
			x.Sink.mu.Lock()
			x.Sink.err = nil
			x.Sink.mu.Unlock()
		}
	}
	var f face.Frames
	Frame(&f, 1, 100)
	d.Send(&f)
	Eventually(t, "another peer's frame", func() bool { return a.Count() == 2 })
}

func (c *Case) many(t *testing.T) {
	n := c.Open(t)
	const peers, batches = 8, 50
	var wg sync.WaitGroup
	for range peers {
		d, a := n.Pair()
		for _, dir := range [][2]Side{{d, a}, {a, d}} {
			from, to := dir[0], dir[1]
			base := to.Count()
			wg.Go(func() {
				var b face.Frames
				for i := range batches {
					b.Reset()
					for j := range 20 {
						Frame(&b, uint64(i*20+j), 200+i*40)
					}
					if from.Send(&b) != 0 {
						t.Error("dropped")
						return
					}
					Eventually(t, "a batch", func() bool { return to.Count() >= base+(i+1)*20 })
					from.MTU()
					from.QueueLen()
				}
			})
		}
	}
	wg.Wait()
}

// counter is a Receiver that only counts.
type counter struct {
	n    int
	want int
	got  chan struct{}
}

func (c *counter) Receive(frames [][]byte) { c.n += len(frames) }
func (c *counter) Flush() {
	if c.n >= c.want {
		c.n -= c.want
		c.got <- struct{}{}
	}
}
func (c *counter) Closed(error) {}

// Loop sends batches of frames from one end of a link to the other. Next
// sends one and waits until it has come. stop ends both.
func (c *Case) Loop(t testing.TB, l face.Listener, dial func() (face.Server, error), frames, size int) (next func(), stop func()) {
	recv := &counter{want: frames, got: make(chan struct{}, 1)}
	done := make(chan struct{}, 3)
	var accepted face.Transport
	go func() {
		_ = l.Serve(func(tr face.Transport) (face.Receiver, error) {
			accepted = tr
			return recv, nil
		})
		done <- struct{}{}
	}()
	d, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = d.Serve(&counter{want: 1 << 62}); done <- struct{}{} }()
	var b face.Frames
	for i := range frames {
		Frame(&b, uint64(i), size)
	}
	next = func() {
		if dropped := d.Send(&b); dropped != 0 {
			t.Fatalf("dropped %d", dropped)
		}
		<-recv.got
	}
	next()
	return next, func() {
		_ = d.Close()
		_ = accepted.Close()
		_ = l.Close()
		<-done
		<-done
	}
}

func (c *Case) allocs(t *testing.T) {
	if c.Allocates {
		t.Skip("not for this transport")
	}
	l, dial := c.Listen(t)
	next, stop := c.Loop(t, l, dial, 40, 8000)
	defer stop()
	for range 50 {
		next()
	}
	if n := testing.AllocsPerRun(200, next); n > 0 {
		t.Errorf("%v allocations per batch", n)
	}
}
