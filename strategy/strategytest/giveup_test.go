package strategytest_test

import (
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/face/lp"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
	"ndnpop/strategy/strategytest"
)

// TestGiveUpsReachStrategies: a reliable link that carries nothing any more
// gives up on Interests, the router's strategy is told, and the fetch goes on.
func TestGiveUpsReachStrategies(t *testing.T) {
	for _, f := range strategies.Builtin() {
		t.Run(f.Name, func(t *testing.T) {
			top := strategytest.NewTopology(strategytest.Setup{Seed: 1, Strategy: f, Sim: sim.Config{Routing: sim.RouteNone}})
			client, router := top.AddNode("client", sim.NodeConfig{}), top.AddNode("router", sim.NodeConfig{})
			near := top.Connect(client, router, sim.LinkConfig{Params: sim.Params{Delay: ms}})
			client.SetRoute(strategytest.Prefix, near, 1)
			var links []*sim.Link
			for i, name := range []string{"a", "b"} {
				x := top.AddNode(name, sim.NodeConfig{})
				top.AddProducer(x, sim.ProducerConfig{Prefix: strategytest.Prefix, Size: 1 << 40, Segment: 1000})
				l := top.Connect(router, x, sim.LinkConfig{
					Params: sim.Params{Delay: time.Duration(5+i) * ms}, MTU: 1400, Reliability: lp.Reliability{On: true, MaxRetx: 1},
				})
				router.SetRoute(strategytest.Prefix, l, uint64(i+1))
				links = append(links, l)
			}
			flow := top.Consume(client, sim.FetchConfig{Controller: "fixed", Params: cc.Params{Window: 8}})
			top.At(500*ms, links[0].BlackHole)
			run(t, top, 6*time.Second)
			if n := router.Counters().GaveUp; n == 0 {
				t.Error("no link gave up")
			}
			if gap := flow.Gap(500*ms, 6*time.Second); gap > 5*time.Second {
				t.Errorf("a gap of %v", gap)
			}
		})
	}
}
