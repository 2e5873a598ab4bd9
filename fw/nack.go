package fw

import (
	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// nack is the pipeline of an incoming Nack (NFD: onIncomingNack).
func (s *Shard) nack(now ndn.Time, in *face, p *ndn.Packet) {
	switch {
	case !in.pointToPoint():
		s.n.NackMultiAcc++
		return
	case !fits(&p.Interest) || p.Interest.NameLen == 0:
		s.n.BadName++
		return
	}
	e, o := s.sent(in.ID, &p.Interest, p.PitToken)
	if o == nil || o.Failed {
		s.n.UnknownNacks++
		return
	}
	o.Failed, o.Reason = true, p.NackReason
	b := s.bound[e.Strategy]
	s.begin(now, b, e, "Nack")
	c := s.ctx.Setup()
	c.In, c.Link = in.ID, &p.LpFields
	if b.nack != nil {
		s.evNack = strategy.Nack{In: in.ID, Reason: p.NackReason, Out: o, RTT: now.Sub(o.SentAt)}
		b.nack.Nack(s.ctx, &s.evNack)
	} else {
		s.ctx.PassNacks()
	}
	s.ctx.End()
	s.settle(now, e)
}

// GaveUp reports that the link service of a face could not deliver an
// Interest, given by its wire, which is the caller's again afterwards.
func (s *Shard) GaveUp(now ndn.Time, on ndn.FaceID, interest []byte) {
	s.n.GaveUp++
	i := &s.given
	if s.faces.get(on) == nil || i.Parse(interest) != nil || !fits(i) {
		s.n.GaveUpUnknown++
		return
	}
	e, o := s.sent(on, i, nil)
	if o == nil || o.Failed {
		s.n.GaveUpUnknown++
		return
	}
	o.Failed, o.Reason = true, ndn.NackCongestion
	b := s.bound[e.Strategy]
	s.begin(now, b, e, "GaveUp")
	s.ctx.Setup().In = on
	if b.gaveUp != nil {
		s.evGaveUp = strategy.GaveUp{On: on, Out: o}
		b.gaveUp.GaveUp(s.ctx, &s.evGaveUp)
	} else {
		s.ctx.PassNacks()
	}
	s.ctx.End()
	s.settle(now, e)
}

// sent finds the entry and out-record of an Interest that we sent to a face
// and that came back: the Nonce must be that of the latest one.
func (s *Shard) sent(to ndn.FaceID, i *ndn.Interest, token []byte) (*table.PitEntry, *table.OutRecord) {
	if !i.HasNonce {
		return nil, nil
	}
	e := s.pit.ByToken(token)
	if e == nil || !e.Name.Equal(i.Name) || e.CanBePrefix != i.CanBePrefix || e.MustBeFresh != i.MustBeFresh {
		hashes := s.hasher.Prefixes(i.Name, s.hashes2[:0])
		h, _ := table.DataHash(i, hashes)
		hint, _ := s.activeHint(i)
		if e, _ = s.pit.Find(h, i, hint); e == nil {
			return nil, nil
		}
	}
	o := e.FindOut(to)
	if o == nil || o.Nonce != i.Nonce {
		return nil, nil
	}
	return e, o
}
