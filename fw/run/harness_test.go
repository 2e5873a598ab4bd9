package run

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/face/mem"
	"ndnpop/face/tcp"
	"ndnpop/face/udp"
	"ndnpop/face/unix"
	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/strategies"
)

// patience bounds the wait for what must happen.
const patience = 10 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventually polls until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func start(t testing.TB, o Options) *Forwarder {
	t.Helper()
	if o.Strategies == nil {
		set, err := strategy.NewSet(strategies.Builtin()...)
		if err != nil {
			t.Fatal(err)
		}
		o.Strategies = set
	}
	o.UDP = udp.NewGroup(0) // as in the daemon
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(context.Background()) })
	return f
}

// app is an application at the other end of a face.
type app struct {
	t    testing.TB
	tr   face.Server
	mu   sync.Mutex // link and tr.Send
	link *lp.Link
	out  face.Frames
	in   chan packet
	// answer, if set, makes the Data for an Interest on the receive
	// goroutine; otherwise packets go to in.
	answer func(p *ndn.Packet, reply func(wire []byte, f *ndn.LpFields))
	done   chan error
}

type packet struct {
	kind   ndn.Kind
	name   ndn.Name
	wire   []byte
	reason ndn.NackReason
	token  []byte
}

func newApp(t testing.TB, tr face.Server, answer func(p *ndn.Packet, reply func([]byte, *ndn.LpFields))) *app {
	a := &app{t: t, tr: tr, in: make(chan packet, 4096), done: make(chan error, 1), answer: answer}
	a.link = lp.New(lp.Config{Application: true, Fragment: !tr.Info().Stream, MTU: tr.MTU(), Marking: lp.Marking{Off: true}})
	go func() { a.done <- tr.Serve(a) }()
	t.Cleanup(func() { a.close() })
	return a
}

func (a *app) close() {
	_ = a.tr.Close()
	if a.done != nil {
		<-a.done
		a.done = nil
	}
}

func (a *app) Receive(frames [][]byte) {
	var p ndn.Packet
	for _, fr := range frames {
		a.mu.Lock()
		ok, _ := a.link.Receive(1, fr, &p)
		a.mu.Unlock()
		if !ok {
			continue
		}
		if a.answer != nil && p.Kind == ndn.KindInterest {
			a.answer(&p, a.queue)
			continue
		}
		q := packet{kind: p.Kind, reason: p.NackReason, wire: append([]byte(nil), p.Wire()...), token: append([]byte(nil), p.PitToken...)}
		if p.Kind == ndn.KindData {
			q.name = p.Data.Name.Clone()
		} else {
			q.name = p.Interest.Name.Clone()
		}
		select {
		case a.in <- q:
		default:
		}
	}
}

func (a *app) queue(wire []byte, f *ndn.LpFields) {
	a.mu.Lock()
	_ = a.link.Send(1, wire, f, &a.out)
	a.mu.Unlock()
}

func (a *app) Flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.out.Len() > 0 {
		a.tr.Send(&a.out)
		a.out.Reset()
	}
}

func (a *app) Closed(error) {}

func (a *app) send(wire []byte, f *ndn.LpFields) {
	a.queue(wire, f)
	a.Flush()
}

func (a *app) interest(name string, nonce uint32) {
	a.send(interestWire(name, nonce), nil)
}

func interestWire(name string, nonce uint32) []byte {
	return ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName(name), Nonce: nonce, Lifetime: 4 * time.Second})
}

func dataWire(t testing.TB, name ndn.Name, size int) []byte {
	t.Helper()
	w, err := ndn.AppendData(nil, &ndn.DataFields{Name: name, Content: make([]byte, size)}, ndn.DigestSigner{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// expect waits for the next packet.
func (a *app) expect(kind ndn.Kind, name string) packet {
	a.t.Helper()
	select {
	case p := <-a.in:
		if p.kind != kind || !p.name.Equal(ndn.MustName(name)) {
			a.t.Fatalf("got kind %d %s, want kind %d %s", p.kind, p.name, kind, name)
		}
		return p
	case <-time.After(patience):
		a.t.Fatalf("no packet, want kind %d %s", kind, name)
	}
	return packet{}
}

// echo answers every Interest with a Data of the same name.
func echo(t testing.TB, size int) func(p *ndn.Packet, reply func([]byte, *ndn.LpFields)) {
	return func(p *ndn.Packet, reply func([]byte, *ndn.LpFields)) {
		reply(dataWire(t, p.Interest.Name, size), &ndn.LpFields{PitToken: p.PitToken})
	}
}

// memApp makes an in-memory face and returns the application and the face.
func memApp(t testing.TB, f *Forwarder, answer func(p *ndn.Packet, reply func([]byte, *ndn.LpFields))) (*app, ndn.FaceID) {
	t.Helper()
	near, far := mem.Pair()
	info, err := f.AttachFace(near, "")
	if err != nil {
		t.Fatal(err)
	}
	return newApp(t, far, answer), info.ID
}

func addRoute(t testing.TB, f *Forwarder, prefix string, id ndn.FaceID) {
	t.Helper()
	if err := f.AddRoute(Route{Prefix: ndn.MustName(prefix), Face: id, Origin: OriginStatic, ChildInherit: true}); err != nil {
		t.Fatal(err)
	}
}

// freePort returns a loopback address nobody listens on at the moment.
func freePort(t testing.TB, network string) string {
	t.Helper()
	if network == "udp" {
		c, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.LocalAddr().String()
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func listenUnix(t testing.TB, f *Forwarder) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := unix.Listen(path, unix.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Listen(l, ListenOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func listenTCP(t testing.TB, f *Forwarder, addr string, o ListenOptions) string {
	t.Helper()
	l, err := tcp.Listen(addr, tcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Listen(l, o); err != nil {
		t.Fatal(err)
	}
	_, rest := splitURI(l.URI())
	return rest
}

func listenUDP(t testing.TB, f *Forwarder, addr string, o ListenOptions) string {
	t.Helper()
	l, err := udp.Listen(addr, udp.Options{Group: f.opts.UDP})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Listen(l, o); err != nil {
		t.Fatal(err)
	}
	_, rest := splitURI(l.URI())
	return rest
}

func dialUnix(t testing.TB, path string) face.Server {
	t.Helper()
	tr, err := unix.Dial(path, unix.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func dialTCP(t testing.TB, addr string) face.Server {
	t.Helper()
	tr, err := tcp.Dial(addr, tcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func dialUDP(t testing.TB, addr string) face.Server {
	t.Helper()
	tr, err := udp.Dial(addr, udp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// byRemote finds a face by a part of its remote URI, 0 if there is none.
func byScheme(f *Forwarder, scheme string) (FaceInfo, bool) {
	for _, i := range f.Faces() {
		if s, _ := splitURI(i.RemoteURI); s == scheme {
			return i, true
		}
	}
	return FaceInfo{}, false
}

// events collects what an observer sees.
type events struct {
	mu   sync.Mutex
	list []string
}

func observe(f *Forwarder) *events {
	e := &events{}
	f.Observe(func(ev Event) {
		e.mu.Lock()
		defer e.mu.Unlock()
		switch ev.Kind {
		case RouteAdded, RouteRemoved:
			e.list = append(e.list, fmt.Sprintf("%v %s %d", ev.Kind, ev.Route.Prefix, ev.Route.Face))
		default:
			e.list = append(e.list, fmt.Sprintf("%v %d", ev.Kind, ev.Face.ID))
		}
	})
	return e
}

func (e *events) has(s string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.list {
		if x == s {
			return true
		}
	}
	return false
}
