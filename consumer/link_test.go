package consumer

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

const ms = time.Millisecond

// nullSigner makes Data cheap.
type nullSigner struct{}

func (nullSigner) AppendSigInfo(b []byte) []byte {
	return append(b, byte(ndn.TypeSigInfo), 3, byte(ndn.TypeSigType), 1, byte(ndn.SigNull))
}
func (nullSigner) AppendSignature(b, _ []byte) ([]byte, error) { return b, nil }

// origin is a producer of one object.
type origin struct {
	name     ndn.Name // with version
	prefix   ndn.Name
	content  []byte
	segSize  int
	fields   bool // file-server fields in the metadata
	inline   int
	noMeta   bool
	lateFBI  bool // FinalBlockId on the last segment only
	sizes    []int
	requests int
	total    int // segments, all of them content, for long runs
}

func newOrigin(size, segSize int) *origin {
	o := &origin{prefix: ndn.MustName("/test/object"), segSize: segSize, fields: true, content: make([]byte, size)}
	o.name = o.prefix.Clone().AppendNumber(ndn.TypeVersion, 7)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(o.content)
	return o
}

func (o *origin) segments() int {
	if o.total > 0 {
		return o.total
	}
	if len(o.sizes) > 0 {
		return len(o.sizes)
	}
	return int(lastSegment(uint64(len(o.content)), uint64(o.segSize))) + 1
}

func (o *origin) segment(n int) []byte {
	if o.total > 0 {
		return o.content
	}
	if len(o.sizes) > 0 {
		at := 0
		for _, s := range o.sizes[:n] {
			at += s
		}
		return o.content[at : at+o.sizes[n]]
	}
	return o.content[n*o.segSize : min(len(o.content), (n+1)*o.segSize)]
}

func (o *origin) metadata() []byte {
	c := ndn.Name(o.name).AppendTLVTo(nil)
	if o.fields {
		c = ndn.AppendTLV(c, ndn.TypeFinalBlock, ndn.Name(nil).AppendNumber(ndn.TypeSegment, uint64(o.segments()-1)))
		c = ndn.AppendNatTLV(c, typeMetaSegmentSize, uint64(o.segSize))
		c = ndn.AppendNatTLV(c, typeMetaSize, uint64(len(o.content)))
	}
	if o.inline > 0 {
		c = ndn.AppendTLV(c, typeMetaInline, o.content[:min(o.inline, len(o.content))])
	}
	return c
}

func mustData(f *ndn.DataFields, s ndn.Signer) []byte {
	w, err := ndn.AppendData(nil, f, s)
	if err != nil {
		panic(err)
	}
	return w
}

// answer returns the Data for an Interest, nil for silence.
func (o *origin) answer(in *ndn.Interest) []byte {
	o.requests++
	meta := o.prefix.Clone().Append(metadataComponent)
	if in.Name.Equal(meta) {
		if o.noMeta {
			return nil
		}
		n := meta.AppendNumber(ndn.TypeVersion, 99).AppendNumber(ndn.TypeSegment, 0)
		return mustData(&ndn.DataFields{Name: n, Content: o.metadata(), Freshness: ms}, nullSigner{})
	}
	if !in.Name.HasPrefix(o.name) {
		return mustData(&ndn.DataFields{Name: in.Name, ContentType: ndn.ContentNack}, nullSigner{})
	}
	c, _ := in.Name[len(o.name):].Next()
	seg, ok := c.NumberAs(ndn.TypeSegment)
	if !ok || int(seg) >= o.segments() {
		return mustData(&ndn.DataFields{Name: in.Name, ContentType: ndn.ContentNack}, nullSigner{})
	}
	f := &ndn.DataFields{Name: in.Name, Content: o.segment(int(seg))}
	if !o.lateFBI || int(seg) == o.segments()-1 {
		f.FinalBlock = ndn.Name(nil).AppendNumber(ndn.TypeSegment, uint64(o.segments()-1))
	}
	return mustData(f, nullSigner{})
}

type event struct {
	at  ndn.Time
	seq int
	do  func(ndn.Time)
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || (e[i].at == e[j].at && e[i].seq < e[j].seq)
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// net is a world in virtual time: flows behind one bottleneck for Data.
type net struct {
	t     *testing.T
	now   ndn.Time
	queue events
	seq   int
	flows []*flow

	rate   float64 // bytes per second of the bottleneck, 0: infinite
	buffer float64 // bytes in front of it
	freeAt ndn.Time
	drops  int
	markAt float64 // queued bytes above which Data is marked, 0: never
	rng    *rand.Rand
}

func newNet(t *testing.T, rate, buffer float64) *net {
	return &net{t: t, now: 1, rate: rate, buffer: buffer, rng: rand.New(rand.NewPCG(1, 2))}
}

func (n *net) at(t ndn.Time, do func(ndn.Time)) {
	n.seq++
	heap.Push(&n.queue, event{t, n.seq, do})
}

// flow is one fetch and its path.
type flow struct {
	n     *net
	f     *Fetch
	src   *origin
	delay time.Duration // one way
	start ndn.Time

	loseInterest, loseData func(seg uint64, nth int) bool
	jitter                 func() time.Duration
	nack                   func(now ndn.Time, in *ndn.Interest) (ndn.NackReason, bool)
	tag                    func(seg uint64) (ndn.PathTag, time.Duration, bool) // another source
	sent                   []sent
	nth                    map[uint64]int
	nonces                 map[[2]uint64]bool
	bytesAt                func(now ndn.Time, size int)
	p                      ndn.Packet
	sink                   *testSink
}

type sent struct {
	at  ndn.Time
	seg uint64
}

// testSink collects the content.
type testSink struct {
	out     bytes.Buffer
	discard bool
	obj     Object
	resume  Resume
	last    Resume
	busy    bool
	objErr  error
	bytes   int
}

func (s *testSink) Metadata(*ndn.Data) error { return nil }
func (s *testSink) Object(o *Object) (Resume, error) {
	s.obj = *o
	return s.resume, s.objErr
}
func (s *testSink) Ready() bool { return !s.busy }
func (s *testSink) Deliver(p *Piece) {
	if s.busy && p.Wire != nil {
		panic("delivered to a busy sink")
	}
	if p.Wire != nil {
		var d ndn.Data
		if err := d.Parse(p.Wire); err != nil {
			panic(err)
		}
		if !bytes.Equal(d.Content[p.Head:p.Head+len(p.Content)], p.Content) {
			panic("Head does not lead to Content")
		}
	}
	s.bytes += len(p.Content)
	if !s.discard {
		s.out.Write(p.Content)
	}
	s.last = p.Then
}

func (n *net) add(src *origin, delay time.Duration, cfg Config, ctrl cc.Controller, tr Tracer) *flow {
	n.t.Helper()
	fl := &flow{n: n, src: src, delay: delay, nth: map[uint64]int{}, nonces: map[[2]uint64]bool{}, sink: &testSink{}}
	if cfg.Name == nil {
		c := DefaultConfig(src.prefix)
		cfg.Name, cfg.Retries, cfg.Rho = c.Name, c.Retries, c.Rho
	}
	f, err := New(cfg, ctrl, fl.sink, tr, n.now)
	if err != nil {
		n.t.Fatal(err)
	}
	fl.f = f
	n.flows = append(n.flows, fl)
	return fl
}

func (fl *flow) pump(now ndn.Time) {
	if now < fl.start {
		return
	}
	for {
		w, ok := fl.f.Next(now, nil)
		if !ok {
			return
		}
		var in ndn.Interest
		if err := in.Parse(w); err != nil {
			fl.n.t.Fatal(err)
		}
		c, _ := in.Name.At(-1)
		seg, isSeg := c.NumberAs(ndn.TypeSegment)
		if !isSeg {
			seg = 1 << 40
		}
		if key := [2]uint64{seg, uint64(in.Nonce)}; fl.nonces[key] {
			fl.n.t.Fatalf("nonce %x used twice for segment %d", in.Nonce, seg)
		} else {
			fl.nonces[key] = true
		}
		fl.nth[seg]++
		fl.sent = append(fl.sent, sent{now, seg})
		if fl.loseInterest != nil && fl.loseInterest(seg, fl.nth[seg]) {
			continue
		}
		fl.travel(now, in, seg, fl.nth[seg])
	}
}

func (fl *flow) travel(now ndn.Time, in ndn.Interest, seg uint64, nth int) {
	n := fl.n
	if fl.nack != nil {
		if reason, yes := fl.nack(now, &in); yes {
			n.at(now.Add(2*fl.delay), func(now ndn.Time) {
				fl.p = ndn.Packet{Kind: ndn.KindNack, Interest: in}
				fl.p.NackReason = reason
				fl.f.Nack(now, &fl.p)
			})
			return
		}
	}
	if fl.tag != nil {
		if tag, rtt, yes := fl.tag(seg); yes { // a cache before the bottleneck
			w := fl.src.answer(&in)
			n.at(now.Add(rtt), func(now ndn.Time) { fl.arrive(now, w, tag, false) })
			return
		}
	}
	n.at(now.Add(fl.delay), func(now ndn.Time) {
		w := fl.src.answer(&in)
		if w == nil || (fl.loseData != nil && fl.loseData(seg, nth)) {
			return
		}
		mark := false
		if n.rate > 0 {
			queued := max(0, n.freeAt.Sub(now).Seconds()*n.rate)
			if queued+float64(len(w)) > n.buffer {
				n.drops++
				return
			}
			mark = n.markAt > 0 && queued > n.markAt
			n.freeAt = max(n.freeAt, now).Add(time.Duration(float64(len(w)) / n.rate * 1e9))
			now = n.freeAt
		}
		now = now.Add(fl.delay)
		if fl.jitter != nil {
			now = now.Add(fl.jitter())
		}
		n.at(now, func(now ndn.Time) { fl.arrive(now, w, ndn.PathTag{Tag: 1, Hops: 3}, mark) })
	})
}

func (fl *flow) arrive(now ndn.Time, w []byte, tag ndn.PathTag, mark bool) {
	f := ndn.LpFields{}
	if fl.tag != nil {
		f.HasPathTag, f.PathTag = true, tag
	}
	if mark {
		f.CongestionMark = 1
	}
	if err := fl.p.Parse(w, &f); err != nil {
		fl.n.t.Fatal(err)
	}
	if fl.bytesAt != nil {
		fl.bytesAt(now, len(fl.p.Data.Content))
	}
	fl.f.Data(now, &fl.p)
}

// run lets time pass until all fetches are done or the time is over.
func (n *net) run(until time.Duration) {
	end := ndn.Time(until)
	for n.now <= end {
		next := ndn.Never
		if len(n.queue) > 0 {
			next = n.queue[0].at
		}
		open := false
		for _, fl := range n.flows {
			if fl.f.Done() {
				continue
			}
			open = true
			next = min(next, max(fl.f.Deadline(), fl.start))
		}
		if !open || next == ndn.Never {
			return
		}
		if next > end {
			n.now = end
			return
		}
		n.now = max(n.now, next)
		if len(n.queue) > 0 && n.queue[0].at <= n.now {
			heap.Pop(&n.queue).(event).do(n.now)
		}
		for _, fl := range n.flows {
			if fl.f.Deadline() <= n.now {
				fl.f.Tick(n.now)
			}
			fl.pump(n.now)
			fl.check()
		}
	}
}

// check tests invariants of the core's state.
func (fl *flow) check() {
	f := fl.f
	inflight := f.inflight()
	if f.stage != stageFetch || inflight > 64 {
		return
	}
	out, lost := 0, 0
	for s := f.base; s < f.next; s++ {
		sl := f.ring.at(s)
		if sl.seg != s {
			fl.n.t.Fatalf("slot of segment %d holds %d", s, sl.seg)
		}
		if sl.state == slotOutstanding {
			out++
		}
		if sl.lost && sl.state != slotReceived {
			lost++
		}
	}
	listed := 0
	for k, l := range f.lanes {
		last, mine := uint64(0), 0
		for i := f.ring.lists[k].head; i != none; i = f.ring.slots[i].next {
			s := &f.ring.slots[i]
			if s.tx <= last || s.lane != l.index || s.state != slotOutstanding {
				fl.n.t.Fatal("order or place of transmissions broken")
			}
			last = s.tx
			mine++
		}
		if mine != l.inflight {
			fl.n.t.Fatalf("lane %d: in flight %d, listed %d", k, l.inflight, mine)
		}
		listed += mine
	}
	if out != inflight || listed != out || lost != f.unrep {
		fl.n.t.Fatalf("in flight %d, outstanding %d, listed %d; unrepaired %d, lost %d", inflight, out, listed, f.unrep, lost)
	}
	if f.bufBytes > f.cfg.ReorderBytes+16*bufferSize(ndn.MaxPacketSize) {
		fl.n.t.Fatalf("%d bytes of reorder buffers", f.bufBytes)
	}
}

func (fl *flow) ok() {
	fl.n.t.Helper()
	if !fl.f.Done() || fl.f.Err() != nil {
		fl.n.t.Fatalf("done %v, error %v, stats %+v", fl.f.Done(), fl.f.Err(), fl.f.Stats())
	}
	if !fl.sink.discard && !bytes.Equal(fl.sink.out.Bytes(), fl.src.content) {
		fl.n.t.Fatalf("%d bytes came out, not the %d of the object", fl.sink.out.Len(), len(fl.src.content))
	}
}

func (fl *flow) elapsed() time.Duration { return fl.f.stats.Finished.Sub(max(fl.start, 1)) }

func controller(t testing.TB, name string, p cc.Params) cc.Controller {
	t.Helper()
	r, err := cc.NewRegistry(cc.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.New(name, p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func cfgFor(o *origin) Config { return DefaultConfig(o.prefix) }

// traceLog keeps the events of a kind.
type traceLog []TraceEvent

func (l *traceLog) Trace(e *TraceEvent) { *l = append(*l, *e) }

func (l traceLog) of(kind TraceKind) []TraceEvent {
	return slices.DeleteFunc(slices.Clone(l), func(e TraceEvent) bool { return e.Kind != kind })
}

func (l traceLog) String() string {
	var b bytes.Buffer
	for _, e := range l {
		fmt.Fprintf(&b, "%+v\n", e)
	}
	return b.String()
}
