package strategy

import (
	"time"

	"ndnpop/ndn"
	"ndnpop/table"
)

// Refusal says whether an Interest was sent, and if not, why.
type Refusal uint8

// Results of sending.
const (
	Sent              Refusal = iota
	RefusedNoEntry            // no pending Interest in this event, or it has ended or lingers
	RefusedNoFace             // no such face
	RefusedDown               // the face is down
	RefusedScope              // /localhost or /localhop may not go there
	RefusedDownstream         // it would go back to the only face that asks
	RefusedHopLimit           // the hop limit is exhausted
	RefusedSuppressed         // too soon after the last one to this upstream
	RefusedLimit              // the entry has too many upstreams
	RefusedQueue              // the face did not take it
)

var refusals = [...]string{
	"sent", "no pending Interest", "no such face", "face is down", "scope", "back to the downstream",
	"hop limit", "suppressed", "too many upstreams", "face queue full",
}

// String says it in words.
func (r Refusal) String() string {
	if int(r) < len(refusals) {
		return refusals[r]
	}
	return "unknown"
}

// Core is what a Context needs of the shard.
type Core interface {
	// Send forwards the pending Interest of c.
	Send(c *Context, o Output) Refusal
	// Nack answers a downstream and removes its in-record. It reports whether
	// there was one.
	Nack(c *Context, to ndn.FaceID, reason ndn.NackReason) bool
	// Arm arms a timer for c's entry or, if plain, for the strategy alone. A
	// zero id means that the limit of timers is reached.
	Arm(c *Context, at ndn.Time, tag uint64, plain bool) table.TimerID
	// Disarm disarms a timer and reports whether it was armed.
	Disarm(c *Context, id table.TimerID) bool
	// Lookup finds the next hops that c's Interest may use now, or those that
	// are up in an event without one, by cost and then by face, and the FIB
	// entry they come from (nil without). Both are valid until the next Lookup.
	Lookup(c *Context) ([]table.NextHop, *table.FibEntry)
	// Check says why Send would refuse c's Interest to a face before it tries
	// the face; Sent if it would not.
	Check(c *Context, f ndn.FaceID) Refusal
}

// Broadcaster is what a Core also needs for strategies that look for content
// where there is no route.
type Broadcaster interface {
	// Faces lists the faces that do not end on this host and that c's Interest
	// may be sent to, in ascending order. The list is valid until the next
	// call.
	Faces(c *Context) []ndn.FaceID
	// Learn hands the prefix announcement of c's Data, as a route over the
	// face it came from, to the operator's routing.
	Learn(c *Context)
}

// Output is one Interest to send.
type Output struct {
	To ndn.FaceID
	// Fresh gives the Interest a Nonce of its own.
	Fresh        bool
	NonDiscovery bool
}

// Setup is what the shard knows about an event before it calls a strategy.
type Setup struct {
	Now      ndn.Time
	Entry    *table.PitEntry // nil in events without an entry
	Name     ndn.Name        // the Interest's
	Interest *ndn.Interest   // the packet at hand, nil when there is none
	In       ndn.FaceID      // where the event came from, 0 for none
	Link     *ndn.LpFields   // the packet's link header, nil without a packet
	Local    bool            // the Interest at hand came from this host
	Strategy uint32          // the shard's number for the bound strategy
	Label    ndn.Name        // that strategy's full name
	Event    string          // for traces
}

// Context is how a strategy sees and acts on one event. The shard owns it; it
// is valid during the handler's call.
type Context struct {
	shared
	s      Setup
	hops   []table.NextHop
	fib    *table.FibEntry
	looked bool
	out    Outcome
	non    bool
	full   bool // a next hop's queue took no Interest of this event
}

// shared is what all events of one shard have in common.
type shared struct {
	core     Core
	hasher   ndn.Hasher
	measured *table.Measurements
	tracer   Tracer
	filter   TraceFilter // the tracer's, nil without
	rng      uint64
	kinds    uint32 // given out to PrefixState
}

// Outcome is what a handler asked the shard to do after it returned.
type Outcome struct {
	Linger           time.Duration
	PassAnnouncement bool
}

// NewContext returns the context of a shard. Strategies get it from the
// shard; only shards make one.
func NewContext(core Core, h ndn.Hasher, m *table.Measurements, seed uint64) *Context {
	return &Context{shared: shared{core: core, hasher: h, measured: m, rng: seed}}
}

// Begin prepares the context for an event. The shard fills in the Setup, which
// still holds what the last event left.
func (c *Context) Begin() *Setup {
	c.hops, c.fib, c.looked, c.non, c.full, c.out = nil, nil, false, false, false, Outcome{}
	return &c.s
}

// End returns what the handler asked for, and detaches the context from the
// event.
func (c *Context) End() Outcome {
	c.s.Entry, c.s.Interest, c.s.Link = nil, nil, nil
	return c.out
}

// Setup is what the shard knows about the event.
func (c *Context) Setup() *Setup { return &c.s }

// Now is the time of the event.
func (c *Context) Now() ndn.Time { return c.s.Now }

// Name is the Interest's name; nil in events without an entry or packet.
func (c *Context) Name() ndn.Name { return c.s.Name }

// HasEntry reports whether the event concerns a pending Interest.
func (c *Context) HasEntry() bool { return c.s.Entry != nil }

// Strategy is the full name under which this strategy was bound.
func (c *Context) Strategy() ndn.Name { return c.s.Label }

// Link is the link header of the packet of this event, nil without a packet:
// congestion mark, path tag, announcement and so on.
func (c *Context) Link() *ndn.LpFields { return c.s.Link }

// FromLocal reports whether the Interest of this event came from this host.
func (c *Context) FromLocal() bool { return c.s.Local }

// Faces are the faces that do not end on this host and that the Interest may
// be sent to, whether there is a route or not. The slice is valid during the
// call.
func (c *Context) Faces() []ndn.FaceID {
	if b, ok := c.core.(Broadcaster); ok {
		return b.Faces(c)
	}
	return nil
}

// Marked reports whether the packet of this event carries a congestion mark.
func (c *Context) Marked() bool { return c.s.Link != nil && c.s.Link.CongestionMark != 0 }

// Ins are the downstreams that wait. The strategy must not change them.
func (c *Context) Ins() []table.InRecord {
	if c.s.Entry == nil {
		return nil
	}
	return c.s.Entry.In
}

// Outs are the Interests sent so far, one record per upstream, in the order of
// first use. The strategy must not change them.
func (c *Context) Outs() []table.OutRecord {
	if c.s.Entry == nil {
		return nil
	}
	return c.s.Entry.Out
}

// Out returns the out-record of one upstream, or nil.
func (c *Context) Out(f ndn.FaceID) *table.OutRecord {
	if c.s.Entry == nil {
		return nil
	}
	return c.s.Entry.FindOut(f)
}

// LatestOut is the record of the Interest that was sent last, of those that may
// still be answered; nil without one.
func (c *Context) LatestOut() *table.OutRecord {
	var last *table.OutRecord
	outs := c.Outs()
	for i := range outs {
		if o := &outs[i]; o.Pending(c.s.Now) && (last == nil || o.SentAt > last.SentAt) {
			last = o
		}
	}
	return last
}

// AwaitsOthers reports whether an answer may still come from another upstream
// than a face.
func (c *Context) AwaitsOthers(than ndn.FaceID) bool {
	outs := c.Outs()
	for i := range outs {
		if outs[i].Face != than && outs[i].Pending(c.s.Now) {
			return true
		}
	}
	return false
}

// PendingOut reports whether an answer may still come from some upstream.
func (c *Context) PendingOut() bool {
	return c.s.Entry != nil && c.s.Entry.PendingOut(c.s.Now)
}

// NextHops are the next hops that this Interest may use now, by cost and then
// by face: their faces exist and are up, no scope or hop limit forbids them,
// and the Interest would not go back to where it came from. In events without
// an Interest they are those whose faces are up. The slice is valid during the
// call.
func (c *Context) NextHops() []table.NextHop {
	c.look()
	return c.hops
}

// Candidates are the first of NextHops, at most MaxHops: as many as a Hops
// keeps apart.
func (c *Context) Candidates() []table.NextHop {
	hops := c.NextHops()
	return hops[:min(len(hops), MaxHops)]
}

// Barred reports whether a next hop of Prefix is not among NextHops because of
// this Interest, which would go back to where it came from, or whose scope or hop
// limit keeps it from there. Others may go there: what a strategy has decided for
// the prefix still holds.
func (c *Context) Barred(f ndn.FaceID) bool {
	for _, h := range c.Routes() {
		if h.Face == f {
			switch c.core.Check(c, f) {
			case RefusedScope, RefusedDownstream, RefusedHopLimit:
				return true
			}
			return false
		}
	}
	return false
}

// Prefix is the FIB prefix that NextHops come from, nil without a route.
func (c *Context) Prefix() ndn.Name {
	c.look()
	if c.fib == nil {
		return nil
	}
	return c.fib.Prefix
}

func (c *Context) look() {
	if !c.looked {
		c.looked = true
		c.hops, c.fib = c.core.Lookup(c)
	}
}

// Send sends the Interest to a face, usually that of a next hop. In an
// Interest event the first Interest to every upstream carries the consumer's
// Nonce; everything else goes out with a fresh one, since the old one would
// look like a loop where the paths meet again.
func (c *Context) Send(f ndn.FaceID) Refusal { return c.send(f, c.s.Interest == nil) }

// Probe is Send with a fresh Nonce in any case.
func (c *Context) Probe(f ndn.FaceID) Refusal { return c.send(f, true) }

func (c *Context) send(f ndn.FaceID, fresh bool) Refusal {
	r := RefusedNoEntry
	// What lingers and is asked for again would linger for ever.
	if e := c.s.Entry; e != nil && !e.Lingering {
		r = c.core.Send(c, Output{To: f, Fresh: fresh, NonDiscovery: c.non})
	}
	c.full = c.full || r == RefusedQueue
	if c.Traced() {
		c.trace(&Decision{Kind: TraceSend, To: f, Refusal: r})
	}
	return r
}

// QueueFull reports whether an Interest of this event was refused because the
// queue of a face was full, which is over soon.
func (c *Context) QueueFull() bool { return c.full }

// NonDiscovery marks the Interests sent from here on in this event as not for
// discovery (self-learning).
func (c *Context) NonDiscovery() { c.non = true }

// ResendDuplicates sends the Interest again to the next hops that have refused
// it as a duplicate, once, when nothing is pending and the face of another
// upstream has gone down: the copy that they had seen is lost. It reports whether
// any was sent. It is for strategies that send to several next hops at once.
func (c *Context) ResendDuplicates() (sent bool) {
	lost := false
	for i := range c.Outs() {
		o := &c.Outs()[i]
		lost = lost || o.Failed && o.Reason == ndn.NackNone
	}
	if !lost || c.PendingOut() || len(c.Ins()) == 0 {
		return false
	}
	for _, h := range c.NextHops() {
		if o := c.Out(h.Face); o != nil && o.Reason == ndn.NackDuplicate && o.Sends == 1 {
			c.ExplainCost(h.Face, "refused as a duplicate of one that is lost")
			sent = c.Send(h.Face) == Sent || sent
		}
	}
	return sent
}

// Nack answers one downstream and removes it from those that wait. It reports
// whether it was waiting. NoRoute becomes Congestion where it was the queue of
// a next hop that refused the Interest: there is a route. Where there is one, and
// only the hop limit keeps the Interest from it, nothing is answered, and the
// Interest stays pending (NFD): whoever sends such Interests could take the route
// from others otherwise.
func (c *Context) Nack(to ndn.FaceID, reason ndn.NackReason) bool {
	switch {
	case reason != ndn.NackNoRoute:
	case c.full:
		reason = ndn.NackCongestion
	case c.exhausted() && len(c.Outs()) == 0 && c.leadsOn():
		return false
	}
	ok := c.core.Nack(c, to, reason)
	if ok && c.Traced() {
		c.trace(&Decision{Kind: TraceNack, To: to, Nack: reason})
	}
	return ok
}

// exhausted reports whether the Interest may go no further than to this host.
func (c *Context) exhausted() bool {
	if i := c.s.Interest; i != nil {
		return i.HasHopLimit && i.HopLimit <= 1
	}
	e := c.s.Entry
	return e != nil && e.HasHop && e.HopLimit == 0
}

// leadsOn reports whether there is a route that does not only lead back.
func (c *Context) leadsOn() bool {
	for _, r := range c.Routes() {
		if r.Face != c.s.In {
			return true
		}
	}
	return false
}

// NackAll answers every downstream.
func (c *Context) NackAll(reason ndn.NackReason) {
	for c.s.Entry != nil && len(c.s.Entry.In) > 0 {
		if !c.Nack(c.s.Entry.In[0].Face, reason) {
			return
		}
	}
}

// PassNacks passes Nacks down as NFD does: once every upstream has failed, all
// downstreams get the least severe reason. When only one upstream has not
// failed and it is itself a downstream, that one gets the Nack already, since
// both wait for each other.
func (c *Context) PassNacks() {
	e := c.s.Entry
	if e == nil || len(e.Out) == 0 {
		return
	}
	waiting, last := 0, ndn.FaceID(0)
	least := ndn.NackNone
	for i := range e.Out {
		o := &e.Out[i]
		if o.Failed {
			if o.Reason.Severity() < least.Severity() {
				least = o.Reason
			}
		} else if o.Pending(c.s.Now) {
			waiting++
			last = o.Face
		}
	}
	switch {
	case waiting == 0:
		c.NackAll(least)
	case waiting == 1 && e.FindIn(last) != nil:
		c.Nack(last, least)
	}
}

// Arm arms a timer of this entry that is due after d. At most
// table.MaxEntryTimers are armed at once; more are refused with an id that is
// not set.
func (c *Context) Arm(d time.Duration, tag uint64) table.TimerID {
	if c.s.Entry == nil {
		return table.TimerID{}
	}
	return c.core.Arm(c, c.s.Now.Add(d), tag, false)
}

// ArmPlain arms a timer of the strategy itself, which belongs to no entry.
func (c *Context) ArmPlain(d time.Duration, tag uint64) table.TimerID {
	return c.core.Arm(c, c.s.Now.Add(d), tag, true)
}

// Disarm disarms a timer and reports whether it was armed.
func (c *Context) Disarm(id table.TimerID) bool { return c.core.Disarm(c, id) }

// Linger keeps the entry for d after a Data satisfied it, so that later Data
// from other upstreams (probes) still reach the Data handler. Timers of the
// entry stay armed; sending is refused. It has an effect in Data events.
func (c *Context) Linger(d time.Duration) { c.out.Linger = d }

// PassAnnouncement passes the Data's prefix announcement on to the downstreams
// (self-learning).
func (c *Context) PassAnnouncement() { c.out.PassAnnouncement = true }

// Learn hands the Data's prefix announcement to the operator's routing, which
// checks it before it adds a route over the face the Data came from.
func (c *Context) Learn() {
	if b, ok := c.core.(Broadcaster); ok {
		b.Learn(c)
	}
}

// Rand returns a pseudo-random number. The sequence depends on the shard's
// seed and history alone.
func (c *Context) Rand() uint64 {
	c.rng += 0x9e3779b97f4a7c15
	z := c.rng
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
