package loadbalance

import (
	"math"
	"testing"
	"time"

	"ndnpop/ndn"
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

func TestStaysOnTheCheapestWithoutMarks(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 50 * ms, Loss: .05})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	a.Loss = 0
	r.AddConsumer(strategytest.Consumer{Every: ms})
	r.Run(5 * sec)
	if s := r.Share(a, 0, 5*sec); s != 1 {
		t.Errorf("share of a %v", s)
	}
}

func TestSharesFollowCapacity(t *testing.T) {
	for _, to := range []string{"to~equal", "to~rate"} {
		r := recorder(t, to)
		hops := []*strategytest.Hop{
			r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Rate: 300}),
			r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 15 * ms, Rate: 500}),
			r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 20 * ms, Rate: 200}),
		}
		con := r.AddConsumer(strategytest.Consumer{Every: 1100 * time.Microsecond})
		r.Run(20 * sec)
		sum := 0.0
		for i, want := range []float64{.3, .5, .2} {
			s := r.Share(hops[i], 10*sec, 20*sec)
			if sum += s; math.Abs(s-want) > .05 {
				t.Errorf("%s: share of %s is %.3f", to, hops[i].Name, s)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("the shares add up to %v", sum)
		}
		got := 0
		for _, a := range con.Arrivals {
			if a.At > 10*sec {
				got++
			}
		}
		if got < 8600 { // of 9090 sent
			t.Errorf("%s: %d Data in 10 s", to, got)
		}
		rep, _, ok := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
		sum = 0
		for _, row := range rep.Rows {
			sum += row.Cells[0]
		}
		if !ok || len(rep.Rows) != 3 || math.Abs(sum-1) > 1e-6 {
			t.Errorf("report %+v", rep)
		}
	}
}

func TestSilenceMovesTheTraffic(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	r.AddConsumer(strategytest.Consumer{Every: 5 * ms, Resend: 200 * ms})
	r.At(2*sec, func() { a.Silent = true })
	r.At(10*sec, func() { a.Silent = false })
	r.At(13*sec, func() { b.Nacks = ndn.NackNoRoute })
	r.Run(16 * sec)
	if s := r.Share(b, 2500*ms, 13*sec); s != 1 {
		t.Errorf("share of b %v", s)
	}
	if n := r.Count(a, 3*sec, 10*sec); n < 5 || n > 9 {
		t.Errorf("%d trials of a in 7 s", n)
	}
	if s := r.Share(a, 13100*ms, 16*sec); s != 1 {
		t.Errorf("share of a, now that b has no route: %v", s)
	}
}

func TestRandomLossDoesNotSilence(t *testing.T) {
	r := recorder(t)
	hops := []*strategytest.Hop{
		r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Loss: .05}),
		r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms, Loss: .05}),
	}
	r.AddConsumer(strategytest.Consumer{Every: 2 * ms, Resend: 200 * ms})
	r.Run(30 * sec)
	for _, h := range hops {
		if s := r.Share(h, 20*sec, 30*sec); math.Abs(s-.5) > .2 {
			t.Errorf("share of %s %.3f", h.Name, s)
		}
	}
}

func TestProbes(t *testing.T) {
	r := recorder(t, "probe~0.1")
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: ms})
	r.Run(20 * sec)
	if n := r.Count(b, 0, 20*sec); n < 18 || n > 20 || con.Lost > 0 {
		t.Errorf("%d probes of %d", n, con.Sent)
	}
}

func TestFailures(t *testing.T) {
	r := recorder(t)
	con := r.AddConsumer(strategytest.Consumer{Segments: 1})
	r.Run(ms)
	if len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackNoRoute {
		t.Errorf("Nacks %v without a next hop", con.Nacks)
	}
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	con = r.AddConsumer(strategytest.Consumer{Window: 8})
	r.At(sec, a.Down)
	r.At(2*sec, a.Up)
	r.At(2*sec, func() { b.Silent, b.GiveUp = true, 5*ms })
	r.At(3*sec, func() { b.Nacks, a.Nacks = ndn.NackCongestion, ndn.NackDuplicate })
	r.At(3*sec, func() { b.Silent = false })
	r.Run(2900 * ms)
	if con.Lost+len(con.Nacks) > 0 || con.Gap(sec, 2800*ms) > 60*ms {
		t.Errorf("%d lost, Nacks %v, gap %v", con.Lost, con.Nacks, con.Gap(sec, 2800*ms))
	}
	r.Run(3500 * ms)
	if len(con.Nacks) == 0 || con.Nacks[len(con.Nacks)-1] != ndn.NackCongestion {
		t.Errorf("Nacks %v when both refuse", con.Nacks)
	}
}

func TestLoopEnds(t *testing.T) { strategytest.CheckLoop(t, Factory(), 3) }

func TestParameters(t *testing.T) {
	strategytest.CheckParams(t, Factory(), map[string][]string{
		"step": {"0", "101"}, "to": {"all"}, "probe": {"-1", "11"},
	})
}

func TestDoesNotAllocate(t *testing.T) { strategytest.CheckAllocs(t, Factory()) }

func BenchmarkHandlers(b *testing.B) { strategytest.Bench(b, Factory()) }

func TestByRateWhoDeliversGetsMore(t *testing.T) {
	// c comes when b delivers already, and then a gets worse.
	share := map[string]float64{}
	for _, to := range []string{"equal", "rate"} {
		r := recorder(t, "to~"+to)
		a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Rate: 500})
		r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
		r.AddConsumer(strategytest.Consumer{Every: ms})
		r.Run(5 * sec)
		c := r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 10 * ms})
		a.Rate = 100
		r.Run(10 * sec)
		share[to] = r.Share(c, 8*sec, 10*sec)
	}
	if share["equal"] < .03 || share["rate"] < .01 || share["rate"] > .8*share["equal"] {
		t.Errorf("shares of the one that is new: %v", share)
	}
}

func TestGivenUpCountsAsUnanswered(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, GiveUp: 5 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddConsumer(strategytest.Consumer{Every: 5 * ms})
	r.At(sec, func() { a.Silent = true })
	r.Run(3 * sec)
	if n := r.Count(a, 1200*ms, 3*sec); n > 3 {
		t.Errorf("%d Interests to a link that gives them up", n)
	}
}

func TestCongestionNacksMoveShares(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Nacks: ndn.NackCongestion})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: 5 * ms})
	r.Run(200 * ms) // a step of 3 percent each: a few dozen leave a third
	if s := r.Share(a, 0, 200*ms); s < .2 {
		t.Errorf("all moved at once: %v", s)
	}
	r.Run(2 * sec)
	if s := r.Share(b, sec, 2*sec); s < .9 || len(con.Nacks) > 0 {
		t.Errorf("share of b %v, Nacks %v", s, con.Nacks)
	}
}

func TestNoRouteIsSilence(t *testing.T) {
	// Marks of a move nothing to who has no route; it gets trials alone.
	r := recorder(t)
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Rate: 500})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms, Nacks: ndn.NackNoRoute})
	r.AddConsumer(strategytest.Consumer{Every: ms})
	r.Run(10 * sec)
	if n := r.Count(b, sec, 10*sec); n < 8 || n > 10 {
		t.Errorf("%d Interests in 9 s to a next hop without a route", n)
	}
}

// TestDuplicatesAreNoCongestion: a consumer that asks by two ways makes the next
// hop refuse some Interests as duplicates. The share of others stays; that of a
// next hop which answers nothing else goes.
func TestDuplicatesAreNoCongestion(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 40 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: ms})
	for i := range 200 {
		at := time.Duration(i) * 20 * ms
		r.At(at, func() { a.Nacks = ndn.NackDuplicate })
		r.At(at+3*ms, func() { a.Nacks = 0 })
	}
	r.At(6*sec, func() { a.Nacks = ndn.NackDuplicate })
	r.Run(9 * time.Second)
	if s := r.Share(a, 0, 6*sec); s < 1 {
		t.Errorf("%.2f of the Interests go the cheaper way", s)
	}
	if s := r.Share(a, 7*sec, 9*sec); s > 0 || len(con.Nacks) > 0 {
		t.Errorf("%.2f of the Interests go to a loop, Nacks %v", s, con.Nacks)
	}
}

// TestRefusedProbeAsksNobodyElse: for a probe that is refused no third next hop need
// be asked, as the first may still answer.
func TestRefusedProbeAsksNobodyElse(t *testing.T) {
	r := recorder(t, "probe~10")
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 100 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 5 * ms, Nacks: ndn.NackCongestion})
	c := r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 200 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: 10 * ms})
	r.Run(10 * sec)
	if n, m := r.Count(b, 0, 10*sec), r.Count(c, 0, 10*sec); n < 90 || m > 0 || len(con.Nacks) > 0 {
		t.Errorf("%d probes, %d to the third, Nacks %v", n, m, con.Nacks)
	}
}

// TestRefusedBesideACopy: that a silent next hop has a copy keeps nobody from asking a
// third one for what the first has refused.
func TestRefusedBesideACopy(t *testing.T) {
	r := recorder(t, "step~0.01") // so that refusals move next to nothing
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 1, Silent: true})
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 2, RTT: 10 * ms})
	r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 20 * ms})
	r.At(3*sec, func() { a.Nacks = ndn.NackCongestion })
	con := r.AddConsumer(strategytest.Consumer{Every: 10 * ms, Start: 3 * sec})
	r.AddConsumer(strategytest.Consumer{Segments: 250, Every: 10 * ms})
	r.Run(9 * sec)
	if n := r.Count(b, 3*sec, 9*sec); n < 4 || con.Lost+len(con.Nacks) > 0 {
		t.Errorf("%d copies, %d lost, Nacks %v", n, con.Lost, con.Nacks)
	}
}

// TestUnansweredProbesCount: they are Interests without an answer, and lead away from
// a next hop as others do.
func TestUnansweredProbesCount(t *testing.T) {
	r := recorder(t, "probe~10")
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, Silent: true})
	r.AddConsumer(strategytest.Consumer{Every: 10 * ms})
	r.Run(10 * sec)
	// Eight, and what was under way for a second where no round-trip time is known;
	// then one copy in a second.
	if n := r.Count(b, 0, 3*sec); n < 8 || n > 22 {
		t.Errorf("%d probes until it is silent", n)
	}
	if n := r.Count(b, 3*sec, 10*sec); n < 6 || n > 8 {
		t.Errorf("%d copies in seven seconds", n)
	}
}

// TestSharesOfTheGone: what a next hop that goes had is its heir's, so that all
// shares add up to one when it is back.
func TestSharesOfTheGone(t *testing.T) {
	for name, x := range map[string]struct{ gone, back func(*strategytest.Hop) }{
		"down":  {(*strategytest.Hop).Down, (*strategytest.Hop).Up},
		"route": {(*strategytest.Hop).RemoveRoute, func(h *strategytest.Hop) { h.SetCost(1) }},
	} {
		r := recorder(t)
		a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
		b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
		con := r.AddConsumer(strategytest.Consumer{Window: 8})
		r.At(sec, func() { x.gone(a) })
		r.At(2*sec, func() { x.back(a) })
		r.Run(3 * sec)
		rep, _, _ := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
		sum := 0.0
		for _, row := range rep.Rows {
			sum += row.Cells[0]
		}
		if s := r.Share(b, 1100*ms, 3*sec); math.Abs(sum-1) > 1e-9 || s != 1 {
			t.Errorf("%s: the shares add up to %v, b got %v", name, sum, s)
		}
	}
}

// TestExpiryCounts: an Interest that ends before it could be answered says nothing of a
// next hop, and one that was late is counted once.
func TestExpiryCounts(t *testing.T) {
	for name, x := range map[string]struct {
		rtt   time.Duration
		lives time.Duration
		loss  float64
	}{"too short": {200 * ms, 150 * ms, 0}, "late": {20 * ms, 500 * ms, 1}} {
		r := recorder(t)
		a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: x.rtt})
		r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: x.rtt})
		con := r.AddConsumer(strategytest.Consumer{Segments: 4})
		r.At(sec, func() { a.Loss = x.loss })
		r.AddConsumer(strategytest.Consumer{Segments: 5, Window: 5, Start: sec, Lifetime: x.lives})
		r.Run(3 * sec)
		least := 0.85 // 3 % for each
		if x.loss == 0 {
			least = 1
		}
		rep, _, _ := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
		if s := rep.Rows[0].Cells[0]; s < least || x.loss > 0 && s > .87 {
			t.Errorf("%s: share of a %v", name, s)
		}
	}
}
