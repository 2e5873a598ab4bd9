package nst

import (
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/strategytest"
)

// moves counts how often an object's Interests went to another hop than the
// Interest before.
func moves(r *strategytest.Recorder, from, to time.Duration) (n int) {
	var last *strategytest.Hop
	for _, s := range r.Sends {
		if s.At < from || s.At >= to {
			continue
		}
		if last != nil && s.Hop != last {
			n++
		}
		last = s.Hop
	}
	return n
}

func TestSilentReplicaIsLeft(t *testing.T) {
	for name, con := range map[string]strategytest.Consumer{
		"window":   {Window: 8},
		"constant": {Every: 5 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms, Jitter: 4 * ms})
			b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 30 * ms, Jitter: 4 * ms})
			r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 20 * ms})
			con := r.AddConsumer(con)
			r.At(1005*ms, func() { a.Silent = true })
			silent := 0.0
			r.At(1300*ms, func() {
				rep, _, _ := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
				for _, row := range rep.Rows {
					if row.Face == a.Face() {
						silent = row.Cells[5]
					}
				}
			})
			r.At(2*sec, func() { a.Silent = false }) // that is no reason to come back
			r.Run(4 * sec)
			wantAll(t, r, a, 0, 1005*ms)
			wantAll(t, r, b, 1200*ms, 4*sec)
			// The floor, with the four Interests that are evidence, and the RTT of
			// the other one.
			if gap := con.Gap(sec, 2*sec); gap > 50*ms+4*5*ms+34*ms+10*ms {
				t.Errorf("gap %v", gap)
			}
			if con.Resent+con.Lost+len(con.Nacks) > 0 {
				t.Errorf("%d resent, %d lost, Nacks %v", con.Resent, con.Lost, con.Nacks)
			}
			if silent != 1 {
				t.Errorf("the table says %v", silent)
			}
		})
	}
}

func TestLossIsNotSilence(t *testing.T) {
	for _, con := range []strategytest.Consumer{
		{Window: 1, Resend: 100 * ms}, {Window: 4, Resend: 100 * ms}, {Window: 50, Resend: 300 * ms}, {Every: 7 * ms},
	} {
		r := recorder(t)
		a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms, Jitter: 40 * ms, Loss: .05})
		r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
		r.AddConsumer(con)
		r.Run(35 * sec)
		wantAll(t, r, a, 0, 35*sec)
	}
}

func TestRefusalsAreNoSilence(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 8})
	r.At(sec, func() { a.Nacks = ndn.NackCongestion })
	r.At(5*sec, func() { a.Nacks = ndn.NackNone })
	r.Run(6 * sec)
	wantAll(t, r, a, 0, 6*sec)
}

// When everything is dead an object moves no more than once in the time for
// which a silent replica is avoided, and is served again by whoever comes back.
func TestAllSilentDoesNotFlap(t *testing.T) {
	for _, first := range []int{0, 1} {
		r := recorder(t)
		hops := []*strategytest.Hop{
			r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms}),
			r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms}),
		}
		con := r.AddConsumer(strategytest.Consumer{Window: 8, Resend: 250 * ms})
		r.At(sec, func() { hops[0].Silent, hops[1].Silent = true, true })
		r.At(61*sec, func() { hops[first].Silent = false })
		r.Run(180 * sec)
		if n := moves(r, sec, 61*sec); n > 7 {
			t.Errorf("%d moves in a minute of silence", n)
		}
		if n := moves(r, 150*sec, 180*sec); n > 0 {
			t.Errorf("%d moves after one is back", n)
		}
		if s := r.Share(hops[first], 150*sec, 180*sec); s != 1 {
			t.Errorf("share of %s is %v", hops[first].Name, s)
		}
		if gap := con.Gap(150*sec, 180*sec); gap > 30*ms {
			t.Errorf("gap %v", gap)
		}
	}
}

// TestRequestFindsWhoIsBack: of replicas that are all silent, a consumer that asks
// for another one gets one after the other.
func TestRequestFindsWhoIsBack(t *testing.T) {
	for back := range 3 {
		r := recorder(t, "hold~500")
		var hops []*strategytest.Hop
		for i := range 3 {
			hops = append(hops, r.AddHop(strategytest.Hop{Name: string(rune('a' + i)), Cost: uint64(1 + i), RTT: 20 * ms}))
		}
		con := r.AddConsumer(strategytest.Consumer{Window: 8, Resend: 250 * ms})
		r.At(sec, func() { hops[0].Silent, hops[1].Silent, hops[2].Silent = true, true, true })
		r.At(2*sec, func() { hops[back].Silent = false })
		for at := 3 * sec; at < 7*sec; at += sec {
			r.At(at, func() {
				if len(con.Arrivals) == 0 || con.Arrivals[len(con.Arrivals)-1].At < at-500*ms {
					con.SelectReplica()
				}
			})
		}
		r.Run(8 * sec)
		wantAll(t, r, hops[back], 6*sec, 8*sec)
		if gap := con.Gap(6*sec, 8*sec); gap > 25*ms {
			t.Errorf("%s is back and not found: gap %v", hops[back].Name, gap)
		}
	}
}

func TestNewObjectsAvoidASilentReplica(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 8, Object: "one"})
	r.At(sec, func() { a.Silent = true })
	r.At(5*sec, func() { a.Silent = false })
	r.AddConsumer(strategytest.Consumer{Window: 8, Object: "two", Start: 3 * sec})
	r.AddConsumer(strategytest.Consumer{Window: 8, Object: "three", Start: 20 * sec})
	r.Run(21 * sec)
	for _, s := range r.Sends {
		object := s.Name.Prefix(2)
		switch object.String() {
		case "/p/two":
			if s.Hop != b {
				t.Fatalf("%v", s)
			}
		case "/p/three":
			if s.Hop != a {
				t.Fatalf("%v", s)
			}
		}
	}
}

// TestLongerPathIsNotSilent: a round-trip time that jumps to five times what it
// was looks like silence until the first late Data, which heals at once: the
// object is back, and the next jump of that kind is no surprise.
func TestLongerPathIsNotSilent(t *testing.T) {
	for name, con := range map[string]strategytest.Consumer{
		"window 8":  {Window: 8},
		"window 50": {Window: 50},
		"constant":  {Every: 5 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 30 * ms})
			con := r.AddConsumer(con)
			silent := func() bool {
				rep, _, _ := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
				return rep.Rows[0].Cells[5] != 0
			}
			r.At(sec, func() { a.RTT = 100 * ms })
			r.At(1110*ms, func() {
				if silent() {
					t.Error("late Data did not heal")
				}
			})
			r.At(3*sec, func() { a.RTT = 500 * ms })
			for at := 5 * sec; at < 10*sec; at += 500 * ms {
				r.At(at, func() { a.RTT = 20 * ms })
				r.At(at+250*ms, func() { a.RTT = 100 * ms })
			}
			r.Run(12 * sec)
			wantAll(t, r, a, 1150*ms, 3*sec)
			wantAll(t, r, a, 3600*ms, 5*sec)
			if n := moves(r, sec, 1150*ms); n > 40 {
				t.Errorf("%d moves at the jump", n)
			}
			if n := r.Switches(4*sec, 12*sec); n > 4 {
				t.Errorf("%d moves while the round-trip time jumps", n)
			}
			if gap := con.Gap(sec, 3*sec); gap > 105*ms || con.Lost > 0 || len(con.Nacks) > 0 {
				t.Errorf("gap %v, %d lost, Nacks %v", gap, con.Lost, con.Nacks)
			}
		})
	}
}

// TestOneInterestIsNoEvidence: however long a single Interest waits, it is one.
func TestOneInterestIsNoEvidence(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 1, Lifetime: 3 * sec})
	r.At(sec, func() { a.Silent = true })
	r.Run(3900 * ms)
	if n := r.Count(b, 0, 4*sec); n > 0 {
		t.Errorf("%d sent to another replica", n)
	}
}

// TestRepetitionsAreEvidence: where fewer Interests are outstanding than it takes, what
// the consumer repeats counts, and one may be enough.
func TestRepetitionsAreEvidence(t *testing.T) {
	for params, most := range map[string]int{"evidence~4": 4, "evidence~1": 0} {
		r := recorder(t, params)
		a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
		r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
		con := r.AddConsumer(strategytest.Consumer{Window: 1, Resend: 200 * ms})
		r.At(sec, func() { a.Silent = true })
		r.Run(3 * sec)
		if con.Resent > most || con.Gap(900*ms, 3*sec) > 900*ms {
			t.Errorf("%s: %d repeated, gap %v", params, con.Resent, con.Gap(900*ms, 3*sec))
		}
	}
}

// TestShortLivesAsEvidence: an Interest that ends before it could be answered, or that
// was lost alone, says nothing of a replica; one that has waited says it once.
func TestShortLivesAsEvidence(t *testing.T) {
	short := func(n int, d time.Duration) strategytest.Consumer {
		return strategytest.Consumer{Segments: n, Window: n, Start: 1001 * ms, Lifetime: d}
	}
	for name, x := range map[string]struct {
		rtt    time.Duration
		cons   []strategytest.Consumer
		silent []time.Duration // for a moment
	}{
		"nothing is known yet": {300 * ms, []strategytest.Consumer{
			{Segments: 1, Start: sec}, short(8, 100*ms), {Segments: 1, Start: 1200 * ms}}, nil},
		"shorter than a round trip": {200 * ms, []strategytest.Consumer{
			{Segments: 4}, short(8, 150*ms), {Segments: 1, Start: 1200 * ms}}, []time.Duration{1200 * ms}},
		"lost alone": {20 * ms, []strategytest.Consumer{
			{Segments: 1006, Every: ms}, short(5, 28*ms), {Segments: 1, Start: 1080 * ms}}, []time.Duration{1001 * ms, 1080 * ms}},
		"counted already": {20 * ms, []strategytest.Consumer{{Segments: 10}, short(2, 200*ms)}, []time.Duration{1001 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: x.rtt})
			r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: x.rtt})
			for _, c := range append(x.cons, strategytest.Consumer{Segments: 10, Start: 1800 * ms}) {
				r.AddConsumer(c)
			}
			for _, at := range x.silent {
				r.At(at-100*time.Microsecond, func() { a.Loss = 1 })
				r.At(at+100*time.Microsecond, func() { a.Loss = 0 })
			}
			r.Run(3 * sec)
			wantAll(t, r, a, 0, 3*sec)
		})
	}
}

// TestReplicaThatAsks: what an object's replica asks for itself goes to another one,
// once, whether that refuses, swallows or answers it, and the object stays.
func TestReplicaThatAsks(t *testing.T) {
	for name, b := range map[string]strategytest.Hop{
		"answers":  {RTT: 20 * ms},
		"no route": {RTT: 20 * ms, Nacks: ndn.NackNoRoute},
		"silent":   {Silent: true},
		"full":     {Refuse: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			b.Cost = 2
			other := r.AddHop(b)
			con := r.AddConsumer(strategytest.Consumer{Object: "o", Window: 4})
			const n = 10
			for i := range n {
				r.At(sec+time.Duration(i)*10*ms, func() {
					var p ndn.Packet
					name := ndn.MustName("/p/o").AppendNumber(ndn.TypeSegment, uint64(1<<30+i))
					w := ndn.AppendInterest(nil, &ndn.InterestFields{Name: name, Nonce: uint32(1<<30 + i), Lifetime: 4 * sec})
					if err := p.Parse(w, &ndn.LpFields{}); err != nil {
						t.Fatal(err)
					}
					r.Shard().Receive(r.Time(r.Now()), a.Face(), &p)
				})
			}
			r.Run(10 * sec)
			want := n
			if b.Refuse {
				want = 0
			}
			if k := r.Count(other, 0, 10*sec); k != want || con.Gap(0, 10*sec) > 20*ms {
				t.Errorf("%d Interests to the other one, want %d; gap %v", k, want, con.Gap(0, 10*sec))
			}
			if k := r.Refused[strategy.RefusedQueue]; k > n*8 {
				t.Errorf("%d were refused", k)
			}
		})
	}
}

// spy looks at what is kept about next hops.
type spy struct {
	*nst
	nobody bool // something is kept about no next hop
}

func (s *spy) Report(c *strategy.Context) strategy.Report {
	s.nobody = s.tables.Get(c).Find(0) != nil
	return strategy.Report{}
}

// TestNewInLineAreNoHop: Interests that wait for their first turn, and were sent
// nowhere yet, take no place among the next hops.
func TestNewInLineAreNoHop(t *testing.T) {
	s, f := &spy{}, Factory()
	f.New = func(v strategy.Values) (strategy.Strategy, error) {
		st, err := parse(v, builtin())
		s.nst = st.(*nst)
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

// TestWrongOnceForAllObjects: however many objects have left a replica that was
// not silent, it may be silent twice as long then, not eight times.
func TestWrongOnceForAllObjects(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 30 * ms})
	var cons []*strategytest.Consumer
	for range 4 {
		cons = append(cons, r.AddConsumer(strategytest.Consumer{Window: 8}))
	}
	r.At(sec, func() { a.RTT = 100 * ms })
	r.At(3*sec, func() { a.Silent = true })
	r.Run(6 * sec)
	wantAll(t, r, a, 1200*ms, 3*sec)
	// 200 ms, two round-trip times, twice.
	for _, con := range cons {
		if gap := con.Gap(2500*ms, 6*sec); gap < 300*ms || gap > 600*ms {
			t.Errorf("gap %v", gap)
		}
	}
}

// TestSmallWindowDoesNotMove: on a short path the few Interests of a small window
// may all wait, having been lost one after the other. That is no silence.
func TestSmallWindowDoesNotMove(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 5 * ms, Jitter: 3 * ms, Loss: .05})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 30 * ms, Loss: .05})
	r.AddConsumer(strategytest.Consumer{Window: 4, Resend: 150 * ms})
	r.Run(30 * sec)
	wantAll(t, r, a, 0, 30*sec)
}
