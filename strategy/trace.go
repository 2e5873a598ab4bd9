package strategy

import (
	"ndnpop/ndn"
)

// TraceKind says what a Decision is about.
type TraceKind uint8

// Kinds of decisions.
const (
	TraceSend    TraceKind = iota + 1 // an Interest was sent, or refused
	TraceNack                         // a downstream got a Nack
	TraceExplain                      // the strategy explains a choice
)

// Candidate is one next hop that was weighed in a choice.
type Candidate struct {
	Face   ndn.FaceID
	Cost   uint64
	Weight float64 // the strategy's own measure, lower or higher as it says
	Note   string
}

// Decision is one step of a strategy. It is valid during the call of Trace.
type Decision struct {
	Now      ndn.Time
	Strategy ndn.Name
	Name     ndn.Name // the Interest's
	Event    string   // which handler: "Interest", "Data", …
	In       ndn.FaceID
	Kind     TraceKind

	To         ndn.FaceID     // TraceSend, TraceNack; TraceExplain: the choice
	Refusal    Refusal        // TraceSend
	Nack       ndn.NackReason // TraceNack
	Candidates []Candidate    // TraceExplain
	Reason     string         // TraceExplain
}

// Tracer watches decisions.
type Tracer interface {
	Trace(d *Decision)
}

// TraceFilter is for Tracers that follow some Interests only: strategies are
// not asked to explain themselves about the others.
type TraceFilter interface {
	// Follows reports whether decisions about this Interest are wanted. name is
	// nil in events that concern none, and valid during the call.
	Follows(now ndn.Time, name ndn.Name) bool
}

// SetTracer makes t see every decision or, if it is a TraceFilter, those that
// it follows; nil turns tracing off.
func (c *Context) SetTracer(t Tracer) {
	c.tracer = t
	c.filter, _ = t.(TraceFilter)
}

// Traced reports whether somebody watches. A strategy asks before it collects
// what it tells to Explain.
func (c *Context) Traced() bool { return c.tracer != nil && c.followed() }

func (c *Context) followed() bool {
	return c.filter == nil || c.filter.Follows(c.s.Now, c.s.Name)
}

// Explain tells a watcher why a next hop is chosen, before it is used.
func (c *Context) Explain(to ndn.FaceID, reason string, candidates []Candidate) {
	if c.Traced() {
		c.trace(&Decision{Kind: TraceExplain, To: to, Reason: reason, Candidates: candidates})
	}
}

// ExplainCost is Explain for strategies that know no more about the next hops
// than their costs.
func (c *Context) ExplainCost(to ndn.FaceID, reason string) {
	if !c.Traced() {
		return
	}
	hops := c.NextHops()
	all := make([]Candidate, len(hops))
	for i := range hops {
		all[i] = Candidate{Face: hops[i].Face, Cost: hops[i].Cost, Weight: float64(hops[i].Cost), Note: "cost"}
	}
	c.Explain(to, reason, all)
}

func (c *Context) trace(d *Decision) {
	d.Now, d.Strategy, d.Name, d.Event, d.In = c.s.Now, c.s.Label, c.s.Name, c.s.Event, c.s.In
	c.tracer.Trace(d)
}
