package sim

import (
	"bufio"
	"io"
	"strconv"
	"unicode/utf8"

	"ndnpop/consumer"
	"ndnpop/ndn"
	"ndnpop/sim/line"
	"ndnpop/strategy"
)

// tracer writes events as lines of JSON: "t" is nanoseconds since the start
// and "ev" one of
//
//	rx        a packet reached a forwarder: node, face, kind, name, bytes
//	drop      a packet was lost on a link: link, why, bytes, and name if whole
//	decision  a strategy acted: node, event, what, name, to, why
//	flow      an event of a fetch: fetch, node, what, seg, tx, rtt, cwnd, rate
//	change    something was changed: what, which, to
//
// Numbers are written in their shortest form, so that the same run gives the
// same bytes.
type tracer struct {
	n      *Network
	w      *bufio.Writer
	b      []byte
	packet ndn.LpPacket
	parsed ndn.Packet
}

func newTracer(n *Network, w io.Writer) *tracer {
	return &tracer{n: n, w: bufio.NewWriterSize(w, 1<<16)}
}

func (t *tracer) flush() { t.n.fail(t.w.Flush()) }

func (t *tracer) begin(at ndn.Time, ev string) {
	t.b = append(t.b[:0], `{"t":`...)
	t.b = strconv.AppendInt(t.b, int64(at.Sub(Epoch)), 10)
	t.str("ev", ev)
}

// end writes the line. A writer's error is sticky and comes back from flush.
func (t *tracer) end() { _, _ = t.w.Write(append(t.b, '}', '\n')) }

func (t *tracer) key(k string) {
	t.b = append(t.b, ',', '"')
	t.b = append(t.b, k...)
	t.b = append(t.b, '"', ':')
}

func (t *tracer) num(k string, v int64) {
	t.key(k)
	t.b = strconv.AppendInt(t.b, v, 10)
}

func (t *tracer) float(k string, v float64) {
	t.key(k)
	t.b = strconv.AppendFloat(t.b, v, 'g', -1, 64)
}

func (t *tracer) str(k, v string) {
	t.key(k)
	t.b = appendJSON(t.b, v)
}

// appendJSON appends a string in quotes.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// watch has the losses of a direction written.
func (t *tracer) watch(d *Direction) {
	d.line.OnDrop = func(at ndn.Time, why line.Drop, packet []byte, size int) {
		t.begin(at, "drop")
		t.str("link", d.name)
		t.str("why", why.String())
		t.num("bytes", int64(size))
		if t.packet.Parse(packet) == nil && t.packet.Fragment != nil &&
			t.parsed.Parse(t.packet.Fragment, &t.packet.LpFields) == nil {
			t.what(&t.parsed)
		}
		t.end()
	}
}

// what writes kind and name of a packet.
func (t *tracer) what(p *ndn.Packet) {
	switch p.Kind {
	case ndn.KindInterest:
		t.str("kind", "interest")
		t.str("name", p.Interest.Name.String())
	case ndn.KindData:
		t.str("kind", "data")
		t.str("name", p.Data.Name.String())
	case ndn.KindNack:
		t.str("kind", "nack")
		t.str("name", p.Interest.Name.String())
		t.str("why", p.NackReason.String())
	}
	if p.CongestionMark != 0 {
		t.num("mark", int64(p.CongestionMark))
	}
}

func (t *tracer) received(x *Node, p *port, size int) {
	t.begin(t.n.now, "rx")
	t.str("node", x.name)
	t.num("face", int64(p.face))
	t.num("bytes", int64(size))
	t.what(&t.n.packet)
	t.end()
}

func (t *tracer) flow(f *Fetch, e *consumer.TraceEvent) {
	t.begin(e.Now, "flow")
	t.num("fetch", int64(f.index))
	t.str("node", f.node.name)
	t.str("what", string(e.Kind))
	t.num("seg", int64(e.Segment))
	t.num("tx", int64(e.Tx))
	if e.RTT > 0 {
		t.num("rtt", int64(e.RTT))
	}
	t.float("cwnd", e.Cwnd)
	if e.Rate > 0 {
		t.float("rate", e.Rate)
	}
	t.end()
}

// note writes a change.
func (n *Network) note(what, which, to string) {
	if t := n.trace; t != nil {
		t.begin(n.now, "change")
		t.str("what", what)
		t.str("which", which)
		t.str("to", to)
		t.end()
	}
}

// decisions is a node as its shard's strategy.Tracer.
type decisions Node

// Trace implements strategy.Tracer.
func (d *decisions) Trace(e *strategy.Decision) {
	if d.watch != nil {
		d.watch(e)
	}
	t := d.net.trace
	if t == nil {
		return
	}
	t.begin(e.Now, "decision")
	t.str("node", d.name)
	t.str("event", e.Event)
	switch e.Kind {
	case strategy.TraceSend:
		t.str("what", "send")
		t.str("why", e.Refusal.String())
	case strategy.TraceNack:
		t.str("what", "nack")
		t.str("why", e.Nack.String())
	case strategy.TraceExplain:
		t.str("what", "choose")
		t.str("why", e.Reason)
	}
	t.num("to", int64(e.To))
	t.str("name", e.Name.String())
	t.end()
}
