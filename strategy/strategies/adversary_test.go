package strategies

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ndnpop/fw"
	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/bestpath"
	"ndnpop/strategy/failover"
	"ndnpop/strategy/nst"
	"ndnpop/strategy/strategytest"
)

const ms = time.Millisecond

// each runs a test for every strategy, with next hops and consumers to be
// added. Somebody follows its decisions and asks for its table meanwhile.
func each(t *testing.T, fn func(t *testing.T, r *strategytest.Recorder)) {
	for _, f := range Builtin() {
		t.Run(f.Name, func(t *testing.T) {
			r, err := strategytest.New(1, f)
			if err != nil {
				t.Fatal(err)
			}
			r.Watch = func(time.Duration, *strategy.Decision) {}
			for at := time.Duration(0); at < 3*time.Second; at += 50 * ms {
				r.At(at, func() {
					rep, _, _ := r.Shard().StrategyReport(r.Time(r.Now()), ndn.MustName("/p/a"))
					for _, row := range rep.Rows {
						if len(row.Cells) != len(rep.Columns) {
							t.Fatalf("a row of %d cells, columns %v", len(row.Cells), rep.Columns)
						}
					}
				})
			}
			fn(t, r)
		})
	}
}

// drained wants nothing to be left after everybody has stopped asking.
func drained(t *testing.T, r *strategytest.Recorder) {
	t.Helper()
	if c := r.Shard().Counters(); c.PitEntries > 0 {
		t.Errorf("%d pending Interests left", c.PitEntries)
	}
}

// TestNacksFromEveryHop: an Interest that nobody wants goes to each next hop
// at most twice, and its consumer is told.
func TestNacksFromEveryHop(t *testing.T) {
	for _, reason := range []ndn.NackReason{ndn.NackNoRoute, ndn.NackCongestion, ndn.NackDuplicate} {
		t.Run(reason.String(), func(t *testing.T) {
			each(t, func(t *testing.T, r *strategytest.Recorder) {
				for i := range 5 {
					r.AddHop(strategytest.Hop{Name: fmt.Sprint(i), Cost: uint64(i + 1), RTT: time.Duration(5+i) * ms, Nacks: reason})
				}
				con := r.AddConsumer(strategytest.Consumer{Segments: 100, Window: 10})
				r.Run(2 * time.Minute)
				if len(con.Nacks) != 100 || len(con.Arrivals) > 0 {
					t.Errorf("%d Nacks, %d Data", len(con.Nacks), len(con.Arrivals))
				}
				if n := len(r.Sends); n > 100*5*2 {
					t.Errorf("%d Interests", n)
				}
				drained(t, r)
			})
		})
	}
}

// TestChangingHops: next hops die, come back, lose their routes, change their
// costs, fall silent and refuse while traffic runs. When all is well again,
// everybody is served.
func TestChangingHops(t *testing.T) {
	const calm, end = 5 * time.Second, 13 * time.Second
	for seed := range uint64(2) {
		each(t, func(t *testing.T, r *strategytest.Recorder) {
			var hops []*strategytest.Hop
			for i := range 4 {
				hops = append(hops, r.AddHop(strategytest.Hop{
					Name: fmt.Sprint(i), Cost: uint64(1 + i/2), RTT: time.Duration(20+10*i) * ms, Jitter: 8 * ms,
				}))
			}
			dice := rand.New(rand.NewPCG(seed, 1))
			for at := 100 * ms; at < calm; at += 37 * ms {
				h, what, cost := hops[dice.IntN(4)], dice.IntN(7), uint64(1+dice.IntN(3))
				r.At(at, func() {
					switch what {
					case 0:
						h.Down()
					case 1, 2:
						h.Up()
					case 3:
						h.RemoveRoute()
					case 4:
						h.SetCost(cost)
					case 5:
						h.Silent = !h.Silent
					case 6:
						h.Refuse = !h.Refuse
					}
				})
			}
			r.At(calm, func() {
				for _, h := range hops {
					h.Silent, h.Refuse = false, false
					h.Up()
					h.SetCost(1)
				}
			})
			con := r.AddConsumer(strategytest.Consumer{Window: 4, Resend: 250 * ms})
			r.Run(end)
			if gap := con.Gap(calm+5*time.Second, end); gap > 500*ms {
				t.Errorf("a gap of %v when all is well", gap)
			}
			if c := r.Shard().Counters(); c.PitEntries > 4+4 {
				t.Errorf("%d pending Interests for a window of 4", c.PitEntries)
			}
		})
	}
}

// TestAllDownAndBack: without any next hop consumers are told, and when one is
// back it is used.
func TestAllDownAndBack(t *testing.T) {
	each(t, func(t *testing.T, r *strategytest.Recorder) {
		a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 40 * ms})
		b := r.AddHop(strategytest.Hop{Name: "b", Cost: 1, RTT: 40 * ms})
		con := r.AddConsumer(strategytest.Consumer{Window: 4, Resend: 300 * ms})
		r.At(time.Second, func() { a.Down(); b.Down() })
		r.At(5*time.Second, b.Up)
		r.Run(20 * time.Second)
		if n := r.Count(nil, 1050*ms, 5*time.Second); n > 0 {
			t.Errorf("%d Interests to nobody", n)
		}
		if gap := con.Gap(16*time.Second, 20*time.Second); gap > 100*ms {
			t.Errorf("a gap of %v after one is back", gap)
		}
	})
}

// TestOneHop: with nothing to choose from nothing is sent more than once per
// Interest of the consumer, loss or not.
func TestOneHop(t *testing.T) {
	each(t, func(t *testing.T, r *strategytest.Recorder) {
		r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Jitter: 20 * ms, Loss: .1})
		con := r.AddConsumer(strategytest.Consumer{Segments: 2000, Window: 10, Resend: 200 * ms})
		r.Run(10 * time.Minute)
		if len(con.Arrivals) != 2000 {
			t.Errorf("%d of 2000, Nacks %v", len(con.Arrivals), con.Nacks)
		}
		if len(r.Sends) > con.Sent {
			t.Errorf("%d Interests for the %d of the consumer", len(r.Sends), con.Sent)
		}
		drained(t, r)
	})
}

// TestTiesRepeat: where all next hops are alike the run is a function of the
// seed.
func TestTiesRepeat(t *testing.T) {
	for _, f := range Builtin() {
		var runs [2][]string
		for i := range runs {
			r, err := strategytest.New(7, f)
			if err != nil {
				t.Fatal(err)
			}
			for k := range 6 {
				r.AddHop(strategytest.Hop{Name: fmt.Sprint(k), Cost: 3, RTT: 10 * ms, Loss: .05})
			}
			r.AddConsumer(strategytest.Consumer{Segments: 500, Window: 10, Resend: 100 * ms})
			r.Run(time.Minute)
			for _, s := range r.Sends {
				runs[i] = append(runs[i], s.String())
			}
		}
		if !slices.Equal(runs[0], runs[1]) {
			t.Errorf("%s: two runs differ", f.Name)
		}
	}
}

// TestExtremeTimes: answers that take minutes, and answers that take no time
// at all while the clock stands still.
func TestExtremeTimes(t *testing.T) {
	t.Run("minutes", func(t *testing.T) {
		each(t, func(t *testing.T, r *strategytest.Recorder) {
			for i := range 2 {
				r.AddHop(strategytest.Hop{Name: fmt.Sprint(i), Cost: uint64(i + 1), RTT: 2 * time.Minute})
			}
			con := r.AddConsumer(strategytest.Consumer{Segments: 20, Window: 2, Lifetime: 9 * time.Minute})
			r.Run(3 * time.Hour)
			if len(con.Arrivals) != 20 {
				t.Errorf("%d of 20, Nacks %v", len(con.Arrivals), con.Nacks)
			}
			if n := len(r.Sends); n > 20*2*2 {
				t.Errorf("%d Interests for 20 segments", n)
			}
			drained(t, r)
		})
	})
	t.Run("none", func(t *testing.T) {
		each(t, func(t *testing.T, r *strategytest.Recorder) {
			for i := range 3 {
				r.AddHop(strategytest.Hop{Name: fmt.Sprint(i), Cost: uint64(i + 1)})
			}
			con := r.AddConsumer(strategytest.Consumer{Segments: 1500, Window: 3})
			r.Run(time.Second)
			if len(con.Arrivals) != 1500 {
				t.Errorf("%d of 1500, Nacks %v", len(con.Arrivals), con.Nacks)
			}
		})
	})
}

// TestManyHops: 255 next hops, more than a strategy remembers. Whoever is
// cheapest dies now and then.
func TestManyHops(t *testing.T) {
	each(t, func(t *testing.T, r *strategytest.Recorder) {
		var hops []*strategytest.Hop
		for i := range 255 {
			hops = append(hops, r.AddHop(strategytest.Hop{Name: fmt.Sprint(i), Cost: uint64(i), RTT: 10 * ms}))
		}
		con := r.AddConsumer(strategytest.Consumer{Segments: 80, Window: 8, Resend: 300 * ms})
		for i := range 5 {
			r.At(time.Duration(i+1)*12*ms, hops[i].Down)
		}
		r.Run(5 * time.Minute)
		if len(con.Arrivals) != 80 {
			t.Errorf("%d of 80, Nacks %v", len(con.Arrivals), con.Nacks)
		}
		if n := len(r.Sends); n > 64*con.Sent {
			t.Errorf("%d Interests for %d", n, con.Sent)
		}
		drained(t, r)
	})
}

// discard is a driver whose faces take everything.
type discard struct{ sent int }

func (d *discard) Send(ndn.FaceID, []byte, *ndn.LpFields) bool { d.sent++; return true }

func shard(t *testing.T, f strategy.Factory, c fw.Config) (*fw.Shard, *discard) {
	t.Helper()
	set, err := strategy.NewSet(f)
	if err != nil {
		t.Fatal(err)
	}
	out := &discard{}
	c.DefaultStrategy = f.FullName()
	s, err := fw.New(c, set, out)
	if err != nil {
		t.Fatal(err)
	}
	return s, out
}

func ask(t *testing.T, s *fw.Shard, now ndn.Time, in ndn.FaceID, name ndn.Name, nonce uint32) {
	t.Helper()
	var p ndn.Packet
	w := ndn.AppendInterest(nil, &ndn.InterestFields{Name: name, Nonce: nonce, Lifetime: time.Second})
	if err := p.Parse(w, &ndn.LpFields{}); err != nil {
		t.Fatal(err)
	}
	s.Receive(now, in, &p)
}

// TestMeasurementsAreBounded: thousands of prefixes and objects do not make a
// strategy's tables grow past their limit.
func TestMeasurementsAreBounded(t *testing.T) {
	const limit = 128
	for _, f := range Builtin() {
		t.Run(f.Name, func(t *testing.T) {
			s, _ := shard(t, f, fw.Config{MaxMeasurements: limit})
			_ = s.AddFace(1, fw.FaceInfo{ID: 300, Local: true})
			for i := range ndn.FaceID(3) {
				_ = s.AddFace(1, fw.FaceInfo{ID: 301 + i})
			}
			now := ndn.Time(time.Second)
			for i := range 5000 {
				prefix := ndn.MustName("/p").AppendGeneric(fmt.Sprint(i))
				if i%2 == 0 {
					_ = s.SetNextHop(now, prefix, 301+ndn.FaceID(i%3), 1)
				} else {
					prefix = ndn.MustName("/p/0").AppendGeneric(fmt.Sprint(i))
				}
				ask(t, s, now, 300, prefix.AppendNumber(ndn.TypeVersion, 1).AppendNumber(ndn.TypeSegment, 0), uint32(i))
				now = now.Add(ms)
				s.Tick(now)
			}
			if n := s.Counters().Measurements; n > limit {
				t.Errorf("%d measurements", n)
			}
			s.Tick(now.Add(time.Hour))
			if c := s.Counters(); c.PitEntries > 0 || c.Timers > 100 {
				t.Errorf("%d pending Interests and %d timers left", c.PitEntries, c.Timers)
			}
		})
	}
}

// TestAdHocFaces: on links where packets may go back to where they came from
// an Interest is not sent for ever.
func TestAdHocFaces(t *testing.T) {
	for _, f := range Builtin() {
		t.Run(f.Name, func(t *testing.T) {
			s, out := shard(t, f, fw.Config{})
			now := ndn.Time(time.Second)
			for i := range ndn.FaceID(2) {
				_ = s.AddFace(now, fw.FaceInfo{ID: 300 + i, MultiAccess: true, AdHoc: true})
				_ = s.SetNextHop(now, ndn.MustName("/p"), 300+i, 1)
			}
			for i := range 100 {
				name := ndn.MustName("/p/a").AppendNumber(ndn.TypeSegment, uint64(i))
				ask(t, s, now, 300, name, uint32(i))
				ask(t, s, now.Add(ms), 301, name, uint32(i)) // heard again: a loop
			}
			if out.sent == 0 {
				t.Error("nothing went back into the ad hoc link")
			}
			for end := now.Add(time.Minute); s.Deadline() <= end; {
				now = max(now, s.Deadline())
				s.Tick(now)
			}
			if out.sent > 100*2*2 {
				t.Errorf("%d packets for 100 Interests", out.sent)
			}
			if c := s.Counters(); c.PitEntries > 0 {
				t.Errorf("%d pending Interests left", c.PitEntries)
			}
		})
	}
}

// TestManyPrefixesFailAtOnce: what a face that goes down leaves of hundreds of
// prefixes comes no faster to the other one than what it leaves of a single one.
func TestManyPrefixesFailAtOnce(t *testing.T) {
	for _, f := range []strategy.Factory{bestpath.Factory(), failover.Factory(), nst.Factory()} {
		r, err := strategytest.New(1, f)
		if err != nil {
			t.Fatal(err)
		}
		const prefixes = 200
		var hops [2]*strategytest.Hop
		for i := range hops {
			hops[i] = r.AddHop(strategytest.Hop{Name: fmt.Sprint(i), Cost: uint64(i), RTT: 20 * ms, Rate: 11_000, Queue: 10 * ms})
		}
		var cons []*strategytest.Consumer
		for i := range prefixes {
			con := r.AddConsumer(strategytest.Consumer{Start: time.Duration(i) * 20 * ms / prefixes})
			for k, h := range hops {
				if err := r.Shard().SetNextHop(r.Time(0), con.Name(0).Prefix(2), h.Face(), uint64(k)); err != nil {
					t.Fatal(err)
				}
			}
			cons = append(cons, con)
		}
		r.At(300*ms, hops[0].Down)
		// Of whom nothing failed nothing waits.
		other := r.AddConsumer(strategytest.Consumer{Object: "other", Segments: 1, Start: 305 * ms})
		r.Run(500 * ms)
		for _, con := range cons {
			if gap := con.Gap(250*ms, 500*ms); gap > 50*ms {
				t.Fatalf("%s: gap %v", f.Name, gap)
			}
		}
		if len(other.Arrivals) != 1 || other.Arrivals[0].RTT > 25*ms {
			t.Errorf("%s: %+v of another prefix", f.Name, other.Arrivals)
		}
	}
}

// TestFullQueueIsCongestion: where there is a route and its queue is full, the
// consumer does not hear that there is none.
func TestFullQueueIsCongestion(t *testing.T) {
	each(t, func(t *testing.T, r *strategytest.Recorder) {
		r.AddHop(strategytest.Hop{Name: "a", Cost: 1, Refuse: true})
		con := r.AddConsumer(strategytest.Consumer{Segments: 3, Window: 3})
		r.Run(10 * time.Second)
		if n := r.Refused[strategy.RefusedQueue]; n < 3 {
			t.Errorf("%d refused", n)
		}
		for _, reason := range con.Nacks {
			if reason != ndn.NackCongestion {
				t.Errorf("Nack %v", reason)
			}
		}
		drained(t, r)
	})
}

// TestGivenUpGoesElsewhere: what the link of one next hop gives up goes to
// another one, and the consumer hears of nothing. nst, whose next hops are
// replicas, moves when the link goes on giving up.
func TestGivenUpGoesElsewhere(t *testing.T) {
	each(t, func(t *testing.T, r *strategytest.Recorder) {
		r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * ms, Loss: .2, GiveUp: 40 * ms})
		r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms})
		con := r.AddConsumer(strategytest.Consumer{Window: 4, Segments: 1000, Resend: 500 * ms})
		r.Run(time.Minute)
		most := 0
		if t.Name() == "TestGivenUpGoesElsewhere/nst" {
			most = 20
		}
		if len(con.Nacks) > most || len(con.Arrivals)+len(con.Nacks) != 1000 || con.Resent > 0 {
			t.Errorf("%d Data, %d repeated, Nacks %v", len(con.Arrivals), con.Resent, con.Nacks)
		}
		drained(t, r)
	})
}
