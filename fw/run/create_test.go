package run

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

// TestCreateFaceAtOnce: of several who create the same face at once, as routing
// daemons and operators do, one makes it and the others get the one that exists.
func TestCreateFaceAtOnce(t *testing.T) {
	f := start(t, Options{})
	peer := start(t, Options{})
	for range 8 {
		for _, uri := range []string{"tcp4://" + listenTCP(t, peer, "127.0.0.1:0", ListenOptions{}), "udp4://" + freePort(t, "udp")} {
			var wg sync.WaitGroup
			var made atomic.Int32
			var ids sync.Map
			for range 6 {
				wg.Go(func() {
					i, err := f.CreateFace(FaceSpec{URI: uri})
					switch {
					case err == nil:
						made.Add(1)
					case !errors.Is(err, ErrFaceExists):
						t.Errorf("%s: %v", uri, err)
					}
					ids.Store(i.ID, true)
				})
			}
			wg.Wait()
			n := 0
			ids.Range(func(id, _ any) bool {
				n++
				return id != ndn.FaceID(0)
			})
			if made.Load() != 1 || n != 1 {
				t.Errorf("%s: %d made, %d ids", uri, made.Load(), n)
			}
		}
	}
	// A failure is everybody's.
	uri := "tcp4://" + freePort(t, "tcp")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if i, err := f.CreateFace(FaceSpec{URI: uri}); err == nil || errors.Is(err, ErrFaceExists) {
				t.Errorf("%+v, %v", i, err)
			}
		})
	}
	wg.Wait()
}

// TestNamesDelayNobody: who asks for the address of a host and gets no answer keeps
// neither the start nor the end of a forwarder waiting, and the face is up when
// there is one.
func TestNamesDelayNobody(t *testing.T) {
	var dials, ended atomic.Int64
	answer := make(chan struct{})
	f := start(t, Options{Dial: func(ctx context.Context, uri string, mtu int) (face.Server, error) {
		if dials.Add(1) == 1 {
			<-answer
			a := &absent{after: time.Hour, ended: make(chan struct{})}
			return a, nil
		}
		defer ended.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	ev := observe(f)
	spec := FaceSpec{URI: "udp://one.example:6363", Persistency: face.PersistencyPermanent, Background: true}
	i, err := f.CreateFace(spec)
	if err != nil || i.Up {
		t.Fatalf("up %v: %v", i.Up, err)
	}
	eventually(t, "the first to be asked for", func() bool { return dials.Load() == 1 })
	spec.URI = "udp4://two.example"
	if _, err := f.CreateFace(spec); err != nil {
		t.Fatal(err)
	}
	close(answer)
	// The peer has refused nothing: there is no probation.
	eventually(t, "the face to be up", func() bool { return ev.has(fmt.Sprintf("face up %d", i.ID)) })
	if x, ok := f.FaceByURI("udp4://192.0.2.1:6363"); !ok || x.ID != i.ID {
		t.Errorf("the peer's address leads to face %d, %v", x.ID, ok)
	}
	eventually(t, "the second to be asked for", func() bool { return dials.Load() == 2 })
	f.Close(context.Background())
	if ended.Load() != 1 {
		t.Error("somebody still waits for an address")
	}
}

// TestLocalAddress: a UDP face leaves from a listener from which its peer can be
// reached, also if it is given by a name.
func TestLocalAddress(t *testing.T) {
	f := start(t, Options{})
	here := listenUDP(t, f, "127.0.0.1:0", ListenOptions{})
	_, port := splitURI("udp://" + freePort(t, "udp"))
	port = port[strings.LastIndex(port, ":"):]
	i, err := f.CreateFace(FaceSpec{URI: "udp4://localhost" + port, Persistency: face.PersistencyPermanent})
	if err != nil || i.LocalURI != "udp4://"+here {
		t.Errorf("to a name from %s: %v", i.LocalURI, err)
	}
	for to, want := range map[string]string{"127.0.0.9": here, "192.0.2.1": "", "::1": ""} {
		if got := f.localFor(netip.MustParseAddr(to)); got != want {
			t.Errorf("to %s from %q, want %q", to, got, want)
		}
	}
}
