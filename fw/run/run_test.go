package run

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
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
	if !ok || i.Persistency != face.PersistencyOnDemand || i.Counters.InInterests != 1 || i.ExpiresIn <= 0 || i.Proven {
		t.Fatalf("%+v", i)
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
