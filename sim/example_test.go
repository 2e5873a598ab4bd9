package sim_test

import (
	"fmt"
	"strings"
	"time"

	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

// A client fetches the same object twice through an edge with a cache. The
// first time the link to the origin is the bottleneck, the second time the
// client's own.
func Example() {
	n := sim.New(sim.Config{Seed: 1, Strategies: strategies.Builtin()})
	client := n.AddNode("client", sim.NodeConfig{})
	edge := n.AddNode("edge", sim.NodeConfig{CS: 64 << 20})
	origin := n.AddNode("origin", sim.NodeConfig{})
	n.Connect(client, edge, sim.LinkConfig{Params: sim.Params{Rate: 100e6, Delay: 5 * time.Millisecond, Queue: 250_000}})
	n.Connect(edge, origin, sim.LinkConfig{Params: sim.Params{Rate: 20e6, Delay: 20 * time.Millisecond, Queue: 250_000}})
	n.AddProducer(origin, sim.ProducerConfig{Prefix: "/video", Size: 20 << 20})

	cold := n.AddFetch(client, sim.FetchConfig{Name: "/video/clip", Controller: "cubic"})
	warm := n.AddFetch(client, sim.FetchConfig{Name: "/video/clip", Controller: "cubic", Start: 20 * time.Second})
	if err := n.Run(time.Minute); err != nil {
		fmt.Println(err)
	}

	for _, f := range []*sim.Fetch{cold, warm} {
		s := f.Stats()
		fmt.Printf("%d MiB in %v, the first byte after %v\n",
			s.Bytes>>20, f.Elapsed().Round(time.Second), s.FirstByte.Sub(s.Started).Round(time.Millisecond))
	}
	// Output:
	// 20 MiB in 9s, the first byte after 54ms
	// 20 MiB in 2s, the first byte after 54ms
}

// The same network, and everything else that a file may hold.
func ExampleLoad() {
	n, until, err := sim.Load(strings.NewReader(`
seed = 1
until = "30s"
strategy = "best-route"
routing = "all"                  # all, shortest or none

[cdn]                            # also [[chain]], [dumbbell], [tree], and
edges = 2                        # [[node]] and [[link]] one by one
clients-per-edge = 3
mids = 2
origins = 1
edge = { cs = "16MB" }
access = { rate = "50Mbit", delay = "5ms", queue = "64kB", loss = "0.1%" }
metro = { rate = "200Mbit", delay = "5ms", queue = "256kB", codel = true }
core = { rate = "1Gbit", delay = "20ms", queue = "1MB", marking = true }

[[node]]
name = "far"

[[link]]
a = "far"
b = "edge0"
rate = "20Mbit"
delay = "30ms"
back = { rate = "5Mbit", delay = "30ms" }

[[producer]]
node = "origin0"
prefix = "/cdn"
size = "200kB"

[[fetch]]
node = "far"
name = "/cdn/0"
start = "1s"
controller = "cubic"
probe = "100ms"

[[workload]]
clients = ["client*"]
prefix = "/cdn"
objects = 50
zipf = 0.9
rate = 10.0
max = 100

[[event]]
at = "5s"
link = "edge0-mid0"
do = "down"

[[event]]
at = "8s"
node = "mid1"
do = "kill"

[[event]]
at = "8s"
link = "edge0-mid0"
do = "up"
`), sim.Config{Strategies: strategies.Builtin()})
	if err == nil {
		err = n.Run(until)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	far := n.Fetches()[0]
	fmt.Println(len(n.Nodes()), "nodes;", far.Node().Name(), "got", far.Stats().Bytes, "bytes, errors:", far.Err())
	// Output: 12 nodes; far got 200000 bytes, errors: <nil>
}
