package mgmt

import (
	"bytes"
	"slices"
	"sync"
	"time"

	proto "ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/strategy"
)

// Bounds of traces. They keep what a follower costs the forwarder small: it
// is a small part of the time of one processor, however much traffic there is.
const (
	maxTraces    = 8         // prefixes followed at once
	traceRate    = 500       // strategy events told per second and prefix
	traceBurst   = 100       // of them at once
	traceQueue   = 256 << 10 // bytes of decisions that wait for a follower
	traceBatch   = 6000      // bytes of decisions in one Data
	traceSpacing = 20 * time.Millisecond
	traceKept    = 8                // Data that a second follower can still get
	traceFor     = 10 * time.Second // since the last Interest of a follower
)

// tracer is what strategies tell their decisions to while somebody follows
// them (strategy.Tracer, strategy.TraceFilter). A shard calls it with its lock
// held, so that it does no more than append to bounded queues.
type tracer struct {
	wake func()
	own  ndn.Name // the prefix of management

	mu    sync.Mutex
	wall  time.Time // at the forwarder's time at
	at    ndn.Time
	feeds []*feed
	// The event that was last asked about, and the feeds that get it.
	asked ndn.Time
	name  []byte
	mask  uint64
}

// feed is one prefix that is followed.
type feed struct {
	prefix ndn.Name
	queue  [][]byte // encoded decisions
	bytes  int
	lost   uint64
	tokens float64
	filled ndn.Time
}

// Follows implements strategy.TraceFilter.
func (t *tracer) Follows(now ndn.Time, name ndn.Name) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.match(now, name) != 0
}

// match returns the feeds that get what is decided about an Interest at a
// time, one bit each. An event is told as a whole or not at all.
func (t *tracer) match(now ndn.Time, name ndn.Name) uint64 {
	if now == t.asked && t.name != nil && bytes.Equal(t.name, name) {
		return t.mask
	}
	t.asked, t.name, t.mask = now, append(t.name[:0], name...), 0
	if t.name == nil {
		t.name = []byte{}
	}
	for i, f := range t.feeds {
		// A follower of everything would follow its own Interests.
		if !name.HasPrefix(f.prefix) || name.HasPrefix(t.own) {
			continue
		}
		f.tokens = min(traceBurst, f.tokens+traceRate*now.Sub(f.filled).Seconds())
		f.filled = now
		if f.tokens < 1 {
			f.lost++
			continue
		}
		f.tokens--
		t.mask |= 1 << i
	}
	return t.mask
}

// Trace implements strategy.Tracer.
func (t *tracer) Trace(d *strategy.Decision) {
	t.mu.Lock()
	mask := t.match(d.Now, d.Name)
	if mask == 0 {
		t.mu.Unlock()
		return
	}
	item := t.encode(d)
	wake := false
	for i, f := range t.feeds {
		switch {
		case mask>>i&1 == 0:
		case len(item) > traceBatch || f.bytes+len(item) > traceQueue:
			f.lost++
		default:
			wake = wake || len(f.queue) == 0
			f.queue = append(f.queue, item)
			f.bytes += len(item)
		}
	}
	t.mu.Unlock()
	if wake {
		t.wake()
	}
}

func (t *tracer) encode(d *strategy.Decision) []byte {
	out := proto.Decision{
		Time: uint64(max(t.wall.Add(d.Now.Sub(t.at)).UnixMicro(), 0)),
		Name: d.Name, Strategy: d.Strategy, Event: d.Event, Incoming: uint64(d.In), FaceID: uint64(d.To),
	}
	switch d.Kind {
	case strategy.TraceSend:
		out.Kind, out.Result = proto.DecisionSend, d.Refusal.String()
	case strategy.TraceNack:
		out.Kind, out.Result = proto.DecisionNack, d.Nack.String()
	case strategy.TraceExplain:
		out.Kind, out.Reason = proto.DecisionExplain, d.Reason
		for i := range d.Candidates {
			c := &d.Candidates[i]
			out.Candidates = append(out.Candidates, proto.Candidate{FaceID: uint64(c.Face), Cost: c.Cost, Weight: c.Weight, Note: c.Note})
		}
	}
	return out.AppendTo(nil)
}

// add starts a feed, and remove ends it.
func (t *tracer) add(f *feed, now ndn.Time, wall time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.wall, t.name = now, wall, nil
	f.tokens, f.filled = traceBurst, now
	t.feeds = append(t.feeds, f)
}

func (t *tracer) remove(f *feed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.name = nil
	t.feeds = slices.DeleteFunc(t.feeds, func(x *feed) bool { return x == f })
}

// batch takes the content of one Data out of a feed, nil if there is nothing.
func (t *tracer) batch(f *feed) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(f.queue) == 0 {
		return nil
	}
	b := (&proto.Trace{Lost: f.lost}).AppendTo(nil)
	f.lost = 0
	n, size := 0, 0
	for n < len(f.queue) && size+len(f.queue[n]) <= traceBatch {
		b = append(b, f.queue[n]...)
		size += len(f.queue[n])
		n++
	}
	f.bytes -= size
	f.queue = slices.Delete(f.queue, 0, n)
	return b
}

// waiting reports whether a feed has something to tell.
func (t *tracer) waiting(f *feed) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(f.queue) > 0
}

// traces are the streams of followers; Server.mu guards them.
type traces struct {
	tracer    tracer
	streams   []*traceStream
	installed bool // the forwarder tells the tracer; only work uses it
}

// traceStream publishes the decisions about the Interests below a prefix.
type traceStream struct {
	eventStream
	feed  feed
	until ndn.Time // without a further Interest
	last  ndn.Time // when a Data was made
}

// trace answers an Interest for decisions, at once or when there are some. The
// first one for a prefix starts its stream.
func (s *Server) trace(now ndn.Time, p *ndn.Packet) {
	i := &p.Interest
	arg, ok := i.Name.At(4)
	var prefix ndn.Name
	var err error
	if ok && arg.Type == ndn.TypeGeneric {
		prefix, err = ndn.ParseNameTLV(arg.Value)
	}
	if !ok || arg.Type != ndn.TypeGeneric || err != nil || prefix.Len() > ndn.MaxComponents || len(prefix) > maxDatasetName {
		s.rejectDataset(p, i.Name, proto.StatusBadRequest, "a trace needs the prefix to follow")
		return
	}
	s.mu.Lock()
	st := s.traces.find(prefix)
	if st == nil && len(s.traces.streams) < maxTraces {
		st = &traceStream{
			eventStream: eventStream{prefix: i.Name.Prefix(5).Clone(), next: uint64(max(s.wall().UnixMilli(), 0)), keep: traceKept},
			feed:        feed{prefix: prefix.Clone()},
		}
		s.traces.streams = append(s.traces.streams, st)
		s.traces.tracer.add(&st.feed, now, s.wall())
	}
	kept := true
	if st != nil {
		st.until = now.Add(traceFor)
		kept = st.ask(now, i, s.reply(p.PitToken))
	}
	s.mu.Unlock()
	if !kept {
		s.nack(p)
	}
	if st == nil {
		s.rejectDataset(p, i.Name, proto.StatusUnavailable, "too many prefixes are followed already")
		return
	}
	s.queue.wakeUp()
}

func (t *traces) find(prefix ndn.Name) *traceStream {
	for _, st := range t.streams {
		if st.feed.prefix.Equal(prefix) {
			return st
		}
	}
	return nil
}

// work publishes what there is for those who wait, ends streams that nobody
// follows, and returns when there may be more to do.
func (t *traces) work(now ndn.Time) (next ndn.Time) {
	next = ndn.Never
	t.streams = slices.DeleteFunc(t.streams, func(st *traceStream) bool {
		if st.until <= now {
			t.tracer.remove(&st.feed)
			return true
		}
		next = min(next, st.until)
		switch due := st.last.Add(traceSpacing); {
		case !st.awaited(now) || !t.tracer.waiting(&st.feed):
		case now < due:
			next = min(next, due)
		default:
			st.last = now
			st.publish(now, t.tracer.batch(&st.feed))
		}
		return false
	})
	return next
}

// install makes the forwarder tell the tracer while somebody follows. It is
// called without Server.mu.
func (s *Server) install(on bool) {
	if on == s.traces.installed {
		return
	}
	s.traces.installed = on
	if on {
		s.fwd.Strategies.TraceStrategies(&s.traces.tracer)
	} else {
		s.fwd.Strategies.TraceStrategies(nil)
	}
}
