package run

import (
	"fmt"
	"testing"

	"ndnpop/face"
)

// proven reports whether the only UDP face of f has shown that it receives.
func proven(f *Forwarder) bool {
	for _, fc := range f.list() {
		fc.mu.Lock()
		ok := fc.budget != nil && fc.budget.proven > 0
		fc.mu.Unlock()
		if ok {
			return true
		}
	}
	return false
}

// TestGreetingProves: a forwarder that has a face to another one is no stranger
// there when it first asks for something, and may ask for much at once.
func TestGreetingProves(t *testing.T) {
	const burst = 100
	origin := start(t, Options{})
	addr := listenUDP(t, origin, "127.0.0.1:0", ListenOptions{Allowance: Allowance{Rate: 1000, Burst: 50000}})
	_, producer := memApp(t, origin, echo(t, 8000))
	addRoute(t, origin, "/a", producer)

	edge := start(t, Options{})
	info, err := edge.CreateFace(FaceSpec{URI: "udp4://" + addr, Persistency: face.PersistencyPermanent})
	if err != nil {
		t.Fatal(err)
	}
	addRoute(t, edge, "/a", info.ID)
	eventually(t, "the proof", func() bool { return proven(origin) })
	c, _ := memApp(t, edge, nil)
	for i := range burst {
		c.interest(fmt.Sprintf("/a/%d", i), uint32(i+1))
	}
	eventually(t, "all Data", func() bool { return len(c.in) == burst })
	if u, _ := byScheme(origin, "udp4"); u.Counters.Drops.OutBudget != 0 || !u.Proven {
		t.Errorf("%d packets were held back", u.Counters.Drops.OutBudget)
	}
	// It ends: a greeting, an answer with a question, an answer.
	if u, _ := byScheme(origin, "udp4"); u.Counters.OutFrames > 10*burst {
		t.Errorf("%d frames", u.Counters.OutFrames)
	}
}

// TestGreetingSparesNewFaces: a persistent face to a peer that does not listen
// yet lives until it is used.
func TestGreetingSparesNewFaces(t *testing.T) {
	f := start(t, Options{})
	info, err := f.CreateFace(FaceSpec{URI: "udp4://" + freePort(t, "udp"), Persistency: face.PersistencyPersistent})
	if err != nil {
		t.Fatal(err)
	}
	// The greeting of a permanent face that is made later has been refused.
	down := make(chan struct{}, 1)
	f.Observe(func(e Event) {
		if e.Kind == FaceDown {
			select {
			case down <- struct{}{}:
			default:
			}
		}
	})
	if _, err := f.CreateFace(FaceSpec{URI: "udp4://" + freePort(t, "udp"), Persistency: face.PersistencyPermanent}); err != nil {
		t.Fatal(err)
	}
	<-down
	if _, ok := f.Face(info.ID); !ok {
		t.Error("it is gone")
	}
}
