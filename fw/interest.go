package fw

import (
	"bytes"
	"crypto/sha256"
	"math"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// arrival is an Interest on its way through the pipeline.
type arrival struct {
	now    ndn.Time
	in     *face
	p      *ndn.Packet
	nonce  uint32
	hint   []byte // active forwarding hint
	strip  bool   // a forwarding hint is there but not active
	digest []byte
	hash   uint64   // table.DataHash
	hashes []uint64 // of the name's prefixes
	bound  *bound
	number uint32 // of bound
	// further is set when an answer is pending and this downstream did not
	// wait for it before.
	further bool
	// exempt Interests are not suppressed.
	exempt bool
}

// interest is the pipeline of an incoming Interest (NFD: onIncomingInterest).
func (s *Shard) interest(now ndn.Time, in *face, p *ndn.Packet, hashes []uint64) {
	i := &p.Interest
	if !s.acceptable(in, i) {
		return
	}
	a := &s.arrived
	*a = arrival{}
	a.now, a.in, a.p, a.nonce, a.hashes = now, in, p, i.Nonce, hashes
	if !i.HasNonce {
		a.nonce = s.nonce()
	}
	a.hash, a.digest = table.DataHash(i, a.hashes)
	a.hint, a.strip = s.activeHint(i)
	a.number = s.choices.Longest(a.hashes, i.Name)
	a.bound = s.bound[a.number]
	if i.HasNonce && s.dead.Has(now, a.hashes[i.NameLen], a.nonce) {
		s.loop(a, nil)
		return
	}
	e, variants := s.pit.Find(a.hash, i, a.hint)
	if e != nil && i.HasNonce && isLoop(e, in, a.nonce) {
		s.loop(a, e)
		return
	}
	if e == nil || len(e.In) == 0 {
		if s.serve(a) {
			return
		}
	}
	if e == nil {
		if e = s.newEntry(a, variants); e == nil {
			return
		}
	}
	s.pend(a, e)
}

// acceptable makes the checks that need no table.
func (s *Shard) acceptable(in *face, i *ndn.Interest) bool {
	switch {
	case len(i.Wire) > ndn.MaxPacketSize:
		s.n.BadSize++
	case !fits(i) || i.NameLen == 0:
		s.n.BadName++
	case i.HasHopLimit && i.HopLimit == 0:
		s.n.HopLimit++
	case !in.Local && i.Name.HasPrefix(localhost):
		s.n.BadScope++
	case i.AppParameters != nil && !paramsMatch(i):
		s.n.BadParams++
	default:
		return true
	}
	return false
}

// fits reports whether the tables can hold an Interest's name. A digest at its
// end is not part of the Data's name, under which they file it.
func fits(i *ndn.Interest) bool {
	if i.NameLen == ndn.MaxComponents+1 {
		_, _, full := i.ImplicitDigest()
		return full
	}
	return i.NameLen <= ndn.MaxComponents
}

// paramsMatch checks the parameters digest (packet specification,
// "ParametersSha256DigestComponent").
func paramsMatch(i *ndn.Interest) bool {
	sum := sha256.Sum256(i.ParamsPortion())
	found := false
	for n := i.Name; len(n) > 0; {
		var c ndn.Component
		if c, n = n.Next(); c.Type == ndn.TypeParamsDigest {
			if found || !bytes.Equal(c.Value, sum[:]) {
				return false
			}
			found = true
		}
	}
	return found
}

// activeHint returns the forwarding hint that takes part in forwarding. In a
// producer region the hint has done its work.
func (s *Shard) activeHint(i *ndn.Interest) (hint []byte, strip bool) {
	if i.ForwardingHint == nil {
		return nil, false
	}
	for rest := i.ForwardingHint; ; {
		var d ndn.Name
		var ok bool
		if d, rest, ok = ndn.NextHint(rest); !ok {
			return i.ForwardingHint, false
		}
		for _, r := range s.cfg.ProducerRegions {
			if r.HasPrefix(d) {
				return nil, true
			}
		}
	}
}

// trusted reports whether all delegations of a hint are the operator's.
func (s *Shard) trusted(hint []byte) bool {
	if len(s.cfg.TrustedHints) == 0 || hint == nil {
		return false
	}
	for {
		var d ndn.Name
		var ok bool
		if d, hint, ok = ndn.NextHint(hint); !ok {
			return true
		}
		good := false
		for _, t := range s.cfg.TrustedHints {
			good = good || d.HasPrefix(t)
		}
		if !good {
			return false
		}
	}
}

// isLoop reports whether a Nonce that arrives from a face is known to an entry
// by another way. From the same point-to-point face it is a retransmission.
func isLoop(e *table.PitEntry, in *face, nonce uint32) bool {
	same, other := false, false
	for i := range e.In {
		if e.In[i].Nonce == nonce {
			if e.In[i].Face == in.ID {
				same = true
			} else {
				other = true
			}
		}
	}
	for i := range e.Out {
		other = other || e.Out[i].Nonce == nonce
	}
	return (same || other) && !(same && in.pointToPoint())
}

func (s *Shard) loop(a *arrival, e *table.PitEntry) {
	s.n.Looped++
	if a.bound.loop != nil {
		s.begin(a.now, a.bound, e, "Loop")
		s.withPacket(a)
		s.evLoop = strategy.Loop{Interest: &a.p.Interest, In: a.in.ID}
		a.bound.loop.Loop(s.ctx, &s.evLoop)
		s.ctx.End()
		if e != nil {
			s.settle(a.now, e)
		}
		return
	}
	s.refuse(a, ndn.NackDuplicate)
}

// refuse answers an Interest that got no in-record with a Nack.
func (s *Shard) refuse(a *arrival, reason ndn.NackReason) {
	if !a.in.pointToPoint() {
		return
	}
	s.fields = ndn.LpFields{
		IsNack: true, NackReason: reason, PitToken: a.p.PitToken, IncomingFace: a.in.ID,
	}
	if s.send(a.in.ID, a.p.Interest.Wire, &s.fields) {
		s.n.OutNacks++
	}
}

// serve answers an Interest from the content store, if it can.
func (s *Shard) serve(a *arrival) bool {
	hint := a.hint
	if s.trusted(hint) {
		hint = nil
	}
	wire, ok := s.cs.Find(a.now, &table.Query{
		Interest: &a.p.Interest, Hint: hint, Digest: a.digest, Hash: a.hash, Hashes: a.hashes,
		// Who watches the forwarder must not change the hit ratio that he sees.
		Uncounted: a.in.Local && a.p.Interest.Name.HasPrefix(localhost),
	})
	if !ok {
		return false
	}
	f := &s.fields
	*f = ndn.LpFields{}
	f.PitToken, f.IncomingFace = a.p.PitToken, ContentStoreFace
	if a.p.HasPathTag {
		f.HasPathTag = true
		f.PathTag = ndn.PathTag{Tag: max(1, mix(s.cfg.NodeID+1)), Flags: ndn.PathFromCache}
	}
	if a.p.HasReplicaSelect && a.bound.pick != nil && s.selectReplica(a, nil) {
		f.HasReplicaSelect, f.ReplicaSelect = true, a.p.ReplicaSelect
	}
	if s.send(a.in.ID, wire, f) {
		s.n.OutData++
	}
	return true
}

func (s *Shard) selectReplica(a *arrival, e *table.PitEntry) bool {
	s.begin(a.now, a.bound, e, "SelectReplica")
	s.withPacket(a)
	s.evI = strategy.Interest{Interest: &a.p.Interest, In: a.in.ID, New: e == nil || !e.PendingOut(a.now)}
	taken := a.bound.pick.SelectReplica(s.ctx, &s.evI)
	s.ctx.End()
	return taken
}

// newEntry makes a PIT entry, or refuses with a Nack Congestion when a limit
// is reached.
func (s *Shard) newEntry(a *arrival, variants int) *table.PitEntry {
	i := &a.p.Interest
	switch {
	case a.in.pending >= s.share():
		s.n.PitFace++
		s.refuse(a, ndn.NackCongestion)
		return nil
	case s.waiting >= s.maxWaiting():
		s.n.PitFull++
		s.refuse(a, ndn.NackCongestion)
		return nil
	}
	e, err := s.pit.Insert(a.hash, i, a.hint, a.digest, a.hashes, variants)
	if err != nil {
		if err == table.ErrVariants {
			s.n.PitVariants++
		} else {
			s.n.PitFull++
		}
		s.refuse(a, ndn.NackCongestion)
		return nil
	}
	e.Strategy, e.HasHop = a.number, i.HasHopLimit
	e.StripHint, e.Trusted = a.strip, s.trusted(a.hint)
	return e
}

// leastShare is how many entries a face may cause in any case.
const leastShare = 64

// share is how many entries one face may cause: at most twice as many as are
// left, so that a few faces cannot leave nothing for the others (Choudhury and
// Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
// 1998).
func (s *Shard) share() int {
	return min(s.pit.Config().MaxEntriesPerFace, max(leastShare, 2*s.pit.Free()))
}

// maxWaiting bounds the in-records of all entries: many faces that ask for the
// same cost memory too.
func (s *Shard) maxWaiting() int { return 4 * s.pit.Config().MaxEntries }

// pend puts the Interest into the entry's in-records and shows it to the
// strategy, unless it only repeats or joins what is pending.
func (s *Shard) pend(a *arrival, e *table.PitEntry) {
	r := e.FindIn(a.in.ID)
	waited := r != nil && r.Expiry > a.now
	asked := waited && r.HasReplicaSelect && r.ReplicaSelect == a.p.ReplicaSelect
	if r == nil {
		if r = s.addIn(a, e); r == nil {
			return
		}
	}
	i := &a.p.Interest
	r.Seen, r.Expiry, r.Nonce = a.now, a.now.Add(s.lifetime(i)), a.nonce
	r.WantsPathTag, r.HasHint = a.p.HasPathTag, i.ForwardingHint != nil
	r.HasReplicaSelect, r.ReplicaSelect = a.p.HasReplicaSelect, a.p.ReplicaSelect
	r.SetToken(a.p.PitToken)
	s.expireAt(e)
	// What an answered entry lingers for is not what this downstream needs.
	lingered := e.Lingering
	e.Satisfied, e.Lingering = false, false
	// What is sent again is for all who wait, and goes as far as the farthest.
	if i.HasHopLimit {
		e.HopLimit = max(e.HopLimit, i.HopLimit-1)
	} else {
		e.HopLimit = math.MaxUint8
	}

	if a.p.HasNextHopFace && a.in.Local {
		s.toNextHop(a, e)
		return
	}
	pending := false
	for k := range e.Out {
		o := &e.Out[k]
		pending = pending || !lingered && o.Pending(a.now) && (o.Face != a.in.ID || a.in.AdHoc)
	}
	a.further = pending && !waited
	if a.p.HasReplicaSelect && !asked {
		a.exempt = true
		e.AckReplica = a.bound.pick != nil && s.selectReplica(a, e)
	}
	if a.further {
		s.n.Aggregated++
	}
	if pending && !a.exempt && a.bound.limits.Scope == strategy.SuppressEntry && s.suppressed(a, e) {
		return
	}
	s.event = a
	s.begin(a.now, a.bound, e, "Interest")
	s.withPacket(a)
	s.evI = strategy.Interest{Interest: i, In: a.in.ID, New: !pending, Retransmission: pending && waited}
	a.bound.s.Interest(s.ctx, &s.evI)
	s.ctx.End()
	s.event = nil
	s.settle(a.now, e)
}

// lifetime is how long an Interest stays pending. When the table is more than
// half full none stays longer than the default: otherwise a few peers could
// fill it once, with long lifetimes, and lock everybody out for minutes.
func (s *Shard) lifetime(i *ndn.Interest) time.Duration {
	d := min(i.Lifetime, s.cfg.MaxLifetime)
	if d > ndn.DefaultLifetime && s.pit.Crowded() {
		d = ndn.DefaultLifetime
	}
	return d
}

// suppressed decides about an Interest for which an answer is pending, for the
// entry as a whole (NFD: RetxSuppressionExponential::decidePerPitEntry).
func (s *Shard) suppressed(a *arrival, e *table.PitEntry) bool {
	if a.further {
		return true
	}
	last := ndn.Time(0)
	for k := range e.Out {
		last = max(last, e.Out[k].SentAt)
	}
	return s.tooSoon(a, last, &e.Interval)
}

// tooSoon applies a suppression interval and lets it grow.
func (s *Shard) tooSoon(a *arrival, last ndn.Time, interval *time.Duration) bool {
	l := &a.bound.limits
	if *interval == 0 {
		*interval = l.Initial
	}
	if a.now.Sub(last) < *interval {
		s.n.Suppressed++
		return true
	}
	*interval = l.Next(*interval)
	return false
}

func (s *Shard) addIn(a *arrival, e *table.PitEntry) *table.InRecord {
	limits := s.pit.Config()
	switch {
	case len(e.In) >= limits.MaxInRecords:
		s.n.InRecordsFull++
	case a.in.pending >= limits.MaxEntriesPerFace:
		s.n.PitFace++
	case s.waiting >= s.maxWaiting():
		s.n.PitFull++
	default:
		return s.wait(e, a.in)
	}
	s.refuse(a, ndn.NackCongestion)
	return nil
}

// toNextHop follows a NextHopFaceId, which leaves the strategy aside.
func (s *Shard) toNextHop(a *arrival, e *table.PitEntry) {
	s.event = a
	s.begin(a.now, a.bound, e, "NextHopFaceId")
	s.withPacket(a)
	a.exempt = true
	if s.ctx.Send(a.p.NextHopFace) != strategy.Sent {
		s.n.NextHopFace++
		s.ctx.Nack(a.in.ID, ndn.NackNoRoute)
	}
	s.ctx.End()
	s.event = nil
	s.settle(a.now, e)
}
