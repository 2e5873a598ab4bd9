package run

import (
	"bufio"
	"io"
	"strconv"
	"time"

	"ndnpop/consumer"
	"ndnpop/ndn"
)

// Trace writes the events of a fetch: all of them as JSON lines, the window
// and the round-trip times in the formats of ndncatchunks. A nil writer leaves
// its part out. Write errors show in Close.
//
// A JSON line has t (seconds since the start), kind, segment, rtt (seconds),
// cwnd (packets), rate (bits per second), path_tag (hexadecimal) and replica
// (its place in Config.Replicas, from 1); what does not apply is left out.
type Trace struct {
	events, cwnd, rtt *bufio.Writer
	start             ndn.Time
	began             bool
	lastCwnd          float64
	buf               []byte
}

const traceBuffer = 64 << 10

// NewTrace makes a Trace. Any of the writers may be nil.
func NewTrace(events, cwnd, rtt io.Writer) *Trace {
	t := &Trace{}
	if events != nil {
		t.events = bufio.NewWriterSize(events, traceBuffer)
	}
	if cwnd != nil {
		t.cwnd = bufio.NewWriterSize(cwnd, traceBuffer)
		t.cwnd.WriteString("time\tcwndsize\n")
	}
	if rtt != nil {
		t.rtt = bufio.NewWriterSize(rtt, traceBuffer)
		t.rtt.WriteString("segment\trtt\trttvar\tsrtt\trto\n")
	}
	return t
}

// Trace implements consumer.Tracer.
func (t *Trace) Trace(e *consumer.TraceEvent) {
	if !t.began {
		t.began, t.start = true, e.Now
	}
	if t.events != nil {
		t.event(e)
	}
	if t.cwnd != nil && e.Cwnd != t.lastCwnd {
		t.lastCwnd = e.Cwnd
		b := strconv.AppendFloat(t.buf[:0], e.Now.Sub(t.start).Seconds(), 'f', 6, 64)
		b = append(b, '\t')
		b = strconv.AppendFloat(b, e.Cwnd, 'g', 7, 64)
		t.buf = append(b, '\n')
		t.cwnd.Write(t.buf)
	}
	if t.rtt != nil && e.Kind == consumer.TraceData && e.RTT > 0 && e.Tx > 0 {
		b := strconv.AppendUint(t.buf[:0], e.Segment, 10)
		for _, d := range [...]time.Duration{e.RTT, e.RTTVar, e.SRTT, e.RTO} {
			b = append(b, '\t')
			b = strconv.AppendFloat(b, d.Seconds()*1e3, 'f', -1, 64)
		}
		t.buf = append(b, '\n')
		t.rtt.Write(t.buf)
	}
}

func (t *Trace) event(e *consumer.TraceEvent) {
	b := append(t.buf[:0], `{"t":`...)
	b = strconv.AppendFloat(b, e.Now.Sub(t.start).Seconds(), 'f', 9, 64)
	b = append(b, `,"kind":"`...)
	b = append(b, e.Kind...)
	b = append(b, '"')
	if e.Tx > 0 {
		b = append(b, `,"segment":`...)
		b = strconv.AppendUint(b, e.Segment, 10)
	}
	if e.RTT > 0 {
		b = append(b, `,"rtt":`...)
		b = strconv.AppendFloat(b, e.RTT.Seconds(), 'f', 9, 64)
	}
	b = append(b, `,"cwnd":`...)
	b = strconv.AppendFloat(b, e.Cwnd, 'f', 3, 64)
	if e.Rate > 0 {
		b = append(b, `,"rate":`...)
		b = strconv.AppendFloat(b, e.Rate*8, 'f', 0, 64)
	}
	if e.Tag != 0 {
		b = append(b, `,"path_tag":"`...)
		b = strconv.AppendUint(b, e.Tag, 16)
		b = append(b, '"')
	}
	if e.Replica > 0 {
		b = append(b, `,"replica":`...)
		b = strconv.AppendInt(b, int64(e.Replica), 10)
	}
	t.buf = append(b, '}', '\n')
	t.events.Write(t.buf)
}

// Close writes what is buffered.
func (t *Trace) Close() error {
	for _, w := range [...]*bufio.Writer{t.events, t.cwnd, t.rtt} {
		if w == nil {
			continue
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
