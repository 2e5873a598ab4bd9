package strategies

import (
	"testing"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/sim"
	"ndnpop/strategy"
	"ndnpop/strategy/failover"
	"ndnpop/strategy/strategytest"
)

// TestChangeLosesNothing: a prefix gets another strategy while Interests wait
// to be sent again after a failure, or while nobody has noticed it yet. What is
// pending goes on without the consumer: in the first case with every strategy, in
// the second with those that notice silence.
func TestChangeLosesNothing(t *testing.T) {
	repairs := map[string]bool{"best-path": true, "failover": true, "nst": true}
	const at = 300 * ms
	for _, from := range []string{"best-route", "failover", "nst"} {
		for _, f := range Builtin() {
			for what, die := range map[string]func(*strategytest.Fan){
				"kill":       func(f *strategytest.Fan) { f.First[0].Down() },
				"black hole": func(f *strategytest.Fan) { f.First[0].BlackHole() },
			} {
				if f.Name == from || what == "black hole" && !repairs[f.Name] {
					continue
				}
				// No round-trip time is known: 1 s for nst, 250 ms for the others.
				most := 1100 * ms
				if what == "kill" {
					most = 100 * ms
				}
				t.Run(from+"/"+f.Name+"/"+what, func(t *testing.T) {
					top := strategytest.NewTopology(strategytest.Setup{Seed: 1, Strategy: failover.Factory(), Others: others()})
					a, b := strategytest.RTT(20), strategytest.RTT(20)
					a.Rate, b.Rate, b.Cost = 20e6, 20e6, 2
					fan := top.Fan(1, a, b)
					fan.Router.SetStrategy(strategytest.Prefix, from)
					flow := top.Consume(fan.Consumers[0], sim.FetchConfig{
						Controller: "fixed", Params: cc.Params{Window: 30},
						// What takes much longer than it may is repeated.
						Consumer: func(c *consumer.Config) { c.RTT.Min = most + 200*ms },
					})
					top.At(at, func() { die(fan) })
					top.At(at+5*ms, func() { fan.Router.SetStrategy(strategytest.Prefix, f.Name) })
					end := at + most + 500*ms
					if err := top.Run(end); err != nil {
						t.Fatal(err)
					}
					if gap := flow.Gap(at-50*ms, end); gap > most {
						t.Errorf("gap %v", gap)
					}
					if n := flow.Stats(); n.Retransmissions > 0 || n.Nacks > 0 {
						t.Errorf("%d repeated, %d Nacks", n.Retransmissions, n.Nacks)
					}
				})
			}
		}
	}
}

// others are the strategies but failover.
func others() (list []strategy.Factory) {
	for _, f := range Builtin() {
		if f.Name != "failover" {
			list = append(list, f)
		}
	}
	return list
}
