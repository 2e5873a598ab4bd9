package sim_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ndnpop/consumer"
	"ndnpop/face/lp"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

// eventful is a run in which everything happens: losses of all kinds, jitter,
// reordering, marks, link retransmissions, fragments, caches, failures,
// changes, a workload.
func eventful(t *testing.T, seed uint64) []byte {
	t.Helper()
	var trace bytes.Buffer
	n := sim.New(sim.Config{Seed: seed, Strategies: strategies.Builtin(), Trace: &trace})
	slow := sim.Params{Rate: 10e6, Delay: 5 * ms, Jitter: 2 * ms, Reorder: true, Loss: 0.01, Queue: 30_000}
	fast := sim.Params{Rate: 50e6, Delay: 2 * ms, Noise: 100 * time.Microsecond, CoDel: sim.CoDel{On: true}}
	c := n.CDN(sim.CDNConfig{
		Edges: 2, ClientsPerEdge: 2, Mids: 2, Origins: 1,
		Edge:   sim.NodeConfig{CS: 1 << 20},
		Access: sim.LinkConfig{Params: slow, MTU: 1400, Reliability: lp.Reliability{On: true}},
		Metro:  sim.LinkConfig{Params: fast, Marking: &lp.Marking{Threshold: 4000, Interval: ms}},
		Core:   sim.LinkConfig{Params: sim.Params{Rate: 20e6, Delay: 10 * ms, Burst: sim.GilbertElliott{ToBad: .01, ToGood: .3, LossBad: .5}}, HalfDuplex: true},
	})
	n.AddProducer(c.Origins[0], sim.ProducerConfig{Prefix: "/cdn", Size: 1e6, Segment: 4000})
	for i, x := range c.Clients {
		n.AddFetch(x, sim.FetchConfig{Name: "/cdn/a", Start: time.Duration(i) * 50 * ms, Controller: []string{"cubic", "reno"}[i%2]})
	}
	n.AddWorkload(sim.Workload{Clients: c.Clients, Prefix: "/cdn", Objects: 20, Zipf: 0.8, Rate: 5, Until: time.Second})
	n.At(300*ms, c.Edges[0].LinkTo(c.Mids[0]).Down)
	n.At(500*ms, c.Edges[0].LinkTo(c.Mids[0]).Up)
	n.At(600*ms, c.Edges[1].LinkTo(c.Mids[1]).BlackHole)
	n.At(700*ms, c.Mids[0].Kill)
	n.At(900*ms, c.Mids[0].Restart)
	n.At(time.Second, func() {
		if err := c.Edges[0].LinkTo(c.Mids[1]).Set(slow); err != nil {
			t.Error(err)
		}
	})
	run(t, n, 4*time.Second)
	for _, f := range n.Fetches() {
		if s := f.Stats(); s.Segments < 50 {
			t.Errorf("seed %d: %v %+v", seed, f.Err(), s)
		}
	}
	return trace.Bytes()
}

// TestSameSeedSameTrace, byte by byte, and another seed another one.
func TestSameSeedSameTrace(t *testing.T) {
	a, b, c := eventful(t, 7), eventful(t, 7), eventful(t, 8)
	if !bytes.Equal(a, b) {
		x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
		for i := range min(len(x), len(y)) {
			if x[i] != y[i] {
				t.Fatalf("line %d differs:\n%s\n%s", i+1, x[i], y[i])
			}
		}
		t.Fatalf("%d and %d lines", len(x), len(y))
	}
	if bytes.Equal(a, c) {
		t.Error("the seed changes nothing")
	}
	lines, last, kinds := 0, 0.0, map[string]int{}
	for line := range bytes.Lines(a) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if at := e["t"].(float64); at < last {
			t.Fatalf("time went back from %.0f: %s", last, line)
		} else {
			last = at
		}
		why, _ := e["why"].(string)
		if e["ev"] != "drop" {
			why = ""
		}
		kinds[e["ev"].(string)+why]++
		lines++
	}
	for _, k := range []string{"rx", "flow", "decision", "change", "droploss", "dropqueue", "dropcut"} {
		if kinds[k] == 0 {
			t.Errorf("no %s among %d lines: %v", k, lines, kinds)
		}
	}
}

// TestSeedsInParallel: results come in the order of the seeds and are those of
// runs one after another.
func TestSeedsInParallel(t *testing.T) {
	fn := func(seed uint64) (consumer.Stats, error) {
		n := newNet(seed)
		a, _, _ := pair(n, sim.LinkConfig{Params: sim.Params{Rate: 10e6, Delay: 5 * ms, Loss: 0.02}}, sim.ProducerConfig{Prefix: "/s", Size: 1e6, Segment: 1000})
		f := n.AddFetch(a, sim.FetchConfig{Name: "/s/x", Controller: "reno"})
		err := n.Run(time.Minute)
		return f.Stats(), err
	}
	got, err := sim.RunSeeds(sim.Seeds(6), fn)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sim.Seeds(6) {
		if want, _ := fn(s); got[i] != want {
			t.Errorf("seed %d: %+v, want %+v", s, got[i], want)
		}
	}
	if got[0] == got[1] {
		t.Error("two seeds, one result")
	}
	if _, err := sim.RunSeeds([]uint64{1, 42}, func(s uint64) (int, error) {
		n := newNet(s)
		n.AddNode("", sim.NodeConfig{})
		return 0, n.Run(1)
	}); err == nil || !strings.Contains(err.Error(), "seed 42: ") {
		t.Errorf("%v", err)
	}
}

// TestEveryStrategyRepeats what it did with the same seed, over losses,
// reliable links and failures.
func TestEveryStrategyRepeats(t *testing.T) {
	for _, f := range strategies.Builtin() {
		once := func() []byte {
			var trace bytes.Buffer
			n := sim.New(sim.Config{Seed: 5, Strategies: strategies.Builtin(), Strategy: f.FullName().String(), Trace: &trace})
			l := sim.LinkConfig{Params: sim.Params{Rate: 10e6, Delay: 5 * ms, Jitter: 2 * ms, Reorder: true, Loss: 0.01, Queue: 30_000}}
			reliable := l
			reliable.Reliability.On, reliable.MTU = true, 1400
			c := n.CDN(sim.CDNConfig{Edges: 2, ClientsPerEdge: 2, Mids: 3, MidsPerEdge: 2, Origins: 2, Access: reliable, Metro: l, Core: l})
			for _, o := range c.Origins {
				n.AddProducer(o, sim.ProducerConfig{Prefix: "/cdn", Size: 3e5, Segment: 4000})
			}
			for i, x := range c.Clients {
				n.AddFetch(x, sim.FetchConfig{Name: []string{"/cdn/a", "/cdn/b"}[i%2], Start: time.Duration(i) * 20 * ms})
			}
			n.At(300*ms, c.Edges[0].LinkTo(c.Mids[0]).BlackHole)
			n.At(500*ms, c.Mids[1].Kill)
			n.At(900*ms, c.Mids[1].Restart)
			run(t, n, 1500*ms)
			return trace.Bytes()
		}
		if a, b := once(), once(); !bytes.Equal(a, b) || bytes.Count(a, []byte("\n")) < 1000 {
			t.Errorf("%s: traces of %d and %d bytes differ", f.Name, len(a), len(b))
		}
	}
}
