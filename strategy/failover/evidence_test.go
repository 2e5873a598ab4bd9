package failover

import (
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy/strategytest"
)

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

// TestCongestionIsNoFailure: Interests that a next hop refuses for a moment go to
// another one, alone.
func TestCongestionIsNoFailure(t *testing.T) {
	for _, reason := range []ndn.NackReason{ndn.NackCongestion, ndn.NackDuplicate} {
		r := recorder(t)
		a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
		b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
		con := r.AddConsumer(strategytest.Consumer{Every: ms})
		for at := time.Second; at < 9*time.Second; at += 100 * ms {
			r.At(at, func() { a.Nacks = reason })
			r.At(at+14*ms, func() { a.Nacks = 0 })
		}
		// Some of all Interests go on for long, as from a queue that is nearly full.
		for at := 10 * time.Second; at < 15*time.Second; at += 20 * ms {
			r.At(at, func() { a.Nacks = reason })
			r.At(at+18*ms, func() { a.Nacks = 0 })
		}
		r.Run(15 * time.Second)
		if s := r.Share(a, 0, 15*time.Second); s != 1 || b.Served() < 80*14 || len(con.Nacks)+con.Lost > 0 {
			t.Errorf("%v: share of a %v, b served %d, Nacks %v, %d lost", reason, s, b.Served(), con.Nacks, con.Lost)
		}
	}
	// When all refuse, the consumer is told the least severe reason.
	r := recorder(t)
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Nacks: ndn.NackCongestion})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms, Nacks: ndn.NackDuplicate})
	con := r.AddConsumer(strategytest.Consumer{Segments: 1})
	r.Run(time.Second)
	if len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackCongestion {
		t.Errorf("Nacks %v", con.Nacks)
	}
}

// TestLastingNacksAreFailure: a next hop that answers with nothing but Nacks is left
// as one that does not answer, tried less and less often, and taken again when it
// answers.
func TestLastingNacksAreFailure(t *testing.T) {
	for _, reason := range []ndn.NackReason{ndn.NackCongestion, ndn.NackDuplicate} {
		for name, c := range consumers {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
			con := r.AddConsumer(c)
			r.At(2*time.Second, func() { a.Nacks = reason })
			r.At(8*time.Second, func() { a.Nacks = 0 })
			r.Run(14 * time.Second)
			if s := r.Share(b, 2200*ms, 8*time.Second); s != 1 {
				t.Errorf("%v, %s: share of b %v while a refuses", reason, name, s)
			}
			if n := r.Count(a, 2200*ms, 8*time.Second); n < 3 || n > 6 {
				t.Errorf("%v, %s: %d trials", reason, name, n)
			}
			if s := r.Share(a, 13*time.Second, 14*time.Second); s != 1 {
				t.Errorf("%v, %s: share of a %v when it answers", reason, name, s)
			}
			if gap := con.Gap(1900*ms, 14*time.Second); gap > 120*ms || len(con.Nacks)+con.Lost > 0 {
				t.Errorf("%v, %s: gap %v, Nacks %v, %d lost", reason, name, gap, con.Nacks, con.Lost)
			}
		}
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

func TestFaceThatComesUpIsNotSilent(t *testing.T) {
	// What was found out about the peer before it was started anew says nothing.
	for name, fail := range map[string]func(*strategytest.Hop){
		"silent":  func(h *strategytest.Hop) { h.Silent = true },
		"refuses": func(h *strategytest.Hop) { h.Nacks = ndn.NackCongestion },
	} {
		r := recorder(t, "retry-initial~60000", "retry-max~60000")
		a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms})
		r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
		r.AddConsumer(strategytest.Consumer{Every: ms})
		r.At(time.Second, func() { fail(a) })
		r.At(2*time.Second, a.Down)
		r.At(3*time.Second, func() { a.Silent = false; a.Up() })
		r.At(3010*ms, func() { a.Nacks = 0 })
		r.Run(5 * time.Second)
		if n := r.Count(a, 1500*ms, 3*time.Second); n > 0 {
			t.Errorf("%s: %d to the next hop that failed", name, n)
		}
		if s := r.Share(a, 3100*ms, 5*time.Second); s != 1 {
			t.Errorf("%s: share of the one that is up again: %v", name, s)
		}
	}
}

// TestLostTrialsAskNobodyElse: a trial that fails is no reason to ask a third next
// hop for what the second will answer.
func TestLostTrialsAskNobodyElse(t *testing.T) {
	for name, a := range map[string]strategytest.Hop{
		"given up": {Silent: true, GiveUp: 5 * ms},
		"no route": {RTT: 5 * ms, Nacks: ndn.NackNoRoute},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			a.Cost = 1
			first := r.AddHop(a)
			r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 100 * ms})
			c := r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 200 * ms})
			con := r.AddConsumer(strategytest.Consumer{Every: 10 * ms})
			r.Run(time.Minute)
			trials, n := r.Count(first, 2*time.Second, time.Minute), r.Count(c, 0, time.Minute)
			if trials == 0 || n > 0 || con.Lost > 0 || len(con.Nacks) > 0 {
				t.Errorf("%d trials, %d to the third next hop, %d lost, Nacks %v", trials, n, con.Lost, con.Nacks)
			}
		})
	}
}

// TestNacksAreNoAnswer: what a next hop has swallowed goes elsewhere when it is due,
// even if the next hop goes on refusing others.
func TestNacksAreNoAnswer(t *testing.T) {
	r := recorder(t, "evidence~1000")
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	r.AddConsumer(strategytest.Consumer{Segments: 40})
	r.At(999*ms, func() { a.Silent = true })
	con := r.AddConsumer(strategytest.Consumer{Segments: 1, Start: time.Second})
	r.At(1001*ms, func() { a.Silent, a.Nacks = false, ndn.NackCongestion })
	r.AddConsumer(strategytest.Consumer{Every: 2 * ms, Start: 1002 * ms})
	r.Run(2 * time.Second)
	if len(con.Arrivals) != 1 || con.Arrivals[0].RTT > 51*ms {
		t.Errorf("%+v", con.Arrivals)
	}
}

// TestShortLivesAsEvidence: an Interest that ends before it could be answered, or that
// was lost alone, says nothing of a next hop; one that has waited says it once.
func TestShortLivesAsEvidence(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 100 * ms})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 100 * ms})
	r.AddConsumer(strategytest.Consumer{Window: 1})
	r.AddConsumer(strategytest.Consumer{Every: 5 * ms, Lifetime: 60 * ms, Start: 500 * ms})
	r.Run(3 * time.Second)
	if s := r.Share(a, 0, 3*time.Second); s != 1 {
		t.Errorf("share of a %v with Interests that live shorter than a round trip", s)
	}

	r = recorder(t)
	a = r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	r.AddConsumer(strategytest.Consumer{Segments: 1005, Every: ms}) // answered until 1024 ms
	r.At(998500*time.Microsecond, func() { a.Silent = true })
	r.AddConsumer(strategytest.Consumer{Segments: 5, Window: 5, Start: 998600 * time.Microsecond, Lifetime: 28 * ms})
	r.At(998700*time.Microsecond, func() { a.Silent = false })
	r.AddConsumer(strategytest.Consumer{Segments: 5, Window: 5, Start: 1030 * ms})
	r.Run(1100 * ms)
	if n := r.Count(b, 0, 1100*ms); n > 0 {
		t.Errorf("%d Interests elsewhere after five were lost among others", n)
	}

	r = recorder(t)
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms, Silent: true})
	con := r.AddConsumer(strategytest.Consumer{Segments: 2, Window: 2, Lifetime: 600 * ms})
	r.Run(time.Second)
	rep, _, _ := r.Shard().StrategyReport(r.Time(r.Now()), con.Name(0))
	if c := rep.Rows[0].Cells; c[1] != 2 || c[2] != 0 {
		t.Errorf("two Interests are %v unanswered, down %v", c[1], c[2])
	}
}

// TestSecondRepetitionGoesElsewhere: a next hop that answers others gets an Interest
// twice and no more, while there is another one.
func TestSecondRepetitionGoesElsewhere(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms, Loss: .5})
	r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Segments: 1000, Every: 2 * ms, Resend: 100 * ms})
	r.Run(5 * time.Second)
	times := make(map[string]int)
	for _, s := range r.Sends {
		if s.Hop == a {
			if times[string(s.Name)]++; times[string(s.Name)] == 3 {
				t.Fatalf("for the third time %v", s)
			}
		}
	}
	if len(con.Arrivals) != 1000 || con.Resent < 300 {
		t.Errorf("%d arrivals, %d repeated", len(con.Arrivals), con.Resent)
	}
}
