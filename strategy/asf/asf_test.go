package asf

import (
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy/strategytest"
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

func wantAll(t *testing.T, r *strategytest.Recorder, h *strategytest.Hop, from, to time.Duration) {
	t.Helper()
	if s := r.Share(h, from, to); s != 1 {
		t.Errorf("share of %s from %v to %v is %v", h.Name, from, to, s)
	}
}

func TestConvergesByProbes(t *testing.T) {
	r := recorder(t, 1, "probing-interval~1000")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 40 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 60 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: 10 * ms})
	r.At(20*sec, func() { b.RTT = 200 * ms })
	r.Run(40 * sec)
	if r.Sends[0].Hop != a {
		t.Errorf("unmeasured: %v, not the cheapest", r.Sends[0])
	}
	wantAll(t, r, b, 7*sec, 20*sec)
	wantAll(t, r, a, 21*sec, 40*sec)
	if probes := r.Count(nil, 0, 40*sec) - con.Sent; probes < 35 || probes > 41 {
		t.Errorf("%d probes in 40 s", probes)
	}
	if con.Lost > 0 {
		t.Errorf("%d lost", con.Lost)
	}
}

func TestFirstProbeIsWithinFiveSeconds(t *testing.T) {
	for seed := uint64(1); seed < 20; seed++ {
		r := recorder(t, seed)
		r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
		b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
		r.AddConsumer(strategytest.Consumer{Every: 50 * ms})
		r.Run(70 * sec)
		early, all := r.Count(b, 0, 5*sec+60*ms), r.Count(b, 0, 70*sec)
		if early != 1 || all != 2 {
			t.Errorf("seed %d: %d probes at first, %d in 70 s", seed, early, all)
		}
	}
}

func TestTimeoutsSwitch(t *testing.T) {
	r := recorder(t, 1, "probing-interval~1000")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 4, Resend: 250 * ms})
	r.At(10*sec, func() { a.Silent = true })
	r.At(20*sec, func() { a.Silent = false })
	r.Run(40 * sec)
	// Three timeouts of 200 ms, one after the other.
	wantAll(t, r, b, 11500*ms, 20*sec)
	wantAll(t, r, a, 22*sec, 40*sec)
	if con.Lost > 0 {
		t.Errorf("%d lost", con.Lost)
	}
}

func TestNackTakesOut(t *testing.T) {
	r := recorder(t, 1)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Nacks: ndn.NackCongestion})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: 50 * ms})
	r.Run(4 * sec)
	if r.Sends[0].Hop != a || len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackCongestion {
		t.Errorf("%v, Nacks %v", r.Sends[0], con.Nacks)
	}
	wantAll(t, r, b, 50*ms, 4*sec)
}

func TestRetransmissions(t *testing.T) {
	r := recorder(t, 1)
	hops := []*strategytest.Hop{
		r.AddHop(strategytest.Hop{Name: "a", Cost: 1, Silent: true}),
		r.AddHop(strategytest.Hop{Name: "b", Cost: 2, Silent: true}),
	}
	con := r.AddConsumer(strategytest.Consumer{Segments: 1})
	for i := 1; i < 4; i++ {
		r.At(time.Duration(i)*100*ms, func() { con.Repeat(0) })
	}
	r.At(305*ms, func() { con.Repeat(0) })
	r.At(308*ms, func() { con.Repeat(0) }) // too soon for b
	r.Run(sec)
	if len(r.Sends) != 5 {
		t.Fatalf("%v", r.Sends)
	}
	for i, s := range r.Sends {
		if s.Hop != hops[i%2] {
			t.Errorf("%v", s)
		}
	}
}

func TestRandomLossDoesNotFlap(t *testing.T) {
	r := recorder(t, 1, "probing-interval~1000")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Loss: .05})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 30 * ms, Loss: .05})
	r.AddConsumer(strategytest.Consumer{Window: 8, Resend: 300 * ms})
	r.Run(60 * sec)
	if s := r.Share(a, 0, 60*sec); s < .99 || r.Switches(0, 60*sec) > 4 {
		t.Errorf("share of a %.3f, %d switches", s, r.Switches(0, 60*sec))
	}
}

func TestFaceDownAndNoRoute(t *testing.T) {
	r := recorder(t, 1)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 4})
	r.At(sec, a.Down)
	r.At(2*sec, func() { con.Window = 0 })
	r.At(2100*ms, b.Down)
	r.Run(2200 * ms)
	if gap := con.Gap(900*ms, 1900*ms); gap > 41*ms {
		t.Errorf("gap %v", gap)
	}
	r.AddConsumer(strategytest.Consumer{Segments: 1})
	con = r.AddConsumer(strategytest.Consumer{Segments: 1})
	r.Run(3 * sec)
	if len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackNoRoute {
		t.Errorf("Nacks %v", con.Nacks)
	}
}

func TestForgets(t *testing.T) {
	r := recorder(t, 1)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Nacks: ndn.NackNoRoute})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddConsumer(strategytest.Consumer{Segments: 1})
	r.At(sec, func() { a.Nacks = 0 })
	r.AddConsumer(strategytest.Consumer{Segments: 1, Start: 6 * time.Minute})
	r.Run(7 * time.Minute)
	if last := r.Sends[len(r.Sends)-1]; r.Share(a, 6*time.Minute, 7*time.Minute) != 1 {
		t.Errorf("%v", last)
	}
}

func TestLoopEnds(t *testing.T) { strategytest.CheckLoop(t, Factory(), 2) }

func TestParameters(t *testing.T) {
	strategytest.CheckParams(t, Factory(), map[string][]string{
		"probing-interval": {"999", "x"}, "max-timeouts": {"0"},
		"retx-suppression-initial": {"0"}, "retx-suppression-max": {"1"}, "retx-suppression-multiplier": {"0"},
	})
}

func TestDoesNotAllocate(t *testing.T) { strategytest.CheckAllocs(t, Factory()) }

func BenchmarkHandlers(b *testing.B) { strategytest.Bench(b, Factory()) }

func TestUnmeasuredAreProbedFirst(t *testing.T) {
	for seed := uint64(1); seed < 10; seed++ {
		r := recorder(t, seed, "probing-interval~1000")
		hops := map[*strategytest.Hop]int{}
		for i := range 5 {
			hops[r.AddHop(strategytest.Hop{Cost: uint64(i), RTT: time.Duration(10+i) * ms})] = 0
		}
		r.AddConsumer(strategytest.Consumer{Every: 10 * ms})
		r.Run(20 * sec)
		probes := 0
		for _, s := range r.Sends {
			if s.Again && probes < 4 {
				if probes++; hops[s.Hop] > 0 {
					t.Errorf("seed %d: %v once more before all others", seed, s)
				}
				hops[s.Hop]++
			}
		}
		if probes != 4 {
			t.Errorf("%d probes", probes)
		}
		strategytest.CheckNonces(t, r)
	}
}

// TestLostProbesAskNobodyElse: what the link gives up of a probe is no reason to
// ask a third next hop for what the first will answer.
func TestLostProbesAskNobodyElse(t *testing.T) {
	r := recorder(t, 1, "probing-interval~1000")
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 100 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, Silent: true, GiveUp: 5 * ms})
	r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 200 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: 10 * ms})
	r.Run(30 * sec)
	if probes := r.Count(nil, 0, 30*sec) - con.Sent; probes > 30 {
		t.Errorf("%d copies in 30 s", probes)
	}
	if con.Lost > 0 || len(con.Nacks) > 0 {
		t.Errorf("%d lost, Nacks %v", con.Lost, con.Nacks)
	}
}
