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

// Traced reports whether somebody watches. A strategy asks before it collects
// what it tells to Explain.
func (c *Context) Traced() bool { return c.tracer != nil }

// Explain tells a watcher why a next hop is chosen, before it is used.
func (c *Context) Explain(to ndn.FaceID, reason string, candidates []Candidate) {
	if c.tracer != nil {
		c.trace(&Decision{Kind: TraceExplain, To: to, Reason: reason, Candidates: candidates})
	}
}

func (c *Context) trace(d *Decision) {
	d.Now, d.Strategy, d.Name, d.Event, d.In = c.s.Now, c.s.Label, c.s.Name, c.s.Event, c.s.In
	c.tracer.Trace(d)
}
