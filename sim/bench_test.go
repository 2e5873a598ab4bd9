//go:build unix

package sim_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

// thousand is a CDN of 1,000 forwarders in which every client fetches an
// object of its own from the origins: 4 origins, 12 middle nodes, 84 edges,
// 900 clients, 1,000 fetches at once.
func thousand(tb testing.TB, seed uint64, size int64) (*sim.Network, []*sim.Fetch) {
	n := sim.New(sim.Config{Seed: seed, Strategies: strategies.Builtin()})
	p := func(rate int64, delay time.Duration, queue int64) sim.LinkConfig {
		return sim.LinkConfig{Params: sim.Params{Rate: rate, Delay: delay, Queue: queue}}
	}
	c := n.CDN(sim.CDNConfig{
		Edges: 90, ClientsPerEdge: 10, Mids: 8, MidsPerEdge: 2, Origins: 2,
		Edge: sim.NodeConfig{CS: 1 << 20}, Mid: sim.NodeConfig{CS: 1 << 20},
		Access: p(5e6, 5*time.Millisecond, 16<<10), Metro: p(50e6, 5*time.Millisecond, 64<<10), Core: p(500e6, 10*time.Millisecond, 1<<20),
	})
	for _, o := range c.Origins {
		n.AddProducer(o, sim.ProducerConfig{Prefix: "/cdn", Size: size, Segment: 1000})
	}
	var fs []*sim.Fetch
	for i := range 1000 {
		fs = append(fs, n.AddFetch(c.Clients[i%len(c.Clients)], sim.FetchConfig{
			Name: fmt.Sprintf("/cdn/obj%d", i), Start: time.Duration(i%100) * time.Millisecond,
		}))
	}
	if n.Err() != nil {
		tb.Fatal(n.Err())
	}
	return n, fs
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkThousand runs 1,000 forwarders with 1,000 concurrent fetches. An
// event is a packet that arrives at a forwarder.
func BenchmarkThousand(b *testing.B) {
	for range b.N {
		n, fs := thousand(b, 1, 1<<30)
		before := heap()
		if err := n.Run(2 * time.Second); err != nil { // all are on their way
			b.Fatal(err)
		}
		events, began := n.Events(), cpu()
		var m0, m1 runtime.MemStats
		runtime.ReadMemStats(&m0)
		if err := n.Run(4 * time.Second); err != nil {
			b.Fatal(err)
		}
		took := (cpu() - began).Seconds()
		runtime.ReadMemStats(&m1)
		done := n.Events() - events
		b.ReportMetric(float64(done)/took, "events/cpu-s")
		b.ReportMetric(float64(m1.Mallocs-m0.Mallocs)/float64(done), "allocs/event")
		b.ReportMetric(float64(before)/1e6, "MB-idle")
		b.ReportMetric(float64(heap())/1e6, "MB-busy")
		if s := fs[0].Stats(); s.Segments == 0 {
			b.Fatalf("%+v", s)
		}
	}
}

// BenchmarkChain is one fetch over ten forwarders.
func BenchmarkChain(b *testing.B) {
	for range b.N {
		n := newNet(1)
		c := n.Chain("n", 10, sim.NodeConfig{}, sim.LinkConfig{Params: sim.Params{Rate: 100e6, Delay: ms, Queue: 1 << 20}})
		n.AddProducer(c[9], sim.ProducerConfig{Prefix: "/s", Size: 1 << 40, Segment: 1000})
		n.AddFetch(c[0], fixed("/s/file", 256))
		if err := n.Run(time.Second); err != nil {
			b.Fatal(err)
		}
		events, began := n.Events(), cpu()
		if err := n.Run(11 * time.Second); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(n.Events()-events)/(cpu()-began).Seconds(), "events/cpu-s")
	}
}
