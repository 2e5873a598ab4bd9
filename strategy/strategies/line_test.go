package strategies

import (
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

// repairers are the strategies that send again what a next hop has swallowed, with
// parameters of which the last makes another instance.
var repairers = []struct {
	strategy.Factory
	params []string
}{
	{bestpath.Factory(), []string{"probe-share~0", "probe-min~0", "hold~400"}},
	{failover.Factory(), []string{"evidence~5"}},
	{nst.Factory(), []string{"evidence~5"}},
}

// line is a repairer with two next hops of 20 ms.
type line struct {
	*testing.T
	r    *strategytest.Recorder
	a, b *strategytest.Hop
	next func() // chooses another instance
}

func eachLine(t *testing.T, fn func(l line)) {
	for _, f := range repairers {
		t.Run(f.Name, func(t *testing.T) {
			r, err := strategytest.New(1, f.Factory, f.params[:len(f.params)-1]...)
			if err != nil {
				t.Fatal(err)
			}
			fn(line{
				t, r,
				r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms}),
				r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * ms}),
				func() {
					full := f.FullName()
					for _, p := range f.params {
						full = full.AppendGeneric(p)
					}
					if _, err := r.Shard().SetStrategy(r.Time(r.Now()), nil, full); err != nil {
						t.Fatal(err)
					}
				},
			})
		})
	}
}

// again are the times at which Interests were sent again.
func (l line) again() (at []time.Duration) {
	for _, s := range l.r.Sends {
		if s.Again {
			at = append(at, s.At)
		}
	}
	return at
}

// served wants a consumer to have been served without a longer gap.
func (l line) served(c *strategytest.Consumer, from, to, gap time.Duration) {
	l.Helper()
	if g := c.Gap(from, to); g > gap || c.Lost+len(c.Nacks) > 0 {
		l.Errorf("gap %v, %d lost, Nacks %v", g, c.Lost, c.Nacks)
	}
}

// TestKilledInTurn: what was outstanding at a next hop that is killed goes elsewhere
// over its round-trip time, evenly, however late a daemon's timers are.
func TestKilledInTurn(t *testing.T) {
	for _, late := range []time.Duration{0, 50 * time.Microsecond} {
		eachLine(t, func(l line) {
			l.r.Late = late
			con := l.r.AddConsumer(strategytest.Consumer{Window: 50})
			l.r.At(time.Second, l.a.Down)
			l.r.Run(1100 * ms)
			at := l.again()
			if len(at) != 50 {
				l.Fatalf("%d sent again", len(at))
			}
			for i := 1; i < 50; i++ {
				if d := at[i] - at[i-1]; d < 300*time.Microsecond || d > 500*time.Microsecond {
					l.Errorf("timers %v late: %d %v after the one before", late, i, d)
				}
			}
			l.served(con, 900*ms, 1100*ms, 45*ms)
			strategytest.CheckNonces(l, l.r)
		})
	}
}

// TestQueuedInterests: what happens while Interests wait for their turn to be sent
// again.
func TestQueuedInterests(t *testing.T) {
	for name, x := range map[string]struct {
		then func(l line, con *strategytest.Consumer)
		most int // Interests that were sent again
	}{
		"the other dies too": {func(l line, _ *strategytest.Consumer) { l.b.Down(); l.a.Up() }, 80},
		"the first comes up": {func(l line, _ *strategytest.Consumer) { l.a.Up() }, 51},
		"the consumer asks again": {func(_ line, c *strategytest.Consumer) {
			for i := range uint64(3000) {
				c.Repeat(i)
			}
		}, 51},
		"the route goes":   {func(l line, _ *strategytest.Consumer) { l.a.RemoveRoute() }, 51},
		"another instance": {func(l line, _ *strategytest.Consumer) { l.next() }, 51},
	} {
		t.Run(name, func(t *testing.T) {
			eachLine(t, func(l line) {
				con := l.r.AddConsumer(strategytest.Consumer{Window: 50})
				l.r.At(time.Second, l.a.Down)
				l.r.At(1010*ms, func() { x.then(l, con) })
				l.r.Run(2 * time.Second)
				l.served(con, 1050*ms, 2*time.Second, 21*ms)
				if n := len(l.again()); n < 49 || n > x.most {
					l.Errorf("%d sent again", n)
				}
				for at := time.Second; at < 1100*ms && name != "the consumer asks again"; at += ms {
					if n := l.r.Count(nil, at, at+ms); n > 10 {
						l.Errorf("%d in a millisecond at %v", n, at)
					}
				}
			})
		})
	}
}

// TestFullQueueIsTriedAgain: what the other path's face does not take goes there a
// little later, and not for ever.
func TestFullQueueIsTriedAgain(t *testing.T) {
	for name, die := range map[string]func(*strategytest.Hop){
		"kill":       func(h *strategytest.Hop) { h.Down() },
		"black hole": func(h *strategytest.Hop) { h.Silent = true },
		"no route":   func(h *strategytest.Hop) { h.Nacks = ndn.NackNoRoute },
	} {
		t.Run(name, func(t *testing.T) {
			eachLine(t, func(l line) {
				con := l.r.AddConsumer(strategytest.Consumer{Segments: 50, Window: 50, Start: time.Second})
				l.r.AddConsumer(strategytest.Consumer{Window: 4, Segments: 20})
				at := 1005 * ms
				if name == "no route" {
					at = 999 * ms // what is asked from then on
				}
				l.r.At(at, func() { die(l.a); l.b.Refuse = true })
				l.r.At(1110*ms, func() { l.b.Refuse = false })
				l.r.Run(2 * time.Second)
				l.served(con, time.Second, 1200*ms, 200*ms)
				if n := len(con.Arrivals); n != 50 {
					l.Errorf("%d arrivals", n)
				}
			})
		})
	}
	eachLine(t, func(l line) { // for ever
		con := l.r.AddConsumer(strategytest.Consumer{Segments: 1, Start: time.Second})
		l.b.Refuse = true
		l.r.At(1005*ms, l.a.Down)
		l.r.Run(8 * time.Second)
		if n := l.r.Refused[strategy.RefusedQueue]; n < 2 || n > 8 {
			l.Errorf("tried %d times", n)
		}
		if len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackCongestion {
			l.Errorf("Nacks %v", con.Nacks)
		}
	})
}

// TestUpDoesNotStartTheLineAnew: a face that comes up changes where Interests go that
// wait for their turn, not when.
func TestUpDoesNotStartTheLineAnew(t *testing.T) {
	eachLine(t, func(l line) {
		l.r.AddConsumer(strategytest.Consumer{Window: 50})
		l.r.At(time.Second, l.a.Down)
		l.r.At(1015*ms, l.a.Up)
		l.r.Run(2 * time.Second)
		at := l.again()
		if len(at) < 50 || len(at) > 51 || at[49] > 1020*ms {
			l.Errorf("%d sent again, the last at %v", len(at), at[len(at)-1])
		}
	})
	eachLine(t, func(l line) { // what waits for the only next hop goes there when it is up
		l.b.Remove()
		con := l.r.AddConsumer(strategytest.Consumer{Window: 50})
		l.r.At(time.Second, l.a.Down)
		l.r.At(1010*ms, l.a.Up)
		l.r.At(1500*ms, l.a.Down) // and when it has had its turn
		l.r.At(1800*ms, l.a.Up)
		l.r.Run(2 * time.Second)
		l.served(con, 990*ms, 1100*ms, 45*ms)
		l.served(con, 1490*ms, 2*time.Second, 335*ms)
	})
}

// TestDueBeforeItsTimerFires: an Interest that comes after another one was due, and
// before a daemon's timer says so, does not put that off.
func TestDueBeforeItsTimerFires(t *testing.T) {
	for _, f := range repairers[:2] { // nst moves an object, and not a single Interest
		s, out := shard(t, f.Factory, fw.Config{})
		now := ndn.Time(time.Second)
		_ = s.AddFace(now, fw.FaceInfo{ID: 300, Local: true})
		for i := range ndn.FaceID(2) {
			_ = s.AddFace(now, fw.FaceInfo{ID: 301 + i})
			_ = s.SetNextHop(now, ndn.MustName("/p"), 301+i, uint64(i))
		}
		ask(t, s, now, 300, ndn.MustName("/p/1"), 1)
		now = now.Add(251 * ms) // where no round-trip time is known
		ask(t, s, now, 300, ndn.MustName("/p/2"), 2)
		before := out.sent
		s.Tick(now)
		if out.sent != before+1 {
			t.Errorf("%s: %d sent again", f.Name, out.sent-before)
		}
	}
}
