package mgmt

import (
	"encoding/binary"
	"fmt"
	"math"

	"ndnpop/ndn"
)

// The datasets strategy-choice/available and strategy-choice/report, and the
// stream strategy-choice/trace, are this project's; other forwarders answer
// that they do not know them. report and trace have one component more: the
// Name element of a prefix.

// Fields of this project: even, hence ignorable.
const (
	typeShortName uint32 = 0xf5a0
	typeUsage     uint32 = 0xf5a2
	typeParam     uint32 = 0xf5a4
	typeColumn    uint32 = 0xf5a6
	typeRow       uint32 = 0xf5a8
	typeCell      uint32 = 0xf5aa
	typeDecision  uint32 = 0xf5ac
	typeLost      uint32 = 0xf5ae
	typeTime      uint32 = 0xf5b0
	typeEvent     uint32 = 0xf5b2
	typeIncoming  uint32 = 0xf5b4
	typeKind      uint32 = 0xf5b6
	typeResult    uint32 = 0xf5b8
	typeReason    uint32 = 0xf5ba
	typeCandidate uint32 = 0xf5bc
	typeWeight    uint32 = 0xf5be
	typeNote      uint32 = 0xf5c0
)

// appendFloat appends a number as the eight bytes of its IEEE 754 form.
func appendFloat(b []byte, typ uint32, v float64) []byte {
	return binary.BigEndian.AppendUint64(ndn.AppendTL(b, typ, 8), math.Float64bits(v))
}

func parseFloat(v []byte) (float64, error) {
	if len(v) != 8 {
		return 0, fmt.Errorf("%w: a number of %d bytes", ErrMalformed, len(v))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(v)), nil
}

// StrategyParam documents a parameter of a strategy.
type StrategyParam struct{ Name, Usage string }

func (p *StrategyParam) fields() []field {
	return []field{{typ: typeShortName, reqText: &p.Name}, {typ: typeUsage, reqText: &p.Usage}}
}

// StrategyInfo is an item of strategy-choice/available: a strategy to choose.
type StrategyInfo struct {
	Strategy ndn.Name // with its version
	Usage    string   // one line
	Params   []StrategyParam
}

func (s *StrategyInfo) fields() []field {
	return []field{{typ: typeStrategy, nested: &s.Strategy}, {typ: typeUsage, text: &s.Usage}}
}

// AppendTo appends the item.
func (s *StrategyInfo) AppendTo(b []byte) []byte {
	start := len(b)
	b = appendFields(append(b, make([]byte, 10)...), s.fields())
	for i := range s.Params {
		b = appendElement(b, typeParam, s.Params[i].fields())
	}
	return closeElement(b, start, typeItem)
}

// ParseStrategyInfos decodes the content of strategy-choice/available.
func ParseStrategyInfos(content []byte) ([]StrategyInfo, error) {
	return parseItems(content, typeItem, func(v []byte, s *StrategyInfo) error {
		return parseFields(v, s.fields(), tolerant, func(e ndn.Element) (bool, error) {
			if e.Type != typeParam {
				return false, nil
			}
			var p StrategyParam
			err := parseFields(e.Value, p.fields(), tolerant, nil)
			s.Params = append(s.Params, p)
			return true, err
		})
	})
}

// ReportRow is what a strategy knows about one next hop, a cell per column.
type ReportRow struct {
	FaceID uint64
	Cells  []float64
}

// StrategyReport is the content of strategy-choice/report: what the strategy of
// a prefix knows about its next hops.
type StrategyReport struct {
	Strategy ndn.Name
	Columns  []string // of what follows the face, with units as in "rtt_ms"
	Rows     []ReportRow
}

// AppendTo appends the whole element.
func (r *StrategyReport) AppendTo(b []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, 10)...)
	b = appendFields(b, []field{{typ: typeStrategy, nested: &r.Strategy}})
	for _, c := range r.Columns {
		b = append(ndn.AppendTL(b, typeColumn, len(c)), c...)
	}
	for i := range r.Rows {
		at := len(b)
		b = ndn.AppendNatTLV(append(b, make([]byte, 10)...), typeFaceID, r.Rows[i].FaceID)
		for _, v := range r.Rows[i].Cells {
			b = appendFloat(b, typeCell, v)
		}
		b = closeElement(b, at, typeRow)
	}
	return closeElement(b, start, typeItem)
}

// ParseStrategyReport decodes the content of strategy-choice/report. Every row
// has a cell for each column.
func ParseStrategyReport(content []byte) (StrategyReport, error) {
	var r StrategyReport
	v, err := unwrap(content, typeItem)
	if err != nil {
		return r, err
	}
	err = parseFields(v, []field{{typ: typeStrategy, nested: &r.Strategy}}, tolerant, func(e ndn.Element) (bool, error) {
		switch e.Type {
		case typeColumn:
			r.Columns = append(r.Columns, string(e.Value))
		case typeRow:
			row, err := parseRow(e.Value)
			r.Rows = append(r.Rows, row)
			return true, err
		default:
			return false, nil
		}
		return true, nil
	})
	for i := range r.Rows {
		if err == nil && len(r.Rows[i].Cells) != len(r.Columns) {
			err = fmt.Errorf("%w: %d cells in %d columns", ErrMalformed, len(r.Rows[i].Cells), len(r.Columns))
		}
	}
	return r, err
}

func parseRow(v []byte) (row ReportRow, err error) {
	err = parseFields(v, []field{{typ: typeFaceID, req: &row.FaceID}}, tolerant, func(e ndn.Element) (bool, error) {
		if e.Type != typeCell {
			return false, nil
		}
		x, err := parseFloat(e.Value)
		row.Cells = append(row.Cells, x)
		return true, err
	})
	return row, err
}

// Kinds of decisions.
const (
	DecisionSend    uint64 = 1 // an Interest was sent, or refused
	DecisionNack    uint64 = 2 // a downstream got a Nack
	DecisionExplain uint64 = 3 // the strategy explains a choice
)

// Candidate is a next hop that a strategy weighed.
type Candidate struct {
	FaceID uint64
	Cost   uint64
	Weight float64 // the strategy's own measure
	Note   string  // what the weight is, and further measurements
}

// Decision is one step of a strategy.
type Decision struct {
	Time       uint64 // microseconds since the Unix epoch
	Kind       uint64
	Name       ndn.Name // of the Interest
	Strategy   ndn.Name
	Event      string // the strategy's handler: "Interest", "Timer", …
	Incoming   uint64 // face that the event came from; 0: none
	FaceID     uint64 // the choice
	Result     string // of DecisionSend and DecisionNack
	Reason     string // of DecisionExplain
	Candidates []Candidate
}

func (d *Decision) fields() []field {
	return []field{
		{typ: typeTime, req: &d.Time},
		{typ: typeKind, req: &d.Kind},
		{typ: ndn.TypeName, name: &d.Name},
		{typ: typeStrategy, nested: &d.Strategy},
		{typ: typeEvent, text: &d.Event},
		{typ: typeIncoming, req: &d.Incoming},
		{typ: typeFaceID, req: &d.FaceID},
		{typ: typeResult, text: &d.Result},
		{typ: typeReason, text: &d.Reason},
	}
}

// AppendTo appends the item.
func (d *Decision) AppendTo(b []byte) []byte {
	start := len(b)
	b = appendFields(append(b, make([]byte, 10)...), d.fields())
	for i := range d.Candidates {
		c := &d.Candidates[i]
		at := len(b)
		b = ndn.AppendNatTLV(append(b, make([]byte, 10)...), typeFaceID, c.FaceID)
		b = ndn.AppendNatTLV(b, typeCost, c.Cost)
		b = appendFloat(b, typeWeight, c.Weight)
		b = append(ndn.AppendTL(b, typeNote, len(c.Note)), c.Note...)
		b = closeElement(b, at, typeCandidate)
	}
	return closeElement(b, start, typeDecision)
}

// Trace is the content of one Data of strategy-choice/trace: decisions in their
// order.
type Trace struct {
	Lost      uint64 // decisions left out before these, as there were too many
	Decisions []Decision
}

// AppendTo appends the content.
func (t *Trace) AppendTo(b []byte) []byte {
	b = ndn.AppendNatTLV(b, typeLost, t.Lost)
	for i := range t.Decisions {
		b = t.Decisions[i].AppendTo(b)
	}
	return b
}

// ParseTrace decodes the content of a Data of strategy-choice/trace.
func ParseTrace(content []byte) (Trace, error) {
	var t Trace
	err := parseFields(content, []field{{typ: typeLost, req: &t.Lost}}, tolerant, func(e ndn.Element) (bool, error) {
		if e.Type != typeDecision {
			return false, nil
		}
		d, err := parseDecision(e.Value)
		t.Decisions = append(t.Decisions, d)
		return true, err
	})
	return t, err
}

func parseDecision(v []byte) (d Decision, err error) {
	err = parseFields(v, d.fields(), tolerant, func(e ndn.Element) (bool, error) {
		if e.Type != typeCandidate {
			return false, nil
		}
		var c Candidate
		err := parseFields(e.Value, []field{
			{typ: typeFaceID, req: &c.FaceID}, {typ: typeCost, req: &c.Cost}, {typ: typeNote, text: &c.Note},
		}, tolerant, func(e ndn.Element) (bool, error) {
			if e.Type != typeWeight {
				return false, nil
			}
			var err error
			c.Weight, err = parseFloat(e.Value)
			return true, err
		})
		d.Candidates = append(d.Candidates, c)
		return true, err
	})
	return d, err
}
