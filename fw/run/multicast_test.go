package run

import (
	"context"
	"errors"
	"net"
	"testing"

	"ndnpop/face"
	"ndnpop/face/multicast"
	"ndnpop/internal/testbin"
	"ndnpop/ndn"
)

// TestMulticastFace: two forwarders on one link reach each other by a group,
// with packets that need fragments; the face is permanent and comes back.
func TestMulticastFace(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	open := func(context.Context) (face.Server, error) {
		for i := range all {
			if all[i].Flags&net.FlagLoopback != 0 {
				return multicast.Open(&all[i], "239.255.17.5:56399", multicast.Options{Loop: true, MTU: 1400})
			}
		}
		return nil, errors.New("no loopback interface")
	}
	a, b := start(t, Options{}), start(t, Options{})
	fa, err := a.OpenFace("multicast:lo", open)
	testbin.Need(t, err)
	fb, err := b.OpenFace("multicast:lo", open)
	if err != nil {
		t.Fatal(err)
	}
	if fa.Link != face.LinkMultiAccess || fa.Persistency != face.PersistencyPermanent || !fa.Up || fa.RemoteURI != fb.RemoteURI {
		t.Errorf("%+v", fa)
	}
	c, _ := memApp(t, a, nil)
	_, id := memApp(t, b, echo(t, 5000))
	addRoute(t, a, "/a", fa.ID)
	addRoute(t, b, "/a", id)
	c.interest("/a/1", 1)
	c.expect(ndn.KindData, "/a/1")
	// The interface was away for a moment.
	fc := a.lookup(fa.ID)
	fc.mu.Lock()
	tr := fc.tr
	fc.mu.Unlock()
	_ = tr.Close()
	eventually(t, "the face to come up again", func() bool {
		fc.mu.Lock()
		defer fc.mu.Unlock()
		return fc.up && fc.tr != nil && fc.tr != tr
	})
	c.interest("/a/2", 2)
	c.expect(ndn.KindData, "/a/2")
	if _, err := a.CreateFace(FaceSpec{URI: "udp4://224.0.23.170:56363"}); !errors.Is(err, ErrMulticast) {
		t.Errorf("created by URI: %v", err)
	}
}
