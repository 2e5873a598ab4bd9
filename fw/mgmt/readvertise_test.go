package mgmt

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/face"
	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// daemon is a routing daemon's end of readvertising: what it knows.
type daemon struct {
	b    *bench
	dv   bool            // it is ndn-dv
	byDv map[string]bool // name and face, as ndn-dv counts
	nlsr map[string]bool // name, as NLSR counts
	seen []string        // commands, in order
}

func newDaemon(b *bench, dv bool) *daemon {
	return &daemon{b: b, dv: dv, byDv: map[string]bool{}, nlsr: map[string]bool{}}
}

// take reads what the server sent; answer decides which commands it takes.
func (d *daemon) take(answer func(cmd string) bool) {
	t := d.b.t
	t.Helper()
	for _, s := range d.b.f.take() {
		var p ndn.Packet
		if err := p.Parse(s.wire, &ndn.LpFields{}); err != nil {
			t.Fatal(err)
		}
		if p.Kind != ndn.KindInterest || !p.Interest.Name.HasPrefix(nlsr()) {
			continue
		}
		i := &p.Interest
		verb, _ := i.Name.At(3)
		arg, _ := i.Name.At(4)
		cp, err := proto.ParseControlParameters(arg.Value)
		if err != nil {
			t.Fatal(err)
		}
		if i.SigInfo == nil || !digestMatches(i) {
			t.Error("the command is not signed")
		}
		name := cp.Name.GetOr(nil).String()
		cmd := string(verb.Value) + " " + name
		d.seen = append(d.seen, cmd)
		if !answer(cmd) {
			continue
		}
		key := name + string(rune(cp.FaceID.GetOr(0)))
		register := string(verb.Value) == "register"
		if cp.Origin.GetOr(0) != 65 || cp.FaceID.IsSet() != d.dv || cp.Cost.IsSet() != (d.dv && register) ||
			cp.Flags.IsSet() || cp.Expiration.IsSet() {
			t.Errorf("%s: %+v", cmd, cp)
		}
		resp := proto.ControlResponse{Code: 200, Text: "OK", Body: &cp}
		if !d.dv && d.nlsr[name] == register {
			resp.Code = 204
		}
		if register {
			d.byDv[key], d.nlsr[name] = true, true
		} else {
			delete(d.byDv, key)
			delete(d.nlsr, name)
		}
		wire, err := ndn.AppendData(nil, &ndn.DataFields{Name: i.Name, Content: resp.AppendTo(nil)}, ndn.DigestSigner{})
		if err != nil {
			t.Fatal(err)
		}
		var a ndn.Packet
		if err := a.Parse(wire, &ndn.LpFields{}); err != nil {
			t.Fatal(err)
		}
		d.b.s.Handle(d.b.f.now, &a)
	}
}

func always(string) bool { return true }

func TestReadvertise(t *testing.T) {
	t.Run("NLSR", func(t *testing.T) { testReadvertise(t, proto.OriginApp) })
	t.Run("ndn-dv", func(t *testing.T) { testReadvertise(t, proto.OriginNLSR) })
}

// testReadvertise has the daemon register its prefix with an origin.
func testReadvertise(t *testing.T, origin uint64) {
	dv := origin == proto.OriginNLSR
	b := newBench(t, Config{}, nil)
	b.f.faces[300] = &run.FaceInfo{ID: 300, Info: face.Info{Scope: face.ScopeLocal}}
	b.f.faces[301] = &run.FaceInfo{ID: 301, Info: face.Info{Scope: face.ScopeLocal}}
	d := newDaemon(b, dv)
	route := func(prefix string, id ndn.FaceID, origin uint64) run.Route {
		return run.Route{Prefix: ndn.MustName(prefix), Face: id, Origin: origin, Cost: 5}
	}
	add := func(r run.Route) {
		if err := b.f.AddRoute(r); err != nil {
			t.Fatal(err)
		}
		b.s.work(b.f.now)
	}
	add(route("/app", 256, proto.OriginClient))
	add(route("/quiet", 256, proto.OriginApp))
	add(route("/localhost/x", 256, proto.OriginClient))
	if len(b.f.take()) != 0 {
		t.Fatal("sent without a daemon")
	}
	// The daemon comes: it is told of what there is.
	add(route("/localhost/nlsr", 300, origin))
	d.take(always)
	if len(d.seen) != 1 || !d.nlsr["/app"] {
		t.Fatalf("the new daemon heard %v", d.seen)
	}
	// Two faces with one prefix; one goes: both ways of counting end right.
	add(route("/app", 301, proto.OriginClient))
	d.take(always)
	b.f.RemoveRoute(ndn.MustName("/app"), 256, proto.OriginClient)
	b.s.work(b.f.now)
	for range 5 {
		d.take(always)
	}
	if !d.nlsr["/app"] || len(d.byDv) != 1 {
		t.Errorf("after one of two left: %v %v (%v)", d.nlsr, d.byDv, d.seen)
	}
	// An answer is lost: the command is repeated.
	add(route("/lost", 301, proto.OriginClient))
	d.take(func(string) bool { return false })
	for range 10 {
		b.advance(2 * time.Second)
		d.take(always)
	}
	if !d.nlsr["/lost"] {
		t.Errorf("a lost command was not repeated: %v", d.seen)
	}
	// The last one goes.
	b.f.RemoveRoute(ndn.MustName("/app"), 301, proto.OriginClient)
	b.f.RemoveRoute(ndn.MustName("/lost"), 301, proto.OriginClient)
	b.s.work(b.f.now)
	d.take(always)
	if len(d.nlsr) != 0 || len(b.s.adverts.adverts) != 0 || len(b.s.adverts.byPrefix) != 0 {
		t.Errorf("left over: %v, %d", d.nlsr, len(b.s.adverts.adverts))
	}
	// The daemon restarts and knows nothing.
	add(route("/app", 301, proto.OriginClient))
	d.take(always)
	b.f.RemoveRoute(nlsr(), 300, origin)
	b.s.work(b.f.now)
	d2 := newDaemon(b, dv)
	add(route("/localhost/nlsr", 300, origin))
	d2.take(always)
	if !d2.nlsr["/app"] {
		t.Errorf("the restarted daemon heard %v", d2.seen)
	}
}

// Whatever happens to routes, answers and the daemon, in the end it knows the
// routes that there are.
func TestReadvertiseConverges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t, Config{}, nil)
		for id := ndn.FaceID(300); id < 304; id++ {
			b.f.faces[id] = &run.FaceInfo{ID: id, Info: face.Info{Scope: face.ScopeLocal}}
		}
		dv := rapid.Bool().Draw(rt, "dv")
		origin := proto.OriginApp
		if dv {
			origin = proto.OriginNLSR
		}
		d := newDaemon(b, dv)
		up := false
		steps := rapid.IntRange(1, 40).Draw(rt, "steps")
		for range steps {
			prefix := ndn.Name{}.AppendGeneric(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "prefix"))
			id := ndn.FaceID(300 + rapid.IntRange(1, 3).Draw(rt, "face"))
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0, 1:
				_ = b.f.AddRoute(run.Route{Prefix: prefix, Face: id, Origin: proto.OriginClient, Cost: uint64(rapid.IntRange(0, 2).Draw(rt, "cost"))})
			case 2, 3:
				b.f.RemoveRoute(prefix, id, proto.OriginClient)
			case 4:
				if up {
					b.f.RemoveRoute(nlsr(), 300, origin)
					b.s.work(b.f.now)
					b.f.take() // what was under way does not arrive
					d = newDaemon(b, dv)
				} else {
					_ = b.f.AddRoute(run.Route{Prefix: nlsr(), Face: 300, Origin: origin})
				}
				up = !up
			case 5:
				b.advance(time.Duration(rapid.IntRange(0, 8000).Draw(rt, "ms")) * time.Millisecond)
			}
			if rapid.Bool().Draw(rt, "work") {
				b.s.work(b.f.now)
			}
			d.take(func(string) bool { return rapid.IntRange(0, 3).Draw(rt, "answer") > 0 })
		}
		if !up {
			_ = b.f.AddRoute(run.Route{Prefix: nlsr(), Face: 300, Origin: origin})
		}
		for range 200 {
			b.advance(time.Second)
			d.take(always)
		}
		want := map[string]bool{}
		faces := 0
		for _, r := range b.f.routes {
			if r.Origin == proto.OriginClient {
				want[r.Prefix.String()] = true
				faces++
			}
		}
		for n := range want {
			if !d.nlsr[n] {
				rt.Errorf("the daemon does not know %s", n)
			}
		}
		if len(d.nlsr) != len(want) || dv && len(d.byDv) != faces {
			rt.Errorf("the daemon knows %v and %d faces; routes %v with %d", d.nlsr, len(d.byDv), want, faces)
		}
		if n := len(b.s.adverts.adverts); n != faces {
			rt.Errorf("%d adverts of %d routes", n, faces)
		}
	})
}

// TestReadvertiserHoldsAllRoutes: every client's route is remembered, and of
// those that came and went while there was no daemon nothing is.
func TestReadvertiserHoldsAllRoutes(t *testing.T) {
	const routes = 70_000
	a := newReadvertiser(time.Now, func() uint64 { return 1 })
	route := func(i int) *run.Route {
		return &run.Route{Prefix: ndn.MustName(fmt.Sprintf("/r/%d", i)), Face: 300, Origin: proto.OriginClient}
	}
	for i := range routes {
		a.route(route(i), true)
	}
	if len(a.adverts) != routes || len(a.ready) != routes || a.withdrawn != 0 {
		t.Fatalf("%d of %d routes, %d to be told, %d withdrawn", len(a.adverts), routes, len(a.ready), a.withdrawn)
	}
	for i := range routes {
		a.route(route(i), false)
	}
	for range 1000 {
		a.route(route(1), true)
		a.route(route(1), false)
	}
	if len(a.adverts)+len(a.byPrefix)+a.withdrawn != 0 || len(a.ready) > 2*advertWindow {
		t.Errorf("left behind: %d routes, %d withdrawn, %d to be told", len(a.adverts), a.withdrawn, len(a.ready))
	}
	// A daemon that answers nothing does not make it remember all that went.
	a.daemon(daemonRoute{face: 301}, true)
	for i := range maxWithdrawn + 1000 {
		a.route(route(i), true)
		a.adverts[advertKey{string(route(i).Prefix), 300}].known = true // as when a command was sent
		a.route(route(i), false)
	}
	if n := len(a.adverts); n > maxWithdrawn || a.withdrawn != n {
		t.Errorf("%d routes are kept, %d of them withdrawn", n, a.withdrawn)
	}
}
