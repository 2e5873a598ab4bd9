package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ndnpop/face"
	"ndnpop/face/mem"
	"ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/producer"
	"ndnpop/producer/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// forwarder is the other end of a link: it answers commands with a code and
// keeps the Data that come.
type forwarder struct {
	server face.Server
	code   uint64 // 0: no answer
	nack   bool

	mu       sync.Mutex
	commands []string
	data     []ndn.Data
	came     chan struct{}
}

func (f *forwarder) Receive(frames [][]byte) {
	for _, frame := range frames {
		var lp ndn.LpPacket
		var p ndn.Packet
		if lp.Parse(bytes.Clone(frame)) != nil || p.Parse(lp.Fragment, &lp.LpFields) != nil {
			continue
		}
		if p.Kind == ndn.KindData {
			f.mu.Lock()
			f.data = append(f.data, p.Data)
			f.mu.Unlock()
			f.came <- struct{}{}
			continue
		}
		f.command(&p)
	}
}

func (f *forwarder) command(p *ndn.Packet) {
	var out face.Frames
	verb, _ := p.Interest.Name.At(3)
	arg, _ := p.Interest.Name.At(4)
	params, err := mgmt.ParseControlParameters(arg.Value)
	if err != nil {
		return
	}
	f.mu.Lock()
	f.commands = append(f.commands, fmt.Sprintf("%s %s", verb, params.Name.Unwrap()))
	f.mu.Unlock()
	switch {
	case f.nack:
		h := ndn.LpHeader{LpFields: &ndn.LpFields{IsNack: true, NackReason: ndn.NackNoRoute}}
		out.Buf = ndn.AppendLpPacket(nil, &h, p.Interest.Wire)
	case f.code != 0:
		r := mgmt.ControlResponse{Code: f.code, Text: "text"}
		out.Buf, _ = ndn.AppendData(nil, &ndn.DataFields{Name: p.Interest.Name, Content: r.AppendTo(nil)}, ndn.DigestSigner{})
	default:
		return
	}
	out.End()
	f.server.Send(&out)
}

func (f *forwarder) Flush()       {}
func (f *forwarder) Closed(error) {}

func (f *forwarder) ask(names ...string) {
	var out face.Frames
	for i, n := range names {
		h := ndn.LpHeader{LpFields: &ndn.LpFields{PitToken: []byte{byte(i)}}}
		out.Buf = ndn.AppendLpPacket(out.Buf, &h, ndn.AppendInterest(nil, &ndn.InterestFields{
			Name: ndn.MustName(n), CanBePrefix: true, Lifetime: 10 * time.Second, Nonce: uint32(i),
		}))
		out.End()
	}
	f.server.Send(&out)
}

// network hands out links to forwarders and remembers them.
type network struct {
	mu    sync.Mutex
	links []*forwarder
	setup func(n int, f *forwarder) error // n counts dials
	dials int
	wait  sync.WaitGroup
	newed chan *forwarder
}

func newNetwork(setup func(int, *forwarder) error) *network {
	return &network{setup: setup, newed: make(chan *forwarder, 10)}
}

func (n *network) dial() (face.Server, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, b := mem.Pair()
	f := &forwarder{server: b, came: make(chan struct{}, 1000), code: 200}
	n.dials++
	if err := n.setup(n.dials, f); err != nil {
		a.Close()
		b.Close()
		return nil, err
	}
	n.links = append(n.links, f)
	n.wait.Go(func() { _ = b.Serve(f) })
	n.newed <- f
	return a, nil
}

func fine(int, *forwarder) error { return nil }

// start runs an App with a spool that serves what w brings.
func start(t *testing.T, n *network) (app *App, events chan Event, w io.WriteCloser, stop func() error) {
	t.Helper()
	events = make(chan Event, 100)
	app = New(Config{
		Dial: n.dial, Prefixes: []ndn.Name{ndn.MustName("/cdn/x")},
		Report: func(e Event) { events <- e },
	})
	s, err := store.NewSpool(t.TempDir(), time.Now(), store.Options{SegmentSize: 10, Room: 8000, Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	r, err := producer.New(producer.Config{Prefix: ndn.MustName("/cdn/x")}, s, app)
	if err != nil {
		t.Fatal(err)
	}
	pr, pw := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	filled := make(chan error, 1)
	go func() {
		filled <- s.Fill(pr, func() {
			app.Do(func(now ndn.Time) {
				if err := r.Grown(now); err != nil {
					t.Error(err)
				}
			})
		})
	}()
	go func() { done <- app.Run(ctx, r) }()
	return app, events, pw, func() error {
		cancel()
		err := <-done
		pw.Close()
		<-filled
		s.Close()
		n.wait.Wait()
		return err
	}
}

func want(t *testing.T, events chan Event, kind EventKind) Event {
	t.Helper()
	select {
	case e := <-events:
		if e.Kind != kind {
			t.Fatalf("event %+v, want kind %d", e, kind)
		}
		return e
	case <-time.After(20 * time.Second):
		t.Fatalf("no event of kind %d", kind)
	}
	return Event{}
}

func (f *forwarder) want(t *testing.T, names ...string) {
	t.Helper()
	for range names {
		select {
		case <-f.came:
		case <-time.After(20 * time.Second):
			t.Fatal("no answer")
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, n := range names {
		if got := f.data[i].Name.String(); got != n {
			t.Errorf("answer %d is %s, want %s", i, got, n)
		}
	}
	f.data = nil
}

// TestServe: registers, answers at once what is there, and later what comes.
func TestServe(t *testing.T) {
	n := newNetwork(fine)
	_, events, w, stop := start(t, n)
	f := <-n.newed
	want(t, events, Ready)
	if len(f.commands) != 1 || f.commands[0] != "register /cdn/x" {
		t.Errorf("commands %v", f.commands)
	}
	f.ask("/cdn/x/v=1/seg=0", "/cdn/x/v=1/seg=1", "/cdn/x/v=2/seg=0")
	f.want(t, "/cdn/x/v=2/seg=0") // a Nack
	_, _ = io.WriteString(w, "0123456789a")
	f.want(t, "/cdn/x/v=1/seg=0")
	w.Close()
	f.want(t, "/cdn/x/v=1/seg=1")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestComesBack: after the forwarder restarts the prefix is registered again.
func TestComesBack(t *testing.T) {
	down := errors.New("down")
	n := newNetwork(func(dials int, _ *forwarder) error {
		if dials == 2 {
			return down
		}
		return nil
	})
	_, events, w, stop := start(t, n)
	want(t, events, Ready)
	(<-n.newed).server.Close()
	if e := want(t, events, Lost); !errors.Is(e.Err, face.ErrPeerClosed) {
		t.Errorf("lost because of %v", e.Err)
	}
	if e := want(t, events, Failed); !errors.Is(e.Err, down) || !errors.Is(e.Err, ErrUnreachable) {
		t.Errorf("failed because of %v", e.Err)
	}
	want(t, events, Ready)
	f := <-n.newed
	w.Close()
	f.ask("/cdn/x/v=1/seg=0")
	f.want(t, "/cdn/x/v=1/seg=0")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestStartFails: each way in which the first attempt can fail.
func TestStartFails(t *testing.T) {
	down := errors.New("down")
	var status *mgmt.StatusError
	for _, c := range []struct {
		name  string
		setup func(int, *forwarder) error
		check func(error) bool
	}{
		{"no forwarder", func(int, *forwarder) error { return down },
			func(err error) bool { return errors.Is(err, ErrUnreachable) && errors.Is(err, down) }},
		{"refused", func(_ int, f *forwarder) error { f.code = 403; return nil },
			func(err error) bool { return errors.As(err, &status) && status.Code == 403 }},
		{"nack", func(_ int, f *forwarder) error { f.nack = true; return nil },
			func(err error) bool { return errors.Is(err, ErrNoManagement) }},
		{"closed", func(_ int, f *forwarder) error { f.code = 0; f.server.Close(); return nil },
			func(err error) bool { return errors.Is(err, ErrUnreachable) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(c.setup)
			app := New(Config{Dial: n.dial, Prefixes: []ndn.Name{ndn.MustName("/p")}})
			if err := app.Run(context.Background(), nothing{}); !c.check(err) {
				t.Errorf("got %v", err)
			}
			n.wait.Wait()
		})
	}
}

// TestStopWhileRegistering does not wait for the forwarder.
func TestStopWhileRegistering(t *testing.T) {
	n := newNetwork(func(_ int, f *forwarder) error { f.code = 0; return nil })
	ctx, cancel := context.WithCancel(context.Background())
	app := New(Config{Dial: n.dial, Prefixes: []ndn.Name{ndn.MustName("/p")}})
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx, nothing{}) }()
	<-n.newed
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	n.wait.Wait()
}

// nothing is a core that does nothing.
type nothing struct{}

func (nothing) Receive(ndn.Time, *ndn.Packet) error { return nil }
func (nothing) Deadline() ndn.Time                  { return ndn.Never }
func (nothing) Tick(ndn.Time)                       {}

// ticker counts its ticks until there were enough.
type ticker struct {
	nothing
	due   ndn.Time
	left  int
	ended chan struct{}
}

func (k *ticker) Deadline() ndn.Time { return k.due }
func (k *ticker) Tick(now ndn.Time) {
	if now < k.due {
		return
	}
	if k.left--; k.left == 0 {
		k.due = ndn.Never
		close(k.ended)
		return
	}
	k.due = now.Add(time.Millisecond)
}

// TestDeadlines: the core's timers run without packets.
func TestDeadlines(t *testing.T) {
	n := newNetwork(fine)
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan Event, 1)
	app := New(Config{Dial: n.dial, Report: func(e Event) { ready <- e }})
	k := &ticker{due: ndn.Never, left: 3, ended: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx, k) }()
	want(t, ready, Ready)
	app.Do(func(now ndn.Time) { k.due = now.Add(time.Millisecond) })
	select {
	case <-k.ended:
	case <-time.After(20 * time.Second):
		t.Error("the timer stands still")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	n.wait.Wait()
}
