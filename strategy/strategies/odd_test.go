package strategies

import (
	"fmt"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/bestpath"
	"ndnpop/strategy/failover"
	"ndnpop/strategy/strategytest"
)

// TestPeersAskToo: a next hop that asks for something itself gets it from another
// one, and that changes nothing for others.
func TestPeersAskToo(t *testing.T) {
	for _, f := range Builtin() {
		switch f.Name {
		case "multicast", "random", "self-learning":
			continue // to all, or anywhere
		}
		for _, who := range []string{"a", "b", "ab"} {
			t.Run(f.Name+" "+who, func(t *testing.T) {
				r, err := strategytest.New(1, f)
				if err != nil {
					t.Fatal(err)
				}
				a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
				b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
				r.AddConsumer(strategytest.Consumer{Object: "o", Window: 8})
				for i := range 200 {
					r.At(time.Second+time.Duration(i)*10*ms, func() {
						for _, h := range []*strategytest.Hop{a, b} {
							if who == "ab" || who == h.Name {
								n := ndn.MustName("/p/o").AppendGeneric(h.Name).AppendNumber(ndn.TypeSegment, uint64(i))
								if f.Name == "nst" { // one object
									n = ndn.MustName("/p/o").AppendNumber(ndn.TypeSegment, uint64(1<<30+2*i)+uint64(h.Face())%2)
								}
								ask(t, r.Shard(), r.Time(r.Now()), h.Face(), n, uint32(1<<30+i))
							}
						}
					})
				}
				r.Run(4 * time.Second)
				others, toB := 0, 0
				for _, s := range r.Sends {
					last, _ := s.Name.At(-1)
					if n, _ := last.Number(); s.Name.Len() > 3 || n >= 1<<30 || s.At < time.Second || s.Again {
						continue
					}
					if others++; s.Hop == b {
						toB++
					}
				}
				if others < 1000 || toB > 0 {
					t.Errorf("%d of %d Interests of others went to b", toB, others)
				}
			})
		}
	}
}

// TestHopAfterSilence: what waits in vain at next hops that are silent, and could go
// nowhere else, goes to one that appears then.
func TestHopAfterSilence(t *testing.T) {
	for _, f := range []strategy.Factory{bestpath.Factory(), failover.Factory()} {
		for _, up := range []bool{false, true} {
			for _, window := range []int{2, 50} {
				r, err := strategytest.New(1, f)
				if err != nil {
					t.Fatal(err)
				}
				a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
				b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms, NoRoute: !up})
				if up {
					b.Down()
				}
				con := r.AddConsumer(strategytest.Consumer{Window: window})
				r.At(time.Second, func() { a.Silent = true })
				r.At(1500*ms, func() {
					if up {
						b.Up()
					} else {
						b.SetCost(2)
					}
				})
				r.Run(6 * time.Second)
				if gap := con.Gap(900*ms, 6*time.Second); gap > 540*ms || con.Lost+len(con.Nacks) > 0 {
					t.Errorf("%s, up %v, window %d: gap %v, %d lost, Nacks %v", f.Name, up, window, gap, con.Lost, con.Nacks)
				}
				for _, s := range r.Sends {
					if !s.Again {
						continue
					}
					if n := r.Count(b, s.At, s.At+ms); n > window/10+2 {
						t.Fatalf("%s: %d in a millisecond from %v on", f.Name, n, s)
					}
				}
			}
		}
	}
}

// TestOldWaitsAreNoSilence: that something was outstanding at a next hop when it
// went down, or was lost long ago, says nothing of what is sent there now.
func TestOldWaitsAreNoSilence(t *testing.T) {
	for _, f := range []strategy.Factory{bestpath.Factory(), failover.Factory()} {
		for name, x := range map[string]struct {
			lifetime, resend time.Duration
			then             func(a *strategytest.Hop, r *strategytest.Recorder)
		}{
			"down and up": {0, 0, func(a *strategytest.Hop, r *strategytest.Recorder) { a.Down(); r.At(1003*ms, a.Up) }},
			"up late":     {0, 0, func(a *strategytest.Hop, r *strategytest.Recorder) { a.Down(); r.At(1500*ms, a.Up) }},
			"lost": {22 * ms, 0, func(a *strategytest.Hop, r *strategytest.Recorder) {
				a.Silent = true
				r.At(1100*ms, func() { a.Silent = false })
			}},
			"lost and repeated": {0, 25 * ms, func(a *strategytest.Hop, r *strategytest.Recorder) {
				a.Silent = true
				r.At(1100*ms, func() { a.Silent = false })
			}},
		} {
			r, err := strategytest.New(1, f)
			if err != nil {
				t.Fatal(err)
			}
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
			r.AddConsumer(strategytest.Consumer{Window: 1, Segments: 40}) // teaches the round-trip time
			r.AddConsumer(strategytest.Consumer{Window: 2, Segments: 2, Start: 990 * ms, Lifetime: x.lifetime, Resend: x.resend})
			r.At(999*ms, func() { x.then(a, r) })
			from := 2 * time.Second
			if name == "down and up" {
				from = 1010 * ms
			}
			late := r.AddConsumer(strategytest.Consumer{Window: 20, Segments: 20, Start: from})
			r.Run(3 * time.Second)
			for _, s := range r.Sends {
				if late.Name(0).Prefix(2).Equal(s.Name.Prefix(2)) && s.Again && s.Event == "Timer" {
					t.Errorf("%s, %s: %v", f.Name, name, s)
					break
				}
			}
			if f.Name == "failover" && r.Count(b, 2*time.Second, 3*time.Second) > 3 {
				t.Errorf("%s, %s: %d to the other one", f.Name, name, r.Count(b, 2*time.Second, 3*time.Second))
			}
		}
	}
}

// TestShortLivedInterests: who lets Interests live shorter than an answer is waited
// for is led away from a next hop that never answers all the same.
func TestShortLivedInterests(t *testing.T) {
	for _, f := range Builtin() {
		switch f.Name {
		case "best-route", "random":
			continue // which measure nothing
		}
		for _, every := range []time.Duration{10 * ms, 300 * ms, 600 * ms} {
			r, err := strategytest.New(1, f)
			if err != nil {
				t.Fatal(err)
			}
			r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms, Silent: true})
			r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 30 * ms})
			con := r.AddConsumer(strategytest.Consumer{Every: every, Lifetime: 150 * ms})
			r.Run(60 * time.Second)
			if n := con.Sent - len(con.Arrivals); n > con.Sent/10 {
				t.Errorf("%s, one in %v: %d of %d are lost", f.Name, every, n, con.Sent)
			}
		}
	}
}

// TestRepetitionsNeedNoTimers: an Interest does not run out of timers, however often
// it is repeated.
func TestRepetitionsNeedNoTimers(t *testing.T) {
	for _, f := range Builtin() {
		r, err := strategytest.New(1, f)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			r.AddHop(strategytest.Hop{Name: fmt.Sprint(i), Cost: uint64(i), Silent: true})
		}
		r.AddConsumer(strategytest.Consumer{Segments: 8, Window: 8, Resend: 100 * ms})
		r.Run(20 * time.Second)
		if c := r.Shard().Counters(); c.TimersFull > 0 || c.Timers > 8*(1+3+1) {
			t.Errorf("%s: %d timers were refused, %d are armed", f.Name, c.TimersFull, c.Timers)
		}
	}
}
