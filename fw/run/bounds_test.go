package run

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/face/mem"
	"ndnpop/ndn"
)

func TestFacesPerListenerAreBounded(t *testing.T) {
	f := start(t, Options{})
	var told atomic.Int32
	f.Observe(func(e Event) {
		if e.Kind == ListenerFull {
			told.Add(1)
		}
	})
	addr := listenTCP(t, f, "127.0.0.1:0", ListenOptions{MaxFaces: 3})
	udpAddr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{MaxFaces: 2})
	_, id := memApp(t, f, echo(t, 10))
	addRoute(t, f, "/a", id)
	var apps []*app
	for i := range 5 {
		a := newApp(t, dialTCP(t, addr), nil)
		apps = append(apps, a)
		if i < 3 {
			a.interest(fmt.Sprintf("/a/%d", i), 1)
			a.expect(ndn.KindData, fmt.Sprintf("/a/%d", i))
			continue
		}
		select {
		case err := <-a.done:
			a.done <- err
		case <-time.After(patience):
			t.Fatal("the fourth connection was not closed")
		}
	}
	for i := range 4 {
		a := newApp(t, dialUDP(t, udpAddr), nil)
		a.interest(fmt.Sprintf("/a/u%d", i), 1)
		a.expect(ndn.KindData, fmt.Sprintf("/a/u%d", i)) // in the place of an earlier one
	}
	eventually(t, "two refusals", func() bool { return f.RefusedFaces() == 2 })
	if n := told.Load(); n != 1 {
		t.Errorf("told %d times that peers are refused", n)
	}
	// A place that gets free is given away again.
	apps[0].close()
	eventually(t, "a free place", func() bool { return len(f.Faces()) == 2+2+2 })
	a := newApp(t, dialTCP(t, addr), nil)
	a.interest("/a/again", 1)
	a.expect(ndn.KindData, "/a/again")
}

// TestIdlePeersMakeRoom: peers that said something once do not lock others out,
// and those that are wanted stay.
func TestIdlePeersMakeRoom(t *testing.T) {
	f := start(t, Options{})
	addr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{MaxFaces: 3})
	_, id := memApp(t, f, echo(t, 10))
	addRoute(t, f, "/a", id)
	stay := newApp(t, dialUDP(t, addr), nil)
	stay.interest("/a/stay", 1)
	stay.expect(ndn.KindData, "/a/stay")
	wanted, _ := byScheme(f, "udp4")
	p := face.PersistencyPersistent
	if _, err := f.UpdateFace(wanted.ID, FaceUpdate{Persistency: &p}); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		// A peer that proves nothing.
		c, err := net.Dial("udp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		wire := ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName(fmt.Sprintf("/a/%d", i)), Nonce: 1})
		eventually(t, "a place", func() bool {
			if _, err := c.Write(wire); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			_, err := c.Read(make([]byte, 1))
			return err == nil
		})
		if n := len(f.Faces()); n > 2+3 {
			t.Fatalf("%d faces", n)
		}
	}
	if _, ok := f.Face(wanted.ID); !ok {
		t.Error("the face that is wanted has gone")
	}
}

func TestFaceTableIsBounded(t *testing.T) {
	f := start(t, Options{MaxFaces: 3})
	memApp(t, f, nil)
	memApp(t, f, nil)
	near, far := mem.Pair()
	defer near.Close()
	defer far.Close()
	if _, err := f.AttachFace(near, ""); !errors.Is(err, ErrTooManyFaces) {
		t.Fatalf("error %v", err)
	}
}

// TestSlowPeerHoldsUpNobody: a consumer that does not read loses its own Data
// and another gets all of its.
func TestSlowPeerHoldsUpNobody(t *testing.T) {
	f := start(t, Options{})
	path := listenUnix(t, f)
	_, id := memApp(t, f, echo(t, 8000))
	addRoute(t, f, "/a", id)

	slow, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	good := newApp(t, dialUnix(t, path), nil)
	for i := range 4000 {
		if _, err := slow.Write(interestWire(fmt.Sprintf("/a/slow/%d", i), uint32(i+1))); err != nil {
			t.Fatal(err)
		}
		if i%40 == 0 {
			// Both share the producer's link, which may overflow; a consumer
			// asks again then.
			name, nonce := fmt.Sprintf("/a/good/%d", i), uint32(1_000_000+100*i)
			eventually(t, "Data "+name, func() bool {
				nonce++
				good.interest(name, nonce)
				select {
				case p := <-good.in:
					return p.kind == ndn.KindData && p.name.Equal(ndn.MustName(name))
				case <-time.After(100 * time.Millisecond):
					return false
				}
			})
		}
	}
	eventually(t, "drops on the slow face", func() bool {
		for _, i := range f.Faces() {
			if i.Counters.Drops.OutTransport > 0 {
				return true
			}
		}
		return false
	})
}
