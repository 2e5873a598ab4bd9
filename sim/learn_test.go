package sim_test

import (
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

// TestSelfLearning: without a route anywhere, the first Interest finds the
// producer, the following ones take the way that its announcement has shown,
// and a way that breaks is found anew.
func TestSelfLearning(t *testing.T) {
	for i, window := range []float64{2, 8, 8} {
		batch := i == 2
		n := sim.New(sim.Config{Seed: 5, Strategies: strategies.Builtin(), Strategy: "self-learning", Routing: sim.RouteNone, Batch: batch})
		node := func(name string) *sim.Node { return n.AddNode(name, sim.NodeConfig{}) }
		client, edge, left, right, origin, stranger := node("client"), node("edge"), node("left"), node("right"), node("origin"), node("stranger")
		link := func(a, b *sim.Node, d time.Duration) *sim.Link {
			return n.Connect(a, b, sim.LinkConfig{Params: sim.Params{Delay: d, Rate: 20e6}})
		}
		link(client, edge, ms)
		link(edge, left, 5*ms)
		toRight := link(edge, right, 10*ms)
		link(left, origin, 5*ms)
		link(right, origin, 10*ms)
		toStranger := link(edge, stranger, ms)
		n.AddProducer(origin, sim.ProducerConfig{Prefix: "/film", Size: 1 << 40, Announce: true})
		f := n.AddFetch(client, sim.FetchConfig{Name: "/film/one", Controller: "fixed", Params: cc.Params{Window: window}})
		// Nobody knows of the way by the right when that by the left breaks.
		n.At(0, toRight.Down)
		n.At(1900*ms, toRight.Up)
		n.At(2*time.Second, left.Kill)
		routes := func(x *sim.Node) int { return x.Counters().Routes }
		n.At(1900*ms, func() {
			if routes(edge) == 0 || routes(left) != 1 || routes(client) == 0 {
				t.Errorf("learnt %d, %d and %d routes", routes(client), routes(edge), routes(left))
			}
		})
		if err := n.Run(4 * time.Second); err != nil {
			t.Fatal(err)
		}
		st := f.Stats()
		if st.Segments < uint64(90*window) || st.Nacks+st.Timeouts > 0 || st.MaxGap > 150*ms || f.Err() != nil {
			t.Errorf("%v, %+v", f.Err(), st)
		}
		if p := toStranger.From(edge).Counters().InPackets; p == 0 || uint64(p) > st.Segments/10 {
			t.Errorf("the stranger was asked %d times", p)
		}
		if p := toRight.From(right).Counters().InPackets; p < 50 {
			t.Errorf("%d packets by the other way", p)
		}
	}
}

// TestLearntRoutesEnd after ten minutes, and are learnt anew when somebody asks.
func TestLearntRoutesEnd(t *testing.T) {
	n := sim.New(sim.Config{Seed: 1, Strategies: strategies.Builtin(), Strategy: "self-learning", Routing: sim.RouteNone})
	client, origin := n.AddNode("client", sim.NodeConfig{}), n.AddNode("origin", sim.NodeConfig{})
	n.Connect(client, origin, sim.LinkConfig{Params: sim.Params{Delay: ms}})
	n.AddProducer(origin, sim.ProducerConfig{Prefix: "/film", Size: 1e5, Announce: true})
	want := map[time.Duration]int{
		time.Second: 1, 599 * time.Second: 1, 601 * time.Second: 0,
		900 * time.Second: 1, 1499 * time.Second: 1, 1501 * time.Second: 0,
	}
	for _, at := range []time.Duration{0, 200 * time.Second, 900*time.Second - ms*100} {
		n.AddFetch(client, sim.FetchConfig{Name: "/film/x", Start: at})
	}
	for at, routes := range want {
		n.At(at, func() {
			if got := client.Counters().Routes; got != routes {
				t.Errorf("%d routes after %v", got, at)
			}
		})
	}
	if err := n.Run(1600 * time.Second); err != nil {
		t.Fatal(err)
	}
	for _, f := range n.Fetches() {
		if !f.Done() || f.Err() != nil {
			t.Errorf("%v %+v", f.Err(), f.Stats())
		}
	}
}
