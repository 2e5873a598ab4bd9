package sim_test

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"ndnpop/consumer/cc"
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

// halving is a congestion control of one's own: it adds a packet each round trip
// and halves its window when something is lost or marked, once per window.
type halving struct{ window float64 }

func newHalving(p cc.Params) (cc.Controller, error) {
	return &halving{cmp.Or(p.InitCwnd, 10)}, nil
}

func (h *halving) OnSend(*cc.Send)     {}
func (h *halving) OnData(*cc.Sample)   { h.window += 1 / h.window }
func (h *halving) OnMark(*cc.Sample)   { h.window = max(h.window/2, 1) }
func (h *halving) Cwnd() float64       { return h.window }
func (h *halving) PacingRate() float64 { return 0 } // unpaced
func (h *halving) OnLoss(l *cc.Loss) {
	if l.NewEvent {
		h.window = max(h.window/2, 1)
	}
}

// A congestion control of one's own beside CUBIC, over a shared bottleneck.
func ExampleConfig_controllers() {
	mine := cc.Factory{Name: "halving", About: "halves its window", New: newHalving}
	n := sim.New(sim.Config{Seed: 1, Strategies: strategies.Builtin(), Controllers: append(cc.Builtin(), mine)})
	client, origin := n.AddNode("client", sim.NodeConfig{}), n.AddNode("origin", sim.NodeConfig{})
	n.Connect(client, origin, sim.LinkConfig{Params: sim.Params{Rate: 20e6, Delay: 20 * time.Millisecond, Queue: 100_000}})
	n.AddProducer(origin, sim.ProducerConfig{Prefix: "/a", Size: 100 << 20})
	n.AddProducer(origin, sim.ProducerConfig{Prefix: "/b", Size: 100 << 20})
	a := n.AddFetch(client, sim.FetchConfig{Name: "/a/x", Controller: "halving"})
	b := n.AddFetch(client, sim.FetchConfig{Name: "/b/x", Controller: "cubic"})
	if err := n.Run(20 * time.Second); err != nil {
		fmt.Println(err)
	}
	all := float64(a.Stats().Bytes+b.Stats().Bytes) * 8 / 20
	fmt.Printf("both use %.0f %% of the link\n", all/20e6*100)
	// Output:
	// both use 99 % of the link
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
