package fw

import (
	"math"
	"slices"
	"sort"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// FaceInfo is what the shard knows about a face.
type FaceInfo struct {
	ID ndn.FaceID
	// Local faces end on this host and may carry /localhost.
	Local bool
	// MultiAccess links have several peers: no Nack is sent there or taken
	// from there, and the same Nonce again is a loop.
	MultiAccess bool
	// AdHoc links are multi-access links whose peers do not all hear one
	// another: packets may go back to where they came from.
	AdHoc bool
}

type face struct {
	FaceInfo
	down    bool
	leaving bool // being removed in parts
	pending int  // in-records, by the weight of their entries
	asked   int  // out-records
	// waits are the entries with an in-record of the face, which tells the
	// place here: a face that goes must not cost a walk over all entries.
	waits waits
}

func (f *face) pointToPoint() bool { return !f.MultiAccess && !f.AdHoc }

// faces finds faces by id: small ids, which is what drivers give out, without
// hashing.
type faces struct {
	small []*face
	other map[ndn.FaceID]*face // only looked up
	live  []*face              // by id
}

const smallFaces = 1 << 16

func (t *faces) get(id ndn.FaceID) *face {
	if id < ndn.FaceID(len(t.small)) {
		return t.small[id]
	}
	return t.other[id]
}

// place is where a face is, or belongs, in live.
func (t *faces) place(id ndn.FaceID) int {
	return sort.Search(len(t.live), func(i int) bool { return t.live[i].ID >= id })
}

func (t *faces) add(f *face) {
	t.live = slices.Insert(t.live, t.place(f.ID), f)
	if f.ID >= smallFaces {
		if t.other == nil {
			t.other = make(map[ndn.FaceID]*face)
		}
		t.other[f.ID] = f
		return
	}
	if n := int(f.ID) + 1; n > len(t.small) {
		t.small = append(t.small, make([]*face, n-len(t.small))...)
	}
	t.small[f.ID] = f
}

func (t *faces) remove(id ndn.FaceID) {
	at := t.place(id)
	t.live = slices.Delete(t.live, at, at+1)
	if id < smallFaces {
		t.small[id] = nil
	} else {
		delete(t.other, id)
	}
}

// AddFace makes a face known. Ids are not used again.
func (s *Shard) AddFace(_ ndn.Time, f FaceInfo) error {
	if s.faces.get(f.ID) != nil || f.ID == 0 {
		return ErrFaceUsed
	}
	s.faces.add(&face{FaceInfo: f})
	return nil
}

// RemoveFace forgets a face. Its routes and its records in pending Interests
// go, and strategies hear of it as of FaceDown.
func (s *Shard) RemoveFace(now ndn.Time, id ndn.FaceID) { s.RemoveFacePart(now, id, math.MaxInt) }

// RemoveFacePart is RemoveFace in parts, between which the shard may do other
// things: each removes at most limit of its next hops, the last one the face.
// It reports whether the face has gone. From the first one on nothing is sent
// there or taken from there.
func (s *Shard) RemoveFacePart(now ndn.Time, id ndn.FaceID, limit int) (gone bool) {
	f := s.faces.get(id)
	switch {
	case f == nil:
		return true
	case f.leaving:
		gone = s.fib.RemoveFace(id, limit) == 0
	default:
		gone = s.beginRemoval(now, f, limit)
	}
	if gone {
		s.faces.remove(id)
	}
	return gone
}

// beginRemoval is the first part of it, after which no entry has a record of
// the face.
func (s *Shard) beginRemoval(now ndn.Time, f *face, limit int) (gone bool) {
	id := f.ID
	f.leaving, f.down = true, true
	for f.waits.n > 0 {
		e := s.pit.At(*f.waits.at(f.waits.n - 1))
		s.removeIn(e, id)
		s.settle(now, e)
	}
	// Before strategies look for another way, so that they find the routes of
	// shorter prefixes if that can be.
	gone = s.fib.RemoveFace(id, limit) == 0
	s.hopChanged(now, &strategy.NextHop{Face: id, Change: strategy.HopDown})
	if f.asked > 0 {
		for _, w := range s.entries(nil, func(e *table.PitEntry) bool { return e.FindOut(id) != nil }) {
			s.dropOut(now, w.entry, id, true)
			s.settle(now, w.entry)
		}
	}
	return gone
}

// FaceDown marks a face down: nothing is sent there until FaceUp. Strategies
// hear of it, also for each Interest that is pending there.
func (s *Shard) FaceDown(now ndn.Time, id ndn.FaceID) {
	if f := s.faces.get(id); f != nil && !f.down {
		f.down = true
		s.hopChanged(now, &strategy.NextHop{Face: id, Change: strategy.HopDown})
	}
}

// FaceUp marks a face up again. Strategies hear of it, also for each pending
// Interest that may go there.
func (s *Shard) FaceUp(now ndn.Time, id ndn.FaceID) {
	if f := s.faces.get(id); f != nil && f.down && !f.leaving {
		f.down = false
		s.hopChanged(now, &strategy.NextHop{Face: id, Change: strategy.HopUp})
	}
}

// walked is an entry picked in a walk over the PIT. The entry may end before
// its turn comes, and its memory serve another one.
type walked struct {
	entry   *table.PitEntry
	arrived uint64
}

// entries returns the pending Interests that a condition holds for, in the
// order of their arrival. Only those that may be routed by a prefix are looked
// at when the hashes of its prefixes are given.
func (s *Shard) entries(prefix []uint64, cond func(*table.PitEntry) bool) []walked {
	s.walk = s.walk[:0]
	s.pit.EachBelow(prefix, func(e *table.PitEntry) {
		if cond(e) {
			s.walk = append(s.walk, walked{e, e.Arrived})
		}
	})
	slices.SortFunc(s.walk, func(a, b walked) int {
		if a.arrived < b.arrived {
			return -1
		}
		return 1
	})
	return s.walk
}

// hopChanged tells strategies about a next hop: first without an entry, then
// for each pending Interest concerned.
func (s *Shard) hopChanged(now ndn.Time, ev *strategy.NextHop) {
	if ev.Prefix != nil || ev.Change == strategy.HopNew {
		h := s.hasher.Prefixes(ev.Prefix, s.hashes2[:0])
		if b := s.bound[s.choices.Longest(h, ev.Prefix)]; b.hop != nil {
			s.begin(now, b, nil, "NextHop")
			b.hop.NextHop(s.ctx, ev)
			s.ctx.End()
		}
	} else {
		for _, b := range s.bound {
			if b != nil && b.live && b.hop != nil {
				s.begin(now, b, nil, "NextHop")
				b.hop.NextHop(s.ctx, ev)
				s.ctx.End()
			}
		}
	}
	down := ev.Change == strategy.HopDown
	if f := s.faces.get(ev.Face); down && f.asked == 0 {
		return
	}
	for _, w := range s.entries(s.hasher.Prefixes(ev.Prefix, s.hashes2[:0]), func(e *table.PitEntry) bool {
		if len(e.In) == 0 {
			return false
		}
		o := e.FindOut(ev.Face)
		if pending := o != nil && o.Pending(now); down || pending {
			return down && pending
		}
		return ev.Prefix == nil || e.Hint != nil || e.Name.HasPrefix(ev.Prefix)
	}) {
		e, b := w.entry, s.bound[w.entry.Strategy]
		if e.Arrived != w.arrived {
			continue
		}
		ev.Out = e.FindOut(ev.Face)
		if down {
			ev.Out.Failed, ev.Out.Reason = true, ndn.NackNone
		}
		if b.hop == nil {
			continue
		}
		s.begin(now, b, e, "NextHop")
		if down || s.routed(ev) {
			b.hop.NextHop(s.ctx, ev)
		}
		s.ctx.End()
		s.settle(now, e)
	}
}

// routed reports whether the context's Interest may use the next hop that
// appeared.
func (s *Shard) routed(ev *strategy.NextHop) bool {
	for _, h := range s.ctx.NextHops() {
		if h.Face == ev.Face {
			return ev.Change != strategy.HopNew || s.ctx.Prefix().Equal(ev.Prefix)
		}
	}
	return false
}
