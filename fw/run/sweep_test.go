package run

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"ndnpop/ndn"
)

// manyRoutes routes n prefixes to a face.
func manyRoutes(t testing.TB, f *Forwarder, id ndn.FaceID, n int) {
	t.Helper()
	for i := range n {
		addRoute(t, f, fmt.Sprintf("/many/%d", i), id)
	}
}

// lockRIB is a change that takes long. unlock may be called again, so that a
// test that fails can close the forwarder.
func lockRIB(f *Forwarder) (unlock func()) {
	f.ribMu.Lock()
	return sync.OnceFunc(f.ribMu.Unlock)
}

// TestFaceOfManyRoutesGoesInParts: no lock is held while all its next hops are
// removed, and until they are it gets nothing.
func TestFaceOfManyRoutesGoesInParts(t *testing.T) {
	const routes = 10 * fibBatch
	f := start(t, Options{})
	old, id := memApp(t, f, nil)
	manyRoutes(t, f, id, routes)
	_, producer := memApp(t, f, echo(t, 10))
	addRoute(t, f, "/other", producer)
	other, _ := memApp(t, f, nil)
	unlock := lockRIB(f)
	defer unlock()
	// The sweeper waits for the lock from now on.
	f.routesDue(0)
	gone := make(chan error)
	go func() { gone <- f.DestroyFace(id) }()
	eventually(t, "the face to go", func() bool { _, ok := f.Face(id); return !ok })
	left := f.Counters().Routes
	for i := range routes {
		other.interest(fmt.Sprintf("/many/%d", i), uint32(i+1))
	}
	other.interest("/other/a", 1)
	for range routes {
		if p := <-other.in; p.kind != ndn.KindNack {
			t.Fatalf("got kind %d %s", p.kind, p.name)
		}
	}
	other.expect(ndn.KindData, "/other/a")
	unlock()
	if want := routes - fibBatch + 1; left != want {
		t.Errorf("%d next hops were left, want %d", left, want)
	}
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	if r := f.Routes(); len(r) != 1 || f.Counters().Routes != 1 {
		t.Errorf("left: %d routes, %d next hops", len(r), f.Counters().Routes)
	}
	if n := len(old.in); n != 0 {
		t.Errorf("%d Interests went to the face that had gone", n)
	}
}

// TestReceiversDoNotWaitForTheRIB: while a large change keeps the RIB busy, a
// UDP peer goes, with its routes, and others are still heard.
func TestReceiversDoNotWaitForTheRIB(t *testing.T) {
	f := start(t, Options{})
	addr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{})
	_, id := memApp(t, f, echo(t, 10))
	addRoute(t, f, "/a", id)
	peer := newApp(t, dialUDP(t, addr), nil)
	peer.interest("/a/peer", 1)
	peer.expect(ndn.KindData, "/a/peer")
	i, _ := byScheme(f, "udp4")
	addRoute(t, f, "/peer", i.ID)
	stays := newApp(t, dialUDP(t, addr), nil)
	stays.interest("/a/stays", 1)
	stays.expect(ndn.KindData, "/a/stays")
	peer.close()

	unlock := lockRIB(f)
	defer unlock()
	// What is sent to the peer is refused by ICMP, which the receiver hears of.
	n := uint32(1)
	eventually(t, "the peer's face to go", func() bool {
		n++
		stays.interest(fmt.Sprintf("/peer/%d", n), n)
		_, ok := f.Face(i.ID)
		return !ok
	})
	for len(stays.in) > 0 {
		<-stays.in
	}
	eventually(t, "Data for the other peer", func() bool {
		n++
		stays.interest(fmt.Sprintf("/a/%d", n), n)
		select {
		case p := <-stays.in:
			return p.kind == ndn.KindData
		case <-time.After(50 * time.Millisecond):
			return false
		}
	})
	unlock()
	eventually(t, "its route to go", func() bool { return f.RouteCount() == 1 })
}

// TestTimersDoNotWaitForTheRIB: the same of what expires.
func TestTimersDoNotWaitForTheRIB(t *testing.T) {
	f := start(t, Options{})
	_, id := memApp(t, f, nil)
	fired := make(chan struct{}, 1)
	x := newAlarm(func(ndn.Time) ndn.Time { fired <- struct{}{}; return ndn.Never })
	at := f.Now().Add(20 * time.Millisecond)
	if err := f.AddRoute(Route{Prefix: ndn.MustName("/a"), Face: id, Expires: at}); err != nil {
		t.Fatal(err)
	}
	f.ribMu.Lock()
	f.alarms.arm(x, at.Add(10*time.Millisecond))
	select {
	case <-fired:
	case <-time.After(patience):
		t.Error("a timer waits for the RIB")
	}
	f.ribMu.Unlock()
	eventually(t, "the route to expire", func() bool { return f.RouteCount() == 0 })
}
