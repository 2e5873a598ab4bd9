package failover

import (
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/strategytest"
)

const ms = time.Millisecond

func recorder(t *testing.T, params ...string) *strategytest.Recorder {
	t.Helper()
	r, err := strategytest.New(1, Factory(), params...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// consumers of different habits, none of which repeats an Interest.
var consumers = map[string]strategytest.Consumer{
	"window 1":      {Window: 1},
	"window 2":      {Window: 2},
	"window 16":     {Window: 16},
	"window 60":     {Window: 60},
	"every 1 ms":    {Every: ms},
	"every 7 ms":    {Every: 7 * ms},
	"shorter lived": {Window: 8, Lifetime: 500 * ms},
}

func TestKillIsTransparent(t *testing.T) {
	for name, c := range consumers {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 30 * ms})
			con := r.AddConsumer(c)
			r.At(1003*ms, a.Down)
			r.At(3*time.Second, a.Up)
			r.Run(4 * time.Second)
			before := con.Gap(500*ms, time.Second)
			t.Logf("gap %v", con.Gap(time.Second, 2*time.Second))
			if gap := con.Gap(time.Second, 2*time.Second); gap > b.RTT+max(5*ms, before) {
				t.Errorf("gap %v at the kill", gap)
			}
			if con.Lost+con.Resent+len(con.Nacks) > 0 {
				t.Errorf("%d lost, %d resent, Nacks %v", con.Lost, con.Resent, con.Nacks)
			}
			if s := r.Share(b, 1004*ms, 3*time.Second); s != 1 {
				t.Errorf("share of b while a is down: %v", s)
			}
			if s := r.Share(a, 3100*ms, 4*time.Second); s != 1 {
				t.Errorf("share of a after it is up: %v", s)
			}
		})
	}
}

func TestBlackHoleIsTransparent(t *testing.T) {
	for _, rtt := range []time.Duration{100 * time.Microsecond, 5 * ms, 20 * ms, 100 * ms} {
		for name, c := range consumers {
			t.Run(rtt.String()+" "+name, func(t *testing.T) {
				r := recorder(t)
				a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: rtt})
				b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: rtt})
				if rtt < ms && c.Every == 0 {
					c.Segments = 4000 // keep the run short
				}
				con := r.AddConsumer(c)
				die := 1003 * ms
				if c.Segments > 0 {
					die = 2 * ms
				}
				r.At(die, func() { a.Silent = true })
				r.At(2500*ms, func() { a.Silent = false })
				r.Run(5 * time.Second)
				if con.Lost+con.Resent+len(con.Nacks) > 0 {
					t.Errorf("%d lost, %d resent, Nacks %v", con.Lost, con.Resent, con.Nacks)
				}
				if c.Segments > 0 {
					if len(con.Arrivals) != c.Segments {
						t.Errorf("%d arrivals", len(con.Arrivals))
					}
					return
				}
				for at := time.Duration(0); at < 4*time.Second; at += 100 * ms {
					if gap := con.Gap(at, at+900*ms); gap > 4*rtt+20*ms+c.Every {
						t.Fatalf("gap %v in %v…%v", gap, at, at+900*ms)
					}
				}
				t.Logf("gap %v", con.Gap(die-10*ms, die+time.Second))
				if n := r.Count(a, die+time.Second, 2500*ms); n > 3 {
					t.Errorf("%d Interests into the black hole", n)
				}
				if s := r.Share(b, die+time.Second, 2500*ms); s != 1 {
					t.Errorf("share of b: %v", s)
				}
				if s := r.Share(a, 4*time.Second, 5*time.Second); s != 1 {
					t.Errorf("share of a after it healed: %v", s)
				}
			})
		}
	}
}

func TestOutstandingIsResentAsItWasSent(t *testing.T) {
	kill := func(h *strategytest.Hop) { h.Down() }
	for name, x := range map[string]struct {
		die  func(*strategytest.Hop)
		late time.Duration
	}{
		"black hole":       {func(h *strategytest.Hop) { h.Silent = true }, 0},
		"kill":             {kill, 0},
		"kill in a daemon": {kill, 50 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			r.Late = x.late
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
			con := r.AddConsumer(strategytest.Consumer{Window: 50})
			r.At(time.Second, func() { x.die(a) })
			r.Run(1100 * ms)
			strategytest.CheckNonces(t, r)
			var at []time.Duration
			for _, s := range r.Sends {
				if s.Hop == b && s.Again {
					if s.Event != "Timer" && len(at) > 0 || s.Why == "" {
						t.Errorf("%v", s)
					}
					at = append(at, s.At)
				}
			}
			// All within the round-trip time of the dead next hop, evenly.
			if len(at) != 50 {
				t.Fatalf("%d re-sends", len(at))
			}
			for i := 1; i < 50; i++ {
				if d := at[i] - at[i-1]; d < 300*time.Microsecond || d > 500*time.Microsecond {
					t.Errorf("re-send %d %v after the one before", i, d)
				}
			}
			if con.Lost > 0 {
				t.Error("lost")
			}
		})
	}
}

// TestQueuedInterests: what happens while Interests wait for their turn to be
// sent again.
func TestQueuedInterests(t *testing.T) {
	for name, x := range map[string]struct {
		then func(a, b *strategytest.Hop, con *strategytest.Consumer)
		most int // Interests that were sent again
	}{
		"the other dies too": {func(a, b *strategytest.Hop, _ *strategytest.Consumer) { b.Down(); a.Up() }, 80},
		"the first comes up": {func(a, b *strategytest.Hop, _ *strategytest.Consumer) { a.Up() }, 51},
		"the consumer asks again": {func(_, _ *strategytest.Hop, c *strategytest.Consumer) {
			for i := range uint64(3000) {
				c.Repeat(i)
			}
		}, 51},
		"the route goes": {func(a, b *strategytest.Hop, _ *strategytest.Consumer) { a.RemoveRoute() }, 51},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
			con := r.AddConsumer(strategytest.Consumer{Window: 50})
			r.At(time.Second, a.Down)
			r.At(1010*ms, func() { x.then(a, b, con) })
			r.Run(2 * time.Second)
			if con.Lost > 0 || len(con.Nacks) > 0 || con.Gap(1050*ms, 2*time.Second) > 21*ms {
				t.Errorf("%d lost, Nacks %v, gap %v", con.Lost, con.Nacks, con.Gap(1100*ms, 2*time.Second))
			}
			again := 0
			for _, s := range r.Sends {
				if s.Again {
					again++
				}
			}
			if again < 49 || again > x.most {
				t.Errorf("%d sent again", again)
			}
		})
	}
}

// TestChangeDuringAFailure: another instance takes over what is outstanding at a
// next hop that is dead and not known to be, or waits for its turn.
func TestChangeDuringAFailure(t *testing.T) {
	for name, x := range map[string]struct {
		die  func(*strategytest.Hop)
		most time.Duration
	}{
		// The new instance knows no round-trip time.
		"black hole": {func(h *strategytest.Hop) { h.Silent = true }, 250*ms + 25*ms},
		"kill":       {func(h *strategytest.Hop) { h.Down() }, 25 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
			con := r.AddConsumer(strategytest.Consumer{Window: 50})
			r.At(time.Second, func() { x.die(a) })
			r.At(1005*ms, func() {
				f := Factory()
				full := f.FullName().AppendGeneric("evidence~5")
				if _, err := r.Shard().SetStrategy(r.Time(r.Now()), nil, full); err != nil {
					t.Fatal(err)
				}
			})
			r.Run(8 * time.Second)
			if gap := con.Gap(time.Second, 8*time.Second); gap > x.most || con.Lost+len(con.Nacks) > 0 {
				t.Errorf("gap %v, %d lost, Nacks %v", gap, con.Lost, con.Nacks)
			}
		})
	}
}

// TestLinedUpInterestIsAskedForByTwo: it goes out for the second consumer, and
// gets no Nack when it then waits for an answer like others.
func TestLinedUpInterestIsAskedForByTwo(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 50})
	r.At(time.Second, a.Down)
	var both []*strategytest.Consumer
	for i := range time.Duration(2) {
		both = append(both, r.AddConsumer(strategytest.Consumer{Object: "o", Segments: 1, Start: time.Second + (i+1)*ms}))
	}
	// Nobody answers then, and there is nobody else to ask.
	r.At(1001*ms, func() { b.Silent = true })
	r.At(1500*ms, func() { b.Silent = false; a.Up() })
	r.Run(2 * time.Second)
	for _, c := range both {
		if len(c.Nacks) > 0 {
			t.Errorf("Nacks %v", c.Nacks)
		}
	}
}

func TestRandomLossDoesNotFlap(t *testing.T) {
	for name, c := range consumers {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms, Jitter: 2 * ms, Loss: .05})
			r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 40 * ms, Loss: .05})
			c.Resend = 200 * ms
			con := r.AddConsumer(c)
			r.Run(20 * time.Second)
			if s := r.Share(a, 0, 20*time.Second); s != 1 {
				t.Errorf("share of a: %v, switches: %d", s, r.Switches(0, 20*time.Second))
			}
			if len(con.Arrivals) < 600 {
				t.Errorf("only %d arrivals", len(con.Arrivals))
			}
		})
	}
}

func TestProbesBackOff(t *testing.T) {
	r := recorder(t, "retry-initial~100", "retry-max~1600")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 8})
	r.At(time.Second, func() { a.Silent = true })
	r.Run(10 * time.Second)
	var at []time.Duration
	for _, s := range r.Sends {
		if s.Hop == a && s.At > 1100*ms {
			at = append(at, s.At)
		}
	}
	// After 100, 200, 400, 800 and then every 1600 ms.
	if len(at) < 7 || len(at) > 9 {
		t.Fatalf("probes at %v", at)
	}
	for i := 1; i < len(at); i++ {
		want := min(100*ms<<i, 1600*ms)
		if d := at[i] - at[i-1]; d < want || d > want+20*ms {
			t.Errorf("probe %d after %v, want %v", i, d, want)
		}
	}
}

func TestRelapseKeepsItsBackOff(t *testing.T) {
	r := recorder(t, "retry-initial~100")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 8})
	// A link that works for half of every half second: trials find it well, so
	// that the traffic would go there and back twice a second.
	for at := time.Second; at < 20*time.Second; at += 500 * ms {
		r.At(at, func() { a.Silent = true })
		r.At(at+250*ms, func() { a.Silent = false })
	}
	r.Run(20 * time.Second)
	if n := r.Switches(10*time.Second, 20*time.Second); n > 8 {
		t.Errorf("%d switches in 10 s", n)
	}
}

func TestNoRouteMovesOn(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 4})
	r.At(time.Second, func() { a.Nacks = ndn.NackNoRoute })
	r.At(2*time.Second, func() { a.Nacks = 0 })
	r.Run(4 * time.Second)
	if len(con.Nacks) > 0 || con.Gap(500*ms, 4*time.Second) > 21*ms {
		t.Errorf("Nacks %v, gap %v", con.Nacks, con.Gap(500*ms, 4*time.Second))
	}
	if s := r.Share(b, 1100*ms, 2*time.Second); s != 1 {
		t.Errorf("share of b: %v", s)
	}
	if s := r.Share(a, 3500*ms, 4*time.Second); s != 1 {
		t.Errorf("share of a: %v", s)
	}
}

// TestOneNoRouteIsNoFailure: who asks for a name to which a next hop has no
// route does not turn the others' traffic away from it.
func TestOneNoRouteIsNoFailure(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 1})
	for at := time.Second; at < 2*time.Second; at += 100 * ms {
		r.At(at, func() { a.Nacks = ndn.NackNoRoute })
		r.At(at+12*ms, func() { a.Nacks = 0 })
		r.At(at+40*ms, func() {
			if s := r.Share(a, at+40*ms-15*ms, at+40*ms); s != 1 {
				t.Errorf("share of a after a Nack at %v: %v", at, s)
			}
		})
	}
	r.Run(3 * time.Second)
	if len(con.Nacks) > 0 {
		t.Errorf("Nacks %v", con.Nacks)
	}
}

func TestCongestionIsNoFailure(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Nacks: ndn.NackCongestion})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	con := r.AddConsumer(strategytest.Consumer{Segments: 100})
	r.Run(5 * time.Second)
	if r.Share(a, 0, 5*time.Second) != 1 || b.Served() != 100 || len(con.Arrivals) != 100 {
		t.Errorf("a %v, b served %d, %d arrivals", r.Share(a, 0, 5*time.Second), b.Served(), len(con.Arrivals))
	}
	b.Nacks = ndn.NackDuplicate
	con = r.AddConsumer(strategytest.Consumer{Segments: 1, Start: 5 * time.Second})
	r.Run(6 * time.Second)
	if len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackCongestion {
		t.Errorf("Nacks %v", con.Nacks)
	}
}

func TestGiveUpMovesOn(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 100 * ms, GiveUp: 30 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 1})
	r.At(time.Second, func() { a.Silent = true })
	r.Run(3 * time.Second)
	if gap := con.Gap(900*ms, 2*time.Second); gap > 141*ms {
		t.Errorf("gap %v", gap)
	}
	if s := r.Share(b, 1200*ms, 3*time.Second); s != 1 {
		t.Errorf("share of b: %v", s)
	}
	// One is evidence enough where nothing was heard since.
	if n := r.Count(a, time.Second, 1200*ms); n > 2 {
		t.Errorf("%d Interests to the link that gives them up", n)
	}
}

func TestNothingElseToTry(t *testing.T) {
	r := recorder(t)
	con := r.AddConsumer(strategytest.Consumer{Segments: 1})
	r.Run(time.Second)
	if len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackNoRoute {
		t.Errorf("Nacks %v", con.Nacks)
	}
	// A sole next hop is used although it is down, and its return noticed.
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	con = r.AddConsumer(strategytest.Consumer{Start: time.Second, Window: 8, Resend: 200 * ms})
	r.At(2*time.Second, func() { a.Silent = true })
	r.At(4*time.Second, func() { a.Silent = false })
	r.Run(6 * time.Second)
	if gap := con.Gap(4*time.Second, 6*time.Second); gap > 300*ms {
		t.Errorf("gap after the only next hop healed: %v", gap)
	}
	// A sole face that comes up gets what is pending.
	r.At(6*time.Second, a.Down)
	r.At(6500*ms, a.Up)
	con.Resend = 0
	r.Run(8 * time.Second)
	if gap := con.Gap(6*time.Second, 8*time.Second); gap > 520*ms {
		t.Errorf("gap while the only face was down: %v", gap)
	}
}

// TestAllDown: an Interest for which all next hops are down goes to each of
// them, the cheapest first.
func TestAllDown(t *testing.T) {
	r := recorder(t, "retry-initial~3600000", "retry-max~3600000")
	var hops []*strategytest.Hop
	for i, name := range []string{"a", "b", "c"} {
		hops = append(hops, r.AddHop(strategytest.Hop{Name: name, Cost: uint64(i + 1), RTT: 10 * ms}))
	}
	r.AddConsumer(strategytest.Consumer{Window: 8, Segments: 2000, Lifetime: time.Second})
	// The dearest falls silent first and so would be tried again first.
	for i, h := range hops {
		r.At(time.Duration(1000-i)*ms, func() { h.Silent = true })
	}
	last := r.AddConsumer(strategytest.Consumer{Object: "last", Start: 5 * time.Second, Segments: 1})
	r.Run(8 * time.Second)
	order := ""
	for _, s := range r.Sends {
		if s.Name.Equal(last.Name(0)) {
			order += s.Hop.Name
			if s.Why != "none is left that answers" {
				t.Errorf("%v", s)
			}
		}
	}
	if order != "abc" {
		t.Errorf("went to %s", order)
	}
}

func TestRefusingQueue(t *testing.T) {
	r := recorder(t)
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Refuse: true})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddConsumer(strategytest.Consumer{Segments: 10})
	r.Run(time.Second)
	if b.Served() != 10 || r.Refused[strategy.RefusedQueue] != 10 {
		t.Errorf("served %d, refused %v", b.Served(), r.Refused)
	}
}

func TestSlowAnswersTeach(t *testing.T) {
	// The producer becomes five times slower: late Data are answers.
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 150 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 16})
	r.At(time.Second, func() { a.RTT = 100 * ms })
	r.Run(6 * time.Second)
	if s := r.Share(a, 3*time.Second, 6*time.Second); s != 1 {
		t.Errorf("share of a: %v", s)
	}
	if n := r.Switches(1500*ms, 6*time.Second); n > 1 {
		t.Errorf("%d switches", n)
	}
}

func TestLoopEnds(t *testing.T) { strategytest.CheckLoop(t, Factory(), 2) }

func TestAnsweredInterestServesNobodyElse(t *testing.T) {
	// An entry that has its Data lingers for the answer to a probe. Who asks
	// for the same Data meanwhile must not wait for the probe.
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddConsumer(strategytest.Consumer{Object: "o", Every: 10 * ms})
	late := r.AddConsumer(strategytest.Consumer{Object: "o", Every: 10 * ms, Start: 15 * ms})
	r.At(time.Second, func() { a.Silent = true })
	r.Run(6 * time.Second)
	if gap := late.Gap(100*ms, 6*time.Second); gap > 60*ms {
		t.Errorf("gap %v", gap)
	}
}

func TestParameters(t *testing.T) {
	strategytest.CheckParams(t, Factory(), map[string][]string{
		"multiple":      {"0.5", "x", "101"},
		"floor":         {"0", "-1", "60001"},
		"unknown":       {"0"},
		"evidence":      {"0", "1001"},
		"retry-initial": {"0"},
		"retry-max":     {"0", "100"},
	})
}

func TestDoesNotAllocate(t *testing.T) { strategytest.CheckAllocs(t, Factory()) }

func BenchmarkHandlers(b *testing.B) { strategytest.Bench(b, Factory()) }

func TestReport(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 30 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 8})
	r.At(time.Second, func() { a.Silent = true })
	r.Run(2 * time.Second)
	rep, _, ok := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
	if !ok || len(rep.Rows) != 2 || len(rep.Columns) != 3 {
		t.Fatal(rep, ok)
	}
	if x := rep.Rows[0]; x.Face != a.Face() || x.Cells[2] != 1 || x.Cells[0] < 15 || x.Cells[0] > 25 {
		t.Errorf("%+v", x)
	}
	if x := rep.Rows[1]; x.Face != b.Face() || x.Cells[2] != 0 || x.Cells[1] != 0 {
		t.Errorf("%+v", x)
	}
	// A face that is down does not answer, whatever is known of its next hop.
	r.At(2*time.Second, b.Down)
	r.Run(3 * time.Second)
	rep, _, _ = r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
	if x := rep.Rows[1]; x.Cells[2] != 1 {
		t.Errorf("face down: %+v", x)
	}
	r.At(3*time.Second, b.Up)
	r.Run(4 * time.Second)
	rep, _, _ = r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
	if x := rep.Rows[1]; x.Cells[2] != 0 {
		t.Errorf("face up again: %+v", x)
	}
}

func TestFaceThatComesUpGetsWhatIsPending(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 4})
	r.At(time.Second, a.Down)
	r.At(1500*ms, a.Up)
	r.Run(2 * time.Second)
	if gap := con.Gap(900*ms, 2*time.Second); gap > 520*ms || con.Lost+len(con.Nacks) > 0 {
		t.Errorf("gap %v, %d lost, Nacks %v", gap, con.Lost, con.Nacks)
	}
}

func TestFaceThatComesUpIsNotSilent(t *testing.T) {
	// What was found out about the peer before it was started anew says nothing.
	r := recorder(t, "retry-initial~60000", "retry-max~60000")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 4})
	r.At(time.Second, func() { a.Silent = true })
	r.At(2*time.Second, a.Down)
	r.At(3*time.Second, func() { a.Silent = false; a.Up() })
	r.Run(5 * time.Second)
	if n := r.Count(a, 1500*ms, 3*time.Second); n > 0 {
		t.Errorf("%d to the silent next hop", n)
	}
	if s := r.Share(a, 3100*ms, 5*time.Second); s != 1 {
		t.Errorf("share of the one that is up again: %v", s)
	}
}

func TestLossAmongDataIsTheConsumers(t *testing.T) {
	// What it repeats goes the same way, which answers all others, once. Only after
	// the last Data is there silence.
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms, Loss: .05})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Segments: 10000, Every: ms, Resend: 100 * ms})
	r.Run(12 * time.Second)
	if n := len(r.Sends); n > con.Sent+5 || con.Resent < 400 || r.Share(a, 0, 12*time.Second) != 1 {
		t.Errorf("%d Interests for %d, %d of them repetitions", n, con.Sent, con.Resent)
	}
	if n := r.Count(b, 0, 12*time.Second); n > con.Resent/10 {
		t.Errorf("%d of %d repetitions elsewhere", n, con.Resent)
	}
}

func TestRepetitionsAreNoMeasurement(t *testing.T) {
	r := recorder(t)
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 100 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 1})
	for i := uint64(4); i < 20; i++ {
		r.At(time.Duration(i)*100*ms+60*ms, func() { con.Repeat(i) })
	}
	r.Run(2 * time.Second)
	rep, _, _ := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
	if rtt := rep.Rows[0].Cells[0]; con.Resent != 16 || rtt < 99 || rtt > 101 {
		t.Errorf("%v ms after %d repetitions", rtt, con.Resent)
	}
}

// spy looks at what is kept about next hops.
type spy struct {
	*failover
	nobody bool // something is kept about no next hop
}

func (s *spy) Report(c *strategy.Context) strategy.Report {
	s.nobody = s.prefixes.Get(c).Find(0) != nil
	return strategy.Report{}
}

// TestNewInLineAreNoHop: Interests that wait for their first turn, and were sent
// nowhere yet, take no place among the next hops.
func TestNewInLineAreNoHop(t *testing.T) {
	s, f := &spy{}, Factory()
	f.New = func(v strategy.Values) (strategy.Strategy, error) {
		st, err := parse(v)
		s.failover = st.(*failover)
		return s, err
	}
	r, err := strategytest.New(1, f)
	if err != nil {
		t.Fatal(err)
	}
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 50})
	r.AddConsumer(strategytest.Consumer{Every: ms})
	r.At(time.Second, a.Down)
	r.Run(2 * time.Second)
	waited := 0
	for _, x := range r.Sends {
		if x.Event == "Timer" && !x.Again {
			waited++
		}
	}
	if _, _, ok := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0)); !ok || waited == 0 || s.nobody {
		t.Errorf("%d waited, state of no next hop: %v", waited, s.nobody)
	}
}

// most is the largest number of Interests that were sent to a next hop again
// within a millisecond.
func most(r *strategytest.Recorder, to *strategytest.Hop) (n int) {
	for i, s := range r.Sends {
		k := 0
		for _, x := range r.Sends[i:] {
			if x.Hop == to && x.Again && x.At < s.At+ms {
				k++
			}
		}
		n = max(n, k)
	}
	return n
}

// TestFailuresOneAfterTheOther: a second next hop dies before the timers of those
// that were outstanding at the first one have fired.
func TestFailuresOneAfterTheOther(t *testing.T) {
	for _, late := range []time.Duration{0, 50 * time.Microsecond, 2 * ms} {
		r := recorder(t)
		r.Late = late
		a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
		b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
		c := r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 20 * ms})
		con := r.AddConsumer(strategytest.Consumer{Window: 60})
		r.AddConsumer(strategytest.Consumer{Object: "o", Every: ms / 2}) // so that they are not all sent at once
		r.At(991*ms, func() { b.SetCost(0) })
		r.At(time.Second, a.Down)
		r.At(time.Second+20*time.Microsecond, b.Down)
		r.Run(1100 * ms)
		if n := r.Count(c, time.Second, 1025*ms); n < 60 {
			t.Errorf("%d sent again", n)
		}
		if n := most(r, c); n > 12 {
			t.Errorf("timers %v late: %d in a millisecond", late, n)
		}
		if gap := con.Gap(990*ms, 1100*ms); gap > 40*ms || con.Lost > 0 || len(con.Nacks) > 0 {
			t.Errorf("gap %v, %d lost, Nacks %v", gap, con.Lost, con.Nacks)
		}
	}
}

// TestFullQueueIsTriedAgain: what the other path's face does not take goes there a
// little later, and not for ever.
func TestFullQueueIsTriedAgain(t *testing.T) {
	for name, die := range map[string]func(*strategytest.Hop){
		"kill":       func(h *strategytest.Hop) { h.Down() },
		"black hole": func(h *strategytest.Hop) { h.Silent = true },
		"no route":   func(h *strategytest.Hop) { h.Nacks = ndn.NackNoRoute },
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
			con := r.AddConsumer(strategytest.Consumer{Segments: 50, Window: 50, Start: time.Second})
			warm := r.AddConsumer(strategytest.Consumer{Window: 4, Segments: 20})
			at := 1005 * ms
			if name == "no route" {
				at = 999 * ms // what is asked from then on
			}
			r.At(at, func() { die(a); b.Refuse = true })
			r.At(1060*ms, func() { b.Refuse = false })
			r.Run(2 * time.Second)
			if n := len(con.Arrivals); n != 50 || len(con.Nacks) > 0 || len(warm.Arrivals) != 20 {
				t.Errorf("%d arrivals, Nacks %v", n, con.Nacks)
			}
			if gap := con.Gap(time.Second, 1200*ms); gap > 120*ms {
				t.Errorf("gap %v", gap)
			}
			// For ever.
			last := r.AddConsumer(strategytest.Consumer{Object: "o", Segments: 1, Start: 8 * time.Second})
			before := 0
			r.AddConsumer(strategytest.Consumer{Segments: 300, Every: 10 * ms, Start: 2 * time.Second}) // which brings a back
			r.At(2*time.Second, func() { a.Silent, a.Nacks = false, 0; a.Up() })
			r.At(7999*ms, func() {
				b.Refuse, before = true, r.Refused[strategy.RefusedQueue]
				if name == "no route" {
					die(a)
				}
			})
			r.At(8005*ms, func() { die(a) })
			r.Run(15 * time.Second)
			if n := r.Refused[strategy.RefusedQueue] - before; n == 0 || n > 8 {
				t.Errorf("tried %d times", n)
			}
			if name != "black hole" && (len(last.Nacks) != 1 || last.Nacks[0] != ndn.NackCongestion) {
				t.Errorf("Nacks %v", last.Nacks)
			}
		})
	}
}

// TestUpDoesNotStartTheLineAnew: a face that comes up changes where Interests go
// that wait for their turn, not when.
func TestUpDoesNotStartTheLineAnew(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 50})
	r.At(time.Second, a.Down)
	r.At(1015*ms, a.Up)
	r.Run(2 * time.Second)
	last, n := time.Duration(0), 0
	for _, s := range r.Sends {
		if s.Again {
			last, n = s.At, n+1
		}
	}
	if n < 50 || n > 51 || last > 1020*ms {
		t.Errorf("%d sent again, the last at %v", n, last)
	}
	// What waits for the only next hop goes there when it is up again.
	r = recorder(t)
	a = r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 50})
	r.At(time.Second, a.Down)
	r.At(1010*ms, a.Up)
	r.Run(2 * time.Second)
	if gap := con.Gap(990*ms, 1100*ms); gap > 45*ms || con.Lost > 0 || len(con.Arrivals) < 2300 {
		t.Errorf("gap %v, %d lost, %d arrivals", gap, con.Lost, len(con.Arrivals))
	}
}

// TestShorterPathIsNotSlowedDown: by a path that answers sooner than the one that
// died a fixed window of Interests must not keep up the line of those that are
// sent again.
func TestShorterPathIsNotSlowedDown(t *testing.T) {
	for _, window := range []int{3, 40} {
		for name, die := range map[string]func(*strategytest.Hop){
			"kill":       func(h *strategytest.Hop) { h.Down() },
			"black hole": func(h *strategytest.Hop) { h.Silent = true },
		} {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 300 * ms})
			b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
			con := r.AddConsumer(strategytest.Consumer{Window: window})
			r.At(3*time.Second, func() { die(a) })
			r.Run(6 * time.Second)
			if n := r.Count(b, 5*time.Second, 6*time.Second); n < 90*window || con.Lost > 0 {
				t.Errorf("%s, window %d: %d Interests in a second, %d lost", name, window, n, con.Lost)
			}
		}
	}
}

// TestSmallWindowDoesNotFlap: on a short path the few Interests of a small window
// may all wait, having been lost one after the other. That is no silence.
func TestSmallWindowDoesNotFlap(t *testing.T) {
	for _, window := range []int{4, 6} {
		r := recorder(t)
		a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 5 * ms, Jitter: 3 * ms, Loss: .05})
		r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 30 * ms, Loss: .05})
		r.AddConsumer(strategytest.Consumer{Window: window, Resend: 150 * ms})
		r.Run(30 * time.Second)
		if n, s := r.Switches(0, 30*time.Second), r.Share(a, 0, 30*time.Second); n > 0 || s < 1 {
			t.Errorf("window %d: %d switches, share of a %v", window, n, s)
		}
	}
}
