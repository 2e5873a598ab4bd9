package papers

import (
	"fmt"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/face/lp"
	"ndnpop/ndn"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

// The radio chain of Hop-by-Hop TCP (Lien and Yu, APSCC 2008) as far as their
// slides give it: nodes in a row, one medium per link that its two ends share,
// short queues.
const (
	chainPayload = 920 // bytes; with headers a Data takes about 1000
	chainHeader  = 26  // bytes of link layer per frame; a bare acknowledgement takes 40
	chainQueue   = 50  // packets
	chainBound   = 4   // the slides' bound of the window
)

const chainSetup = "A chain of links of 1 ms, each of which its two ends share (half duplex: Data, Interests and acknowledgements wait for each other), with queues of 50 packets. " +
	"A Data takes about 1000 bytes on a link, an Interest about 60, an acknowledgement alone 40. Every frame is lost with the same probability on every link, in both directions. Nothing is cached. "

// repair is what the links and the ends do about losses.
type repair struct {
	name        string
	controller  string
	reliability lp.Reliability
	bound       func(hops int) float64 // of the window; nil: none
}

// Hop by hop as the slides have it: one packet at a time on each link, five
// repetitions, a window of four end to end.
func slides(ackDelay time.Duration) lp.Reliability {
	r := lp.HopByHop()
	r.StopAndWait, r.AckDelay = true, ackDelay
	return r
}

// inPieces keeps four frames under way on each link.
func inPieces(ackDelay time.Duration) lp.Reliability {
	r := lp.HopByHop()
	r.AckDelay = ackDelay
	return r
}

func four(int) float64           { return chainBound }
func inService(hops int) float64 { return float64(2*hops + 2) }

// An acknowledgement leaves at once, or waits 5 ms for a packet to ride on.
const (
	atOnce = -1
	rides  = 0
)

var (
	endToEnd  = repair{name: "Reno end to end", controller: "reno"}
	vegasEnds = repair{name: "Vegas end to end", controller: "vegas"}
	stopWait  = repair{name: "stop and wait, bound 4", controller: "reno", reliability: slides(atOnce), bound: four}
	windowed  = repair{name: "link window 4, bound 2h+2", controller: "reno", reliability: inPieces(rides), bound: inService}
	// The same with acknowledgements the other way.
	stopRides = repair{name: "stop and wait, bound 4, acks ride", controller: "reno", reliability: slides(rides), bound: four}
	windAlone = repair{name: "link window 4, bound 2h+2, acks at once", controller: "reno", reliability: inPieces(atOnce), bound: inService}
)

// runner is one fetch over the chain.
type runner struct {
	repair
	start time.Duration
	// bare leaves the runner's packets unrepaired on links that repair.
	bare bool
}

// chain is a network of nodes in a row, with its fetches from one end to the
// other.
type chain struct {
	net      *sim.Network
	links    []*sim.Link
	fetches  []*sim.Fetch
	delays   []*deliveries
	queue    *sim.LinkProbe
	warm     time.Duration
	segments []uint64 // of each fetch at the end of the warm-up
}

// deliveries are the times from the first Interest for a segment to its Data.
type deliveries struct {
	from  ndn.Time
	first []ndn.Time // by segment; 0 when there is none
	secs  []float64
}

// Trace implements consumer.Tracer.
func (d *deliveries) Trace(e *consumer.TraceEvent) {
	switch e.Kind {
	case consumer.TraceSend:
		for uint64(len(d.first)) <= e.Segment {
			d.first = append(d.first, 0)
		}
		if d.first[e.Segment] == 0 {
			d.first[e.Segment] = e.Now
		}
	case consumer.TraceData:
		if e.Segment < uint64(len(d.first)) && e.Now >= d.from {
			d.secs = append(d.secs, e.Now.Sub(d.first[e.Segment]).Seconds())
		}
	}
}

// newChain builds a chain of hops links whose service is that of the first
// runner whose links repair.
func newChain(hops int, rate int64, loss float64, seed uint64, warm time.Duration, runners ...runner) *chain {
	c := &chain{net: sim.New(sim.Config{Seed: seed, Strategies: strategies.Builtin()}), warm: warm}
	link := sim.LinkConfig{
		Params:     sim.Params{Rate: rate, Delay: ms, Loss: loss, QueuePackets: chainQueue, Overhead: chainHeader},
		HalfDuplex: true,
	}
	for i, r := range runners {
		switch {
		case r.bare:
			link.Unprotected = append(link.Unprotected, prefixOf(i))
		case r.reliability.On:
			link.Reliability = r.reliability
		}
	}
	nodes := c.net.Chain("n", hops+1, sim.NodeConfig{}, link)
	c.links = c.net.Links()
	for i, r := range runners {
		c.net.AddProducer(nodes[hops], sim.ProducerConfig{Prefix: prefixOf(i), Size: 1 << 40, Segment: chainPayload})
		d := &deliveries{from: sim.Epoch.Add(max(warm, r.start))}
		f := sim.FetchConfig{
			Name: prefixOf(i) + "/object", Start: r.start, Controller: r.controller,
			Probe: 500 * ms, Tracer: d,
		}
		if r.bound != nil {
			f.Params = cc.Params{MaxCwnd: r.bound(hops)}
			f.Consumer = (*consumer.Config).HopByHop
		}
		c.delays = append(c.delays, d)
		c.fetches = append(c.fetches, c.net.AddFetch(nodes[0], f))
	}
	c.queue = c.links[hops-1].BA.Probe(100 * ms)
	return c
}

func prefixOf(i int) string { return fmt.Sprintf("/chain%d", i) }

func (c *chain) run(end time.Duration) error {
	if err := c.net.Run(c.warm); err != nil {
		return err
	}
	for _, f := range c.fetches {
		c.segments = append(c.segments, f.Stats().Segments)
	}
	if err := c.net.Run(end); err != nil {
		return err
	}
	for _, f := range c.fetches {
		if err := f.Err(); err != nil {
			return err
		}
	}
	return nil
}

// rates are the payload rates after the warm-up, in kbit/s.
func (c *chain) rates() (r []float64) {
	for i, f := range c.fetches {
		r = append(r, float64(f.Stats().Segments-c.segments[i])*chainPayload*8/(c.net.Now()-c.warm).Seconds()/1e3)
	}
	return r
}

// resent is the share of repeated Interests of one fetch.
func (c *chain) resent(i int) float64 {
	s := c.fetches[i].Stats()
	return float64(s.Retransmissions) / float64(max(1, s.Interests))
}

// frames counts what the links sent: all frames, those with acknowledgements
// alone, and repetitions.
func (c *chain) frames() (all, acks, again float64) {
	for _, l := range c.links {
		for _, d := range []*sim.Direction{l.AB, l.BA} {
			s := d.Service().Counters()
			all, acks, again = all+float64(s.OutFrames), acks+float64(s.OutAcks), again+float64(s.Retransmitted)
		}
	}
	return all, acks, again
}

// record keeps the samples for plots.
func (c *chain) record(name string, names ...string) *trace {
	t := &trace{name: name, names: names, queue: c.queue.Samples()}
	for _, f := range c.fetches {
		t.flows = append(t.flows, f.Samples())
	}
	return t
}

// chainOverTime are the four plots over time, for rates below a megabit.
func chainOverTime(caption string, ts ...*trace) []cdnbench.Plot {
	plots := overTime("over-time", caption, ts...)
	rate := &plots[0]
	rate.YLabel = "payload, kbit/s"
	for i := range rate.Lines {
		for k := range rate.Lines[i].Y {
			rate.Lines[i].Y[k] *= 1e3
		}
	}
	plots[3].Caption = "Queue of Data at the last link's far end (next to the producer) over time, " + caption
	return plots
}
