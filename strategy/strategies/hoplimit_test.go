package strategies

import (
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
	"ndnpop/sim"
)

// TestHopLimitTakesNoRoute: a stranger's Interests end at a node that has a route
// but may not send them on. Nobody hears that there is none, and others keep the
// path that they have.
func TestHopLimitTakesNoRoute(t *testing.T) {
	for _, f := range Builtin() {
		t.Run(f.Name, func(t *testing.T) {
			n := sim.New(sim.Config{Seed: 1, Strategies: Builtin()})
			link := func(a, b *sim.Node, delay time.Duration) *sim.Link {
				return n.Connect(a, b, sim.LinkConfig{Params: sim.Params{Rate: 20e6, Delay: delay}, Cost: uint64(delay)})
			}
			client, stranger := n.AddNode("client", sim.NodeConfig{}), n.AddNode("stranger", sim.NodeConfig{})
			edge := n.AddNode("edge", sim.NodeConfig{Strategy: f.Name})
			near, far, origin := n.AddNode("near", sim.NodeConfig{}), n.AddNode("far", sim.NodeConfig{}), n.AddNode("origin", sim.NodeConfig{})
			link(client, edge, ms)
			in := link(stranger, edge, ms).Face(edge)
			first, second := link(edge, near, 5*ms), link(edge, far, 20*ms)
			link(near, origin, 5*ms)
			link(far, origin, 20*ms)
			n.AddProducer(origin, sim.ProducerConfig{Prefix: "/p", Size: 1 << 40, Segment: 1000})
			n.AddFetch(client, sim.FetchConfig{Name: "/p/x", Controller: "fixed", Params: cc.Params{Window: 10}})
			k := uint64(0)
			n.Every(20*ms, func() bool {
				k++
				var p ndn.Packet
				w := ndn.AppendInterest(nil, &ndn.InterestFields{
					Name: ndn.MustName("/p/y").AppendNumber(ndn.TypeSegment, k), Nonce: uint32(k), HopLimit: 2, Lifetime: time.Second,
				})
				if err := p.Parse(w, &ndn.LpFields{}); err != nil {
					t.Fatal(err)
				}
				edge.Shard().Receive(sim.Epoch.Add(n.Now()), in, &p)
				return true
			})
			if err := n.Run(4 * time.Second); err != nil {
				t.Fatal(err)
			}
			if out := near.Counters().OutNacks; out > 0 {
				t.Errorf("%d Nacks", out)
			}
			// random and load-balance share, and the latter takes silence for loss.
			a, b := first.AB.Counters().OutPackets, second.AB.Counters().OutPackets
			if a < 5*b && (f.Name == "asf" || f.Name == "best-route" || f.Name == "best-path") {
				t.Errorf("%d packets by the near path, %d by the far one", a, b)
			}
		})
	}
}
