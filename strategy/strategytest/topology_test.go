package strategytest_test

import (
	"fmt"
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/sim"
	"ndnpop/strategy"
	"ndnpop/strategy/bestpath"
	"ndnpop/strategy/bestroute"
	"ndnpop/strategy/failover"
	"ndnpop/strategy/multicast"
	"ndnpop/strategy/strategies"
	"ndnpop/strategy/strategytest"
)

const ms = time.Millisecond

// fan is two paths of 10 and 20 ms, seen from the router, the shorter one with
// the lower cost, and a consumer. A window of 70 fills the shorter one: without
// failures Data come without pause.
func fan(t *testing.T, f strategy.Factory, window float64) (*strategytest.Topology, *strategytest.Fan, *strategytest.Flow) {
	t.Helper()
	top := strategytest.NewTopology(strategytest.Setup{Seed: 1, Strategy: f})
	a, b := strategytest.RTT(10), strategytest.RTT(20)
	a.Rate, b.Rate, b.Cost = 50e6, 50e6, 2
	fan := top.Fan(1, a, b)
	return top, fan, top.Consume(fan.Consumers[0], sim.FetchConfig{
		Controller: "fixed", Params: cc.Params{Window: window},
	})
}

func run(t *testing.T, top *strategytest.Topology, until time.Duration) {
	t.Helper()
	if err := top.Run(until); err != nil {
		t.Fatal(err)
	}
}

// TestEveryStrategySurvives: after the death of one of two paths, of every
// kind, every strategy goes on delivering, at the latest when the consumer
// asks again, which it does after at most four seconds.
func TestEveryStrategySurvives(t *testing.T) {
	for _, f := range strategies.Builtin() {
		for what, do := range map[string]func(f *strategytest.Fan){
			"kill":       func(f *strategytest.Fan) { f.Paths[0].Kill() },
			"crash":      func(f *strategytest.Fan) { f.Paths[0].Crash() },
			"down":       func(f *strategytest.Fan) { f.First[0].Down() },
			"black hole": func(f *strategytest.Fan) { f.First[0].BlackHole() },
		} {
			t.Run(f.Name+"/"+what, func(t *testing.T) {
				top, fan, flow := fan(t, f, 4)
				top.At(500*ms, func() { do(fan) })
				run(t, top, 6*time.Second)
				if gap := flow.Gap(500*ms, 6*time.Second); gap > 5*time.Second {
					t.Errorf("a gap of %v", gap)
				}
				if n := fan.Router.Counters(); n.Looped > 0 && f.Name != "multicast" {
					t.Errorf("%d loops", n.Looped)
				}
			})
		}
	}
}

// TestFailoverIsTransparent: two deaths, one told and one silent, are repaired
// by the router within the limits, and the consumer repeats nothing.
func TestFailoverIsTransparent(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*strategytest.Fan)
		most time.Duration
	}{
		{"kill", func(f *strategytest.Fan) { f.Paths[0].Kill() }, (20 + 1 + 5) * ms},
		{"down", func(f *strategytest.Fan) { f.First[0].Down() }, (20 + 1 + 5) * ms},
		{"black hole", func(f *strategytest.Fan) { f.First[0].BlackHole() }, 4*(10+1)*ms + 20*ms},
		{"crash", func(f *strategytest.Fan) { f.Paths[0].Crash() }, 4*(10+1)*ms + 20*ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			top, fan, flow := fan(t, failover.Factory(), 70)
			w := top.Watch(fan.Router)
			top.At(time.Second, func() { c.do(fan) })
			run(t, top, 1500*ms)
			gap := flow.Gap(900*ms, 1500*ms)
			t.Logf("gap %v, %d sent again by the router", gap, w.Count(fan.Paths[1], 0, 1100*ms))
			if gap > c.most {
				t.Errorf("gap %v, more than %v", gap, c.most)
			}
			if flow.Resent() > 0 || flow.Stats().Timeouts > 0 {
				t.Errorf("the consumer repeated %d", flow.Resent())
			}
			if s := w.Share(fan.Paths[1], 1100*ms, 1500*ms); s < 1 {
				t.Errorf("the living path got %.2f of the traffic", s)
			}
		})
	}
}

// TestFailoverFitsTheQueue: what was outstanding when a path dies goes to the
// other one no faster than that can take it. That path has a drop-tail queue of
// one product of rate and delay, and the window is nearly twice that: as much as
// fits.
func TestFailoverFitsTheQueue(t *testing.T) {
	const rate, packet = 30e6, 1120
	for _, x := range []struct {
		rtt, other, share, window float64 // ms, ms, part of the rate, products of the other path
	}{
		{20, 20, 1, 1.9}, {20, 20, 1, 1.2}, {20, 10, 1, 1.9}, {10, 20, 1, 1}, {20, 20, .5, 1.9}, {20, 40, .5, 1.9}, {20, 20, .2, 1.5},
	} {
		for what, do := range map[string]func(f *strategytest.Fan){
			"black hole": func(f *strategytest.Fan) { f.First[0].BlackHole() },
			"down":       func(f *strategytest.Fan) { f.First[0].Down() },
		} {
			t.Run(fmt.Sprint(what, x), func(t *testing.T) {
				top := strategytest.NewTopology(strategytest.Setup{Seed: 1, Strategy: failover.Factory()})
				a, b := strategytest.RTT(x.rtt), strategytest.RTT(x.other)
				a.Rate, a.Queue = rate, 1<<20
				b.Rate, b.Cost = int64(rate*x.share), 2
				product := rate * x.share / 8 * x.other / 1000
				b.Queue = int64(product)
				fan := top.Fan(1, a, b)
				flow := top.Consume(fan.Consumers[0], sim.FetchConfig{
					Controller: "fixed", Params: cc.Params{Window: x.window * product / packet},
				})
				top.At(time.Second, func() { do(fan) })
				run(t, top, 1500*ms)
				if n := fan.First[1].BA.Counters().QueueDrops; n > 0 || flow.Resent() > 0 {
					t.Errorf("the queue dropped %d, the consumer repeated %d", n, flow.Resent())
				}
				// The window makes the round-trip time of the first path.
				filled := max(x.rtt+1, x.window*product*8*1000/rate)
				most := x.other + 1 + 5 + max(0, x.rtt-x.window*product*8*1000/rate)
				if what == "black hole" {
					most = 4*filled + 20
				}
				if gap := flow.Gap(900*ms, 1500*ms); gap > time.Duration(most*float64(ms)) {
					t.Errorf("gap %v, more than %v ms", gap, most)
				}
			})
		}
	}
}

// TestBestPathFollows the better path within two seconds of a change, both
// ways, under 1 % random loss.
func TestBestPathFollows(t *testing.T) {
	top := strategytest.NewTopology(strategytest.Setup{Seed: 3, Strategy: bestpath.Factory()})
	a, b := strategytest.RTT(20), strategytest.RTT(40)
	a.Loss, b.Loss = .01, .01
	fan := top.Fan(2, a, b)
	w := top.Watch(fan.Router)
	for _, c := range fan.Consumers {
		top.Consume(c, sim.FetchConfig{})
	}
	worse := a.Params
	worse.Delay = 60 * ms
	set := func(p sim.Params) func() {
		return func() {
			if err := fan.First[0].Set(p); err != nil {
				t.Error(err)
			}
		}
	}
	top.At(5*time.Second, set(worse))
	top.At(10*time.Second, set(a.Params))
	run(t, top, 15*time.Second)
	for _, x := range []struct {
		to        *sim.Node
		from, to2 time.Duration
	}{{fan.Paths[0], 2 * time.Second, 5 * time.Second}, {fan.Paths[1], 7 * time.Second, 10 * time.Second}, {fan.Paths[0], 12 * time.Second, 15 * time.Second}} {
		if s := w.Share(x.to, x.from, x.to2); s < .9 {
			t.Errorf("%s got %.2f of the traffic from %v to %v", x.to.Name(), s, x.from, x.to2)
		}
	}
}

// TestMulticastDoesNotLoop in a ring of forwarders.
func TestMulticastDoesNotLoop(t *testing.T) {
	top := strategytest.NewTopology(strategytest.Setup{Seed: 1, Strategy: multicast.Factory(), Sim: sim.Config{Routing: sim.RouteNone}})
	ring := top.Chain("n", 5, sim.NodeConfig{}, sim.LinkConfig{Params: sim.Params{Delay: ms}})
	top.Connect(ring[4], ring[0], sim.LinkConfig{Params: sim.Params{Delay: ms}})
	for _, x := range ring {
		for _, l := range x.Links() {
			x.SetRoute(strategytest.Prefix, l, 1)
		}
	}
	top.AddProducer(ring[2], sim.ProducerConfig{Prefix: strategytest.Prefix, Size: 1e5, Segment: 1000})
	flow := top.Consume(ring[0], sim.FetchConfig{})
	run(t, top, 5*time.Second)
	if flow.Err() != nil || !flow.Done() || flow.Resent() > 0 {
		t.Errorf("%v %+v", flow.Err(), flow.Stats())
	}
	// Each Interest crosses each link at most once each way.
	for _, l := range top.Links() {
		for _, d := range []*sim.Direction{l.AB, l.BA} {
			if n := d.Counters().OutPackets; n > 3*110 {
				t.Errorf("%d packets on %s for 100 segments", n, d)
			}
		}
	}
}

// ExampleTopology compares where two strategies send when a path dies without
// a word.
func ExampleTopology() {
	for _, f := range []strategy.Factory{bestroute.Factory(), failover.Factory()} {
		top := strategytest.NewTopology(strategytest.Setup{Seed: 1, Strategy: f})
		near, far := strategytest.RTT(10), strategytest.RTT(30)
		far.Cost = 2
		fan := top.Fan(1, near, far)
		flow := top.Consume(fan.Consumers[0], sim.FetchConfig{})
		top.At(time.Second, fan.First[0].BlackHole)
		if err := top.Run(3 * time.Second); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%s: the consumer had to repeat some: %v\n", f.Name, flow.Resent() > 0)
	}
	// Output:
	// best-route: the consumer had to repeat some: true
	// failover: the consumer had to repeat some: false
}
