package sim_test

import (
	"testing"
	"time"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/ndn"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

// TestSilentReplica: nst leaves a replica whose link turns into a black hole
// and reports nothing, before the consumer notices, and leaves none because of
// random loss.
func TestSilentReplica(t *testing.T) {
	for name, x := range map[string]struct {
		loss  float64
		cut   bool
		moves int
	}{"black hole": {0, true, 1}, "5 % loss": {.05, false, 0}} {
		t.Run(name, func(t *testing.T) {
			n := sim.New(sim.Config{Seed: 3, Strategies: strategies.Builtin(), Routing: sim.RouteNone})
			client := n.AddNode("client", sim.NodeConfig{})
			edge := n.AddNode("edge", sim.NodeConfig{Strategy: "nst"})
			access := n.Connect(client, edge, sim.LinkConfig{Params: sim.Params{Delay: 2 * ms, Rate: 200e6}})
			client.SetRoute("/p", access, 1)
			var links []*sim.Link
			for i, delay := range []time.Duration{10 * ms, 20 * ms} {
				r := n.AddNode("replica"+string(rune('0'+i)), sim.NodeConfig{})
				n.AddProducer(r, sim.ProducerConfig{Prefix: "/p", Size: 1 << 40})
				l := n.Connect(edge, r, sim.LinkConfig{Params: sim.Params{Delay: delay, Rate: 50e6, Loss: x.loss}})
				edge.SetRoute("/p", l, uint64(i+1))
				links = append(links, l)
			}
			var last, gap time.Duration
			f := n.AddFetch(client, sim.FetchConfig{
				Name: "/p/film", Controller: "fixed", Params: cc.Params{Window: 32},
				OnPiece: func(*consumer.Piece) {
					if now := n.Now(); now > 2*time.Second && last > 0 {
						gap = max(gap, now-last)
					}
					last = n.Now()
				},
			})
			if x.cut {
				n.At(2005*ms, links[0].BlackHole)
			}
			if err := n.Run(8 * time.Second); err != nil {
				t.Fatal(err)
			}
			rep, _, ok := edge.Shard().StrategyReport(ndn.Time(9*time.Second), ndn.MustName("/p/film"))
			if !ok || len(rep.Rows) != 2 {
				t.Fatalf("%+v", rep)
			}
			other := links[1].AB.Counters().InPackets
			if (other > 0) != (x.moves > 0) {
				t.Errorf("%d packets to the other replica", other)
			}
			if st := f.Stats(); st.Segments < 1000 || x.cut && st.Retransmissions > 0 {
				t.Errorf("%+v", st)
			}
			// Two RTTs of the silent path, with its queue, and one of the other.
			if x.cut && gap > 2*46*ms+46*ms+10*ms {
				t.Errorf("gap %v", gap)
			}
			t.Logf("gap %v, %d packets to the other replica", gap, other)
		})
	}
}
