package serve

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/face/stream"
	"ndnpop/ndn"
	"ndnpop/producer"
	"ndnpop/producer/store"
)

// connected makes the two ends of a stream.
func connected(t *testing.T) (a, b *stream.Transport) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	end := func(c net.Conn) *stream.Transport {
		tr, err := stream.New(c.(stream.Conn), face.Info{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	return end(c), end(s)
}

// greedy asks for everything at once and takes nothing until told to.
type greedy struct {
	t     *testing.T
	read  chan struct{}
	data  chan int // segments as they come
	began bool
}

func (g *greedy) Receive(frames [][]byte) {
	if !g.began {
		<-g.read
		g.began = true
	}
	for _, f := range frames {
		var lp ndn.LpPacket
		var p ndn.Packet
		if lp.Parse(f) != nil || p.Parse(lp.Fragment, &lp.LpFields) != nil || p.Kind != ndn.KindData {
			g.t.Error("something else than Data came")
			continue
		}
		last, _ := p.Data.Name.At(-1)
		n, _ := last.NumberAs(ndn.TypeSegment)
		if !p.Data.VerifyDigest() {
			g.t.Errorf("segment %d has a wrong digest", n)
		}
		g.data <- int(n)
	}
}
func (g *greedy) Flush()       {}
func (g *greedy) Closed(error) {}

// TestSendUnsignedAfterTheEnd: what a core sends when the connection has ended is
// dropped.
func TestSendUnsignedAfterTheEnd(t *testing.T) {
	near, far := connected(t)
	defer far.Close()
	w, err := ndn.AppendData(nil, &ndn.DataFields{Name: ndn.MustName("/a")}, ndn.DigestLater{})
	if err != nil {
		t.Fatal(err)
	}
	a := New(Config{})
	a.connect(near).end()
	a.Do(func(ndn.Time) { a.SendUnsigned(w, &ndn.LpFields{}) })
}

// TestSlowForwarder: a forwarder that asks for more than the queue holds and
// takes it later gets all of it, in order and signed; App stops taking its
// Interests meanwhile.
func TestSlowForwarder(t *testing.T) {
	const segments = 3000 // 24 MB; the queue holds 4
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, segments*8000); err != nil {
		t.Fatal(err)
	}
	s, err := store.NewFile(path, store.Options{SegmentSize: 8000, Room: 8500, Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mine, theirs := connected(t)
	dialled := false
	app := New(Config{Dial: func() (face.Server, error) {
		if dialled {
			return nil, net.ErrClosed
		}
		dialled = true
		return mine, nil
	}})
	r, err := producer.New(producer.Config{Prefix: ndn.MustName("/cdn/x")}, s, app)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- app.Run(ctx, r) }()
	g := &greedy{t: t, read: make(chan struct{}), data: make(chan int, segments)}
	go func() { _ = theirs.Serve(g); ended <- nil }()

	var out face.Frames
	name := ndn.MustName("/cdn/x/v=1")
	for i := range segments {
		out.Buf = ndn.AppendInterest(out.Buf, &ndn.InterestFields{Name: name.Clone().AppendNumber(ndn.TypeSegment, uint64(i)), Nonce: uint32(i)})
		out.End()
	}
	if n := theirs.Send(&out); n != 0 {
		t.Fatalf("%d Interests were dropped", n)
	}
	deadline := time.Now().Add(30 * time.Second)
	for most := 0; most <= backlog; most = max(most, mine.QueueLen()) {
		if time.Now().After(deadline) {
			t.Fatal("the queue does not fill")
		}
	}
	close(g.read)
	for i := range segments {
		select {
		case n := <-g.data:
			if n != i {
				t.Fatalf("segment %d came, not %d", n, i)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("segment %d does not come; %d were dropped", i, app.Dropped())
		}
	}
	if n := app.Dropped(); n != 0 {
		t.Errorf("%d were dropped", n)
	}
	cancel()
	theirs.Close()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
