package strategytest

import (
	"fmt"
	"strings"
	"time"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/ndn"
	"ndnpop/sim"
	"ndnpop/strategy"
)

// Topology is a network in virtual time whose forwarders run the strategy
// under test, with real consumers and producers at its edges. Where a
// Recorder scripts what one forwarder sees, a Topology lets several forwarders
// play together: it is the place for loops, failures and shares of traffic.
//
// It is a sim.Network, with all that one can do: add nodes and links, change
// and break them At a time, Kill and Crash nodes. Nodes with a Strategy of
// their own in their NodeConfig need it to be among Others.
type Topology struct {
	*sim.Network
	flows []*Flow
}

// Setup of a Topology.
type Setup struct {
	Seed     uint64
	Strategy strategy.Factory
	// Params of the strategy, of the form name~value.
	Params []string
	// Others are strategies that single nodes may choose.
	Others []strategy.Factory
	// Sim has what else a network can be configured with.
	Sim sim.Config
}

// NewTopology returns an empty network of the strategy. Mistakes in what is
// added show as an error of Run.
func NewTopology(s Setup) *Topology {
	c := s.Sim
	c.Seed = s.Seed
	c.Strategies = append([]strategy.Factory{s.Strategy}, s.Others...)
	var name strings.Builder
	name.WriteString(s.Strategy.FullName().String())
	for _, p := range s.Params {
		name.WriteByte('/')
		name.WriteString(ndn.Component{Type: ndn.TypeGeneric, Value: []byte(p)}.String())
	}
	c.Strategy = name.String()
	return &Topology{Network: sim.New(c)}
}

// Fan is the most common topology: consumers at a router that reaches one
// producer of Prefix by several paths, a node on each.
//
//	consumer0 \          / path0 \
//	consumer1 - router -- path1 - producer
//	…         /          \ …     /
type Fan struct {
	Consumers []*sim.Node
	Router    *sim.Node
	Paths     []*sim.Node
	Producer  *sim.Node
	// Access, First and Last are the links of the consumers, from the router
	// to the paths, and from the paths to the producer.
	Access, First, Last []*sim.Link
}

// Path describes one path of a Fan. Its parameters are those of the link from
// the router; the one behind it adds nothing.
type Path struct {
	sim.Params
	Cost uint64 // of the route; 1 if zero
}

// RTT of n milliseconds without a limit of the rate, as a Path.
func RTT(n float64) Path {
	return Path{Params: sim.Params{Delay: time.Duration(n / 2 * float64(time.Millisecond))}}
}

// Fan adds a Fan with consumers that are a millisecond of RTT away.
func (t *Topology) Fan(consumers int, paths ...Path) *Fan {
	f := &Fan{Router: t.AddNode("router", sim.NodeConfig{}), Producer: t.AddNode("producer", sim.NodeConfig{})}
	for i := range consumers {
		c := t.AddNode(fmt.Sprint("consumer", i), sim.NodeConfig{})
		f.Consumers = append(f.Consumers, c)
		f.Access = append(f.Access, t.Connect(c, f.Router, sim.LinkConfig{Params: sim.Params{Delay: time.Millisecond / 2}}))
	}
	for i, p := range paths {
		x := t.AddNode(fmt.Sprint("path", i), sim.NodeConfig{})
		f.Paths = append(f.Paths, x)
		f.First = append(f.First, t.Connect(f.Router, x, sim.LinkConfig{Params: p.Params, Cost: p.Cost}))
		f.Last = append(f.Last, t.Connect(x, f.Producer, sim.LinkConfig{}))
	}
	t.AddProducer(f.Producer, sim.ProducerConfig{Prefix: Prefix, Size: 1 << 40, Segment: 1000})
	return f
}

// Flow is a consumer of a Topology and when Data reached it.
type Flow struct {
	*sim.Fetch
	// Arrivals are the times of the run at which Data came.
	Arrivals []time.Duration

	base consumer.Tracer
}

// Consume adds a consumer that begins when c says. An empty name is an object
// under Prefix of the consumer's own; c.Controller is "fixed" with a window of
// 10 if empty.
func (t *Topology) Consume(at *sim.Node, c sim.FetchConfig) *Flow {
	f := &Flow{base: c.Tracer}
	if c.Name == "" {
		c.Name = fmt.Sprintf("%s/flow%d", Prefix, len(t.flows))
	}
	if c.Controller == "" {
		c.Controller = "fixed"
		if c.Params.Window == 0 {
			c.Params = cc.Params{Window: 10}
		}
	}
	c.Tracer = f
	t.flows = append(t.flows, f)
	f.Fetch = t.AddFetch(at, c)
	return f
}

// Trace implements consumer.Tracer.
func (f *Flow) Trace(e *consumer.TraceEvent) {
	if e.Kind == consumer.TraceData {
		f.Arrivals = append(f.Arrivals, e.Now.Sub(sim.Epoch))
	}
	if f.base != nil {
		f.base.Trace(e)
	}
}

// Gap is the longest time between two arriving Data, or between one and the
// limits, from one time of the run to another.
func (f *Flow) Gap(from, to time.Duration) time.Duration {
	last, gap := from, time.Duration(0)
	for _, at := range f.Arrivals {
		if at >= from && at <= to {
			gap, last = max(gap, at-last), at
		}
	}
	return max(gap, to-last)
}

// Resent counts the Interests that the consumer repeated.
func (f *Flow) Resent() int { return int(f.Stats().Retransmissions) }

// Watch records where one node's strategy sends Interests.
type Watch struct {
	// Hops are the Interests that it sent to other nodes, in order.
	Hops []Step
	// Refused counts the attempts that the forwarder refused, by reason.
	Refused map[strategy.Refusal]int

	sent map[string]struct{}
}

// Step is one Interest that a strategy sent.
type Step struct {
	At    time.Duration
	To    *sim.Node
	Name  string
	Event string // the handler that sent it
	Why   string // the reason that the strategy explained the choice with
	Again bool   // this name had been sent before
}

// String is one line of a report.
func (s Step) String() string {
	again := ""
	if s.Again {
		again = " again"
	}
	return fmt.Sprintf("%v %s -> %s%s (%s: %s)", s.At, s.Name, s.To.Name(), again, s.Event, s.Why)
}

// Watch records a node from now on.
func (t *Topology) Watch(x *sim.Node) *Watch {
	w := &Watch{Refused: make(map[strategy.Refusal]int), sent: make(map[string]struct{})}
	why := ""
	x.Watch(func(d *strategy.Decision) {
		switch {
		case d.Kind == strategy.TraceExplain:
			why = d.Reason
		case d.Kind != strategy.TraceSend:
		case d.Refusal != strategy.Sent:
			w.Refused[d.Refusal]++
		case x.Neighbor(d.To) != nil:
			s := Step{At: d.Now.Sub(sim.Epoch), To: x.Neighbor(d.To), Name: d.Name.String(), Event: d.Event, Why: why}
			_, s.Again = w.sent[s.Name]
			w.sent[s.Name] = struct{}{}
			w.Hops = append(w.Hops, s)
			why = ""
		}
	})
	return w
}

// Share is the part of the Interests sent between two times that a neighbour
// got, counting only the first for each name.
func (w *Watch) Share(to *sim.Node, from, until time.Duration) float64 {
	all, mine := 0, 0
	for i := range w.Hops {
		s := &w.Hops[i]
		if s.At < from || s.At >= until || s.Again {
			continue
		}
		all++
		if s.To == to {
			mine++
		}
	}
	if all == 0 {
		return 0
	}
	return float64(mine) / float64(all)
}

// Count is how many Interests a neighbour got between two times, probes and
// re-sends included. A nil neighbour stands for all.
func (w *Watch) Count(to *sim.Node, from, until time.Duration) int {
	n := 0
	for i := range w.Hops {
		s := &w.Hops[i]
		if s.At >= from && s.At < until && (to == nil || s.To == to) {
			n++
		}
	}
	return n
}

// Switches counts how often, between two times, the first Interest of a name
// went elsewhere than that of the name before.
func (w *Watch) Switches(from, until time.Duration) int {
	n := 0
	var last *sim.Node
	for i := range w.Hops {
		s := &w.Hops[i]
		if s.At < from || s.At >= until || s.Again {
			continue
		}
		if last != nil && s.To != last {
			n++
		}
		last = s.To
	}
	return n
}
