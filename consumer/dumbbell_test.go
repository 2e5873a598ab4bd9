package consumer

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

// papers runs the experiments at their full length, over all their settings.
var papers = flag.Bool("papers", false, "run the papers' experiments in full (minutes)")

// bell is a dumbbell in virtual time for many packets: fetch cores behind one
// drop-tail bottleneck for Data, with propagation, random loss and noise per
// flow. Data is patched into a template, so that a packet costs about what the
// core costs.
type bell struct {
	t      testing.TB
	now    ndn.Time
	rate   float64 // bytes per second
	buffer float64 // bytes
	freeAt ndn.Time
	rng    *rand.Rand
	events bellEvents
	seq    uint64
	flows  []*bellFlow

	// Since the last mark: packets that passed the queue, their waiting time,
	// those dropped.
	passed, dropped int
	waited          time.Duration
}

type bellKind uint8

const (
	atQueue bellKind = iota // an Interest has reached the far side of the queue
	atFetch                 // a Data arrives
	atHit                   // a Data of the cache arrives
)

type bellEvent struct {
	at   ndn.Time
	seq  uint64
	seg  uint64
	flow int32
	kind bellKind
}

// bellEvents is a heap by time, then by order of insertion. Unlike
// container/heap it allocates nothing per event.
type bellEvents []bellEvent

func (e bellEvents) less(i, j int) bool {
	return e[i].at < e[j].at || (e[i].at == e[j].at && e[i].seq < e[j].seq)
}

func (e *bellEvents) put(x bellEvent) {
	*e = append(*e, x)
	h := *e
	for k := len(h) - 1; k > 0 && h.less(k, (k-1)/2); k = (k - 1) / 2 {
		h[k], h[(k-1)/2] = h[(k-1)/2], h[k]
	}
}

// take removes the first event.
func (e *bellEvents) take() bellEvent {
	h := *e
	x, n := h[0], len(h)-1
	h[0] = h[n]
	h = h[:n]
	*e = h
	for k := 0; 2*k+1 < n; {
		c := 2*k + 1
		if c+1 < n && h.less(c+1, c) {
			c++
		}
		if !h.less(c, k) {
			break
		}
		h[k], h[c] = h[c], h[k]
		k = c
	}
	return x
}

// bellFlow is one fetch of an endless object, or of a number of segments.
type bellFlow struct {
	f      *Fetch
	ctrl   cc.Controller
	delay  time.Duration // one way
	start  ndn.Time
	loss   float64
	noise  float64 // mean of an exponential delay as a share of the RTT, cut off at ten times
	hits   float64 // share of segments that a cache answers after hitRTT
	hitRTT time.Duration
	tags   bool
	extra  func(now ndn.Time) time.Duration // one-way delay on top of delay
	lose   func(seg uint64) bool
	wires  map[int]*bellWire
	p      ndn.Packet
	buf    []byte
	sink   countSink
	rec    *recorder

	marked struct {
		at    ndn.Time
		stats Stats
	}
}

// bellWire is a Data whose segment number is patched.
type bellWire struct {
	b  []byte
	at int
}

type countSink struct{ bytes int }

func (*countSink) Metadata(*ndn.Data) error       { return nil }
func (*countSink) Object(*Object) (Resume, error) { return Resume{}, nil }
func (*countSink) Ready() bool                    { return true }
func (s *countSink) Deliver(p *Piece)             { s.bytes += len(p.Content) }

// recorder keeps what the fetch traced about RTT and rate.
type recorder struct {
	from ndn.Time
	rtts []float64 // ms
	sent map[int64]int
	slot time.Duration // length of the bins of sent
}

func (r *recorder) Trace(e *TraceEvent) {
	if e.Now < r.from {
		return
	}
	switch e.Kind {
	case TraceData:
		if e.RTT > 0 {
			r.rtts = append(r.rtts, e.RTT.Seconds()*1e3)
		}
	case TraceSend:
		r.sent[int64(e.Now)/int64(r.slot)]++
	}
}

// cov is the coefficient of variation of sent per bin, the ends left out.
func (r *recorder) cov() float64 {
	var v []float64
	for k := int64(r.from)/int64(r.slot) + 1; ; k++ {
		n, ok := r.sent[k]
		if !ok {
			break
		}
		v = append(v, float64(n))
	}
	if len(v) > 0 {
		v = v[:len(v)-1]
	}
	return cov(v)
}

func cov(v []float64) float64 {
	sum, sq := 0.0, 0.0
	for _, x := range v {
		sum += x
	}
	mean := sum / float64(len(v))
	for _, x := range v {
		sq += (x - mean) * (x - mean)
	}
	return math.Sqrt(sq/float64(len(v))) / mean
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

// newBell makes a bottleneck of rate bytes per second.
func newBell(t testing.TB, rate, buffer float64, seed uint64) *bell {
	return &bell{t: t, now: 1, rate: rate, buffer: buffer, rng: rand.New(rand.NewPCG(seed, 0xbe11))}
}

// add starts a flow with Data of wire bytes.
func (n *bell) add(pipe string, p cc.Params, rtt time.Duration, wire int, cfg Config) *bellFlow {
	n.t.Helper()
	fl := &bellFlow{delay: rtt / 2, ctrl: controller(n.t, pipe, p), wires: map[int]*bellWire{}}
	name := ndn.MustName("/bell").AppendNumber(ndn.TypeVersion, 1)
	if cfg.Name == nil {
		d := DefaultConfig(name)
		d.Range, d.NoEarlyLoss, d.ReorderBytes = cfg.Range, cfg.NoEarlyLoss, cfg.ReorderBytes
		cfg = d
	}
	cfg.Seed = p.Seed
	for width, seg := range map[int]uint64{1: 0xa5, 2: 0xa5a5, 4: 0xa5a5a5a5} {
		sn := name.Clone().AppendNumber(ndn.TypeSegment, seg)
		empty := mustData(&ndn.DataFields{Name: sn, Content: make([]byte, 1000)}, nullSigner{})
		b := mustData(&ndn.DataFields{Name: sn, Content: make([]byte, max(1, 1000+wire-len(empty)))}, nullSigner{})
		at := bytes.Index(b, bytes.Repeat([]byte{0xa5}, width))
		fl.wires[width] = &bellWire{b, at}
	}
	var tr Tracer
	fl.rec = &recorder{sent: map[int64]int{}, slot: rtt, from: ndn.Never}
	tr = fl.rec
	f, err := New(cfg, fl.ctrl, &fl.sink, tr, n.now)
	if err != nil {
		n.t.Fatal(err)
	}
	fl.f = f
	n.flows = append(n.flows, fl)
	return fl
}

func (n *bell) push(at ndn.Time, kind bellKind, flow int32, seg uint64) {
	n.seq++
	n.events.put(bellEvent{at, n.seq, seg, flow, kind})
}

// mark begins the time that the results are taken over.
func (n *bell) mark() {
	n.passed, n.dropped, n.waited = 0, 0, 0
	for _, fl := range n.flows {
		fl.marked.at, fl.marked.stats = n.now, fl.f.Stats()
	}
}

// got is the number of Data bytes on the wire per second since the mark.
func (fl *bellFlow) got(now ndn.Time) float64 {
	segs := fl.f.stats.Segments - fl.marked.stats.Segments
	return float64(segs) * fl.f.meanSize / now.Sub(fl.marked.at).Seconds()
}

// retx is the share of repetitions among the Interests since the mark.
func (n *bell) retx() float64 {
	re, all := 0.0, 0.0
	for _, fl := range n.flows {
		s := fl.f.Stats()
		re += float64(s.Retransmissions - fl.marked.stats.Retransmissions)
		all += float64(s.Interests - fl.marked.stats.Interests)
	}
	return re / all
}

// jain is Jain's index of the flows' rates since the mark, and util their sum
// as a share of the bottleneck.
func (n *bell) jain() (jain, util float64) {
	sum, sq := 0.0, 0.0
	for _, fl := range n.flows {
		x := fl.got(n.now)
		sum += x
		sq += x * x
	}
	return sum * sum / (sq * float64(len(n.flows))), sum / n.rate
}

// delay is the mean time in the queue since the mark.
func (n *bell) delay() time.Duration { return n.waited / time.Duration(max(1, n.passed)) }

// run lets time pass until then, or until every fetch is done.
func (n *bell) run(until time.Duration) {
	end := ndn.Time(until)
	for {
		next := ndn.Never
		if len(n.events) > 0 {
			next = n.events[0].at
		}
		open := false
		for _, fl := range n.flows {
			if !fl.f.Done() {
				open = true
				next = min(next, max(fl.f.Deadline(), fl.start))
			}
		}
		if !open {
			return
		}
		if next > end {
			n.now = end
			return
		}
		n.now = max(n.now, next)
		if len(n.events) > 0 && n.events[0].at <= n.now {
			n.step(n.events.take())
		}
		for i, fl := range n.flows {
			if fl.f.Deadline() <= n.now && fl.start <= n.now && !fl.f.Done() {
				fl.f.Tick(n.now)
				n.pump(int32(i))
			}
		}
	}
}

func (n *bell) pump(i int32) {
	fl := n.flows[i]
	for {
		var ok bool
		if fl.buf, ok = fl.f.Next(n.now, fl.buf[:0]); !ok {
			return
		}
		var in ndn.Interest
		if err := in.Parse(fl.buf); err != nil {
			n.t.Fatal(err)
		}
		c, _ := in.Name.At(-1)
		seg, _ := c.NumberAs(ndn.TypeSegment)
		if fl.hits > 0 && n.rng.Float64() < fl.hits {
			n.push(n.now.Add(fl.hitRTT), atHit, i, seg)
			continue
		}
		d := fl.delay
		if fl.extra != nil {
			d += fl.extra(n.now)
		}
		n.push(n.now.Add(d), atQueue, i, seg)
	}
}

func (n *bell) step(e bellEvent) {
	fl := n.flows[e.flow]
	if e.kind == atQueue {
		if fl.loss > 0 && n.rng.Float64() < fl.loss || fl.lose != nil && fl.lose(e.seg) {
			return
		}
		size := float64(len(fl.wire(e.seg)))
		wait := max(0, n.freeAt.Sub(n.now))
		if wait.Seconds()*n.rate+size > n.buffer {
			n.dropped++
			return
		}
		n.passed++
		n.waited += wait
		n.freeAt = max(n.freeAt, n.now).Add(time.Duration(size / n.rate * 1e9))
		d := fl.delay
		if fl.extra != nil {
			d += fl.extra(n.now)
		}
		if fl.noise > 0 {
			rtt := float64(2 * fl.delay)
			d += time.Duration(min(n.rng.ExpFloat64()*fl.noise, 10*fl.noise) * rtt)
		}
		n.push(n.freeAt.Add(d), atFetch, e.flow, e.seg)
		return
	}
	lf := ndn.LpFields{}
	if fl.tags {
		lf.HasPathTag, lf.PathTag = true, ndn.PathTag{Tag: 1, Hops: 3}
		if e.kind == atHit {
			lf.PathTag = ndn.PathTag{Tag: 77, Hops: 1, Flags: ndn.PathFromCache}
		}
	}
	if err := fl.p.Parse(fl.wire(e.seg), &lf); err != nil {
		n.t.Fatal(err)
	}
	fl.f.Data(n.now, &fl.p)
	n.pump(e.flow)
}

// wire is the Data of a segment, valid until the next call.
func (fl *bellFlow) wire(seg uint64) []byte {
	switch {
	case seg <= math.MaxUint8:
		w := fl.wires[1]
		w.b[w.at] = byte(seg)
		return w.b
	case seg <= math.MaxUint16:
		w := fl.wires[2]
		binary.BigEndian.PutUint16(w.b[w.at:], uint16(seg))
		return w.b
	}
	w := fl.wires[4]
	binary.BigEndian.PutUint32(w.b[w.at:], uint32(seg))
	return w.b
}
