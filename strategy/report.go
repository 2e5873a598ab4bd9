package strategy

import (
	"ndnpop/ndn"
	"ndnpop/table"
)

// Reporter is for strategies that can show what they know about next hops.
type Reporter interface {
	// Report is called, without an entry, for a name that the strategy serves:
	// Context.Prefix and Context.Routes are those of the name. It changes
	// nothing that a later decision depends on. What it returns is the
	// caller's.
	Report(c *Context) Report
}

// Report is a table of what a strategy knows about the next hops of a prefix.
type Report struct {
	// Columns are the names of what follows the face, with their units, such
	// as "rtt_ms".
	Columns []string
	Rows    []ReportRow
}

// ReportRow is what is known about one next hop: a cell per column.
type ReportRow struct {
	Face  ndn.FaceID
	Cells []float64
}

// Routes are all next hops of Prefix, whether this Interest may use them or
// not, by cost and then by face. The slice is valid during the call.
func (c *Context) Routes() []table.NextHop {
	c.look()
	if c.fib == nil {
		return nil
	}
	return c.fib.Hops
}

// Up reports whether one of Routes is among NextHops: in a report, whether its
// face is up.
func (c *Context) Up(f ndn.FaceID) bool {
	for _, h := range c.NextHops() {
		if h.Face == f {
			return true
		}
	}
	return false
}
