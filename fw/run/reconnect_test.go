package run

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/face/udp"
	"ndnpop/ndn"
)

// sink counts the Interests of a peer that never answers.
type sink struct{ interests atomic.Int64 }

func (s *sink) Receive(frames [][]byte) {
	for _, f := range frames {
		if f[0] != byte(ndn.TypeLpPacket) || len(f) > 2 {
			s.interests.Add(1)
		}
	}
}
func (s *sink) Flush()       {}
func (s *sink) Closed(error) {}

// TestRefusedFaceIsNotTriedWithInterests: a permanent UDP face whose peer is
// gone stays down however often it is probed, and no Interest is spent on it;
// it is up when the peer is there again.
func TestRefusedFaceIsNotTriedWithInterests(t *testing.T) {
	f := start(t, Options{})
	var downs, ups atomic.Int64
	f.Observe(func(e Event) {
		switch e.Kind {
		case FaceDown:
			downs.Add(1)
		case FaceUp:
			ups.Add(1)
		}
	})
	addr := freePort(t, "udp")
	i, err := f.CreateFace(FaceSpec{URI: "udp4://" + addr, Persistency: face.PersistencyPermanent})
	if err != nil {
		t.Fatal(err)
	}
	addRoute(t, f, "/a", i.ID)
	c, _ := memApp(t, f, nil)
	n := 0
	ask := func() {
		n++
		c.interest(fmt.Sprintf("/a/%d", n), uint32(n))
	}
	eventually(t, "the face to go down", func() bool { ask(); return downs.Load() == 1 })
	after, _ := f.Face(i.ID)
	// Longer than a pause and a probation, whose end was the mistake to make.
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
		ask()
		time.Sleep(5 * time.Millisecond)
	}
	now, _ := f.Face(i.ID)
	if now.Up || ups.Load() != 0 || downs.Load() != 1 {
		t.Fatalf("up %v, %d times up, %d down, with nobody there", now.Up, ups.Load(), downs.Load())
	}
	if now.DownFor < time.Second || !strings.HasPrefix(now.DownWhy, "refused") {
		t.Errorf("down for %v: %q", now.DownFor, now.DownWhy)
	}
	if spent := now.Counters.OutInterests - after.Counters.OutInterests; spent != 0 {
		t.Errorf("%d Interests were spent on a face that was down", spent)
	}
	peer, err := udp.Listen(addr, udp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{}
	done := make(chan error, 1)
	go func() { done <- peer.Serve(func(face.Transport) (face.Receiver, error) { return s, nil }) }()
	defer func() { _ = peer.Close(); <-done }()
	eventually(t, "the face to come up", func() bool { x, _ := f.Face(i.ID); return x.Up })
	if x, _ := f.Face(i.ID); x.DownFor != 0 || x.DownWhy != "" {
		t.Errorf("up, and down for %v: %q", x.DownFor, x.DownWhy)
	}
	eventually(t, "an Interest to arrive", func() bool { ask(); return s.interests.Load() > 0 })
	if ups.Load() != 1 {
		t.Errorf("%d times up", ups.Load())
	}
}

// TestHearingEndsThePause: a permanent face that waits to try again does so at
// once when its peer speaks.
func TestHearingEndsThePause(t *testing.T) {
	f := start(t, Options{})
	listenUDP(t, f, "127.0.0.1:0", ListenOptions{})
	addr := freePort(t, "udp")
	i, err := f.CreateFace(FaceSpec{URI: "udp4://" + addr, Persistency: face.PersistencyPermanent})
	if err != nil {
		t.Fatal(err)
	}
	addRoute(t, f, "/a", i.ID)
	c, _ := memApp(t, f, nil)
	n := uint32(0)
	eventually(t, "the face to go down", func() bool {
		n++
		c.interest(fmt.Sprintf("/a/%d", n), n)
		x, _ := f.Face(i.ID)
		return !x.Up
	})
	info, _ := f.Face(i.ID)
	_, here := splitURI(info.LocalURI)
	tr, err := udp.Dial(here, udp.Options{Local: addr})
	if err != nil {
		t.Fatal(err)
	}
	peer := newApp(t, tr, nil)
	eventually(t, "the face to come up", func() bool {
		peer.send([]byte{0x64, 0}, nil)
		x, _ := f.Face(i.ID)
		return x.Up
	})
	// What the peer sent before makes way.
	beside := func() (fc *netFace) {
		for _, x := range f.list() {
			if x.listener != nil {
				fc = x
			}
		}
		return fc
	}
	first := beside()
	if first == nil {
		t.Fatal("no face for what came before the face was up")
	}
	first.idleDue(first.lastIn.Add(besideIdle - 1))
	if beside() == nil {
		t.Error("it was removed at once")
	}
	if x, ok := f.Face(first.id); !ok || x.ExpiresIn > besideIdle {
		t.Errorf("it expires in %v", x.ExpiresIn)
	}
	first.idleDue(first.lastIn.Add(besideIdle))
	if beside() != nil {
		t.Error("it was not removed")
	}
	// Strategies may try again what had been lost before.
	c.interest("/a/again", 1)
	for p := (packet{}); !p.name.Equal(ndn.MustName("/a/again")); {
		select {
		case p = <-peer.in:
		case <-time.After(patience):
			t.Fatal("the Interest did not arrive")
		}
	}
}

// TestUnreachableFaceSaysWhy: a permanent face that never reached its peer is
// listed, with the reason.
func TestUnreachableFaceSaysWhy(t *testing.T) {
	f := start(t, Options{})
	i, err := f.CreateFace(FaceSpec{URI: "tcp4://" + freePort(t, "tcp"), Persistency: face.PersistencyPermanent})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the reason", func() bool {
		for _, x := range f.Faces() {
			if x.ID == i.ID {
				return !x.Up && x.DownFor > 0 && strings.Contains(x.DownWhy, "refused")
			}
		}
		return false
	})
}

// TestSilenceThatMisled: a face that was refused is up again after a silence that
// is longer than what refusals there take.
func TestSilenceThatMisled(t *testing.T) {
	port, host := error(syscall.ECONNREFUSED), error(syscall.EHOSTUNREACH)
	steps := []struct {
		why   error
		later time.Duration
		heard bool
		want  time.Duration
	}{
		{port, 0, false, probation},
		{port, 3 * time.Second, false, 6 * time.Second}, // it was up
		{port, 5 * time.Second, false, 6 * time.Second}, // it was not
		{port, 7 * time.Second, false, 14 * time.Second},
		{port, 40 * time.Second, false, lastProbation},
		{port, time.Second, false, lastProbation},
		{port, lastProbation + time.Second, false, lastProbation},
		{port, time.Second, true, probation},
		{host, time.Second, true, awayProbation},
		{host, 3 * time.Second, false, awayProbation},
		{host, 5 * time.Second, false, 10 * time.Second},
		{host, 3 * time.Second, false, 10 * time.Second},
		{port, time.Hour, false, probation}, // it was up for good reason
	}
	var s silence
	for i, x := range steps {
		if s.refused(x.why, x.later, x.heard); s.length() != x.want {
			t.Fatalf("step %d: %v, want %v", i, s.length(), x.want)
		}
	}
}

// absent is the transport to a host that is away: the system takes a while to
// say so.
type absent struct {
	after time.Duration
	ended chan struct{}
	once  sync.Once
}

func (a *absent) Info() face.Info {
	return face.Info{RemoteURI: "udp4://192.0.2.1:6363", LocalURI: "udp4://192.0.2.2:6363"}
}
func (a *absent) MTU() int              { return 1400 }
func (a *absent) QueueLen() int         { return 0 }
func (a *absent) Send(*face.Frames) int { return 0 }
func (a *absent) Close() error          { a.once.Do(func() { close(a.ended) }); return nil }
func (a *absent) Serve(r face.Receiver) (err error) {
	select {
	case <-a.ended:
		err = face.ErrClosed
	case <-time.After(a.after):
		err = fmt.Errorf("%w: %w", face.ErrRefused, syscall.EHOSTUNREACH)
	}
	r.Closed(err)
	return err
}

// TestAbsentHostStaysDown: the face to a host that is away does not come up between
// one attempt to reach it and the next.
func TestAbsentHostStaysDown(t *testing.T) {
	var dials atomic.Int64
	f := start(t, Options{Dial: func(context.Context, string, int) (face.Server, error) {
		a := &absent{ended: make(chan struct{})}
		if dials.Add(1) > 1 {
			a.after = probation * 5 / 4
		}
		return a, nil
	}})
	ev := observe(f)
	i, err := f.CreateFace(FaceSpec{URI: "udp4://192.0.2.1:6363", Persistency: face.PersistencyPermanent})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "another attempt", func() bool { return dials.Load() > 2 })
	if ev.has(fmt.Sprintf("face up %d", i.ID)) {
		t.Error("it came up")
	}
}
