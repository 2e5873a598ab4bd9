package bestpath

import (
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy/strategytest"
)

// TestOutstandingGoesElsewhere: what was outstanding at a path that dies goes to
// another one before the consumer asks again, no faster than it went to the first.
func TestOutstandingGoesElsewhere(t *testing.T) {
	for name, x := range map[string]struct {
		die func(*strategytest.Recorder, *strategytest.Hop)
		gap time.Duration
	}{
		"black hole": {func(_ *strategytest.Recorder, h *strategytest.Hop) { h.Silent = true }, 51 * ms},
		"kill":       {func(_ *strategytest.Recorder, h *strategytest.Hop) { h.Down() }, 21 * ms},
		"kill and another instance": {func(r *strategytest.Recorder, h *strategytest.Hop) {
			h.Down()
			f := Factory()
			if _, err := r.Shard().SetStrategy(r.Time(r.Now()), nil, f.FullName().AppendGeneric("hold~400")); err != nil {
				t.Fatal(err)
			}
		}, 21 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t, 1)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
			con := r.AddConsumer(strategytest.Consumer{Window: 100})
			r.At(sec, func() { x.die(r, a) })
			r.Run(1500 * ms)
			if gap := con.Gap(900*ms, 1500*ms); gap > x.gap || con.Lost > 0 || len(con.Nacks) > 0 {
				t.Errorf("gap %v, %d lost, Nacks %v", gap, con.Lost, con.Nacks)
			}
			again := 0
			for i, s := range r.Sends {
				if !s.Again || s.Hop != b || s.At < sec {
					continue
				}
				again++
				if n := r.Count(b, s.At, s.At+ms); n > 10 {
					t.Fatalf("%d Interests in a millisecond, the first is %v", n, r.Sends[i])
				}
			}
			if again < 90 || again > 110 {
				t.Errorf("%d of 100 sent again", again)
			}
		})
	}
}

// TestLossAmongDataIsTheConsumers: what a path loses while it answers everything
// else goes nowhere again by itself.
func TestLossAmongDataIsTheConsumers(t *testing.T) {
	r := recorder(t, 1, "probe-share~0", "probe-min~0")
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms, Jitter: ms, Loss: .05})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Segments: 5000, Every: ms, Resend: 100 * ms})
	r.Run(6 * sec)
	if n := len(r.Sends); n > con.Sent+5 || con.Resent < 100 || con.Lost > 0 {
		t.Errorf("%d Interests for %d, %d of them repetitions, %d lost", n, con.Sent, con.Resent, con.Lost)
	}
}

// TestProbeOfASilentPathIsNoFailure: while the path in use answers, or still may,
// nobody else is asked.
func TestProbeOfASilentPathIsNoFailure(t *testing.T) {
	r := recorder(t, 1)
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 100 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 8})
	r.At(5*sec, func() { b.Silent = true })
	var timers []strategytest.Send
	r.Run(20 * sec)
	for _, s := range r.Sends {
		if s.Event == "Timer" && s.At > 6*sec {
			timers = append(timers, s)
		}
	}
	if len(timers) > 0 {
		t.Errorf("%d sent again: %v …", len(timers), timers[0])
	}
}

// TestCopyIsSilentToo: what a path and the copy for another one have swallowed goes to
// a third one, also when the other refused the copy, and when another instance takes over.
func TestCopyIsSilentToo(t *testing.T) {
	for name, x := range map[string]struct {
		b      strategytest.Hop
		change bool
		gap    time.Duration
	}{
		"silent":           {strategytest.Hop{}, false, 120 * ms},
		"refuses":          {strategytest.Hop{Nacks: ndn.NackNoRoute}, false, 120 * ms},
		"another instance": {strategytest.Hop{}, true, 450 * ms}, // no round-trip time is known
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t, 1, "probe-share~100", "probe-max~10000")
			x.b.Name, x.b.Cost, x.b.RTT = "b", 2, 20*ms
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			b := r.AddHop(x.b)
			con := r.AddConsumer(strategytest.Consumer{Every: 2 * ms})
			// Not before, so that no copy goes there.
			c := r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 20 * ms, NoRoute: true})
			r.At(sec, func() { a.Silent, b.Silent = true, b.Nacks == 0 })
			r.At(1021*ms, func() {
				c.SetCost(3)
				if x.change {
					f := Factory()
					if _, err := r.Shard().SetStrategy(r.Time(r.Now()), nil, f.FullName().AppendGeneric("hold~400")); err != nil {
						t.Fatal(err)
					}
				}
			})
			r.Run(2500 * ms)
			arrived := make(map[uint64]bool)
			for _, y := range con.Arrivals {
				arrived[y.Segment] = true
				if y.RTT > x.gap {
					t.Fatalf("%d after %v", y.Segment, y.RTT)
				}
			}
			for i := range uint64(900) {
				if !arrived[i] {
					t.Fatalf("%d did not arrive", i)
				}
			}
		})
	}
}

// TestCopyMayAnswer: what is at a silent path, and at another one that may still answer,
// goes to no third one.
func TestCopyMayAnswer(t *testing.T) {
	r := recorder(t, 1, "probe-share~100", "probe-max~10000")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 200 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: 2 * ms})
	r.At(sec, func() { a.Silent = true })
	r.At(sec+ms, func() { r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 20 * ms}) })
	r.Run(1900 * ms)
	for _, s := range r.Sends {
		last, _ := s.Name.At(-1)
		if n, _ := last.Number(); s.Hop.Name == "c" && n <= 500 {
			t.Fatalf("%v", s)
		}
	}
	if con.Gap(900*ms, 1900*ms) > 300*ms {
		t.Errorf("gap %v", con.Gap(900*ms, 1900*ms))
	}
}

// TestNextHopsOneAfterTheOther: what waited for anybody goes to the first that appears,
// and to no other one while that may answer.
func TestNextHopsOneAfterTheOther(t *testing.T) {
	r := recorder(t, 1, "probe-share~0", "probe-min~0")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 10})
	r.At(sec, func() { a.Silent = true })
	r.At(1500*ms, func() { r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 200 * ms}) })
	r.At(1600*ms, func() { r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 20 * ms}) })
	r.Run(2 * sec)
	for _, s := range r.Sends {
		if s.Hop.Name == "c" && s.Event == "NextHop" {
			t.Fatalf("%v", s)
		}
	}
	if con.Gap(900*ms, 2*sec) > 780*ms || con.Lost > 0 {
		t.Errorf("gap %v, %d lost", con.Gap(900*ms, 2*sec), con.Lost)
	}
}

// TestUpAsksNobodyElse: while the path in use answers, what is outstanding there goes
// to no other one that comes up.
func TestUpAsksNobodyElse(t *testing.T) {
	r := recorder(t, 1, "probe-share~0", "probe-min~0")
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 50})
	b.Down()
	r.At(sec, b.Up)
	r.Run(2 * sec)
	if n := r.Count(b, 0, 2*sec); n > 0 {
		t.Errorf("%d copies", n)
	}
}

// TestDownAndUpAtOnce: that a path did not answer while its face was down is no silence
// soon after.
func TestDownAndUpAtOnce(t *testing.T) {
	r := recorder(t, 1, "probe-share~0", "probe-min~0")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	c := r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 1})
	r.At(1019*ms, func() { b.Down(); c.Down(); a.Down() })
	r.At(1020*ms, a.Up)
	r.At(1021*ms, func() { b.Up(); c.Up() })
	r.Run(1500 * ms)
	if n := r.Count(b, 0, 1500*ms) + r.Count(c, 0, 1500*ms); n > 0 || con.Gap(900*ms, 1500*ms) > 60*ms {
		t.Errorf("%d to others, gap %v", n, con.Gap(900*ms, 1500*ms))
	}
}
