package sim

import (
	"time"

	"ndnpop/consumer"
	"ndnpop/ndn"
)

// FlowSample is what a fetch did in one interval of its probe.
type FlowSample struct {
	At time.Duration // end of the interval
	// Rate is the payload that arrived, repetitions not counted, in bit/s.
	Rate float64
	// RTT is the mean of the interval's samples, RTTMin and RTTMax their
	// bounds; zero when there were none.
	RTT, RTTMin, RTTMax time.Duration
	Window              float64 // packets, at the end
	Pacing              float64 // bytes per second, 0 unpaced
	Inflight            int
	Sent, Resent        uint64 // Interests, and of these repetitions
	Losses, Marks       uint64
}

// LinkSample is what a direction of a link did in one interval of its probe.
type LinkSample struct {
	At    time.Duration // end of the interval
	Rate  float64       // bit/s that arrived
	Queue int64         // bytes, at the end
	// Drops by a full queue or CoDel, and by loss or failure.
	Drops, Losses int64
}

// arrivals collects what happens to a fetch within an interval.
type arrivals struct {
	rtts     int
	sum      time.Duration
	min, max time.Duration
	pacing   float64
}

// flowTracer is the consumer.Tracer of a fetch: it feeds the probe, the trace
// and the user's own.
type flowTracer struct{ f *Fetch }

func (f *Fetch) tracer() consumer.Tracer {
	if f.cfg.Probe <= 0 && f.net.trace == nil {
		return f.cfg.Tracer
	}
	f.tracing = flowTracer{f}
	return &f.tracing
}

// Trace implements consumer.Tracer.
func (t *flowTracer) Trace(e *consumer.TraceEvent) {
	f := t.f
	if f.cfg.Tracer != nil {
		f.cfg.Tracer.Trace(e)
	}
	if f.net.trace != nil {
		f.net.trace.flow(f, e)
	}
	a := &f.arrivals
	a.pacing = e.Rate
	if e.Kind == consumer.TraceData && e.RTT > 0 {
		if a.rtts == 0 || e.RTT < a.min {
			a.min = e.RTT
		}
		a.max = max(a.max, e.RTT)
		a.rtts++
		a.sum += e.RTT
	}
}

// Samples are those of the probe so far.
func (f *Fetch) Samples() []FlowSample { return f.samples }

// probe takes a sample after every interval until the fetch ends.
func (f *Fetch) probe(every time.Duration) {
	last := f.core.Stats()
	f.net.calls.every(every, func(now ndn.Time) bool {
		s, a := f.core.Stats(), f.arrivals
		o, _ := f.core.Object()
		x := FlowSample{
			At: now.Sub(Epoch), Window: s.Cwnd, Inflight: s.Inflight, Pacing: a.pacing,
			Rate:   float64(s.Segments-last.Segments) * float64(o.SegmentSize) * 8 / every.Seconds(),
			RTTMin: a.min, RTTMax: a.max,
			Sent: s.Interests - last.Interests, Resent: s.Retransmissions - last.Retransmissions,
			Losses: s.EarlyLosses + s.Timeouts - last.EarlyLosses - last.Timeouts, Marks: s.Marks - last.Marks,
		}
		if a.rtts > 0 {
			x.RTT = a.sum / time.Duration(a.rtts)
		}
		f.samples = append(f.samples, x)
		last, f.arrivals = s, arrivals{pacing: a.pacing}
		return !f.ended
	})
}

// LinkProbe records what a direction does.
type LinkProbe struct{ samples []LinkSample }

// Samples are those taken so far.
func (p *LinkProbe) Samples() []LinkSample { return p.samples }

// Probe records a sample after every interval from now on.
func (d *Direction) Probe(every time.Duration) *LinkProbe {
	p := &LinkProbe{}
	last := d.Counters()
	d.net.calls.every(every, func(now ndn.Time) bool {
		c := d.Counters()
		p.samples = append(p.samples, LinkSample{
			At: now.Sub(Epoch), Queue: d.Queue(),
			Rate:   float64(c.OutBytes-last.OutBytes) * 8 / every.Seconds(),
			Drops:  c.QueueDrops + c.CoDelDrops - last.QueueDrops - last.CoDelDrops,
			Losses: c.LossDrops + c.CutDrops + c.OverloadDrops - last.LossDrops - last.CutDrops - last.OverloadDrops,
		})
		last = c
		return true
	})
	return p
}

// ticker calls a function at an interval.
type ticker struct {
	s     *scheduler
	id    int32
	every time.Duration
	fn    func(ndn.Time) bool
}

func (t *ticker) fire(now ndn.Time) ndn.Time {
	if !t.fn(now) {
		t.s.leave(t.id)
		return ndn.Never
	}
	return now.Add(t.every)
}

// every calls fn after every interval until it returns false.
func (s *scheduler) every(d time.Duration, fn func(ndn.Time) bool) {
	d = max(d, 1)
	t := &ticker{s: s, every: d, fn: fn}
	t.id = s.join(t)
	s.wake(t.id, s.clock.Add(d))
}

// Every calls fn at a fixed interval, until it returns false.
func (n *Network) Every(d time.Duration, fn func() bool) {
	n.calls.every(d, func(ndn.Time) bool { return fn() })
}
