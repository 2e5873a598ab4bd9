package papers

import (
	"fmt"
	"time"

	"ndnpop/consumer"
	"ndnpop/face/lp"
	"ndnpop/ndn"
	"ndnpop/sim"
	"ndnpop/sim/line"
	"ndnpop/strategy/strategies"
)

// The topology of NDN for CDN workflows (the thesis' figure 1), its delays read
// as round trips:
//
//	client – 50 ms – edge – 10 ms – mid1, mid2 – 20 ms – origin1
//	                                           – 50 ms – origin2
const (
	cdnRate     = 100 * mbit
	accessRTT   = 50 * ms
	metroRTT    = 10 * ms
	originRTT   = 20 * ms
	cdnRTT      = accessRTT + metroRTT + originRTT
	accessLoss  = 0.0008 // per packet and direction
	coreLoss    = 0.0001
	cdnPayload  = 8000
	cdnMTU      = 1472 // of UDP over Ethernet
	cdnName     = "/cdn/object"
	cdnCapacity = 2_000_000_000 // bytes of each cache
)

const cdnSetup = "A client, an edge cache 50 ms away (all delays are round trips), two intermediate caches another 10 ms away and two origins behind them, 20 ms and 50 ms; 100 Mbit/s everywhere. "

// cdnConfig is what the experiments vary.
type cdnConfig struct {
	strategy  string // of the edge
	edgeCache int64  // bytes
	lossy     bool
	marks     bool // queues mark, as those of the product do
	repaired  bool // links repair and mark, as UDP links of the product do
	payload   int  // 0: cdnPayload
	size      int64
}

// cdnLab is the topology.
type cdnLab struct {
	net          *sim.Network
	client, edge *sim.Node
	mids         [2]*sim.Node
	access       *sim.Link
	toMid        [2]*sim.Link
}

func newCDN(seed uint64, c cdnConfig) *cdnLab {
	l := &cdnLab{net: sim.New(sim.Config{Seed: seed, Strategies: strategies.Builtin()})}
	n := l.net
	l.client = n.AddNode("client", sim.NodeConfig{})
	l.edge = n.AddNode("edge", sim.NodeConfig{CS: c.edgeCache, Strategy: c.strategy})
	origins := []*sim.Node{n.AddNode("origin1", sim.NodeConfig{}), n.AddNode("origin2", sim.NodeConfig{})}
	marks, repaired := c.marks || c.repaired, c.repaired
	link := func(rtt time.Duration, loss float64) sim.LinkConfig {
		if !c.lossy {
			loss = 0
		}
		c := sim.LinkConfig{
			Params: sim.Params{Rate: cdnRate, Delay: rtt / 2, Loss: loss, Queue: sim.BDP(cdnRate, cdnRTT)},
			Cost:   uint64(rtt / ms),
		}
		if marks {
			c.Marking = &lp.Marking{}
		}
		if repaired {
			c.MTU, c.Reliability = cdnMTU, lp.Reliability{Auto: true, Offer: true}
		}
		return c
	}
	l.access = n.Connect(l.client, l.edge, link(accessRTT, accessLoss))
	for i := range l.mids {
		l.mids[i] = n.AddNode(fmt.Sprint("mid", i+1), sim.NodeConfig{CS: cdnCapacity})
		l.toMid[i] = n.Connect(l.edge, l.mids[i], link(metroRTT, coreLoss))
		n.Connect(l.mids[i], origins[0], link(originRTT, coreLoss))
		n.Connect(l.mids[i], origins[1], link(50*ms, coreLoss))
	}
	if c.payload == 0 {
		c.payload = cdnPayload
	}
	for _, o := range origins {
		n.AddProducer(o, sim.ProducerConfig{Prefix: "/cdn", Size: c.size, Segment: c.payload, Freshness: time.Hour})
	}
	return l
}

// fetch runs a fetch from now on until it ends, and returns it.
func (l *cdnLab) fetch(name string, c sim.FetchConfig) (*sim.Fetch, error) {
	c.Name, c.Start = name, l.net.Now()
	if c.Controller == "" {
		c.Controller = "cubic"
	}
	f := l.net.AddFetch(l.client, c)
	if err := l.net.RunUntil(l.net.Now()+10*time.Minute, f.Done); err != nil {
		return nil, err
	}
	if !f.Done() {
		return nil, fmt.Errorf("%s has not arrived after ten minutes", name)
	}
	return f, f.Err()
}

// held is the content that the intermediate caches hold, in MB.
func (l *cdnLab) held() float64 {
	packets := 0
	for _, m := range l.mids {
		packets += m.Shard().CSInfo().Packets
	}
	return float64(packets) * cdnPayload / 1e6
}

// came is how many packets have come to the edge from one of the
// intermediates, and how many bytes.
func (l *cdnLab) came(mid int) line.Counters { return l.toMid[mid].From(l.mids[mid]).Counters() }

// steer makes an intermediate the edge's only next hop, with all others still
// routed behind it.
func (l *cdnLab) steer(mid int) {
	for i, k := range l.toMid {
		cost := uint64(metroRTT / ms)
		if i != mid {
			cost = 1000
		}
		l.edge.SetRoute("/cdn", k, cost)
	}
}

// arrivalLog keeps the times at which a fetch got its Data, and took some for
// lost, in seconds.
type arrivalLog struct{ at, lost []float64 }

// Trace implements consumer.Tracer.
func (a *arrivalLog) Trace(e *consumer.TraceEvent) {
	t := e.Now.Sub(sim.Epoch).Seconds()
	switch e.Kind {
	case consumer.TraceData:
		a.at = append(a.at, t)
	case consumer.TraceLoss, consumer.TraceTimeout:
		a.lost = append(a.lost, t)
	}
}

// losses is how many were taken for lost from a time on.
func (a *arrivalLog) losses(from time.Duration) (n float64) {
	for _, t := range a.lost {
		if t >= from.Seconds() {
			n++
		}
	}
	return n
}

// gap is the longest time between two arrivals from a time on, in seconds.
func (a *arrivalLog) gap(from time.Duration) (longest float64) {
	for i := 1; i < len(a.at); i++ {
		if a.at[i] > from.Seconds() {
			longest = max(longest, a.at[i]-a.at[i-1])
		}
	}
	return longest
}

// curve counts the segments that arrive from one time to another, over the ms
// since the first.
func (a *arrivalLog) curve(from, to float64) (x, y []float64) {
	for _, t := range a.at {
		if t >= from && t <= to {
			x, y = append(x, 1e3*(t-from)), append(y, float64(len(y)))
		}
	}
	return x, y
}

// repairs are the answers to repeated Interests, with the path that they came
// by.
type repairs struct {
	sent map[uint64]ndn.Time // only looked up
	last uint64              // path tag of the latest Data
	all  []repaired
}

type repaired struct {
	tag  uint64
	secs float64
}

func newRepairs() *repairs {
	return &repairs{sent: map[uint64]ndn.Time{}}
}

// Trace implements consumer.Tracer.
func (r *repairs) Trace(e *consumer.TraceEvent) {
	switch e.Kind {
	case consumer.TraceLoss, consumer.TraceTimeout:
		r.sent[e.Segment] = 0
	case consumer.TraceSend:
		if _, lost := r.sent[e.Segment]; lost {
			r.sent[e.Segment] = e.Now
		}
	case consumer.TraceData:
		r.last = e.Tag
		if at := r.sent[e.Segment]; at.IsSet() {
			r.all = append(r.all, repaired{e.Tag, e.Now.Sub(at).Seconds()})
			delete(r.sent, e.Segment)
		}
	}
}

// by are the times, in ms, of repairs that came by the path with a tag.
func (r *repairs) by(tag uint64) []float64 {
	return r.that(func(x repaired) bool { return x.tag == tag })
}

// but are those of all other paths.
func (r *repairs) but(tag uint64) []float64 {
	return r.that(func(x repaired) bool { return x.tag != tag })
}

func (r *repairs) that(ok func(repaired) bool) (v []float64) {
	for _, x := range r.all {
		if ok(x) {
			v = append(v, 1e3*x.secs)
		}
	}
	return v
}
