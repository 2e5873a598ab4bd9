package random

import (
	"slices"
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

func recorder(t *testing.T) *strategytest.Recorder {
	t.Helper()
	r, err := strategytest.New(1, Factory())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEveryNextHopGetsItsPart(t *testing.T) {
	r := recorder(t)
	var hops []*strategytest.Hop
	for range 4 {
		hops = append(hops, r.AddHop(strategytest.Hop{RTT: 10 * ms}))
	}
	hops[3].Refuse = true
	con := r.AddConsumer(strategytest.Consumer{Every: ms})
	r.Run(10 * sec)
	for i, h := range hops {
		want := 1.0 / 3
		if i == 3 {
			want = 0
		}
		if s := r.Share(h, 0, 10*sec); s < want-.02 || s > want+.02 {
			t.Errorf("share of %d is %.3f", i, s)
		}
	}
	if len(con.Nacks) > 0 || r.Refused[strategy.RefusedQueue] == 0 {
		t.Errorf("Nacks %v, refused %v", con.Nacks, r.Refused)
	}
}

func TestRepetitionsPreferTheUntried(t *testing.T) {
	r := recorder(t)
	for range 3 {
		r.AddHop(strategytest.Hop{Silent: true})
	}
	con := r.AddConsumer(strategytest.Consumer{Segments: 1})
	for i := 1; i <= 4; i++ {
		r.At(time.Duration(i)*300*ms, func() { con.Repeat(0) })
	}
	r.Run(2 * sec)
	seen := map[*strategytest.Hop]int{}
	for _, s := range r.Sends[:3] {
		seen[s.Hop]++
	}
	if len(seen) != 3 || len(r.Sends) != 5 {
		t.Errorf("%v", r.Sends)
	}
}

func TestFailures(t *testing.T) {
	r := recorder(t)
	con := r.AddConsumer(strategytest.Consumer{Segments: 1})
	r.Run(ms)
	if len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackNoRoute {
		t.Errorf("Nacks %v without a next hop", con.Nacks)
	}
	a := r.AddHop(strategytest.Hop{RTT: 10 * ms})
	r.AddHop(strategytest.Hop{RTT: 10 * ms})
	con = r.AddConsumer(strategytest.Consumer{Window: 8})
	r.At(sec, a.Down)
	r.Run(2 * sec)
	if con.Lost+len(con.Nacks) > 0 || con.Gap(sec, 2*sec) > 20*ms {
		t.Errorf("%d lost, Nacks %v, gap %v", con.Lost, con.Nacks, con.Gap(sec, 2*sec))
	}
}

func TestLoopEnds(t *testing.T) { strategytest.CheckLoop(t, Factory(), 2) }

func TestParameters(t *testing.T) {
	strategytest.CheckParams(t, Factory(), map[string][]string{
		"retx-suppression-initial": {"0"}, "retx-suppression-max": {"1"}, "retx-suppression-multiplier": {"0"},
	})
}

func TestDoesNotAllocate(t *testing.T) { strategytest.CheckAllocs(t, Factory()) }

func BenchmarkHandlers(b *testing.B) { strategytest.Bench(b, Factory()) }

// TestGivenUpOnceRepeated: what a link gives up after the Interest was repeated
// elsewhere is sent on only when that is given up, too.
func TestGivenUpOnceRepeated(t *testing.T) {
	r := recorder(t)
	for range 3 {
		r.AddHop(strategytest.Hop{Silent: true, GiveUp: 400 * ms})
	}
	con := r.AddConsumer(strategytest.Consumer{Segments: 1})
	r.At(300*ms, func() { con.Repeat(0) })
	r.Run(2 * sec)
	var at []time.Duration
	for _, s := range r.Sends {
		at = append(at, s.At.Round(10*ms))
	}
	if !slices.Equal(at, []time.Duration{0, 300 * ms, 700 * ms}) {
		t.Errorf("sent at %v", at)
	}
}
