package papers

import (
	"fmt"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/face/lp"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

// The second half of marking: two-way traffic over one link, with Interest
// shaping (lp.Shaping) and without.
const (
	shapeRate    = 10 * mbit
	shapeRTT     = 40 * ms
	shapePayload = 1000
	shapeBuffer  = 50_000 // bytes: the bandwidth-delay product
)

func shapeArm(controller string, on bool) string {
	if on {
		return "two-way, " + controller + ", shaped"
	}
	return "two-way, " + controller + ", not shaped"
}

// shapeRun lets a fetch run each way and returns its metrics.
func shapeRun(controller string, on bool, seed uint64, warm, length time.Duration) (map[string]float64, *trace, error) {
	n := sim.New(sim.Config{Seed: seed, Strategies: strategies.Builtin()})
	a, b := n.AddNode("a", sim.NodeConfig{}), n.AddNode("b", sim.NodeConfig{})
	c := sim.LinkConfig{Params: sim.Params{Rate: shapeRate, Delay: shapeRTT / 2, Queue: shapeBuffer}}
	if on {
		c.Shaping = &lp.Shaping{}
	}
	link := n.Connect(a, b, c)
	ends := []*sim.Node{a, b}
	var fetches []*sim.Fetch
	for i, name := range []string{"/a", "/b"} {
		n.AddProducer(ends[i], sim.ProducerConfig{Prefix: name, Size: 1 << 40, Segment: shapePayload})
		fetches = append(fetches, n.AddFetch(ends[1-i], sim.FetchConfig{
			Name: name + "/object", Start: time.Duration(i) * 50 * ms, Controller: controller, Probe: 200 * ms,
		}))
	}
	queue := link.AB.Probe(10 * ms)
	if err := n.Run(warm); err != nil {
		return nil, nil, err
	}
	dirs := []*sim.Direction{link.AB, link.BA}
	var before [2]int64
	var segments [2]uint64
	for i := range dirs {
		before[i], segments[i] = dirs[i].Counters().QueueDrops, fetches[i].Stats().Segments
	}
	if err := n.Run(length); err != nil {
		return nil, nil, err
	}
	m := map[string]float64{"worst_to_optimum": inf}
	for i, d := range dirs {
		m["drops"] += float64(d.Counters().QueueDrops - before[i])
		s := fetches[i].Stats()
		rate := float64(s.Segments-segments[i]) * shapePayload * 8 / (length - warm).Seconds()
		m["worst_to_optimum"] = min(m["worst_to_optimum"], rate/shapeOptimum())
		m["nacks"] += float64(s.Nacks)
		m["repeated_interests"] = max(m["repeated_interests"], float64(s.Retransmissions)/float64(max(1, s.Interests)))
	}
	sum, k := 0.0, 0.0
	for _, s := range queue.Samples() {
		if s.At > warm {
			sum, k = sum+float64(s.Queue), k+1
		}
	}
	m["mean_queue_kb"] = sum / k / 1e3
	t := &trace{name: "shaped", queue: queue.Samples()}
	if !on {
		t.name = "not shaped"
	}
	return m, t, nil
}

// Sizes on the link of the packets that shapeRun sends.
const (
	shapeInterest = 47
	shapeData     = 1079
)

// shapeOptimum is the payload that each direction can have at most when both
// want all: a link of rate c carries Data and the Interests for the other way,
// so that a share of Data/(Data+Interest) of it is Data.
func shapeOptimum() float64 {
	return shapeRate * shapePayload / (shapeData + shapeInterest)
}

func shapeText(r *cdnbench.Result, controller string) string {
	on, off := shapeArm(controller, true), shapeArm(controller, false)
	return fmt.Sprintf("Two-way traffic of two %s flows over 10 Mbit/s: with Interests shaped the link drops %.0f packets, the queue holds %.1f kB and the slower direction has %.3f of what is possible; without it drops %.0f, holds %.1f kB and has %.3f. ",
		controller, average(r, on, "drops"), average(r, on, "mean_queue_kb"), average(r, on, "worst_to_optimum"),
		average(r, off, "drops"), average(r, off, "mean_queue_kb"), average(r, off, "worst_to_optimum"))
}
