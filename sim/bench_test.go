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

// cdn is a hierarchy of ten times edges clients, in which every client fetches
// an object of its own from the origins, some of them two.
func cdn(tb testing.TB, seed uint64, edges int, batch bool) (*sim.Network, []*sim.Fetch) {
	n := sim.New(sim.Config{Seed: seed, Strategies: strategies.Builtin(), Batch: batch})
	p := func(rate int64, delay time.Duration, queue int64) sim.LinkConfig {
		return sim.LinkConfig{Params: sim.Params{Rate: rate, Delay: delay, Queue: queue}}
	}
	c := n.CDN(sim.CDNConfig{
		Edges: edges, ClientsPerEdge: 10, Mids: 1 + edges/12, MidsPerEdge: 2, Origins: 2,
		Edge: sim.NodeConfig{CS: 1 << 20}, Mid: sim.NodeConfig{CS: 1 << 20},
		Access: p(5e6, 5*ms, 16<<10), Metro: p(50e6, 5*ms, 64<<10), Core: p(500e6, 10*ms, 1<<20),
	})
	for _, o := range c.Origins {
		n.AddProducer(o, sim.ProducerConfig{Prefix: "/cdn", Size: 1 << 40, Segment: 1000})
	}
	var fs []*sim.Fetch
	for i := range len(c.Clients) * 10 / 9 {
		fs = append(fs, n.AddFetch(c.Clients[i%len(c.Clients)], sim.FetchConfig{
			Name: fmt.Sprintf("/cdn/obj%d", i), Start: time.Duration(i%100) * ms,
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

// BenchmarkCDN runs 14, 102 and 1,000 forwarders, with as many fetches at
// once. An event is a packet that arrives at a forwarder.
func BenchmarkCDN(b *testing.B) {
	for _, c := range []struct {
		name  string
		edges int
		batch bool
	}{
		{"14", 1, false}, {"102", 9, false}, {"1000", 90, false},
		{"14-batch", 1, true}, {"102-batch", 9, true}, {"1000-batch", 90, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				n, fs := cdn(b, 1, c.edges, c.batch)
				idle := heap()
				run := func(until time.Duration) {
					if err := n.Run(until); err != nil {
						b.Fatal(err)
					}
				}
				run(time.Second) // all are on their way
				var m0, m1 runtime.MemStats
				runtime.ReadMemStats(&m0)
				events, began := n.Events(), cpu()
				run(time.Second + 30*time.Second/time.Duration(c.edges))
				took := (cpu() - began).Seconds()
				runtime.ReadMemStats(&m1)
				done := n.Events() - events
				b.ReportMetric(float64(done)/took, "events/cpu-s")
				b.ReportMetric(float64(done), "events")
				b.ReportMetric(float64(m1.Mallocs-m0.Mallocs)/float64(done), "allocs/event")
				b.ReportMetric(float64(idle)/1e6, "MB-idle")
				b.ReportMetric(float64(heap())/1e6, "MB-busy")
				if s := fs[0].Stats(); s.Segments == 0 {
					b.Fatalf("%+v", s)
				}
			}
		})
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
