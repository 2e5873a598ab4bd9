package sim_test

import (
	"fmt"
	"testing"
	"time"

	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

// turbulent is a CDN with losses, failures, changes and a workload, whose
// links have noise, so that no two events coincide by design.
func turbulent(t *testing.T, seed uint64, batch bool) string {
	t.Helper()
	n := sim.New(sim.Config{Seed: seed, Strategies: strategies.Builtin(), Strategy: "failover", Batch: batch})
	link := func(rate int64, delay time.Duration) sim.LinkConfig {
		return sim.LinkConfig{Params: sim.Params{Rate: rate, Delay: delay, Jitter: delay / 8, Noise: 50 * time.Microsecond, Loss: 0.003, Queue: 40_000}}
	}
	metro := link(30e6, 6*ms)
	metro.CoDel.On = true
	access := link(10e6, 3*ms)
	access.Reorder = true
	c := n.CDN(sim.CDNConfig{
		Edges: 3, ClientsPerEdge: 3, Mids: 2, Origins: 2,
		Edge: sim.NodeConfig{CS: 1 << 20}, Access: access, Metro: metro, Core: link(60e6, 9*ms),
	})
	for _, o := range c.Origins {
		n.AddProducer(o, sim.ProducerConfig{Prefix: "/cdn", Size: 2e5, Segment: 2000})
	}
	for i, x := range c.Clients {
		n.AddFetch(x, sim.FetchConfig{Name: fmt.Sprint("/cdn/big", i), Start: time.Duration(i) * 7 * ms, Probe: 50 * ms})
	}
	w := n.AddWorkload(sim.Workload{Clients: c.Clients, Prefix: "/cdn", Objects: 30, Zipf: 0.9, Rate: 20, Until: 1500 * ms})
	p := c.Mids[0].Links()[0].AB.Probe(20 * ms)
	n.At(500*ms, c.Mids[0].Kill)
	n.At(800*ms, c.Edges[1].LinkTo(c.Mids[1]).BlackHole)
	n.At(1100*ms, c.Mids[0].Restart)
	n.At(1200*ms, func() {
		if err := c.Edges[0].LinkTo(c.Mids[1]).Set(sim.Params{Rate: 5e6, Delay: 2 * ms, Noise: 20 * time.Microsecond, Queue: 20_000}); err != nil {
			t.Error(err)
		}
	})
	run(t, n, 3*time.Second)
	s := fmt.Sprintln(n.Events(), w.Requests == nil, p.Samples())
	for _, r := range w.Requests {
		s += fmt.Sprintln(r.At, r.Client.Name(), r.Object, r.Done, r.Err, r.Elapsed, r.TTFB, r.Bytes)
	}
	for _, f := range n.Fetches() {
		s += fmt.Sprintln(f.Stats(), f.Err(), f.Samples())
	}
	for _, x := range n.Nodes() {
		s += fmt.Sprintln(x.Counters())
	}
	for _, l := range n.Links() {
		s += fmt.Sprintln(l.AB.Counters(), l.BA.Counters())
	}
	return s
}

// TestBatchesChangeNothing: every figure of a run in batches is that of a run
// with one queue, down to the nanosecond.
func TestBatchesChangeNothing(t *testing.T) {
	for seed := range uint64(3) {
		if one, batch := turbulent(t, seed, false), turbulent(t, seed, true); one != batch {
			t.Errorf("seed %d: one queue gives\n%.3000s\nbatches give\n%.3000s", seed, one, batch)
			return
		}
	}
}

// TestBatchRefusesChanges from within a callback of one node.
func TestBatchRefusesChanges(t *testing.T) {
	n := sim.New(sim.Config{Seed: 1, Strategies: strategies.Builtin(), Batch: true})
	a, _, l := pair(n, sim.LinkConfig{Params: sim.Params{Delay: ms}}, sim.ProducerConfig{Prefix: "/s", Size: 1e5})
	n.AddFetch(a, sim.FetchConfig{Name: "/s/x", OnDone: func(*sim.Fetch) { n.At(n.Now(), l.Down) }})
	if err := n.Run(time.Minute); err != sim.ErrBatch && err == nil {
		t.Error("no error")
	}
}

// TestBatchesMixLinks: a link without delay and a shared medium hold up their
// own ends only, and the results stay the same.
func TestBatchesMixLinks(t *testing.T) {
	mixed := func(seed uint64, batch bool) string {
		n := sim.New(sim.Config{Seed: seed, Strategies: strategies.Builtin(), Batch: batch})
		node := func(name string) *sim.Node { return n.AddNode(name, sim.NodeConfig{CS: 100_000}) }
		a, b, c, d, e := node("a"), node("b"), node("c"), node("d"), node("e")
		link := func(x, y *sim.Node, delay time.Duration, half bool) {
			n.Connect(x, y, sim.LinkConfig{HalfDuplex: half, Params: sim.Params{
				Rate: 8e6, Delay: delay, Jitter: delay / 4, Noise: 30 * time.Microsecond, Loss: 0.002, Queue: 30_000,
			}})
		}
		link(a, b, 7*ms, false)
		link(b, c, 0, false)
		link(c, d, 2*ms, true)
		link(d, e, 4*ms, false)
		n.AddProducer(e, sim.ProducerConfig{Prefix: "/e", Size: 4e5, Segment: 1500})
		n.AddProducer(a, sim.ProducerConfig{Prefix: "/a", Size: 4e5, Segment: 1500})
		for i, x := range []*sim.Node{a, b, c} {
			n.AddFetch(x, sim.FetchConfig{Name: fmt.Sprint("/e/", i), Start: time.Duration(i) * 3 * ms})
		}
		n.AddFetch(e, sim.FetchConfig{Name: "/a/0", Start: ms})
		run(t, n, 20*time.Second)
		s := fmt.Sprintln(n.Events())
		for _, f := range n.Fetches() {
			if f.Err() != nil || f.Stats().Bytes != 4e5 {
				t.Errorf("%v %+v", f.Err(), f.Stats())
			}
			s += fmt.Sprintln(f.Stats())
		}
		for _, l := range n.Links() {
			s += fmt.Sprintln(l.AB.Counters(), l.BA.Counters())
		}
		return s
	}
	for seed := range uint64(5) {
		if one, batch := mixed(seed, false), mixed(seed, true); one != batch {
			t.Errorf("seed %d: one queue gives\n%s\nbatches give\n%s", seed, one, batch)
			return
		}
	}
}
