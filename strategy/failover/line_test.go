package failover

import (
	"testing"
	"time"

	"ndnpop/strategy"
	"ndnpop/strategy/strategytest"
)

// TestOutstandingIsResentAsItWasSent: what has been swallowed goes elsewhere within the
// round-trip time of the silent next hop, evenly.
func TestOutstandingIsResentAsItWasSent(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 50})
	r.At(time.Second, func() { a.Silent = true })
	r.Run(1100 * ms)
	strategytest.CheckNonces(t, r)
	var at []time.Duration
	for _, s := range r.Sends {
		if s.Hop == b && s.Again {
			if s.Event != "Timer" || s.Why == "" {
				t.Errorf("%v", s)
			}
			at = append(at, s.At)
		}
	}
	if len(at) != 50 || con.Lost > 0 {
		t.Fatalf("%d sent again, %d lost", len(at), con.Lost)
	}
	for i := 1; i < 50; i++ {
		if d := at[i] - at[i-1]; d < 300*time.Microsecond || d > 500*time.Microsecond {
			t.Errorf("%d %v after the one before", i, d)
		}
	}
}

// TestChangeDuringAFailure: another instance takes over what is outstanding at a
// next hop that is dead and not known to be, or waits for its turn.
func TestChangeDuringAFailure(t *testing.T) {
	for name, x := range map[string]struct {
		die          func(*strategytest.Hop)
		change, most time.Duration
	}{
		// The new instance knows no round-trip time.
		"black hole": {func(h *strategytest.Hop) { h.Silent = true }, 1200 * ms, 250*ms + 25*ms},
		"kill":       {func(h *strategytest.Hop) { h.Down() }, 1005 * ms, 25 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t, "floor~1000") // so that it has not noticed by then
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
			con := r.AddConsumer(strategytest.Consumer{Window: 50})
			r.At(time.Second, func() { x.die(a) })
			r.At(x.change, func() {
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

// TestFacesThatGoAreForgotten: nothing is kept about a face that came up once and is
// gone.
func TestFacesThatGoAreForgotten(t *testing.T) {
	f, st := Factory(), (*failover)(nil)
	f.New = func(v strategy.Values) (strategy.Strategy, error) {
		s, err := parse(v)
		st = s.(*failover)
		return s, err
	}
	r, err := strategytest.New(1, f)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		h := r.AddHop(strategytest.Hop{Cost: uint64(i)})
		h.Down()
		h.Up()
		if i > 0 {
			h.Remove()
		}
	}
	if len(st.raised) != 1 {
		t.Errorf("%d faces are remembered", len(st.raised))
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
