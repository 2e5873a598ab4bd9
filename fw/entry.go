package fw

import (
	"slices"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// Kinds of timers.
const (
	timerExpiry table.TimerKind = iota // of a PIT entry; owner: its slot
	timerEntry                         // of a strategy for an entry; owner: its slot
	timerPlain                         // of a strategy; owner: its number
)

// begin prepares the context for a call of a strategy's handler.
func (s *Shard) begin(now ndn.Time, b *bound, e *table.PitEntry, event string) {
	c := s.ctx.Begin()
	*c = strategy.Setup{}
	c.Now, c.Entry, c.Label, c.Event = now, e, b.name, event
	if e != nil {
		c.Name, c.Strategy = e.Name, e.Strategy
	}
}

// withPacket adds the Interest at hand to the context.
func (s *Shard) withPacket(a *arrival) {
	c := s.ctx.Setup()
	c.Interest, c.In, c.Link = &a.p.Interest, a.in.ID, &a.p.LpFields
	c.Name, c.Strategy, c.Local = a.p.Interest.Name, a.number, a.in.Local
}

// expireAt arms the entry's expiry for when its last in-record expires.
func (s *Shard) expireAt(e *table.PitEntry) {
	at := e.In[0].Expiry
	for i := 1; i < len(e.In); i++ {
		at = max(at, e.In[i].Expiry)
	}
	e.Expiry = s.timers.Rearm(e.Expiry, at, timerExpiry, e.Slot(), 0)
}

// settle removes an entry after an event that left nobody waiting and no
// answer to come.
func (s *Shard) settle(now ndn.Time, e *table.PitEntry) {
	if len(e.In) == 0 && !e.Lingering && !e.PendingOut(now) {
		s.release(now, e, true)
	}
}

// release removes an entry. Unless the content store will answer if one of
// its Interests comes back, their Nonces are remembered.
func (s *Shard) release(now ndn.Time, e *table.PitEntry, remember bool) {
	if remember {
		s.remember(now, e)
	}
	s.timers.Disarm(e.Expiry)
	s.disarm(e)
	for i := range e.In {
		s.unwait(e, &e.In[i])
	}
	for i := range e.Out {
		if f := s.faces.get(e.Out[i].Face); f != nil {
			f.asked--
		}
	}
	s.pit.Remove(e)
}

func (s *Shard) remember(now ndn.Time, e *table.PitEntry) {
	if len(e.Out) == 0 {
		return
	}
	h := s.nameHash(e)
	for i := range e.Out {
		if n := e.Out[i].Nonce; i == 0 || n != e.Out[i-1].Nonce {
			s.dead.Add(now, h, n)
		}
	}
}

// disarm stops the strategy's timers of an entry.
func (s *Shard) disarm(e *table.PitEntry) {
	for _, id := range e.Timers {
		s.timers.Disarm(id)
	}
	e.Timers = e.Timers[:0]
}

// removeIn removes the in-record of a face and reports whether there was one.
func (s *Shard) removeIn(e *table.PitEntry, id ndn.FaceID) bool {
	for i := range e.In {
		if e.In[i].Face == id {
			s.unwait(e, &e.In[i])
			e.In = append(e.In[:i], e.In[i+1:]...)
			return true
		}
	}
	return false
}

// wait adds the in-record of a face to an entry.
func (s *Shard) wait(e *table.PitEntry, f *face) *table.InRecord {
	e.In = append(e.In, table.InRecord{})
	r := &e.In[len(e.In)-1]
	r.Face, r.Place = f.ID, uint32(f.waits.push(&s.waitPool, e.Slot()))
	f.pending += e.Weight()
	s.waiting++
	return r
}

// unwait notes that the in-record r of an entry ends.
func (s *Shard) unwait(e *table.PitEntry, r *table.InRecord) {
	s.waiting--
	f := s.faces.get(r.Face) // it does not go before its records do
	f.pending -= e.Weight()
	if moved := f.waits.pop(&s.waitPool); moved != e.Slot() {
		*f.waits.at(int(r.Place)) = moved
		s.pit.At(moved).FindIn(f.ID).Place = r.Place
	}
}

// fire handles a timer that is due.
func (s *Shard) fire(now ndn.Time, t *table.Fired) {
	s.evTimer = strategy.Timer{ID: t.ID, At: t.At, Tag: t.Tag}
	if t.Kind == timerPlain {
		s.plain--
		b := s.bound[t.Owner]
		b.plain--
		if b.live && b.timer != nil {
			s.begin(now, b, nil, "Timer")
			s.ctx.Setup().Strategy = t.Owner
			b.timer.Timer(s.ctx, &s.evTimer)
			s.ctx.End()
		}
		return
	}
	// The timers of an entry are disarmed with it, so the entry lives.
	e := s.pit.At(t.Owner)
	b := s.bound[e.Strategy]
	if t.Kind == timerExpiry {
		s.expire(now, b, e)
		return
	}
	if i := slices.Index(e.Timers, t.ID); i >= 0 {
		e.Timers = slices.Delete(e.Timers, i, i+1)
	}
	if b.timer != nil {
		s.begin(now, b, e, "Timer")
		b.timer.Timer(s.ctx, &s.evTimer)
		s.ctx.End()
		s.settle(now, e)
	}
}

// expire ends an entry whose time is over.
func (s *Shard) expire(now ndn.Time, b *bound, e *table.PitEntry) {
	if !e.Satisfied {
		s.n.Expired++
	}
	if b.expiry != nil {
		s.evExpiry = strategy.Expiry{Satisfied: e.Satisfied}
		s.ending = true
		s.begin(now, b, e, "Expiry")
		b.expiry.Expiry(s.ctx, &s.evExpiry)
		s.ctx.End()
		s.ending = false
	}
	s.release(now, e, true)
}

// linger keeps a satisfied entry for late Data.
func (s *Shard) linger(now ndn.Time, e *table.PitEntry, d time.Duration) {
	e.Lingering = true
	e.Expiry = s.timers.Rearm(e.Expiry, now.Add(min(d, s.cfg.MaxLifetime)), timerExpiry, e.Slot(), 0)
}
