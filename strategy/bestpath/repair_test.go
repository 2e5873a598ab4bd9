package bestpath

import (
	"testing"
	"time"

	"ndnpop/strategy"
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

// TestFullQueueIsTriedAgain: what the other path's face does not take goes there a
// little later; then the consumer is told.
func TestFullQueueIsTriedAgain(t *testing.T) {
	r := recorder(t, 1, "probe-share~0", "probe-min~0")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms, Refuse: true})
	con := r.AddConsumer(strategytest.Consumer{Window: 10})
	r.At(sec, a.Down)
	r.At(1040*ms, func() { b.Refuse = false })
	r.Run(1100 * ms)
	if gap := con.Gap(900*ms, 1100*ms); gap > 100*ms || con.Lost > 0 || len(con.Nacks) > 0 {
		t.Errorf("gap %v, %d lost, Nacks %v", gap, con.Lost, con.Nacks)
	}
	if n := r.Refused[strategy.RefusedQueue]; n == 0 {
		t.Error("nothing was refused")
	}
}
