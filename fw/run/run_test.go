package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/face/mem"
	"ndnpop/face/unix"
	"ndnpop/ndn"
)

func TestInterestInDataBack(t *testing.T) {
	for _, in := range []string{"mem", "unix", "tcp", "udp"} {
		for _, out := range []string{"mem", "unix", "tcp", "udp"} {
			t.Run(in+"-"+out, func(t *testing.T) {
				f := start(t, Options{})
				path := listenUnix(t, f)
				tcpAddr := listenTCP(t, f, "127.0.0.1:0", ListenOptions{})
				udpAddr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{})
				dial := func(kind string) face.Server {
					switch kind {
					case "unix":
						return dialUnix(t, path)
					case "tcp":
						return dialTCP(t, tcpAddr)
					case "udp":
						return dialUDP(t, udpAddr)
					}
					near, far := mem.Pair()
					if _, err := f.AttachFace(near, ""); err != nil {
						t.Fatal(err)
					}
					return far
				}
				producer := newApp(t, dial(out), echo(t, 8000))
				// A datagram peer is known by what it says.
				producer.send([]byte{0x64, 0}, nil)
				var id ndn.FaceID
				eventually(t, "producer's face", func() bool {
					for _, i := range f.Faces() {
						if i.ID >= FirstFaceID {
							id = i.ID
						}
					}
					return id != 0
				})
				addRoute(t, f, "/a", id)
				consumer := newApp(t, dial(in), nil)
				for i := range 20 {
					name := fmt.Sprintf("/a/%d", i)
					consumer.interest(name, uint32(i+1))
					consumer.expect(ndn.KindData, name)
				}
				for _, i := range f.Faces() {
					if c := i.Counters; i.ID == id && (c.OutInterests != 20 || c.InData != 20 || c.InBytes < 160000) {
						t.Errorf("counters of the producer's face: %+v", c)
					} else if i.ID > id && (c.InInterests != 20 || c.OutData != 20) {
						t.Errorf("counters of the consumer's face: %+v", c)
					}
				}
			})
		}
	}
}

func TestNoRouteIsNacked(t *testing.T) {
	f := start(t, Options{})
	a, _ := memApp(t, f, nil)
	a.interest("/nowhere", 1)
	if p := a.expect(ndn.KindNack, "/nowhere"); p.reason != ndn.NackNoRoute {
		t.Fatalf("reason %v", p.reason)
	}
}

func TestPitTokenIsEchoed(t *testing.T) {
	f := start(t, Options{})
	_, id := memApp(t, f, echo(t, 10))
	addRoute(t, f, "/a", id)
	a, _ := memApp(t, f, nil)
	for _, token := range []string{"x", "abcd", strings.Repeat("z", 32)} {
		a.send(interestWire("/a/"+token, 1), &ndn.LpFields{PitToken: []byte(token)})
		if p := a.expect(ndn.KindData, "/a/"+token); string(p.token) != token {
			t.Fatalf("token %q, want %q", p.token, token)
		}
	}
}

// TestFirstDatagramIsDelivered: the packet that makes an on-demand face is
// forwarded as well.
func TestFirstDatagramIsDelivered(t *testing.T) {
	f := start(t, Options{})
	addr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{})
	_, id := memApp(t, f, echo(t, 100))
	addRoute(t, f, "/a", id)
	c := newApp(t, dialUDP(t, addr), nil)
	c.interest("/a/first", 1)
	c.expect(ndn.KindData, "/a/first")
	i, ok := byScheme(f, "udp4")
	if !ok || i.Persistency != face.PersistencyOnDemand || i.Counters.InInterests != 1 || i.ExpiresIn <= 0 {
		t.Fatalf("%+v", i)
	}
}

func TestFacesPerListenerAreBounded(t *testing.T) {
	f := start(t, Options{})
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
		if i < 2 {
			a.expect(ndn.KindData, fmt.Sprintf("/a/u%d", i))
		}
	}
	eventually(t, "four refusals", func() bool { return f.RefusedFaces() == 4 })
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

func TestFaceClosedInMidTraffic(t *testing.T) {
	f := start(t, Options{})
	ev := observe(f)
	path := listenUnix(t, f)
	var served atomic.Int64
	make := echo(t, 1000)
	producer := newApp(t, dialUnix(t, path), func(p *ndn.Packet, reply func([]byte, *ndn.LpFields)) {
		served.Add(1)
		make(p, reply)
	})
	var id ndn.FaceID
	eventually(t, "producer's face", func() bool { i, ok := byScheme(f, "fd"); id = i.ID; return ok })
	addRoute(t, f, "/a", id)
	c, _ := memApp(t, f, nil)
	for i := range 500 {
		c.interest(fmt.Sprintf("/a/%d", i), uint32(i+1))
	}
	eventually(t, "some traffic", func() bool { return served.Load() > 10 })
	producer.close()
	eventually(t, "the face to go", func() bool { return ev.has(fmt.Sprintf("face destroyed %d", id)) })
	eventually(t, "its route to go", func() bool { return ev.has(fmt.Sprintf("route removed /a %d", id)) })
	if len(f.Routes()) != 0 {
		t.Fatalf("routes left: %v", f.Routes())
	}
	if err := f.AddRoute(Route{Prefix: ndn.MustName("/a"), Face: id}); !errors.Is(err, ErrNoFace) {
		t.Fatalf("route to a gone face: %v", err)
	}
	for len(c.in) > 0 {
		<-c.in
	}
	c.interest("/a/after", 1)
	eventually(t, "a Nack", func() bool {
		select {
		case p := <-c.in:
			return p.kind == ndn.KindNack && p.name.Equal(ndn.MustName("/a/after"))
		default:
			return false
		}
	})
}

func TestDestroyAndUpdateFace(t *testing.T) {
	f := start(t, Options{})
	_, id := memApp(t, f, nil)
	if err := f.DestroyFace(InternalFace); !errors.Is(err, ErrReservedFace) {
		t.Fatal(err)
	}
	on, mtu := true, 1400
	i, err := f.UpdateFace(id, FaceUpdate{LocalFields: &on, MTU: &mtu})
	if err != nil || !i.LocalFields || i.MTU != 1400 {
		t.Fatalf("%+v, %v", i, err)
	}
	if mtu = 0; true {
		if i, err = f.UpdateFace(id, FaceUpdate{MTU: &mtu}); err != nil || i.MTU != ndn.MaxPacketSize {
			t.Fatalf("%+v, %v", i, err)
		}
	}
	if mtu = 10; true {
		if _, err = f.UpdateFace(id, FaceUpdate{MTU: &mtu}); !errors.Is(err, ErrMTU) {
			t.Fatal(err)
		}
	}
	od := face.PersistencyOnDemand
	if _, err = f.UpdateFace(id, FaceUpdate{Persistency: &od}); !errors.Is(err, ErrPersistency) {
		t.Fatal(err)
	}
	if err := f.DestroyFace(id); err != nil {
		t.Fatal(err)
	}
	if err := f.DestroyFace(id); !errors.Is(err, ErrNoFace) {
		t.Fatal(err)
	}
}

func TestCreateFace(t *testing.T) {
	f := start(t, Options{})
	peer := start(t, Options{})
	addr := listenTCP(t, peer, "127.0.0.1:0", ListenOptions{})
	uri := "tcp4://" + addr
	i, err := f.CreateFace(FaceSpec{URI: uri, Name: "peer"})
	if err != nil || i.ID < FirstFaceID || !i.Up || i.RemoteURI != uri {
		t.Fatalf("%+v, %v", i, err)
	}
	again, err := f.CreateFace(FaceSpec{URI: "tcp://" + addr})
	if !errors.Is(err, ErrFaceExists) || again.ID != i.ID {
		t.Fatalf("%+v, %v", again, err)
	}
	for _, bad := range []string{"", "tcp4://", "http://x", "udp4://[::1]:6363", "udp6://127.0.0.1:6363",
		"tcp4://127.0.0.1:99999", "unix://relative", "/run/nfd/nfd.sock", "udp4://127.0.0.1:6363/x",
		"udp4://0.0.0.0:6363", "tcp6://[::]:6363", "udp4://127.0.0.1:0", "udp4://user:pw@127.0.0.1:6363", "udp4://127.0.0.1:6363?x"} {
		if _, err := f.CreateFace(FaceSpec{URI: bad}); !errors.Is(err, ErrURI) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := f.CreateFace(FaceSpec{URI: "tcp4://" + freePort(t, "tcp")}); err == nil || errors.Is(err, ErrURI) {
		t.Errorf("nobody there: %v", err)
	}
	if len(f.Faces()) != 2 {
		t.Errorf("faces %v", f.Faces())
	}
}

// TestPermanentFaceReconnects: it is created while nobody is there, comes up
// when somebody is, goes down with the peer and comes up again, and keeps its
// id and routes.
func TestPermanentFaceReconnects(t *testing.T) {
	for _, network := range []string{"tcp", "udp"} {
		t.Run(network, func(t *testing.T) {
			f := start(t, Options{})
			ev := observe(f)
			addr := freePort(t, network)
			i, err := f.CreateFace(FaceSpec{URI: network + "4://" + addr, Persistency: face.PersistencyPermanent})
			if err != nil {
				t.Fatal(err)
			}
			if i.LocalURI == "" {
				t.Error("no local URI, without which NFD's tools reject faces/create and faces/list")
			}
			addRoute(t, f, "/a", i.ID)
			c, _ := memApp(t, f, nil)
			nonce := uint32(0)
			listen := func(f *Forwarder) {
				if network == "tcp" {
					listenTCP(t, f, addr, ListenOptions{})
				} else {
					listenUDP(t, f, addr, ListenOptions{})
				}
			}
			get := func() bool {
				nonce++
				c.interest(fmt.Sprintf("/a/%d", nonce), nonce)
				select {
				case p := <-c.in:
					return p.kind == ndn.KindData
				case <-time.After(50 * time.Millisecond):
					return false
				}
			}
			get() // lets ICMP speak
			for round := range 2 {
				peer, err := New(Options{Strategies: f.opts.Strategies})
				if err != nil {
					t.Fatal(err)
				}
				near, far := mem.Pair()
				p, err := peer.AttachFace(near, "")
				if err != nil {
					t.Fatal(err)
				}
				producer := newApp(t, far, echo(t, 100))
				addRoute(t, peer, "/a", p.ID)
				listen(peer)
				eventually(t, fmt.Sprintf("Data in round %d", round), get)
				if now, ok := f.Face(i.ID); !ok || !now.Up {
					t.Fatalf("face %+v", now)
				}
				producer.close()
				peer.Close(context.Background())
				eventually(t, "face down", func() bool {
					get()
					now, ok := f.Face(i.ID)
					return ok && !now.Up
				})
			}
			if !ev.has(fmt.Sprintf("face down %d", i.ID)) || !ev.has(fmt.Sprintf("face up %d", i.ID)) || len(f.Routes()) != 1 {
				t.Fatalf("events %v, routes %v", ev.list, f.Routes())
			}
		})
	}
}

func TestPersistentFaceGoesWithItsPeer(t *testing.T) {
	f := start(t, Options{})
	peer, err := New(Options{Strategies: f.opts.Strategies})
	if err != nil {
		t.Fatal(err)
	}
	addr := listenTCP(t, peer, "127.0.0.1:0", ListenOptions{})
	i, err := f.CreateFace(FaceSpec{URI: "tcp4://" + addr})
	if err != nil {
		t.Fatal(err)
	}
	peer.Close(context.Background())
	eventually(t, "the face to go", func() bool { _, ok := f.Face(i.ID); return !ok })
}

func TestIdleFaceExpires(t *testing.T) {
	f := start(t, Options{})
	ev := observe(f)
	addr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{IdleTimeout: 50 * time.Millisecond})
	a := newApp(t, dialUDP(t, addr), nil)
	a.send([]byte{0x64, 0}, nil)
	eventually(t, "a face", func() bool { _, ok := byScheme(f, "udp4"); return ok })
	eventually(t, "its end", func() bool { _, ok := byScheme(f, "udp4"); return !ok })
	if !ev.has(fmt.Sprintf("face destroyed %d", FirstFaceID)) {
		t.Fatalf("events %v", ev.list)
	}
	// The peer may come back, and be made to stay.
	a.send([]byte{0x64, 0}, nil)
	p := face.PersistencyPersistent
	eventually(t, "a persistent face", func() bool {
		i, ok := byScheme(f, "udp4")
		if !ok {
			a.send([]byte{0x64, 0}, nil)
			return false
		}
		_, err := f.UpdateFace(i.ID, FaceUpdate{Persistency: &p})
		return err == nil
	})
	if i, ok := byScheme(f, "udp4"); !ok || i.ExpiresIn != 0 {
		t.Fatalf("%+v %v", i, ok)
	}
}

func TestRoutesExpire(t *testing.T) {
	f := start(t, Options{})
	ev := observe(f)
	_, id := memApp(t, f, nil)
	if err := f.AddRoute(Route{Prefix: ndn.MustName("/a"), Face: id, Expires: f.Now().Add(20 * time.Millisecond)}); err != nil {
		t.Fatal(err)
	}
	addRoute(t, f, "/b", id)
	if len(f.FIB()) != 2 {
		t.Fatalf("FIB %v", f.FIB())
	}
	eventually(t, "expiry", func() bool { return len(f.Routes()) == 1 })
	if !ev.has(fmt.Sprintf("route removed /a %d", id)) || len(f.FIB()) != 1 {
		t.Fatalf("events %v, FIB %v", ev.list, f.FIB())
	}
	long := ndn.Name{}
	for range ndn.MaxComponents + 1 {
		long = long.AppendGeneric("x")
	}
	if err := f.AddRoute(Route{Prefix: long, Face: id}); !errors.Is(err, ErrNameTooLong) {
		t.Fatal(err)
	}
}

func TestStrategyChoice(t *testing.T) {
	f := start(t, Options{})
	full, err := f.SetStrategy(ndn.MustName("/a"), ndn.MustName("/localhost/nfd/strategy/multicast"))
	if err != nil || full.Len() < 5 {
		t.Fatal(full, err)
	}
	if _, err = f.SetStrategy(ndn.MustName("/a"), ndn.MustName("/localhost/nfd/strategy/nonsense")); err == nil ||
		!strings.Contains(err.Error(), "best-route") {
		t.Fatal(err)
	}
	if err := f.UnsetStrategy(ndn.MustName("/a")); err != nil {
		t.Fatal(err)
	}
}

func TestInternalFace(t *testing.T) {
	f := start(t, Options{})
	f.HandleInternal(func(_ ndn.Time, p *ndn.Packet) {
		if p.Kind != ndn.KindInterest || p.IncomingFace < FirstFaceID {
			t.Errorf("kind %d from face %d", p.Kind, p.IncomingFace)
		}
		f.SendInternal(dataWire(t, p.Interest.Name, 10), nil)
	})
	addRoute(t, f, "/localhost/nfd", InternalFace)
	a, _ := memApp(t, f, nil)
	a.interest("/localhost/nfd/x", 1)
	a.expect(ndn.KindData, "/localhost/nfd/x")
}

func TestCloseDrains(t *testing.T) {
	f := start(t, Options{})
	path := listenUnix(t, f)
	_, id := memApp(t, f, echo(t, 8000))
	addRoute(t, f, "/a", id)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const n = 300
	for i := range n {
		if _, err := conn.Write(interestWire(fmt.Sprintf("/a/%d", i), uint32(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	var i FaceInfo
	eventually(t, "all Data on their way", func() bool {
		i, _ = byScheme(f, "fd")
		return i.Counters.OutData == n
	})
	closed := make(chan struct{})
	go func() { f.Close(context.Background()); close(closed) }()
	got := 0
	buf := make([]byte, 1<<16)
	for {
		k, err := conn.Read(buf)
		got += k
		if err != nil {
			break
		}
	}
	<-closed
	if want := int(i.Counters.OutBytes); got != want {
		t.Errorf("%d bytes of %d arrived", got, want)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket file left: %v", err)
	}
	if _, err := f.CreateFace(FaceSpec{URI: "udp4://127.0.0.1:6363"}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestCloseGivesUpOnDeafPeers(t *testing.T) {
	f := start(t, Options{DrainTime: 50 * time.Millisecond})
	path := listenUnix(t, f)
	_, id := memApp(t, f, echo(t, 8000))
	addRoute(t, f, "/a", id)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range 1000 {
		if _, err := conn.Write(interestWire(fmt.Sprintf("/a/%d", i), uint32(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	f.Close(context.Background())
}

func TestSecondForwarderOnTheSocketIsRefused(t *testing.T) {
	f := start(t, Options{})
	path := listenUnix(t, f)
	_, err := unix.Listen(path, unix.Options{})
	var live *unix.LiveError
	if !errors.As(err, &live) || live.PID != os.Getpid() {
		t.Fatalf("error %v", err)
	}
}

// TestNeighboursHaveOneFace: two forwarders that name each other, and listen,
// have one face to each other whoever speaks first.
func TestNeighboursHaveOneFace(t *testing.T) {
	a, b := start(t, Options{}), start(t, Options{})
	addrA, addrB := listenUDP(t, a, "127.0.0.1:0", ListenOptions{}), listenUDP(t, b, "127.0.0.1:0", ListenOptions{})
	create := func(f *Forwarder, addr string) ndn.FaceID {
		i, err := f.CreateFace(FaceSpec{URI: "udp4://" + addr, Persistency: face.PersistencyPermanent})
		// The other one may have been heard of already.
		if err != nil && !errors.Is(err, ErrFaceExists) {
			t.Fatal(err)
		}
		return i.ID
	}
	addRoute(t, a, "/b", create(a, addrB))
	addRoute(t, b, "/a", create(b, addrA))
	appA, idA := memApp(t, a, nil)
	appB, idB := memApp(t, b, nil)
	addRoute(t, a, "/a", idA)
	addRoute(t, b, "/b", idB)
	for i := range 10 {
		name := fmt.Sprintf("/b/%d", i)
		appA.interest(name, uint32(i+1))
		appB.expect(ndn.KindInterest, name)
		appB.send(dataWire(t, ndn.MustName(name), 5000), nil)
		appA.expect(ndn.KindData, name)
		name = fmt.Sprintf("/a/%d", i)
		appB.interest(name, uint32(i+1))
		appA.expect(ndn.KindInterest, name)
		appA.send(dataWire(t, ndn.MustName(name), 5000), nil)
		appB.expect(ndn.KindData, name)
	}
	// A greeting that came before the socket to its sender was there may have
	// made a face of its own, which idles out. Packets go over one.
	for _, f := range []*Forwarder{a, b} {
		used := 0
		for _, i := range f.Faces() {
			if i.ID >= FirstFaceID && i.Counters.InData+i.Counters.InInterests > 0 {
				used++
			}
		}
		if used != 2 { // the application's, and the neighbour's
			t.Errorf("faces: %+v", f.Faces())
		}
	}
}

// TestControlUnderTraffic changes everything that can be changed while
// packets flow.
func TestControlUnderTraffic(t *testing.T) {
	f := start(t, Options{})
	_, id := memApp(t, f, echo(t, 500))
	addRoute(t, f, "/a", id)
	c, cid := memApp(t, f, nil)
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		capacity, on := uint64(1<<20), true
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			n := ndn.MustName("/r").AppendNumber(ndn.TypeSegment, uint64(i%100))
			_ = f.AddRoute(Route{Prefix: n, Face: id, ChildInherit: true, Expires: f.Now().Add(time.Millisecond)})
			_, _ = f.SetStrategy(n, ndn.MustName("/localhost/nfd/strategy/multicast"))
			_ = f.UnsetStrategy(n)
			_ = f.ConfigureCS(CSConfig{CapacityBytes: &capacity, Admit: &on})
			_, _ = f.UpdateFace(cid, FaceUpdate{LocalFields: &on})
			f.EraseCS(ndn.MustName("/a"), 10)
			f.Faces()
			f.Routes()
			f.FIB()
			f.Strategies()
			f.CS()
			f.Counters()
			near, far := mem.Pair()
			if x, err := f.AttachFace(near, ""); err == nil && i%2 == 0 {
				_ = f.DestroyFace(x.ID)
			}
			_ = far.Close()
		}
	}()
	for i := range 300 {
		name := fmt.Sprintf("/a/%d", i)
		c.interest(name, uint32(i+1))
		c.expect(ndn.KindData, name)
	}
	close(stop)
	<-ended
}

// TestBadFrames: what is no packet is counted, and nobody else notices; a
// stream that cannot be understood any more is closed.
func TestBadFrames(t *testing.T) {
	f := start(t, Options{})
	path := listenUnix(t, f)
	addr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{})
	_, id := memApp(t, f, echo(t, 10))
	addRoute(t, f, "/a", id)
	u := newApp(t, dialUDP(t, addr), nil)
	bad := [][]byte{
		{}, {0}, {0x64}, {0x64, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0}, // TLV-LENGTH 2^63
		{0x64, 2, 0x50, 0}, {0x05, 0}, {0x06, 0}, {0xf0, 1, 0},
		// FragCount 2^62
		ndn.AppendLpPacket(nil, &ndn.LpHeader{HasSequence: true, FragIndex: 1, FragCount: 1 << 62}, []byte{1, 2, 3}),
	}
	for i, w := range bad {
		fr := face.Frames{}
		fr.Buf = append(fr.Buf, w...)
		fr.End()
		u.tr.Send(&fr)
		name := fmt.Sprintf("/a/%d", i)
		u.interest(name, uint32(i+1))
		u.expect(ndn.KindData, name)
	}
	i, _ := byScheme(f, "udp4")
	if d := i.Counters.Drops; d.InMalformed < 6 || d.InFragments != 1 {
		t.Errorf("drops %+v", d)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(bad[3]); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the stream was not closed: %d, %v", n, err)
	}
}
