package client

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/face/mem"
	"ndnpop/mgmt"
	"ndnpop/ndn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is a forwarder's end of a connection that answers as answer says.
type peer struct {
	tr     face.Server
	link   *lp.Link
	p      ndn.Packet
	out    face.Frames
	answer func(i *ndn.Interest) (wire []byte, f *ndn.LpFields)
}

func (p *peer) Receive(frames [][]byte) {
	for _, fr := range frames {
		if ok, err := p.link.Receive(1, fr, &p.p); !ok || err != nil || p.p.Kind != ndn.KindInterest {
			continue
		}
		wire, f := p.answer(&p.p.Interest)
		if wire == nil {
			continue
		}
		p.out.Reset()
		if p.link.Send(1, wire, f, &p.out) == nil {
			p.tr.Send(&p.out)
		}
	}
}

func (p *peer) Flush()       {}
func (p *peer) Closed(error) {}

// connect returns a client of a peer, and a function that ends the peer.
func connect(t *testing.T, answer func(i *ndn.Interest) ([]byte, *ndn.LpFields)) (*Client, func()) {
	t.Helper()
	a, b := mem.Pair()
	p := &peer{tr: a, link: lp.New(lp.Config{}), answer: answer}
	done := make(chan struct{})
	go func() {
		_ = a.Serve(p)
		close(done)
	}()
	c := New(b, Options{})
	end := func() {
		_ = a.Close()
		<-done
	}
	t.Cleanup(func() {
		c.Close()
		end()
	})
	return c, end
}

func dataWire(t *testing.T, f ndn.DataFields) []byte {
	t.Helper()
	w, err := ndn.AppendData(nil, &f, ndn.DigestSigner{})
	if err != nil {
		t.Error(err)
	}
	return w
}

func TestCommand(t *testing.T) {
	c, _ := connect(t, func(i *ndn.Interest) ([]byte, *ndn.LpFields) {
		r := mgmt.ControlResponse{Code: 404, Text: "no such face"}
		return dataWire(t, ndn.DataFields{Name: i.Name, Content: r.AppendTo(nil)}), nil
	})
	for range 3 {
		r, err := c.Command(context.Background(), "faces", "update", &mgmt.ControlParameters{})
		if err != nil || r.Code != 404 {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

func TestNack(t *testing.T) {
	c, _ := connect(t, func(i *ndn.Interest) ([]byte, *ndn.LpFields) {
		return i.Wire, &ndn.LpFields{IsNack: true, NackReason: ndn.NackNoRoute}
	})
	if _, err := c.Command(context.Background(), "rib", "register", &mgmt.ControlParameters{}); !errors.Is(err, mgmt.ErrNack) {
		t.Error(err)
	}
	if _, err := c.Dataset(context.Background(), "rib", "list", nil); !errors.Is(err, mgmt.ErrNack) {
		t.Error(err)
	}
	if err := c.Events(context.Background(), func(mgmt.FaceEvent) error { return nil }, nil); !errors.Is(err, mgmt.ErrNack) {
		t.Error(err)
	}
}

// An answer that is no answer is an error, not a success.
func TestMalformedAnswer(t *testing.T) {
	c, _ := connect(t, func(i *ndn.Interest) ([]byte, *ndn.LpFields) {
		return dataWire(t, ndn.DataFields{Name: i.Name, Content: []byte("hello")}), nil
	})
	if _, err := c.Command(context.Background(), "rib", "register", &mgmt.ControlParameters{}); !errors.Is(err, mgmt.ErrMalformed) {
		t.Error(err)
	}
}

// Whoever waits is released when the connection or the context ends.
func TestEnds(t *testing.T) {
	asked := make(chan struct{}, 10)
	c, end := connect(t, func(*ndn.Interest) ([]byte, *ndn.LpFields) {
		asked <- struct{}{}
		return nil, nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := c.Command(ctx, "rib", "register", &mgmt.ControlParameters{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go func() {
		<-asked
		end()
	}()
	if _, err := c.Dataset(context.Background(), "rib", "list", nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// Events are asked for one after another, and fn's error ends them.
func TestEvents(t *testing.T) {
	stop := errors.New("enough")
	prefix := mgmt.Localhost().AppendGeneric("faces").AppendGeneric("events")
	c, _ := connect(t, func(i *ndn.Interest) ([]byte, *ndn.LpFields) {
		seq := uint64(41)
		if comp, ok := i.Name.At(-1); ok && comp.Type == ndn.TypeSequenceNum {
			seq, _ = comp.Number()
		} else if !i.CanBePrefix || !i.MustBeFresh {
			t.Error("the first Interest is not for the newest event")
		}
		e := mgmt.FaceEvent{Kind: mgmt.FaceEventUp, FaceID: seq, URI: "a", LocalURI: "b"}
		return dataWire(t, ndn.DataFields{Name: prefix.Clone().AppendNumber(ndn.TypeSequenceNum, seq), Content: e.AppendTo(nil)}), nil
	})
	var seen []uint64
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := c.Events(ctx, func(e mgmt.FaceEvent) error {
		if seen = append(seen, e.FaceID); len(seen) == 4 {
			return stop
		}
		return nil
	}, func(n uint64) { t.Errorf("%d missed", n) })
	if !errors.Is(err, stop) || len(seen) != 4 || seen[0] != 41 || seen[3] != 44 {
		t.Errorf("%v, %v", seen, err)
	}
}

// TestEventsMissed: a follower that fell behind what the forwarder keeps, which it
// learns from a Nack, goes on with the newest event and tells how many it missed.
func TestEventsMissed(t *testing.T) {
	stop := errors.New("enough")
	prefix := mgmt.Localhost().AppendGeneric("faces").AppendGeneric("events")
	newest := uint64(41)
	c, _ := connect(t, func(i *ndn.Interest) ([]byte, *ndn.LpFields) {
		seq := newest
		if comp, ok := i.Name.At(-1); ok && comp.Type == ndn.TypeSequenceNum {
			if seq, _ = comp.Number(); seq == 43 {
				newest = 5000
				return bytes.Clone(i.Wire), &ndn.LpFields{IsNack: true, NackReason: ndn.NackNoRoute}
			}
		}
		e := mgmt.FaceEvent{Kind: mgmt.FaceEventUp, FaceID: seq, URI: "a", LocalURI: "b"}
		return dataWire(t, ndn.DataFields{Name: prefix.Clone().AppendNumber(ndn.TypeSequenceNum, seq), Content: e.AppendTo(nil)}), nil
	})
	var seen, missed []uint64
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := c.Events(ctx, func(e mgmt.FaceEvent) error {
		if seen = append(seen, e.FaceID); len(seen) == 4 {
			return stop
		}
		return nil
	}, func(n uint64) { missed = append(missed, n) })
	if !errors.Is(err, stop) || !slices.Equal(seen, []uint64{41, 42, 5000, 5001}) || !slices.Equal(missed, []uint64{5000 - 43}) {
		t.Errorf("%v, %v, %v", seen, missed, err)
	}
}

// A forwarder without events may say so as if it had been sent a command.
func TestNoEvents(t *testing.T) {
	c, _ := connect(t, func(i *ndn.Interest) ([]byte, *ndn.LpFields) {
		r := mgmt.ControlResponse{Code: 501, Text: "Unknown verb"}
		return dataWire(t, ndn.DataFields{Name: i.Name, Content: r.AppendTo(nil)}), nil
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := c.Events(ctx, func(mgmt.FaceEvent) error { return nil }, nil)
	if st := new(mgmt.StatusError); !errors.As(err, &st) || st.Code != 501 {
		t.Error(err)
	}
}

// asker is a forwarder that asks for certificates and keeps what it gets.
type asker struct {
	link *lp.Link
	p    ndn.Packet
	got  chan string // the name and token of a Data
}

func (a *asker) Receive(frames [][]byte) {
	for _, fr := range frames {
		if ok, err := a.link.Receive(1, fr, &a.p); ok && err == nil && a.p.Kind == ndn.KindData {
			a.got <- a.p.Data.Name.String() + " " + string(a.p.PitToken)
		}
	}
}

func (a *asker) Flush()       {}
func (a *asker) Closed(error) {}

// TestCertificates: the forwarder gets the certificates of who commands, by
// their names and those of their keys, and nothing else.
func TestCertificates(t *testing.T) {
	cert := new(ndn.Data)
	if err := cert.Parse(dataWire(t, ndn.DataFields{Name: ndn.MustName("/a/KEY/k/CA/v=1"), ContentType: ndn.ContentKey})); err != nil {
		t.Fatal(err)
	}
	a, b := mem.Pair()
	f := &asker{link: lp.New(lp.Config{}), got: make(chan string, 10)}
	done := make(chan struct{})
	go func() {
		_ = a.Serve(f)
		close(done)
	}()
	c := New(b, Options{Certificates: []*ndn.Data{cert}})
	defer func() {
		c.Close()
		_ = a.Close()
		<-done
	}()
	for i, ask := range []ndn.InterestFields{
		{Name: ndn.MustName("/a/KEY/k"), CanBePrefix: true}, {Name: ndn.MustName("/a/KEY/k")},
		{Name: ndn.MustName("/b/KEY/k"), CanBePrefix: true}, {Name: cert.Name},
	} {
		var out face.Frames
		if err := f.link.Send(1, ndn.AppendInterest(nil, &ask), &ndn.LpFields{PitToken: []byte{byte('0' + i)}}, &out); err != nil {
			t.Fatal(err)
		}
		a.Send(&out)
	}
	// Packets are handled in order: what is not answered is not late.
	for _, want := range []string{"/a/KEY/k/CA/v=1 0", "/a/KEY/k/CA/v=1 3"} {
		select {
		case got := <-f.got:
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no %q", want)
		}
	}
}
