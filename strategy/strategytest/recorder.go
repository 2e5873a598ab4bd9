package strategytest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"ndnpop/fw"
	"ndnpop/ndn"
	"ndnpop/strategy"
)

// Prefix is the name that the strategy is bound to, and that all hops have
// routes for.
const Prefix = "/p"

// begin is the shard's time at which a run begins. All times that a Recorder
// takes and returns are relative to it.
const begin = ndn.Time(time.Hour)

// Recorder runs a strategy in a shard between scripted peers. It is not safe
// for concurrent use.
type Recorder struct {
	// Sends are the Interests that went upstream, in order.
	Sends []Send
	// Refused counts the attempts that the shard refused, by reason.
	Refused map[strategy.Refusal]int
	// Watch, if set, sees every decision as it is taken.
	Watch func(at time.Duration, d *strategy.Decision)
	// Late is after which time timers fire that are armed to fire at once, as a
	// daemon's do.
	Late time.Duration

	shard  *fw.Shard
	prefix ndn.Name
	now    ndn.Time
	served ndn.Time // when timers fire that are due already; 0 without them
	queue  queue
	rng    *rand.Rand
	hops   []*Hop
	peers  map[ndn.FaceID]peer
	last   ndn.FaceID
	nonce  uint32
	parsed ndn.Packet
	sent   map[string]struct{}

	why       string // of the Interest that is sent next
	whyTo     ndn.FaceID
	announced int
}

// peer is what the shard's packets go to.
type peer interface {
	// take takes a packet; it is a view that is valid during the call.
	take(p *ndn.Packet) bool
}

// Send is one Interest that went upstream.
type Send struct {
	At    time.Duration
	Hop   *Hop
	Name  ndn.Name
	Nonce uint32
	Event string // the handler that sent it: "Interest", "Timer", …
	// Why is the reason that the strategy explained the choice of this hop
	// with, empty if it did not.
	Why string
	// Again is set when this entry's Interest had gone somewhere before.
	Again        bool
	NonDiscovery bool
}

// String is one line of a report.
func (s Send) String() string {
	again := ""
	if s.Again {
		again = " again"
	}
	why := ""
	if s.Why != "" {
		why = ": " + s.Why
	}
	return fmt.Sprintf("%v %s -> %s%s (%s%s)", s.At, s.Name, s.Hop.Name, again, s.Event, why)
}

// New returns a recorder of one strategy with parameters of the form
// name~value.
func New(seed uint64, f strategy.Factory, params ...string) (*Recorder, error) {
	set, err := strategy.NewSet(f)
	if err != nil {
		return nil, err
	}
	r := &Recorder{
		Refused: make(map[strategy.Refusal]int),
		prefix:  ndn.MustName(Prefix),
		now:     begin,
		rng:     rand.New(rand.NewPCG(seed, seed)),
		peers:   make(map[ndn.FaceID]peer),
		last:    256,
		sent:    make(map[string]struct{}),
	}
	name := f.FullName()
	for _, p := range params {
		name = name.AppendGeneric(p)
	}
	cfg := fw.Config{
		Seed: seed, NodeID: 1, DefaultStrategy: name,
		OnAnnouncement: func(now ndn.Time, from ndn.FaceID, _ ndn.Name, _ []byte) { r.learn(from) },
	}
	if r.shard, err = fw.New(cfg, set, (*sender)(r)); err != nil {
		return nil, err
	}
	r.shard.SetTracer((*tracer)(r))
	return r, nil
}

// AddHop adds an upstream with a route, from now on.
func (r *Recorder) AddHop(h Hop) *Hop {
	p := &h
	p.r, p.face = r, r.newFace(p, false)
	r.hops = append(r.hops, p)
	if !p.NoRoute {
		r.must(r.shard.SetNextHop(r.now, r.prefix, p.face, p.Cost))
	}
	return p
}

// AddConsumer adds a downstream that begins at once, or when Start says.
func (r *Recorder) AddConsumer(c Consumer) *Consumer {
	p := &c
	p.begin(r)
	return p
}

// At calls fn at a time of the run, or at once if that is past.
func (r *Recorder) At(at time.Duration, fn func()) { r.queue.push(begin.Add(at), fn) }

// Now is the time of the run.
func (r *Recorder) Now() time.Duration { return r.now.Sub(begin) }

// Run runs until a time of the run, inclusive.
func (r *Recorder) Run(until time.Duration) {
	end := begin.Add(until)
	for {
		at := r.queue.next()
		d := r.shard.Deadline()
		if d <= r.now {
			if r.served == 0 {
				r.served = r.now.Add(r.Late)
			}
			d = r.served
		}
		if min(at, d) > end {
			break
		}
		if d <= at {
			r.now, r.served = max(r.now, d), 0
			r.shard.Tick(r.now)
			continue
		}
		r.now = max(r.now, at)
		r.queue.pop()()
	}
	r.now = max(r.now, end)
	r.shard.Tick(r.now)
}

// Shard is the shard, for what a test wants to ask or change itself.
func (r *Recorder) Shard() *fw.Shard { return r.shard }

// Time is the shard's time at a time of the run.
func (r *Recorder) Time(at time.Duration) ndn.Time { return begin.Add(at) }

// Share is the part of the Interests sent upstream between two times that a
// hop got, counting only those that are the first for their entry.
func (r *Recorder) Share(h *Hop, from, to time.Duration) float64 {
	all, mine := 0, 0
	for i := range r.Sends {
		s := &r.Sends[i]
		if s.At < from || s.At >= to || s.Again {
			continue
		}
		all++
		if s.Hop == h {
			mine++
		}
	}
	if all == 0 {
		return 0
	}
	return float64(mine) / float64(all)
}

// Count is how many Interests a hop got between two times, probes and re-sends
// included. A nil hop stands for all.
func (r *Recorder) Count(h *Hop, from, to time.Duration) int {
	n := 0
	for i := range r.Sends {
		s := &r.Sends[i]
		if s.At >= from && s.At < to && (h == nil || s.Hop == h) {
			n++
		}
	}
	return n
}

// Switches counts how often, between two times, the first Interest of an
// entry went elsewhere than that of the entry before.
func (r *Recorder) Switches(from, to time.Duration) int {
	n := 0
	var last *Hop
	for i := range r.Sends {
		s := &r.Sends[i]
		if s.At < from || s.At >= to || s.Again {
			continue
		}
		if last != nil && s.Hop != last {
			n++
		}
		last = s.Hop
	}
	return n
}

// Announced counts the prefix announcements that the strategy had learnt.
func (r *Recorder) Announced() int { return r.announced }

// learn does what the operator's routing does with an announcement of Prefix:
// a route over the face.
func (r *Recorder) learn(from ndn.FaceID) {
	r.announced++
	r.queue.push(r.now, func() { r.must(r.shard.SetNextHop(r.now, r.prefix, from, 2048)) })
}

// again reports whether a name went upstream before, and notes that it does.
func (r *Recorder) again(n ndn.Name) bool {
	_, ok := r.sent[string(n)]
	r.sent[string(n)] = struct{}{}
	return ok
}

func (r *Recorder) newFace(p peer, local bool) ndn.FaceID {
	r.last++
	r.peers[r.last] = p
	r.must(r.shard.AddFace(r.now, fw.FaceInfo{ID: r.last, Local: local}))
	return r.last
}

// must checks what only a mistake in this package can break.
func (r *Recorder) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("strategytest: %v", err))
	}
}

// receive gives the shard a packet.
func (r *Recorder) receive(from ndn.FaceID, wire []byte, f *ndn.LpFields) {
	r.must(r.parsed.Parse(wire, f))
	r.shard.Receive(r.now, from, &r.parsed)
}

// sender is the Recorder as the shard's Sender.
type sender Recorder

// Send implements fw.Sender.
func (s *sender) Send(to ndn.FaceID, wire []byte, f *ndn.LpFields) bool {
	r := (*Recorder)(s)
	var p ndn.Packet
	r.must(p.Parse(wire, f))
	return r.peers[to].take(&p)
}

// tracer is the Recorder as the shard's Tracer.
type tracer Recorder

// Trace implements strategy.Tracer.
func (t *tracer) Trace(d *strategy.Decision) {
	r := (*Recorder)(t)
	switch {
	case d.Kind == strategy.TraceExplain:
		r.why, r.whyTo = d.Reason, d.To
	case d.Kind == strategy.TraceSend && d.Refusal == strategy.Sent:
		s := &r.Sends[len(r.Sends)-1]
		s.Event = d.Event
		if r.whyTo == s.Hop.face {
			s.Why = r.why
		}
		r.why, r.whyTo = "", 0
	case d.Kind == strategy.TraceSend:
		r.Refused[d.Refusal]++
	}
	if r.Watch != nil {
		r.Watch(r.Now(), d)
	}
}

// queue holds what happens in the future; equal times in the order of
// scheduling.
type queue struct {
	heap []event
	seq  uint64
}

type event struct {
	at  ndn.Time
	seq uint64
	do  func()
}

func (a *event) before(b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func (q *queue) next() ndn.Time {
	if len(q.heap) == 0 {
		return ndn.Never
	}
	return q.heap[0].at
}

func (q *queue) push(at ndn.Time, do func()) {
	q.seq++
	q.heap = append(q.heap, event{at, q.seq, do})
	for i := len(q.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.heap[i].before(&q.heap[up]) {
			break
		}
		q.heap[i], q.heap[up] = q.heap[up], q.heap[i]
		i = up
	}
}

func (q *queue) pop() func() {
	do := q.heap[0].do
	n := len(q.heap) - 1
	q.heap[0] = q.heap[n]
	q.heap[n] = event{}
	q.heap = q.heap[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			return do
		}
		if c+1 < n && q.heap[c+1].before(&q.heap[c]) {
			c++
		}
		if !q.heap[c].before(&q.heap[i]) {
			return do
		}
		q.heap[i], q.heap[c] = q.heap[c], q.heap[i]
		i = c
	}
}
