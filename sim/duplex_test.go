package sim_test

import (
	"fmt"
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

// TestBatchesTakeTurns: on a shared medium whose packets differ much in their
// delay, batches change nothing, and nothing comes later than it is due.
func TestBatchesTakeTurns(t *testing.T) {
	both := func(seed uint64, batch bool) string {
		n := sim.New(sim.Config{Seed: seed, Strategies: strategies.Builtin(), Batch: batch})
		x := n.Chain("n", 4, sim.NodeConfig{}, sim.LinkConfig{
			HalfDuplex: true,
			Params:     sim.Params{Rate: 6e6, Delay: 4 * ms, Jitter: 3 * ms, Noise: 30 * time.Microsecond, Queue: 30_000},
		})
		n.AddProducer(x[3], sim.ProducerConfig{Prefix: "/d", Size: 2e5, Segment: 1000})
		n.AddProducer(x[0], sim.ProducerConfig{Prefix: "/a", Size: 2e5, Segment: 1000})
		n.AddFetch(x[0], fixed("/d/x", 20))
		n.AddFetch(x[2], fixed("/a/x", 5))
		run(t, n, 10*time.Second)
		s := fmt.Sprintln(n.Events())
		for _, l := range n.Links() {
			for _, d := range []*sim.Direction{l.AB, l.BA} {
				if c := d.Counters(); c.LateMax > 0 {
					t.Errorf("%v delivers %v late, batch %v", d, c.LateMax, batch)
				}
				s += fmt.Sprintln(d, d.Counters())
			}
		}
		for _, f := range n.Fetches() {
			s += fmt.Sprintln(f.Stats(), f.Err())
		}
		return s
	}
	for seed := range uint64(3) {
		if one, batch := both(seed, false), both(seed, true); one != batch {
			t.Errorf("seed %d: one queue gives\n%s\nbatches give\n%s", seed, one, batch)
		}
	}
}

// TestRerouteIsQuiet: routes that are computed anew and are what they were
// change nothing, though Nacks make a strategy ready to send again.
func TestRerouteIsQuiet(t *testing.T) {
	events := func(reroute bool) uint64 {
		n := sim.New(sim.Config{Seed: 1, Strategies: strategies.Builtin(), Strategy: "multicast"})
		link := sim.LinkConfig{Params: sim.Params{Rate: 10e6, Delay: 5 * ms}}
		c := n.CDN(sim.CDNConfig{Edges: 1, ClientsPerEdge: 1, Mids: 3, Origins: 1, Access: link, Metro: link, Core: link})
		n.AddProducer(c.Origins[0], sim.ProducerConfig{Prefix: "/p", Size: 2e6})
		n.AddFetch(c.Clients[0], sim.FetchConfig{Name: "/p/x", Controller: "fixed", Params: cc.Params{Window: 20}})
		if reroute {
			n.Every(103*ms, func() bool { n.Reroute(); return true })
		}
		run(t, n, 3*time.Second)
		return n.Events()
	}
	if never, often := events(false), events(true); never != often {
		t.Errorf("%d events, rerouted %d", never, often)
	}
}

// TestRerouteFollowsCosts: what has become dearer or cheaper is known.
func TestRerouteFollowsCosts(t *testing.T) {
	n := newNet(1)
	c := n.CDN(sim.CDNConfig{Edges: 1, ClientsPerEdge: 1, Mids: 2, Origins: 1,
		Access: sim.LinkConfig{Params: sim.Params{Delay: ms}}, Metro: sim.LinkConfig{Params: sim.Params{Delay: ms}}})
	n.AddProducer(c.Origins[0], sim.ProducerConfig{Prefix: "/p", Size: 1e6})
	f := n.AddFetch(c.Clients[0], fixed("/p/x", 1))
	first, second := c.Edges[0].LinkTo(c.Mids[0]), c.Edges[0].LinkTo(c.Mids[1])
	before := int64(0)
	n.At(100*ms, func() {
		first.Cost = 2
		n.Reroute()
		before = first.AB.Counters().InPackets
	})
	run(t, n, 10*time.Second)
	if after := first.AB.Counters().InPackets; before == 0 || after > before+1 || second.AB.Counters().InPackets == 0 || !f.Done() {
		t.Errorf("%d and then %d Interests over the link that became dearer", before, after)
	}
}

// TestStuckCalls: calls that call themselves at once end in an error.
func TestStuckCalls(t *testing.T) {
	n := newNet(1)
	var again func()
	again = func() { n.At(n.Now(), again) }
	n.At(0, again)
	if err := n.Run(time.Second); err == nil {
		t.Error("no error")
	}
}
