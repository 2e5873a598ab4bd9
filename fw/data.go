package fw

import (
	"bytes"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// data is the pipeline of an incoming Data (NFD: onIncomingData).
func (s *Shard) data(now ndn.Time, in *face, p *ndn.Packet, hashes []uint64) {
	d := &p.Data
	switch {
	case len(d.Wire) > ndn.MaxPacketSize:
		s.n.BadSize++
		return
	case d.NameLen > ndn.MaxComponents || d.NameLen == 0:
		s.n.BadName++
		return
	case !in.Local && d.Name.HasPrefix(localhost):
		s.n.BadScope++
		return
	}
	s.matches = s.pit.Match(s.matches[:0], hashes, d)
	if len(s.matches) == 0 {
		s.unsolicited(now, in, p, hashes)
		return
	}
	o := s.originOf(in, p)
	cached := !p.NoCache && o.asked && s.cs.Insert(now, d, o.hint, hashes) && s.cs.Serves()
	for _, e := range s.matches {
		if o.satisfies(e, in.ID) {
			s.satisfy(now, in, p, e, cached)
		} else {
			s.n.HintMismatch++
		}
	}
}

// origin says on whose behalf a Data was fetched.
type origin struct {
	hint  []byte // the forwarding hint it was fetched under; nil: without one
	asked bool   // we sent an Interest for it to this face
	exact bool   // the PIT token tells which one
}

// originOf finds out which of the matching entries a Data answers. A valid
// PIT token says so. Otherwise it is an entry whose Interest went to this
// face, preferably one with a forwarding hint, which is the less trusted.
func (s *Shard) originOf(in *face, p *ndn.Packet) (o origin) {
	if len(p.PitToken) > 0 {
		t := s.pit.ByToken(p.PitToken)
		for _, e := range s.matches {
			if e == t && e.FindOut(in.ID) != nil {
				return origin{hint: sharedHint(e), asked: true, exact: true}
			}
		}
		s.n.StaleTokens++
	}
	for _, e := range s.matches {
		if e.FindOut(in.ID) != nil {
			o.asked = true
			if h := sharedHint(e); o.hint == nil {
				o.hint = h
			}
		}
	}
	return o
}

// sharedHint is the hint that keeps the Data of an entry apart: none when the
// operator trusts it.
func sharedHint(e *table.PitEntry) []byte {
	if e.Trusted {
		return nil
	}
	return e.Hint
}

// satisfies reports whether the Data may satisfy an entry that it matches.
// What came under somebody's forwarding hint does not answer those who asked
// elsewhere.
func (o *origin) satisfies(e *table.PitEntry, in ndn.FaceID) bool {
	return o.hint == nil || bytes.Equal(e.Hint, o.hint) || (!o.exact && e.FindOut(in) != nil)
}

func (s *Shard) unsolicited(now ndn.Time, in *face, p *ndn.Packet, hashes []uint64) {
	s.n.Unsolicited++
	u := s.cfg.Unsolicited
	if u == AdmitAll || (u == AdmitLocal && in.Local) || (u == AdmitNetwork && !in.Local) {
		if !p.NoCache && s.cs.Insert(now, &p.Data, nil, hashes) {
			s.n.UnsolicitedAdmitted++
		}
	}
}

// satisfy shows a Data to the strategy of an entry and sends it to the entry's
// downstreams.
func (s *Shard) satisfy(now ndn.Time, in *face, p *ndn.Packet, e *table.PitEntry, cached bool) {
	b := s.bound[e.Strategy]
	ev := &s.evD
	*ev = strategy.Data{}
	ev.Data, ev.In, ev.Out, ev.Straggler = &p.Data, in.ID, e.FindOut(in.ID), e.Satisfied
	if ev.Out != nil {
		ev.RTT = now.Sub(ev.Out.SentAt)
		ev.RTTCertain = ev.Out.Sends == 1
	}
	s.begin(now, b, e, "Data")
	c := s.ctx.Setup()
	c.In, c.Link = in.ID, &p.LpFields
	b.s.Data(s.ctx, ev)
	outcome := s.ctx.End()

	if !e.Satisfied {
		s.n.Satisfied++
		e.Satisfied = true
	}
	s.deliver(now, in, p, e, outcome.PassAnnouncement)

	// If the content store holds the Data, a looping Interest is answered
	// there as long as the Data is good enough for it.
	remember := !cached || (e.MustBeFresh && p.Data.Freshness < s.cfg.DeadNonceLifetime)
	if outcome.Linger > 0 && s.expectsMore(now, in.ID, e) {
		s.dropOut(now, e, in.ID, remember)
		s.linger(now, e, outcome.Linger)
		return
	}
	if ev.Straggler && s.expectsMore(now, in.ID, e) {
		s.dropOut(now, e, in.ID, remember)
		return
	}
	s.release(now, e, remember)
}

// deliver sends a Data to everybody who waits for it and empties the
// in-records.
func (s *Shard) deliver(now ndn.Time, in *face, p *ndn.Packet, e *table.PitEntry, announce bool) {
	f := &s.fields
	for i := range e.In {
		r := &e.In[i]
		s.unwait(e, r)
		to := s.faces.get(r.Face)
		if to == nil {
			continue
		}
		if r.Expiry <= now || (to == in && !in.AdHoc) {
			continue
		}
		// In place, as all records of a packet: a literal is made elsewhere and
		// copied, which waits for its own stores (docs/performance.md).
		*f = ndn.LpFields{}
		f.PitToken, f.IncomingFace, f.CongestionMark = r.Token(), in.ID, p.CongestionMark
		if announce {
			f.Announcement = p.Announcement
		}
		if r.WantsPathTag {
			f.HasPathTag, f.PathTag = true, s.extendTag(p.PathTag, in.ID)
		}
		if r.HasReplicaSelect && (e.AckReplica || p.HasReplicaSelect) {
			f.HasReplicaSelect, f.ReplicaSelect = true, r.ReplicaSelect
		}
		if s.send(r.Face, p.Data.Wire, f) {
			s.n.OutData++
		}
	}
	e.In = e.In[:0]
}

// extendTag is the path tag that this node puts on a Data from a face.
func (s *Shard) extendTag(t ndn.PathTag, from ndn.FaceID) ndn.PathTag {
	h := mix(mix(t.Tag^mix(s.cfg.NodeID+1)) + uint64(from))
	t.Tag = max(1, h)
	if t.Hops < 255 {
		t.Hops++
	}
	return t
}

// expectsMore reports whether an upstream other than from may still answer.
func (s *Shard) expectsMore(now ndn.Time, from ndn.FaceID, e *table.PitEntry) bool {
	for i := range e.Out {
		if o := &e.Out[i]; o.Face != from && o.Pending(now) {
			return true
		}
	}
	return false
}

// dropOut removes the out-record of a face.
func (s *Shard) dropOut(now ndn.Time, e *table.PitEntry, id ndn.FaceID, remember bool) {
	for i := range e.Out {
		if e.Out[i].Face == id {
			if remember {
				s.dead.Add(now, s.nameHash(e), e.Out[i].Nonce)
			}
			e.Out = append(e.Out[:i], e.Out[i+1:]...)
			if f := s.faces.get(id); f != nil {
				f.asked--
			}
			return
		}
	}
}
