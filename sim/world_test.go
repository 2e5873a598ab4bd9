package sim_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/face/lp"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

// world is a network that dice make: its links of every kind, its strategy, its
// fetches with every congestion control, and what happens to it. It returns all
// its figures.
func world(t *testing.T, seed uint64, cfg sim.Config) string {
	t.Helper()
	d := rand.New(rand.NewPCG(seed, 1))
	cfg.Seed, cfg.Strategies = seed, strategies.Builtin()
	cfg.Strategy = cfg.Strategies[d.IntN(len(cfg.Strategies))].Name
	n := sim.New(cfg)
	w := &worldMaker{n, d}
	k := 4 + d.IntN(6)
	for i := range k {
		n.AddNode(fmt.Sprint("n", i), sim.NodeConfig{CS: d.Int64N(3) * 500_000})
		if i > 0 {
			w.link(n.Nodes()[d.IntN(i)], n.Nodes()[i])
		}
	}
	nodes := n.Nodes()[:k:k]
	for range d.IntN(4) {
		if a, b := nodes[d.IntN(k)], nodes[d.IntN(k)]; a != b {
			w.link(a, b)
		}
	}
	for _, x := range nodes[:2] {
		n.AddProducer(x, sim.ProducerConfig{Prefix: "/p", Size: 3e5, Segment: 1000, Announce: true})
	}
	for range 5 {
		c := sim.FetchConfig{
			Name: fmt.Sprint("/p/", d.IntN(3)), Start: time.Duration(d.IntN(1e9)), Probe: 100 * ms,
			Controller: cc.Builtin()[d.IntN(len(cc.Builtin()))].Name,
		}
		if c.Controller == "fixed" {
			c.Params.Window = 20
		}
		if d.IntN(4) == 0 {
			c.Access = w.params()
		}
		n.AddFetch(nodes[2+d.IntN(k-2)], c)
	}
	load := n.AddWorkload(sim.Workload{Clients: nodes[2:], Prefix: "/p", Objects: 20, Zipf: .8, Rate: 5, Until: 3 * time.Second})
	for range d.IntN(8) {
		w.upset(n.Links()[d.IntN(len(n.Links()))], nodes[d.IntN(k)])
	}
	run(t, n, 15*time.Second)

	s := fmt.Sprintln(n.Events(), load.Requests == nil)
	for _, r := range load.Requests {
		s += fmt.Sprintln(r.At, r.Client.Name(), r.Object, r.Done, r.Err, r.Elapsed, r.TTFB, r.Bytes)
	}
	for _, f := range n.Fetches() {
		s += fmt.Sprintln(f.Stats(), f.Err(), f.Samples())
	}
	for _, x := range n.Nodes() {
		s += fmt.Sprintln(x.Name(), x.Counters())
	}
	for _, l := range n.Links() {
		for _, dir := range []*sim.Direction{l.AB, l.BA} {
			c := dir.Counters()
			s += fmt.Sprintln(dir, c)
			lost := c.LossDrops + c.QueueDrops + c.CoDelDrops + c.CutDrops + c.OverloadDrops
			if c.InPackets != c.OutPackets+lost+c.WaitingPackets+c.InFlightPackets || c.LateMax > 0 {
				t.Errorf("seed %d, %v: late, or not conserved: %+v", seed, dir, c)
			}
		}
	}
	return s
}

type worldMaker struct {
	n *sim.Network
	*rand.Rand
}

func (w *worldMaker) params() sim.Params {
	p := sim.Params{
		Rate: 1e6 + w.Int64N(20e6), Delay: time.Duration(1+w.IntN(10_000)) * time.Microsecond, Queue: 5000 + w.Int64N(60_000),
		Noise: time.Duration(w.IntN(100)) * time.Microsecond, Reorder: w.IntN(3) == 0, QueuePackets: w.IntN(4) / 3 * 10,
	}
	p.Jitter = time.Duration(w.Int64N(int64(p.Delay)))
	p.CoDel.On = w.IntN(4) == 0
	switch w.IntN(5) {
	case 0:
		p.Loss = .02
	case 1:
		p.Burst = sim.GilbertElliott{ToBad: .01, ToGood: .3, LossBad: .8}
	}
	return p
}

func (w *worldMaker) link(a, b *sim.Node) {
	c := sim.LinkConfig{Params: w.params(), Cost: uint64(1 + w.IntN(3)), HalfDuplex: w.IntN(5) == 0}
	if w.IntN(2) == 0 {
		back := w.params()
		c.Back = &back
	}
	switch w.IntN(5) {
	case 0:
		c.MTU = 1400
	case 1:
		c.Reliability.On = true
	case 2:
		c.Shaping = &lp.Shaping{}
	case 3:
		c.Marking = &lp.Marking{}
	}
	w.n.Connect(a, b, c)
}

func (w *worldMaker) upset(l *sim.Link, x *sim.Node) {
	n, p, what := w.n, w.params(), w.IntN(10)
	n.At(time.Duration(w.IntN(3e9)), func() {
		switch what {
		case 0:
			l.Down()
		case 1, 2:
			l.Up()
		case 3:
			l.BlackHole()
		case 4:
			l.AB.BlackHole(true)
		case 5:
			_ = l.Set(p)
		case 6:
			x.Kill()
		case 7:
			x.Restart()
		case 8:
			n.Reroute()
		case 9: // a node that comes late
			y := n.AddNode(fmt.Sprint("late", len(n.Nodes())), sim.NodeConfig{})
			n.Connect(x, y, sim.LinkConfig{Params: p})
			n.Reroute()
			n.AddFetch(y, sim.FetchConfig{Name: "/p/1", Start: n.Now() + ms})
		}
	})
}

// TestWorlds: whatever a network is made of, batches and a trace change none of
// its figures, and no packet is lost without being counted, or comes late.
func TestWorlds(t *testing.T) {
	for seed := range uint64(4) {
		one, batch := world(t, seed, sim.Config{}), world(t, seed, sim.Config{Batch: true})
		if one != batch {
			t.Errorf("seed %d: one queue gives\n%.3000s\nbatches give\n%.3000s", seed, one, batch)
		}
		if seed > 0 {
			continue
		}
		var trace, again bytes.Buffer
		if traced := world(t, seed, sim.Config{Trace: &trace}); traced != one {
			t.Errorf("seed %d: a trace changes the run", seed)
		}
		if world(t, seed, sim.Config{Trace: &again, Batch: true}); !bytes.Equal(trace.Bytes(), again.Bytes()) {
			t.Errorf("seed %d: two traces differ", seed)
		}
	}
}
