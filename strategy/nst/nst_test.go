package nst

import (
	"strings"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/strategytest"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

func recorder(t *testing.T, params ...string) *strategytest.Recorder {
	t.Helper()
	r, err := strategytest.New(1, Factory(), params...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fullName() ndn.Name {
	f := Factory()
	return f.FullName()
}

func wantAll(t *testing.T, r *strategytest.Recorder, h *strategytest.Hop, from, to time.Duration) {
	t.Helper()
	if s := r.Share(h, from, to); s != 1 {
		t.Errorf("share of %s from %v to %v is %v", h.Name, from, to, s)
	}
}

func TestObjectOf(t *testing.T) {
	for uri, want := range map[string]string{
		"/p/film/v=1/seg=2":          "/p/film/v=1",
		"/p/film/v=1/32=metadata/3":  "/p/film/v=1",
		"/p/v=1/film/v=2/seg=0":      "/p/v=1/film/v=2",
		"/p/film/seg=2":              "/p/film",
		"/p/film/32=metadata":        "/p/film",
		"/p":                         "/",
		"/p/film/v=1":                "/p/film/v=1",
		"/p/film/32=metadata/v=7":    "/p/film/32=metadata/v=7",
		"/p/film/32=metadata/a=1/b2": "/p/film/32=metadata/a=1",
	} {
		n, err := ndn.ParseName(uri)
		if err != nil {
			continue // not every alias exists
		}
		if got := objectOf(n).String(); got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
	if len(objectOf(nil)) != 0 {
		t.Error("empty name")
	}
}

func TestNearestThenLeastLoaded(t *testing.T) {
	r := recorder(t)
	far := r.AddHop(strategytest.Hop{Name: "far", Cost: 9, RTT: 30 * ms})
	near := r.AddHop(strategytest.Hop{Name: "near", Cost: 2, RTT: 50 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 20})
	r.Run(sec)
	wantAll(t, r, near, 0, sec)
	// Equal hops: the one with less outstanding.
	far.SetCost(2)
	r.AddConsumer(strategytest.Consumer{Start: sec, Window: 5, Object: "second"})
	r.Run(2 * sec)
	for _, s := range r.Sends {
		if s.At >= sec && (s.Hop == far) != strings.Contains(s.Name.String(), "second") {
			t.Fatalf("%v", s)
		}
	}
}

func TestRequestMovesTheObjectOnce(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	c := r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 20 * ms})
	one := r.AddConsumer(strategytest.Consumer{Object: "o", Every: 10 * ms})
	two := r.AddConsumer(strategytest.Consumer{Object: "o", Every: 10 * ms, Start: 5 * ms})
	other := r.AddConsumer(strategytest.Consumer{Every: 10 * ms, Start: ms})
	r.At(sec, func() { one.SelectReplica() })
	// Complaints about the same congestion do not move it back.
	r.At(1500*ms, func() { two.SelectReplica() })
	r.At(2900*ms, func() { two.SelectReplica() })
	// Then the next best: a was left less than 10 s ago.
	r.At(4*sec, func() { one.SelectReplica() })
	r.Run(6 * sec)
	for _, s := range r.Sends {
		want := a
		switch {
		case strings.HasPrefix(s.Name.String(), "/p/c") || s.At < sec:
		case s.At < 4*sec:
			want = b
		default:
			want = c
		}
		if s.Hop != want {
			t.Fatalf("%v, want %s", s, want.Name)
		}
	}
	acks := 0
	for _, con := range []*strategytest.Consumer{one, two, other} {
		for _, d := range con.Arrivals {
			if d.ReplicaAck {
				acks++
			}
		}
	}
	if acks != 4 {
		t.Errorf("%d acknowledgements", acks)
	}
}

func TestNoAlternativeIsAcknowledged(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: 10 * ms})
	r.At(sec, con.SelectReplica)
	r.Run(2 * sec)
	wantAll(t, r, a, 0, 2*sec)
}

func TestLinkFailureMoves(t *testing.T) {
	for name, fail := range map[string]func(a *strategytest.Hop){
		"face down":     func(a *strategytest.Hop) { a.Down() },
		"face removed":  func(a *strategytest.Hop) { a.Remove() },
		"route removed": func(a *strategytest.Hop) { a.RemoveRoute() },
		"NoRoute":       func(a *strategytest.Hop) { a.Nacks = ndn.NackNoRoute },
		"gives up":      func(a *strategytest.Hop) { a.Silent, a.GiveUp = true, 5*ms },
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
			r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 20 * ms})
			con := r.AddConsumer(strategytest.Consumer{Window: 8, Resend: 200 * ms})
			r.At(1005*ms, func() { fail(a) })
			r.Run(3 * sec)
			wantAll(t, r, a, 0, 1005*ms)
			wantAll(t, r, b, 1100*ms, 3*sec)
			if gap := con.Gap(sec, 2*sec); gap > 60*ms {
				t.Errorf("gap %v", gap)
			}
			if name != "gives up" && con.Resent+len(con.Nacks) > 0 {
				t.Errorf("%d resent, Nacks %v", con.Resent, con.Nacks)
			}
			if rep, _, ok := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0)); !ok {
				t.Error("no report")
			} else {
				for _, row := range rep.Rows {
					if out := row.Cells[2]; (row.Face == b.Face()) != (out == 8) || out != 8 && out != 0 {
						t.Errorf("outstanding at %d: %v", row.Face, out)
					}
				}
			}
		})
	}
}

func TestNeverFlaps(t *testing.T) {
	// Loss, congestion and load at the chosen one are no reason to move.
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms, Jitter: 30 * ms, Loss: .05, Rate: 500})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 50, Resend: 300 * ms})
	r.At(5*sec, func() { a.Nacks = ndn.NackCongestion })
	r.At(6*sec, func() { a.Nacks, a.Refuse = 0, true })
	r.At(7*sec, func() { a.Refuse = false })
	r.Run(14 * sec)
	wantAll(t, r, a, 0, 14*sec)
	for _, reason := range con.Nacks {
		if reason != ndn.NackCongestion {
			t.Fatalf("Nack %v", reason)
		}
	}
}

func TestOutstandingIsExact(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 50 * ms, Loss: .3})
	con := r.AddConsumer(strategytest.Consumer{Window: 10, Lifetime: 400 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 10, Lifetime: 400 * ms, Resend: 100 * ms})
	check := func(want int) {
		t.Helper()
		rep, _, _ := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
		if got := rep.Rows[0].Cells[2]; got != float64(want) {
			t.Errorf("at %v: %v outstanding, want %d", r.Now(), got, want)
		}
	}
	for at := 100 * ms; at < 5*sec; at += 130 * ms {
		r.At(at, func() {
			check(r.Shard().Counters().PitEntries)
		})
	}
	r.At(5*sec, func() { a.Nacks = ndn.NackCongestion })
	r.Run(7 * sec)
	if r.Shard().Counters().PitEntries == 0 {
		check(0)
	}
	a.Nacks = 0
	// A change of strategy takes the Interests away from this one.
	if _, err := r.Shard().SetStrategy(r.Time(r.Now()), con.Name(0).Prefix(2), fullName()); err != nil {
		t.Fatal(err)
	}
	r.Run(8 * sec)
}

func TestCongestionOfARowFadesAndHasABase(t *testing.T) {
	var r row
	now := ndn.Time(time.Hour)
	r.sample(now, 20*ms)
	for range 100 {
		now = now.Add(10 * ms)
		r.sample(now, 50*ms)
	}
	if x := r.x3(now); x < 29 || x > 30 {
		t.Errorf("congestion %v", x)
	}
	if x := r.x3(now.Add(halving)); x < 14.5 || x > 15 {
		t.Errorf("after 10 s of silence %v", x)
	}
	for range 200 { // 100 s: the path is longer now
		now = now.Add(500 * ms)
		r.sample(now, 50*ms)
	}
	if x := r.x3(now); x > 1 || r.floor() != 50*ms {
		t.Errorf("with a new base %v, %v", x, r.floor())
	}
}

func TestPathsDoNotMix(t *testing.T) {
	// Every 20th Data is from a cache half way. It is no base.
	r := recorder(t, "hops~tag")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 50 * ms, PathTag: ndn.PathTag{Tag: 1, Hops: 3}})
	for at := sec; at < 4*sec; at += 200 * ms {
		r.At(at, func() { a.PathTag.Tag, a.PathTag.Hops, a.RTT = 2, 1, 10*ms })
		r.At(at+10*ms, func() { a.PathTag.Tag, a.PathTag.Hops, a.RTT = 1, 3, 50*ms })
	}
	con := r.AddConsumer(strategytest.Consumer{Every: 10 * ms, PathTag: true})
	r.Run(4 * sec)
	rep, name, ok := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
	if !ok || len(rep.Rows) != 1 || !name.Equal(fullName().AppendGeneric("hops~tag")) {
		t.Fatal(rep, name, ok)
	}
	if cells := rep.Rows[0].Cells; len(cells) != len(rep.Columns) || cells[1] != 3 || cells[3] > .1 || cells[4] < 49 {
		t.Errorf("%v: %v", rep.Columns, cells)
	}
}

func TestFunctions(t *testing.T) {
	f := Factory(Function{Name: "farthest", Usage: "most hops", Of: func(_, raw [3]float64) float64 { return -raw[0] }})
	for name, best := range map[string]string{"ers": "a", "hops": "a", "farthest": "b"} {
		r, err := strategytest.New(1, f, "function~"+name)
		if err != nil {
			t.Fatal(err)
		}
		r.AddHop(strategytest.Hop{Name: "a", Cost: 1})
		r.AddHop(strategytest.Hop{Name: "b", Cost: 2})
		r.AddConsumer(strategytest.Consumer{Segments: 1})
		why := ""
		r.Watch = func(_ time.Duration, d *strategy.Decision) { why += d.Reason }
		r.Run(sec)
		if r.Sends[0].Hop.Name != best || why != "new object" {
			t.Errorf("%s: %v, %q", name, r.Sends[0], why)
		}
	}
}

func TestLoopEnds(t *testing.T) { strategytest.CheckLoop(t, Factory(), 2) }

func TestParameters(t *testing.T) {
	strategytest.CheckParams(t, Factory(), map[string][]string{
		"function": {"nearest"}, "hops": {"guess"}, "hold": {"-1"}, "avoid": {"x"},
		"multiple": {"0.5"}, "floor": {"0"}, "unknown": {"x"}, "evidence": {"0"},
	})
}

func TestDoesNotAllocate(t *testing.T) { strategytest.CheckAllocs(t, Factory()) }

func BenchmarkHandlers(b *testing.B) { strategytest.Bench(b, Factory()) }

func TestValuesAreOfOneScale(t *testing.T) {
	// One hop less outweighs twenty Interests outstanding (0.757 to 0.162).
	r := recorder(t)
	near := r.AddHop(strategytest.Hop{Name: "near", Cost: 10, RTT: 20 * ms})
	r.AddHop(strategytest.Hop{Name: "far", Cost: 11, RTT: 20 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 20})
	r.AddConsumer(strategytest.Consumer{Window: 20, Start: sec})
	r.Run(2 * sec)
	wantAll(t, r, near, 0, 2*sec)
}

func TestTiesGoToTheLowerRTT(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 50 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 1, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Segments: 10, Every: 100 * ms})
	r.At(450*ms, con.SelectReplica)
	r.AddConsumer(strategytest.Consumer{Segments: 10, Start: 3 * sec})
	r.Run(5 * sec)
	wantAll(t, r, a, 0, 450*ms)
	wantAll(t, r, b, 450*ms, 5*sec)
}

func TestRequestThatIsRepeatedIsOne(t *testing.T) {
	r := recorder(t, "hold~0", "avoid~0")
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Object: "o", Segments: 1})
	r.Run(100 * ms)
	ask := func(segment uint64) {
		var p ndn.Packet
		wire := ndn.AppendInterest(nil, &ndn.InterestFields{Name: con.Name(segment), Nonce: uint32(1000 + segment), Lifetime: sec})
		if err := p.Parse(wire, &ndn.LpFields{HasReplicaSelect: true, ReplicaSelect: 1}); err != nil {
			t.Fatal(err)
		}
		r.Shard().Receive(r.Time(r.Now()), b.Face()+1, &p)
	}
	for i := uint64(1); i <= 5; i++ {
		ask(i)
		r.Run(100*ms + time.Duration(i)*100*ms)
	}
	wantAll(t, r, b, 100*ms, sec)
}

func TestSingleGiveUpsMoveNothing(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms, Loss: .01, GiveUp: 30 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: 5 * ms})
	r.Run(20 * sec)
	wantAll(t, r, a, 0, 20*sec)
	if len(con.Nacks) < 20 {
		t.Errorf("only %d were given up", len(con.Nacks))
	}
}

func TestCongestionThatOneLeftIsRemembered(t *testing.T) {
	r := recorder(t, "function~congestion")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 1, RTT: 20 * ms, Jitter: 20 * ms})
	one := r.AddConsumer(strategytest.Consumer{Object: "one", Every: 5 * ms})
	r.AddConsumer(strategytest.Consumer{Object: "two", Every: 5 * ms}) // goes on measuring a
	r.At(sec, func() { a.RTT = 60 * ms })
	r.At(2*sec, one.SelectReplica)
	r.At(2100*ms, func() { a.RTT = 20 * ms })
	for name, start := range map[string]time.Duration{"three": 5 * sec, "four": 13 * sec} {
		r.AddConsumer(strategytest.Consumer{Object: name, Segments: 10, Start: start})
	}
	r.Run(15 * sec)
	seen := 0
	for _, s := range r.Sends {
		object := s.Name.Prefix(2)
		if three := object.String() == "/p/three"; three || object.String() == "/p/four" {
			if seen++; (s.Hop == a) == three {
				t.Errorf("%v", s)
			}
		}
	}
	if seen != 20 {
		t.Errorf("%d Interests", seen)
	}
}
