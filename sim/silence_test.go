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

// TestFailoverFitsIntoTheQueue: what was outstanding at a next hop that dies, and
// what is asked for meanwhile, goes the other way no faster than the path bears,
// although the window fills the path and its queue.
func TestFailoverFitsIntoTheQueue(t *testing.T) {
	for name, x := range map[string]struct {
		die          func(edge, mid *sim.Node)
		drops, again uint64
		gap          time.Duration
	}{
		"kill":       {func(_, mid *sim.Node) { mid.Kill() }, 0, 0, 35 * ms},
		"black hole": {func(edge, mid *sim.Node) { edge.LinkTo(mid).BlackHole() }, 8, 16, 220 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			n := sim.New(sim.Config{Seed: 1, Strategies: strategies.Builtin(), Strategy: "failover", Routing: sim.RouteNone})
			link := func(a, b *sim.Node, rtt time.Duration, queue, cost int64) *sim.Link {
				l := n.Connect(a, b, sim.LinkConfig{Params: sim.Params{Rate: 100e6, Delay: rtt / 2, Queue: queue}})
				a.SetRoute("/p", l, uint64(cost))
				return l
			}
			node := func(name string) *sim.Node { return n.AddNode(name, sim.NodeConfig{}) }
			client, edge := node("client"), node("edge")
			link(client, edge, 50*ms, 625_000, 1)
			var mids []*sim.Node
			var last []*sim.Link
			for i := range int64(2) {
				mid, origin := node("mid"+string(rune('0'+i))), node("origin"+string(rune('0'+i)))
				link(edge, mid, 10*ms, 250_000, i+1)
				last = append(last, link(mid, origin, 20*ms, 250_000, 1))
				n.AddProducer(origin, sim.ProducerConfig{Prefix: "/p", Size: 25e6})
				mids = append(mids, mid)
			}
			var got, gap time.Duration
			before := uint64(0)
			f := n.AddFetch(client, sim.FetchConfig{
				Name: "/p/film", Controller: "cubic",
				OnPiece: func(*consumer.Piece) {
					if n.Now() > 1400*ms {
						gap = max(gap, n.Now()-got)
					}
					got = n.Now()
				},
			})
			n.At(1500*ms, func() {
				before = f.Stats().Retransmissions
				x.die(edge, mids[0])
			})
			if err := n.RunUntil(20*time.Second, f.Done); err != nil || f.Err() != nil {
				t.Fatal(err, f.Err())
			}
			drops := uint64(last[1].BA.Counters().QueueDrops)
			if again := f.Stats().Retransmissions - before; drops > x.drops || again > x.again || gap > x.gap {
				t.Errorf("%d packets dropped by the other path, %d Interests repeated, gap %v", drops, again, gap)
			}
			t.Logf("%d packets dropped by the other path, %d Interests repeated, gap %v, took %v", drops, f.Stats().Retransmissions-before, gap, f.Elapsed())
		})
	}
}
