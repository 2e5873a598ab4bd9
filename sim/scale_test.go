package sim_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

// TestThousandForwarders with a thousand fetches at once fit into one process:
// all of them end well, and an idle forwarder is small.
func TestThousandForwarders(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := sim.New(sim.Config{Seed: 1, Strategies: strategies.Builtin(), Batch: true})
	link := func(rate int64, delay time.Duration) sim.LinkConfig {
		return sim.LinkConfig{Params: sim.Params{Rate: rate, Delay: delay, Queue: 100_000}}
	}
	c := n.CDN(sim.CDNConfig{
		Edges: 80, ClientsPerEdge: 10, Mids: 116, MidsPerEdge: 2, Origins: 4,
		Edge:   sim.NodeConfig{CS: 1 << 20},
		Access: link(5e6, 5*ms), Metro: link(100e6, 5*ms), Core: link(1e9, 10*ms),
	})
	if len(n.Nodes()) != 1000 {
		t.Fatalf("%d nodes", len(n.Nodes()))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if idle := int64(after.HeapAlloc-before.HeapAlloc) / 1000; idle > 100<<10 {
		t.Errorf("an idle node takes %d bytes", idle)
	}
	for _, o := range c.Origins {
		n.AddProducer(o, sim.ProducerConfig{Prefix: "/cdn", Size: 60_000, Segment: 4000})
	}
	for i := range 1000 {
		n.AddFetch(c.Clients[i%len(c.Clients)], sim.FetchConfig{Name: fmt.Sprint("/cdn/", i)})
	}
	run(t, n, 30*time.Second)
	for i, f := range n.Fetches() {
		if !f.Done() || f.Err() != nil || f.Stats().Bytes != 60_000 {
			t.Fatalf("fetch %d: %v %+v", i, f.Err(), f.Stats())
		}
	}
}

// TestNothingIsAllocatedPerEvent once tables and queues have their size.
func TestNothingIsAllocatedPerEvent(t *testing.T) {
	for _, batch := range []bool{false, true} {
		n := sim.New(sim.Config{Seed: 1, Strategies: strategies.Builtin(), Batch: batch})
		c := n.Chain("n", 3, sim.NodeConfig{CS: 100_000}, sim.LinkConfig{Params: sim.Params{Rate: 4e6, Delay: 5 * ms, Loss: 0.001, Queue: 100_000}})
		n.AddProducer(c[2], sim.ProducerConfig{Prefix: "/s", Size: 1 << 40, Segment: 1000})
		n.AddFetch(c[0], fixed("/s/file", 20))
		until := 15 * time.Second
		run(t, n, until)
		before := n.Events()
		allocs := testing.AllocsPerRun(20, func() {
			until += 50 * ms
			if n.Run(until) != nil {
				t.Fatal(n.Err())
			}
		})
		if events := n.Events() - before; allocs > 0 || events < 1000 {
			t.Errorf("%v allocations in %d events, batch %v", allocs, events/21, batch)
		}
	}
}
