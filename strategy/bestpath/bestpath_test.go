package bestpath

import (
	"fmt"
	"math"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/strategytest"
	"ndnpop/table"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

func recorder(t *testing.T, seed uint64, params ...string) *strategytest.Recorder {
	t.Helper()
	r, err := strategytest.New(seed, Factory(), params...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var consumers = map[string]strategytest.Consumer{
	"200 per s": {Every: 5 * ms, Resend: 300 * ms},
	"500 per s": {Every: 2 * ms, Resend: 300 * ms},
	"window 8":  {Window: 8, Resend: 300 * ms},
}

// checkShare wants the traffic on one hop, all but what 90 % leaves.
func checkShare(t *testing.T, r *strategytest.Recorder, h *strategytest.Hop, from, to time.Duration) {
	t.Helper()
	if s := r.Share(h, from, to); s < .9 {
		t.Errorf("share of %s from %v to %v is %.3f", h.Name, from, to, s)
	}
}

func TestFindsTheBetterPath(t *testing.T) {
	for name, c := range consumers {
		t.Run(name, func(t *testing.T) {
			r := recorder(t, 1)
			r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 40 * ms})
			b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 15 * ms})
			r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 25 * ms})
			r.AddConsumer(c)
			r.Run(6 * sec)
			checkShare(t, r, b, 2*sec, 6*sec)
		})
	}
}

func TestFollowsChanges(t *testing.T) {
	for what, change := range map[string]struct{ worse, better func(a *strategytest.Hop) }{
		"delay": {
			func(a *strategytest.Hop) { a.RTT = 50 * ms },
			func(a *strategytest.Hop) { a.RTT = 10 * ms },
		},
		"small delay": {
			func(a *strategytest.Hop) { a.RTT = 35 * ms },
			func(a *strategytest.Hop) { a.RTT = 10 * ms },
		},
		"loss": {
			func(a *strategytest.Hop) { a.Loss = .3 },
			func(a *strategytest.Hop) { a.Loss = 0 },
		},
		"black hole": {
			func(a *strategytest.Hop) { a.Silent = true },
			func(a *strategytest.Hop) { a.Silent = false },
		},
		"Nacks": {
			func(a *strategytest.Hop) { a.Nacks = ndn.NackNoRoute },
			func(a *strategytest.Hop) { a.Nacks = 0 },
		},
		"face": {
			func(a *strategytest.Hop) { a.Down() },
			func(a *strategytest.Hop) { a.Up() },
		},
	} {
		for name, c := range consumers {
			t.Run(what+" "+name, func(t *testing.T) {
				r := recorder(t, 1)
				a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Jitter: ms})
				b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 25 * ms, Jitter: ms})
				r.AddConsumer(c)
				r.At(3*sec, func() { change.worse(a) })
				r.At(7*sec, func() { change.better(a) })
				r.Run(10 * sec)
				checkShare(t, r, a, 2*sec, 3*sec)
				checkShare(t, r, b, 5*sec, 7*sec)
				checkShare(t, r, a, 9*sec, 10*sec)
			})
		}
	}
}

func TestRandomLossDoesNotFlap(t *testing.T) {
	for name, c := range consumers {
		for _, rtt := range []time.Duration{20 * ms, 30 * ms} {
			for seed := uint64(1); seed <= 3; seed++ {
				t.Run(fmt.Sprint(name, " ", rtt, " ", seed), func(t *testing.T) {
					r := recorder(t, seed)
					a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms, Jitter: 2 * ms, Loss: .05})
					r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: rtt, Jitter: 2 * ms, Loss: .05})
					r.AddConsumer(c)
					r.Run(12 * sec)
					if n := r.Switches(0, 12*sec); n > 0 {
						t.Errorf("%d switches, share of a %.3f", n, r.Share(a, 0, 12*sec))
					}
				})
			}
		}
	}
}

func TestProbesAreBounded(t *testing.T) {
	for name, c := range consumers {
		for _, hops := range []int{2, 5} {
			t.Run(fmt.Sprint(name, " ", hops, " hops"), func(t *testing.T) {
				r := recorder(t, 1)
				a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
				for k := 1; k < hops; k++ {
					r.AddHop(strategytest.Hop{Cost: 2, RTT: 30 * ms})
				}
				con := r.AddConsumer(c)
				r.Run(10 * sec)
				if s := r.Share(a, 0, 10*sec); s != 1 {
					t.Errorf("share of a: %v", s)
				}
				probes := r.Count(nil, 0, 10*sec) - con.Sent
				most := min(500, 50+con.Sent/20) + 3
				if probes > most || probes < most/2 {
					t.Errorf("%d probes for %d Interests, the bound is %d", probes, con.Sent, most)
				}
				if len(con.Arrivals)+int(30*ms/ms)*2 < con.Sent {
					t.Errorf("%d of %d", len(con.Arrivals), con.Sent)
				}
			})
		}
	}
}

func TestFewInterestsMoveToo(t *testing.T) {
	// 10 per second: every change is found, if not within 2 s.
	r := recorder(t, 1)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 30 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: 100 * ms, Resend: 300 * ms})
	r.At(10*sec, func() { a.Silent = true })
	r.At(30*sec, func() { a.Silent = false })
	r.Run(60 * sec)
	checkShare(t, r, b, 12*sec, 30*sec)
	checkShare(t, r, a, 40*sec, 60*sec)
	if con.Lost > 0 {
		t.Errorf("%d lost", con.Lost)
	}
}

func TestRepetitionsAndNacksTakeOtherPaths(t *testing.T) {
	r := recorder(t, 1, "probe-share~0", "probe-min~0")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	con := r.AddConsumer(strategytest.Consumer{Segments: 1})
	a.Silent = true
	r.Run(100 * ms)
	con.Repeat(0)
	r.Run(200 * ms)
	if len(con.Arrivals) != 1 || b.Served() != 1 {
		t.Error("the repetition did not take the other path")
	}
	a.Silent, a.Nacks, b.Nacks = false, ndn.NackNoRoute, ndn.NackCongestion
	con = r.AddConsumer(strategytest.Consumer{Segments: 1})
	r.Run(300 * ms)
	if len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackCongestion || r.Count(nil, 200*ms, 300*ms) != 2 {
		t.Errorf("Nacks %v after %d Interests", con.Nacks, r.Count(nil, 200*ms, 300*ms))
	}
	a.Down()
	b.Down()
	con = r.AddConsumer(strategytest.Consumer{Segments: 1})
	r.Run(400 * ms)
	if len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackNoRoute {
		t.Errorf("Nacks %v without a next hop", con.Nacks)
	}
}

func TestFurtherTerms(t *testing.T) {
	load := map[ndn.FaceID]float64{}
	f := Factory(Term{Name: "load", Usage: "points per connection", Of: func(h table.NextHop) float64 { return load[h.Face] }})
	for _, c := range []struct {
		params []string
		load   float64 // of a
		best   string
	}{
		{nil, 0, "a"},
		{[]string{"penalty~257:2000"}, 0, "b"},
		{[]string{"penalty~257:2000,258:2500"}, 0, "a"},
		{[]string{"cost-weight~600"}, 0, "c"},
		{nil, 2000, "b"},
		{[]string{"load-weight~0.1"}, 2000, "a"},
		{[]string{"delay-weight~1", "cost-weight~10"}, 0, "c"},
	} {
		r, err := strategytest.New(1, f, c.params...)
		if err != nil {
			t.Fatal(err)
		}
		a := r.AddHop(strategytest.Hop{Name: "a", Cost: 20, RTT: 10 * ms})
		hops := []*strategytest.Hop{a,
			r.AddHop(strategytest.Hop{Name: "b", Cost: 20, RTT: 20 * ms}),
			r.AddHop(strategytest.Hop{Name: "c", Cost: 1, RTT: 40 * ms})}
		load[a.Face()] = c.load
		r.AddConsumer(strategytest.Consumer{Every: 4 * ms})
		r.Run(12 * sec)
		for _, h := range hops {
			if s := r.Share(h, 10*sec, 12*sec); (s == 1) != (h.Name == c.best) {
				t.Errorf("%v, load %v: share of %s is %v", c.params, c.load, h.Name, s)
			}
		}
	}
}

func TestLoopEnds(t *testing.T) {
	r := recorder(t, 1)
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Reflect: b})
	con := r.AddConsumer(strategytest.Consumer{Segments: 200, Every: 10 * ms, Resend: 200 * ms})
	r.Run(10 * sec)
	if n := r.Count(nil, 0, 10*sec); n > con.Sent+con.Sent/20+50 || len(con.Arrivals) != 200 {
		t.Errorf("%d Interests for %d, %d arrivals", n, con.Sent, len(con.Arrivals))
	}
}

func TestExplains(t *testing.T) {
	r := recorder(t, 1)
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 40 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddConsumer(strategytest.Consumer{Every: 2 * ms})
	var moved []string
	first := ""
	r.Watch = func(_ time.Duration, d *strategy.Decision) {
		if first == "" && len(d.Candidates) > 1 {
			first = d.Candidates[1].Note
		}
		if d.Reason == "lower weight" {
			moved = append(moved, fmt.Sprint(d.To == b.Face(), len(d.Candidates), d.Candidates[0].Note))
		}
	}
	r.Run(2 * sec)
	if len(moved) != 1 || moved[0][:6] != "true 2" {
		t.Errorf("%q", moved)
	}
	if first != "no answer yet" {
		t.Errorf("of a path that was not measured: %q", first)
	}
}

func TestParameters(t *testing.T) {
	strategytest.CheckParams(t, Factory(), map[string][]string{
		"delay-weight": {"-1", "x"}, "loss-weight": {"-1"}, "cost-weight": {"-1", "NaN"},
		"penalty": {"1", "x:1", "257:", "257:-1", "257:1,", "257:NaN"}, "hysteresis": {"91"}, "hold": {"-1"},
		"probe-share": {"101"}, "probe-min": {"-1"}, "probe-max": {"0"},
	})
}

func TestDoesNotAllocate(t *testing.T) { strategytest.CheckAllocs(t, Factory()) }

func BenchmarkHandlers(b *testing.B) { strategytest.Bench(b, Factory()) }

func TestReport(t *testing.T) {
	r := recorder(t, 1)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 50 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 8})
	r.Run(5 * sec)
	rep, _, ok := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
	if !ok || len(rep.Rows) != 2 || len(rep.Columns) != len(rep.Rows[0].Cells) {
		t.Fatal(rep, ok)
	}
	if x, y := rep.Rows[0], rep.Rows[1]; x.Face != a.Face() || y.Face != b.Face() || x.Cells[0] <= y.Cells[0] || x.Cells[3] != 0 || y.Cells[3] != 1 {
		t.Errorf("%+v", rep.Rows)
	}
	r.At(5*sec, a.Down)
	r.Run(6 * sec)
	if w := cells(t, r, con, a)[0]; !math.IsInf(w, 1) {
		t.Errorf("weight %v of a face that is down", w)
	}
}

func TestChoiceHolds(t *testing.T) {
	// The better path changes ten times a second: the traffic does not.
	load := map[ndn.FaceID]float64{}
	f := Factory(Term{Name: "load", Usage: "points", Of: func(h table.NextHop) float64 { return load[h.Face] }})
	r, err := strategytest.New(1, f)
	if err != nil {
		t.Fatal(err)
	}
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddConsumer(strategytest.Consumer{Every: ms})
	for at := 100 * ms; at < 12*sec; at += 200 * ms {
		r.At(at, func() { load[a.Face()], load[b.Face()] = 1e6, 0 })
		r.At(at+100*ms, func() { load[a.Face()], load[b.Face()] = 0, 1e6 })
	}
	r.Run(12 * sec)
	var in *strategytest.Hop
	last, n := time.Duration(0), 0
	for _, s := range r.Sends {
		if s.Again || s.Hop == in {
			continue
		}
		if s.At-last < 500*ms && n > 1 {
			t.Errorf("switches at %v and %v, with a hold of 500 ms", last, s.At)
		}
		in, last, n = s.Hop, s.At, n+1
	}
	if n < 4 || n > 12 { // less and less often
		t.Errorf("%d switches in 12 s", n)
	}
}

// cells is the row of a hop in the report.
func cells(t *testing.T, r *strategytest.Recorder, con *strategytest.Consumer, h *strategytest.Hop) []float64 {
	t.Helper()
	rep, _, _ := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
	for _, row := range rep.Rows {
		if row.Face == h.Face() {
			return row.Cells
		}
	}
	t.Fatalf("no row of %s: %+v", h.Name, rep)
	return nil
}

func TestLateIsNotLost(t *testing.T) {
	r := recorder(t, 1)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: 5 * ms})
	r.At(sec, func() { a.RTT = 200 * ms })
	r.Run(1150 * ms)
	if lost := cells(t, r, con, a)[2]; lost == 0 {
		t.Error("nothing was late")
	}
	r.Run(1800 * ms)
	if lost := cells(t, r, con, a)[2]; lost != 0 {
		t.Errorf("%v %% lost of what was only late", lost)
	}
}

func TestShortLivedInterestsShowLoss(t *testing.T) {
	// They expire before an answer would be late.
	r := recorder(t, 1)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 200 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: 5 * ms, Lifetime: 250 * ms})
	r.At(4*sec, func() { a.Silent = true })
	r.Run(4 * sec)
	if lost := cells(t, r, con, a)[2]; lost != 0 {
		t.Errorf("%v %% lost before", lost)
	}
	r.Run(7 * sec)
	if lost := cells(t, r, con, a)[2]; lost != 100 {
		t.Errorf("%v %% lost in a black hole", lost)
	}
}

func TestDeadPathIsLeftForAFarOne(t *testing.T) {
	// By the formula alone a dead path of 10 ms weighs 11,000, one of 200 ms
	// 20,000.
	r := recorder(t, 1)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 200 * ms})
	r.AddConsumer(strategytest.Consumer{Every: 5 * ms})
	r.At(4*sec, func() { a.Silent = true })
	r.Run(8 * sec)
	checkShare(t, r, a, 2*sec, 4*sec)
	checkShare(t, r, b, 5*sec, 8*sec)
}

func TestRepetitionsAreNoMeasurement(t *testing.T) {
	r := recorder(t, 1)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 100 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 1})
	for i := range uint64(20) {
		if i > 3 {
			r.At(time.Duration(i)*100*ms+60*ms, func() { con.Repeat(i) })
		}
	}
	r.Run(2 * sec)
	if rtt := cells(t, r, con, a)[1]; con.Resent != 16 || rtt < 99 || rtt > 101 {
		t.Errorf("%v ms after %d repetitions", rtt, con.Resent)
	}
}

func TestProbesHaveNoncesOfTheirOwn(t *testing.T) {
	r := recorder(t, 1)
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 30 * ms})
	r.AddConsumer(strategytest.Consumer{Every: 5 * ms})
	r.Run(5 * sec)
	strategytest.CheckNonces(t, r)
	if r.Count(b, 0, 5*sec) == 0 {
		t.Error("no probe")
	}
}

func TestProbesAreNotSavedUp(t *testing.T) {
	r := recorder(t, 1, "probe-share~0", "probe-min~1")
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 30 * ms})
	for _, start := range []time.Duration{0, 60 * sec} {
		r.AddConsumer(strategytest.Consumer{Segments: 1000, Every: ms, Start: start})
	}
	r.Run(70 * sec)
	if n := r.Count(b, 60*sec, 61*sec); n < 1 || n > 3 {
		t.Errorf("%d probes in the second after a minute of rest, one is due", n)
	}
}

func TestProbeThatIsRefusedGoesNowhereElse(t *testing.T) {
	r := recorder(t, 1)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 100 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms, Nacks: ndn.NackNoRoute})
	c := r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 10 * ms, Nacks: ndn.NackNoRoute})
	con := r.AddConsumer(strategytest.Consumer{Every: 5 * ms})
	r.Run(10 * sec)
	probes := r.Count(b, 0, 10*sec) + r.Count(c, 0, 10*sec)
	if most := 5*10 + con.Sent/20 + 3; probes > most || probes < most/2 || r.Share(a, 0, 10*sec) != 1 || len(con.Nacks) > 0 {
		t.Errorf("%d probes, the bound is %d; Nacks %v", probes, most, con.Nacks)
	}
}

// TestOverloadDoesNotFlap: a path that is the better one as long as it carries
// little is tried again less and less often.
func TestOverloadDoesNotFlap(t *testing.T) {
	r := recorder(t, 1)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 5 * ms, Loss: .05, Rate: 100, Queue: 40 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 50 * ms, Loss: .05})
	r.AddConsumer(strategytest.Consumer{Window: 60, Resend: 300 * ms})
	r.Run(30 * sec)
	if n := r.Switches(0, 30*sec); n < 3 || n > 12 {
		t.Errorf("%d switches", n)
	}
	checkShare(t, r, b, 8*sec, 30*sec)
	// When b dies a is used, regret or not.
	r.At(30*sec, func() { b.Silent = true })
	r.Run(32 * sec)
	if s := r.Share(a, 31500*ms, 32*sec); s < .9 {
		t.Errorf("share of a with b dead: %v", s)
	}
	// After a has served well, its next failure is the first one again.
	r.At(32*sec, func() { b.Silent, a.Rate = false, 0 })
	r.At(36*sec, func() { a.Rate = 100 })
	r.Run(44 * sec)
	checkShare(t, r, a, 34*sec, 36*sec)
	if n := r.Switches(36*sec, 44*sec); n < 6 {
		t.Errorf("%d switches", n)
	}
}
