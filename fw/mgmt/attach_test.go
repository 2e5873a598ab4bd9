package mgmt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/named-data/ndnd/std/types/optional"
	"go.uber.org/goleak"

	"ndnpop/face/mem"
	"ndnpop/face/udp"
	"ndnpop/fw"
	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/mgmt/client"
	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/strategies"
	"ndnpop/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startForwarder starts a forwarder with management.
func startForwarder(t *testing.T) (*run.Forwarder, *Server) {
	t.Helper()
	set, err := strategy.NewSet(strategies.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := run.New(run.Options{
		Strategies: set, DrainTime: time.Millisecond,
		Shard: fw.Config{CS: table.CSConfig{Capacity: 1 << 20}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, stop, err := Attach(f, Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		f.Close(context.Background())
	})
	return f, s
}

// connect opens a local application's connection.
func connect(t *testing.T, f *run.Forwarder, o client.Options) (*client.Client, ndn.FaceID) {
	t.Helper()
	a, b := mem.Pair()
	info, err := f.AttachFace(a, "")
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(b, o)
	t.Cleanup(c.Close)
	return c, info.ID
}

func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return c
}

// The whole of it over a real forwarder: every module, by the client that the
// tools use.
func TestOverForwarder(t *testing.T) {
	f, _ := startForwarder(t)
	c, own := connect(t, f, client.Options{})
	cx := ctx(t)
	command := func(module, verb string, p proto.ControlParameters, code uint64) *proto.ControlParameters {
		t.Helper()
		r, err := c.Command(cx, module, verb, &p)
		if err != nil {
			t.Fatalf("%s/%s: %v", module, verb, err)
		}
		if r.Code != code {
			t.Fatalf("%s/%s: %d %s", module, verb, r.Code, r.Text)
		}
		return r.Body
	}
	dataset := func(module, verb string) []byte {
		t.Helper()
		b, err := c.Dataset(cx, module, verb, nil)
		if err != nil {
			t.Fatalf("%s/%s: %v", module, verb, err)
		}
		return b
	}

	// faces
	l, err := udp.Listen("127.0.0.1:0", udp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	remote := l.URI()
	made := command("faces", "create", proto.ControlParameters{URI: remote, Persistency: nat(2)}, 200)
	id := made.FaceID.GetOr(0)
	if id < 256 || made.URI != remote {
		t.Errorf("%+v", made)
	}
	if twice := command("faces", "create", proto.ControlParameters{URI: remote}, 409); twice.FaceID.GetOr(0) != id {
		t.Errorf("%+v", twice)
	}
	command("faces", "update", proto.ControlParameters{Flags: nat(1), Mask: nat(1)}, 200)
	if i, _ := f.Face(own); !i.LocalFields {
		t.Error("local fields are off")
	}
	faces, err := proto.ParseFaceStatuses(dataset("faces", "list"))
	if err != nil || len(faces) != 3 || faces[0].FaceID != 1 || faces[0].Persistency != 2 || faces[2].URI != remote {
		t.Errorf("%+v, %v", faces, err)
	}
	q := proto.FaceQueryFilter{URI: remote}
	b, err := c.Dataset(cx, "faces", "query", q.AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	if faces, err := proto.ParseFaceStatuses(b); err != nil || len(faces) != 1 || faces[0].FaceID != id {
		t.Errorf("%+v, %v", faces, err)
	}

	// routes
	command("rib", "register", proto.ControlParameters{Name: name("/a"), FaceID: nat(id), Cost: nat(7)}, 200)
	command("rib", "register", proto.ControlParameters{Name: name("/b"), Expiration: nat(60_000)}, 200)
	command("rib", "register", proto.ControlParameters{Name: name("/a"), FaceID: nat(99999)}, 410)
	rib, err := proto.ParseRibEntries(dataset("rib", "list"))
	if err != nil || len(rib) != 2 || rib[0].Routes[0].FaceID != id || rib[0].Routes[0].Cost != 7 {
		t.Errorf("%+v, %v", rib, err)
	}
	if left := rib[1].Routes[0].Expiration.GetOr(0); left == 0 || left > 60_000 {
		t.Errorf("%d ms left", left)
	}
	command("fib", "add-nexthop", proto.ControlParameters{Name: name("/c"), FaceID: nat(id), Cost: nat(3)}, 200)
	fib, err := proto.ParseFibEntries(dataset("fib", "list"))
	names := ""
	for _, e := range fib {
		names += e.Name.String() + " "
	}
	if err != nil || names != "/a /b /c /localhost/nfd " {
		t.Errorf("FIB %q, %v", names, err)
	}
	command("fib", "remove-nexthop", proto.ControlParameters{Name: name("/c"), FaceID: nat(id)}, 200)
	command("rib", "unregister", proto.ControlParameters{Name: name("/b")}, 200)

	// strategies
	set := command("strategy-choice", "set", proto.ControlParameters{Name: name("/a"), Strategy: ndn.MustName("/localhost/nfd/strategy/multicast")}, 200)
	if c, ok := set.Strategy.At(-1); !ok || c.Type != ndn.TypeVersion {
		t.Errorf("%s", set.Strategy)
	}
	command("strategy-choice", "set", proto.ControlParameters{Name: name("/a"), Strategy: ndn.MustName("/localhost/nfd/strategy/none")}, 404)
	choices, err := proto.ParseStrategyChoices(dataset("strategy-choice", "list"))
	if err != nil || len(choices) != 2 {
		t.Errorf("%+v, %v", choices, err)
	}
	command("strategy-choice", "unset", proto.ControlParameters{Name: name("/a")}, 200)
	command("strategy-choice", "unset", proto.ControlParameters{Name: name("/a")}, 200)

	// content store and status
	if p := command("cs", "config", proto.ControlParameters{Capacity: nat(100), Flags: nat(1), Mask: nat(3)}, 200); p.Capacity.GetOr(0) != 100 || p.Flags.GetOr(0) != 1 {
		t.Errorf("%+v", p)
	}
	command("cs", "erase", proto.ControlParameters{Name: name("/")}, 200)
	if cs, err := proto.ParseCsInfo(dataset("cs", "info")); err != nil || cs.Capacity != 100 || cs.Entries != 0 {
		t.Errorf("%+v, %v: management is in the content store, or capacity is wrong", cs, err)
	}
	if st, err := proto.ParseForwarderStatus(dataset("status", "general")); err != nil || st.Version != "test" || st.InInterests == 0 || st.Fib == 0 ||
		len(st.Shards) != 1 || st.Shards[0].Busy == 0 || st.Shards[0].Packets == 0 || st.Shards[0].Packets < st.Shards[0].Batches {
		t.Errorf("%+v, %v", st, err)
	}
	ch, err := proto.ParseChannelStatuses(dataset("faces", "channels"))
	if err != nil || len(ch) != 0 {
		t.Errorf("%+v, %v", ch, err)
	}
	_, err = c.Dataset(cx, "rib", "nothing", nil)
	if st := new(proto.StatusError); !errors.As(err, &st) || st.Code != 501 {
		t.Errorf("%v", err)
	}
	command("faces", "destroy", proto.ControlParameters{FaceID: nat(id)}, 200)
	if rib, err := proto.ParseRibEntries(dataset("rib", "list")); err != nil || len(rib) != 0 {
		t.Errorf("routes of a destroyed face: %+v, %v", rib, err)
	}
}

// Many routes, many segments, over the real thing.
func TestManyRoutesOverForwarder(t *testing.T) {
	f, _ := startForwarder(t)
	c, own := connect(t, f, client.Options{})
	const n = 20_000
	for i := range n {
		r := run.Route{Prefix: ndn.Name{}.AppendGeneric("cdn").AppendGeneric(fmt.Sprintf("%06d", i)), Face: own, Origin: 255}
		if err := f.AddRoute(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"rib", "fib"} {
		cx := ctx(t)
		b, err := c.Dataset(cx, d, "list", nil)
		for errors.Is(err, proto.ErrTimeout) && cx.Err() == nil { // a busy machine takes longer than the client waits
			b, err = c.Dataset(cx, d, "list", nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		e, err := proto.ParseFibEntries(b)
		if err == nil && d == "rib" {
			var r []proto.RibEntry
			r, err = proto.ParseRibEntries(b)
			if len(r) != n {
				t.Errorf("%d entries in the RIB", len(r))
			}
		} else if len(e) != n+1 {
			t.Errorf("%d entries in the FIB", len(e))
		}
		if err != nil && d == "fib" {
			t.Error(err)
		}
	}
}

// Events come as they happen, all of them, in order.
func TestEventsOverForwarder(t *testing.T) {
	f, s := startForwarder(t)
	c, _ := connect(t, f, client.Options{})
	cx, cancel := context.WithCancel(ctx(t))
	defer cancel()
	seen := make(chan proto.FaceEvent, 100)
	var wg sync.WaitGroup
	wg.Go(func() {
		err := c.Events(cx, func(e proto.FaceEvent) error { seen <- e; return nil }, nil)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("events ended: %v", err)
		}
	})
	// The first Interest may still be under way: cause events until one comes.
	next := func() proto.FaceEvent {
		t.Helper()
		for range 2000 {
			a, _ := mem.Pair()
			i, err := f.AttachFace(a, "")
			if err != nil {
				t.Fatal(err)
			}
			select {
			case e := <-seen:
				return e
			case <-time.After(10 * time.Millisecond):
				_ = f.DestroyFace(i.ID)
			}
		}
		t.Fatal("no event")
		return proto.FaceEvent{}
	}
	next()
	for len(seen) > 0 {
		<-seen
	}
	a, _ := mem.Pair()
	i, err := f.AttachFace(a, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.DestroyFace(i.ID); err != nil {
		t.Fatal(err)
	}
	var kinds []uint64
	for len(kinds) < 2 {
		select {
		case e := <-seen:
			if e.FaceID == uint64(i.ID) {
				kinds = append(kinds, e.Kind)
			}
		case <-cx.Done():
			t.Fatalf("events %v", kinds)
		}
	}
	if kinds[0] != proto.FaceEventCreated || kinds[1] != proto.FaceEventDestroyed {
		t.Errorf("events %v", kinds)
	}
	cancel()
	wg.Wait()
	if n := s.Counters().FaceEvents; n < 2 {
		t.Errorf("%d events counted", n)
	}
}

// TestEventsOutrun: who asks for an event that is not kept any more is told so at
// once, and need not wait until its Interest expires.
func TestEventsOutrun(t *testing.T) {
	f, s := startForwarder(t)
	c, _ := connect(t, f, client.Options{})
	cx, cancel := context.WithCancel(ctx(t))
	defer cancel()
	create := func() ndn.FaceID {
		a, _ := mem.Pair()
		i, err := f.AttachFace(a, "")
		if err != nil {
			t.Error(err)
		}
		return i.ID
	}
	burst := func() {
		before := s.Counters().FaceEvents
		for range 2 * keepEvents {
			_ = f.DestroyFace(create())
		}
		for s.Counters().FaceEvents-before < 3*keepEvents {
			if cx.Err() != nil {
				t.Error("the events are not published")
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	// The follower stops in its first event until the next ones are gone.
	done := errors.New("done")
	var missed uint64
	began := make(chan struct{}, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		n := 0
		err := c.Events(cx, func(proto.FaceEvent) error {
			if n++; n == 1 {
				burst()
				began <- struct{}{}
			}
			if missed > 0 {
				return done
			}
			return nil
		}, func(n uint64) { missed += n })
		if !errors.Is(err, done) || missed < keepEvents {
			t.Errorf("%d missed, %v", missed, err)
		}
	})
	started := time.NewTicker(10 * time.Millisecond)
	defer started.Stop()
	for waiting := true; waiting; {
		select {
		case <-began:
			waiting = false
		case <-started.C:
			_ = f.DestroyFace(create())
		case <-cx.Done():
			t.Fatal("no event")
		}
	}
	create() // after the first one that is asked for again
	wg.Wait()
}

// A routing daemon that registers /localhost/nlsr hears of client routes.
func TestReadvertiseOverForwarder(t *testing.T) {
	f, s := startForwarder(t)
	app, _ := connect(t, f, client.Options{})
	if r, err := app.Command(ctx(t), "rib", "register", proto.Register(ndn.MustName("/app"), proto.OriginClient, 4)); err != nil || !r.OK() {
		t.Fatalf("%+v, %v", r, err)
	}
	d := newRoutingDaemon(t, f)
	heard := d.wait()
	if heard.Name.GetOr(nil).String() != "/app" || heard.Origin.GetOr(0) != 65 || heard.Cost.GetOr(0) != 4 {
		t.Errorf("the daemon heard %+v", heard)
	}
	for end := time.Now().Add(10 * time.Second); s.Counters().Announced == 0; {
		if time.Now().After(end) {
			t.Fatal("the daemon's answer did not arrive")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestForbiddenOverForwarder(t *testing.T) {
	f, _ := startForwarder(t)
	c, _ := connect(t, f, client.Options{Prefix: ndn.MustName("/localhop/nfd")})
	cx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	p := &proto.ControlParameters{Name: optional.Some(ndn.MustName("/x"))}
	if _, err := c.Command(cx, "rib", "register", p); !errors.Is(err, proto.ErrNack) {
		t.Errorf("/localhop without configuration: %v", err)
	}
}

// A Data's prefix announcement becomes a route in a running forwarder whose
// strategy is self-learning; the next Interest follows it.
func TestSelfLearning(t *testing.T) {
	f, s := startForwarder(t)
	if _, err := f.SetStrategy(ndn.MustName("/learn"), ndn.MustName("/localhost/nfd/strategy/self-learning")); err != nil {
		t.Fatal(err)
	}
	announcement := announcementWire(t, "/learn/a", ndn.AppendNatTLV(nil, 0x6d, 3600_000))
	origin := newPeer(t, func(p *ndn.Packet) (ndn.DataFields, *ndn.LpFields) {
		fields := &ndn.LpFields{PitToken: p.PitToken}
		if !p.NonDiscovery {
			fields.Announcement = announcement
		}
		return ndn.DataFields{Name: p.Interest.Name, Content: []byte("x")}, fields
	})
	info, err := f.CreateFace(run.FaceSpec{URI: origin.uri, Persistency: 2})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := connect(t, f, client.Options{Prefix: ndn.MustName("/learn")})
	// The client is good for any Interest: a dataset of one packet.
	if b, err := c.Dataset(ctx(t), "a", "1", nil); err != nil || string(b) != "x" {
		t.Fatalf("%q, %v", b, err)
	}
	learnt := func() bool {
		for _, r := range f.Routes() {
			if r.Prefix.Equal(ndn.MustName("/learn/a")) && r.Face == info.ID && r.Origin == run.OriginPrefixAnn && r.Expires > f.Now() {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(20 * time.Second); !learnt(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not learnt: %+v, %+v", f.Routes(), s.Counters())
		}
	}
	if _, err := c.Dataset(ctx(t), "a", "2", nil); err != nil {
		t.Error(err)
	}
}

// peer answers Interests at a UDP socket.
type peer struct {
	uri string
}

// newPeer starts one; answer makes the Data and its link header.
func newPeer(t *testing.T, answer func(p *ndn.Packet) (ndn.DataFields, *ndn.LpFields)) *peer {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		b := make([]byte, 64<<10)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var in ndn.LpPacket
			var p ndn.Packet
			if in.Parse(b[:n]) != nil || in.Fragment == nil || p.Parse(in.Fragment, &in.LpFields) != nil || p.Kind != ndn.KindInterest {
				continue
			}
			d, fields := answer(&p)
			wire, err := ndn.AppendData(nil, &d, ndn.DigestSigner{})
			if err != nil {
				return
			}
			if _, err := conn.WriteTo(ndn.AppendLpPacket(nil, &ndn.LpHeader{LpFields: fields}, wire), from); err != nil {
				return
			}
		}
	}()
	return &peer{uri: "udp4://" + conn.LocalAddr().String()}
}
