package fw

import (
	"slices"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// core is the Shard as strategies see it through their Context.
type core Shard

// mayGo checks whether the pending Interest e may be sent to a face in this
// event. It does not look at suppression.
func (s *Shard) mayGo(e *table.PitEntry, f *face, hopLimit uint8, hasHop bool) strategy.Refusal {
	switch {
	case f == nil:
		return strategy.RefusedNoFace
	case f.down:
		return strategy.RefusedDown
	case s.goesBack(e, f):
		return strategy.RefusedDownstream
	case f.Local:
		return strategy.Sent
	case e.Name.HasPrefix(localhost), e.Name.HasPrefix(localhop) && !s.localAsks(e):
		return strategy.RefusedScope
	case hasHop && hopLimit == 0:
		return strategy.RefusedHopLimit
	}
	return strategy.Sent
}

// localAsks reports whether the Interest comes from this host, or what is sent
// again is for somebody on it who still waits.
func (s *Shard) localAsks(e *table.PitEntry) bool {
	if s.event != nil {
		return s.event.in.Local
	}
	now := s.ctx.Setup().Now
	for i := range e.In {
		r := &e.In[i]
		if f := s.faces.get(r.Face); f != nil && f.Local && r.Expiry > now {
			return true
		}
	}
	return false
}

// goesBack reports whether sending to f returns the Interest to where it came
// from.
func (s *Shard) goesBack(e *table.PitEntry, f *face) bool {
	if f.AdHoc {
		return false
	}
	if s.event != nil {
		return s.event.in == f
	}
	return len(e.In) == 1 && e.In[0].Face == f.ID
}

// hopLimit is the hop limit that what is sent in this event carries, if any.
func (s *Shard) hopLimit(e *table.PitEntry) (hop uint8, has bool) {
	if s.event != nil {
		i := &s.event.p.Interest
		return i.HopLimit - 1, i.HasHopLimit
	}
	return e.HopLimit, e.HasHop
}

// outgoing returns the Interest to send in this event, with the hop limit it
// will carry.
func (s *Shard) outgoing(e *table.PitEntry) (i *ndn.Interest, hopLimit uint8) {
	if s.event != nil {
		i = &s.event.p.Interest
		if i.HasHopLimit {
			hopLimit = i.HopLimit - 1
		}
		return i, hopLimit
	}
	// The entry's copy parsed when it arrived, so it parses now.
	_ = s.parsed.Parse(e.Wire)
	return &s.parsed, e.HopLimit
}

// Send implements strategy.Core.
func (k *core) Send(c *strategy.Context, o strategy.Output) strategy.Refusal {
	s, e := (*Shard)(k), c.Setup().Entry
	if e == nil || s.ending {
		return strategy.RefusedNoEntry
	}
	f := s.faces.get(o.To)
	i, hop := s.outgoing(e)
	if r := s.mayGo(e, f, hop, i.HasHopLimit); r != strategy.Sent {
		return r
	}
	now, b := c.Now(), s.bound[e.Strategy]
	r := e.FindOut(o.To)
	if a := s.event; a != nil && !o.Fresh && !a.exempt && b.limits.Scope == strategy.SuppressUpstream &&
		r != nil && r.Pending(now) && (a.further || s.tooSoon(a, r.SentAt, &r.Interval)) {
		return strategy.RefusedSuppressed
	}
	if r == nil && len(e.Out) >= s.pit.Config().MaxOutRecords {
		return strategy.RefusedLimit
	}
	nonce := s.nonceFor(o.Fresh)
	s.buf = i.AppendOut(s.buf[:0], nonce, hop, e.StripHint)
	s.linkFields(e, &o)
	if !s.send(o.To, s.buf, &s.fields) {
		return strategy.RefusedQueue
	}
	s.n.OutInterests++
	if r == nil {
		e.Out = append(e.Out, table.OutRecord{})
		r = &e.Out[len(e.Out)-1]
		r.Face = o.To
		f.asked++
	} else if r.Nonce != nonce {
		// The record holds one Nonce; a loop may still bring back the other.
		s.dead.Add(now, s.nameHash(e), r.Nonce)
	}
	r.SentAt, r.Expiry = now, now.Add(s.lifetime(i))
	r.Nonce, r.Failed, r.Reason = nonce, false, ndn.NackNone
	r.Sends++
	return strategy.Sent
}

func (s *Shard) nonceFor(fresh bool) uint32 {
	if s.event == nil || fresh {
		return s.nonce()
	}
	return s.event.nonce
}

// nameHash is the hash of the Interest's whole name.
func (s *Shard) nameHash(e *table.PitEntry) uint64 {
	if e.HasDigest {
		return s.hasher.Name(e.Name)
	}
	return e.Hash
}

// linkFields makes the link header of an Interest that goes upstream.
func (s *Shard) linkFields(e *table.PitEntry, o *strategy.Output) {
	f := &s.fields
	s.token = s.pit.Token(e)
	*f = ndn.LpFields{}
	f.PitToken, f.NonDiscovery = s.token[:], o.NonDiscovery
	if s.event != nil {
		in := &s.event.p.LpFields
		f.IncomingFace = s.event.in.ID
		f.CongestionMark = in.CongestionMark
		f.NonDiscovery = f.NonDiscovery || in.NonDiscovery
	} else if len(e.In) > 0 {
		f.IncomingFace = e.In[0].Face
	}
	for i := range e.In {
		r := &e.In[i]
		f.HasPathTag = f.HasPathTag || r.WantsPathTag
		if r.HasReplicaSelect && !e.AckReplica {
			f.HasReplicaSelect = true
			f.ReplicaSelect = max(f.ReplicaSelect, r.ReplicaSelect)
		}
	}
}

// Nack implements strategy.Core.
func (k *core) Nack(c *strategy.Context, to ndn.FaceID, reason ndn.NackReason) bool {
	s, e := (*Shard)(k), c.Setup().Entry
	if e == nil || s.ending {
		return false
	}
	r := e.FindIn(to)
	if r == nil {
		return false
	}
	if f := s.faces.get(to); f != nil && f.pointToPoint() && r.Expiry > c.Now() {
		i, hop := s.outgoing(e)
		// The downstream knows the Interest by its own Nonce and hint.
		s.buf = i.AppendOut(s.buf[:0], r.Nonce, hop+1, !r.HasHint)
		s.token2 = [32]byte{}
		n := copy(s.token2[:], r.Token())
		s.fields = ndn.LpFields{IsNack: true, NackReason: reason, IncomingFace: c.Setup().In}
		if n > 0 {
			s.fields.PitToken = s.token2[:n]
		}
		if s.send(to, s.buf, &s.fields) {
			s.n.OutNacks++
		}
	}
	s.removeIn(e, to)
	return true
}

// Arm implements strategy.Core.
func (k *core) Arm(c *strategy.Context, at ndn.Time, tag uint64, plain bool) table.TimerID {
	s, e := (*Shard)(k), c.Setup().Entry
	if at == ndn.Never {
		return table.TimerID{}
	}
	if plain {
		if s.plain >= s.cfg.MaxTimers {
			s.n.TimersFull++
			return table.TimerID{}
		}
		number := c.Setup().Strategy
		s.plain++
		s.bound[number].plain++
		return s.timers.Arm(at, timerPlain, number, tag)
	}
	if s.ending {
		return table.TimerID{}
	}
	if len(e.Timers) < table.MaxEntryTimers {
		id := s.timers.Arm(at, timerEntry, e.Slot(), tag)
		e.Timers = append(e.Timers, id)
		return id
	}
	s.n.TimersFull++
	return table.TimerID{}
}

// Disarm implements strategy.Core.
func (k *core) Disarm(c *strategy.Context, id table.TimerID) bool {
	s := (*Shard)(k)
	if e := c.Setup().Entry; e != nil {
		if i := slices.Index(e.Timers, id); i >= 0 {
			e.Timers = slices.Delete(e.Timers, i, i+1)
			return s.timers.Disarm(id)
		}
	}
	kind, owner, ok := s.timers.Armed(id)
	if !ok || kind != timerPlain || owner != c.Setup().Strategy {
		return false
	}
	s.plain--
	s.bound[owner].plain--
	return s.timers.Disarm(id)
}

// Check implements strategy.Core.
func (k *core) Check(c *strategy.Context, to ndn.FaceID) strategy.Refusal {
	s, e := (*Shard)(k), c.Setup().Entry
	if e == nil {
		return strategy.RefusedNoEntry
	}
	hop, hasHop := s.hopLimit(e)
	return s.mayGo(e, s.faces.get(to), hop, hasHop)
}

// Lookup implements strategy.Core.
func (k *core) Lookup(c *strategy.Context) ([]table.NextHop, *table.FibEntry) {
	s, e := (*Shard)(k), c.Setup().Entry
	n := c.Setup().Name
	if n == nil {
		return nil, nil
	}
	var hashes []uint64
	var hint []byte
	switch {
	case s.event != nil:
		hashes, hint = s.event.hashes, s.event.hint
	case e != nil:
		hint = e.Hint
	}
	fib := s.route(n, hashes, hint)
	if fib == nil {
		return nil, nil
	}
	s.hops = s.hops[:0]
	if e == nil { // no Interest that something could forbid
		for _, h := range fib.Hops {
			if f := s.faces.get(h.Face); f != nil && !f.down {
				s.hops = append(s.hops, h)
			}
		}
		return s.hops, fib
	}
	hop, hasHop := s.hopLimit(e)
	for i := range fib.Hops {
		h := &fib.Hops[i]
		if s.mayGo(e, s.faces.get(h.Face), hop, hasHop) == strategy.Sent {
			s.hops = append(s.hops, *h)
		}
	}
	return s.hops, fib
}

// route finds the FIB entry for a name or, with a forwarding hint, for the
// first delegation that has a route (NFD: Strategy::lookupFib). hashes may be
// nil.
func (s *Shard) route(n ndn.Name, hashes []uint64, hint []byte) *table.FibEntry {
	if hint == nil {
		if hashes == nil {
			hashes = s.hasher.Prefixes(n, s.hashes2[:0])
		}
		return s.fib.Longest(hashes, n)
	}
	for {
		d, rest, ok := ndn.NextHint(hint)
		if !ok {
			return nil
		}
		hint = rest
		if d.Len() > ndn.MaxComponents {
			continue
		}
		if e := s.fib.Longest(s.hasher.Prefixes(d, s.hashes2[:0]), d); e != nil {
			return e
		}
	}
}

// Learn implements strategy.Broadcaster.
func (k *core) Learn(c *strategy.Context) {
	s, l := (*Shard)(k), c.Link()
	if l != nil && l.Announcement != nil && s.cfg.OnAnnouncement != nil && c.Setup().Event == "Data" {
		s.cfg.OnAnnouncement(c.Now(), c.Setup().In, s.evD.Data.Name, l.Announcement)
	}
}

// Faces implements strategy.Broadcaster.
func (k *core) Faces(c *strategy.Context) []ndn.FaceID {
	s, e := (*Shard)(k), c.Setup().Entry
	s.ids = s.ids[:0]
	if e == nil {
		return nil
	}
	hop, hasHop := s.hopLimit(e)
	for _, f := range s.faces.live {
		if !f.Local && s.mayGo(e, f, hop, hasHop) == strategy.Sent {
			s.ids = append(s.ids, f.ID)
		}
	}
	return s.ids
}
