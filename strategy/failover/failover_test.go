package failover

import (
	"testing"
	"time"

	"ndnpop/ndn"
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
