package multicast

import (
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy/strategytest"
)

func TestParameters(t *testing.T) {
	strategytest.CheckParams(t, Factory(), map[string][]string{
		"retx-suppression-initial": {"0"}, "retx-suppression-max": {"1"}, "retx-suppression-multiplier": {"0"},
	})
}

func TestDoesNotAllocate(t *testing.T) { strategytest.CheckAllocs(t, Factory()) }

func BenchmarkHandlers(b *testing.B) { strategytest.Bench(b, Factory()) }

func TestLoopEnds(t *testing.T) { strategytest.CheckLoop(t, Factory(), 2) }

// TestDuplicateOfALostOne: a refuses nothing and dies, b has refused what a had.
func TestDuplicateOfALostOne(t *testing.T) {
	const ms = time.Millisecond
	for name, rtt := range map[string]time.Duration{"refused before": 5 * ms, "refused after": 30 * ms} {
		t.Run(name, func(t *testing.T) {
			r, err := strategytest.New(1, Factory())
			if err != nil {
				t.Fatal(err)
			}
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
			b := r.AddHop(strategytest.Hop{Name: "b", Cost: 1, RTT: rtt, Nacks: ndn.NackDuplicate})
			con := r.AddConsumer(strategytest.Consumer{Segments: 1})
			r.At(10*ms, func() { b.Nacks = 0; a.Down() })
			r.Run(time.Second)
			if len(con.Arrivals) != 1 || len(con.Nacks) > 0 || len(r.Sends) != 3 {
				t.Errorf("%d Data, Nacks %v, %v", len(con.Arrivals), con.Nacks, r.Sends)
			}
		})
	}
}
