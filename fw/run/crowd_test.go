package run

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ndnpop/face"
	"ndnpop/face/mem"
)

// hosts is a listener whose connections come from hosts that the test makes up.
type hosts struct {
	accepts chan face.Acceptor
	closed  chan struct{}
	ports   int
}

func (h *hosts) URI() string { return "tcp4://192.0.2.100:6363" }

func (h *hosts) Serve(accept face.Acceptor) error {
	h.accepts <- accept
	<-h.closed
	return face.ErrClosed
}

func (h *hosts) Close() error {
	close(h.closed)
	return nil
}

// connect opens a connection from a host.
func (h *hosts) connect(t *testing.T, accept face.Acceptor, host string) error {
	h.ports++
	near, far := mem.NewPair(mem.Options{A: face.Info{RemoteURI: fmt.Sprintf("tcp4://%s:%d", host, 1000+h.ports)}})
	r, err := accept(near)
	if err != nil {
		_ = near.Close()
		return err
	}
	t.Cleanup(func() { _ = far.Close() })
	go near.Serve(r)
	return nil
}

// TestConnectionsOfOneHostMakeRoom: who connects and says nothing keeps nobody
// else out, and nobody gets more places by that than those who are there.
func TestConnectionsOfOneHostMakeRoom(t *testing.T) {
	f := start(t, Options{})
	h := &hosts{accepts: make(chan face.Acceptor), closed: make(chan struct{})}
	if err := f.Listen(h, ListenOptions{MaxFaces: 6}); err != nil {
		t.Fatal(err)
	}
	accept := <-h.accepts
	of := func(host string) (n int) {
		for _, i := range f.Faces() {
			if strings.Contains(i.RemoteURI, "://"+host+":") {
				n++
			}
		}
		return n
	}
	for i := range 7 {
		if err := h.connect(t, accept, "192.0.2.1"); (err == nil) != (i < 6) {
			t.Fatalf("connection %d of the first host: %v", i, err)
		}
	}
	// The one with a route is wanted.
	wanted, _ := byScheme(f, "tcp4")
	addRoute(t, f, "/a", wanted.ID)
	if !wanted.Proven {
		t.Error("the address of a connection cannot be forged")
	}
	for i := range 5 {
		if err := h.connect(t, accept, "192.0.2.2"); (err == nil) != (i < 3) {
			t.Fatalf("connection %d of the second host: %v", i, err)
		}
	}
	for range 2 {
		if err := h.connect(t, accept, "192.0.2.3"); err != nil {
			t.Fatal(err)
		}
	}
	if a, b, c := of("192.0.2.1"), of("192.0.2.2"), of("192.0.2.3"); a != 2 || b != 2 || c != 2 {
		t.Fatalf("%d, %d and %d faces", a, b, c)
	}
	for _, host := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
		if err := h.connect(t, accept, host); !errors.Is(err, ErrTooManyFaces) {
			t.Fatalf("%s got one more: %v", host, err)
		}
	}
	if _, ok := f.Face(wanted.ID); !ok {
		t.Fatal("the face with a route has gone")
	}
}
