package fw

import (
	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// SetNextHop adds a next hop to a prefix, which is copied, or changes its
// cost.
func (s *Shard) SetNextHop(now ndn.Time, prefix ndn.Name, face ndn.FaceID, cost uint64) error {
	if f := s.faces.get(face); f == nil || f.leaving {
		return ErrNoFace
	}
	isNew, err := s.fib.Set(prefix, face, cost)
	if isNew && s.pit.Len() > 0 {
		s.hopChanged(now, &strategy.NextHop{Face: face, Cost: cost, Change: strategy.HopNew, Prefix: prefix})
	}
	return err
}

// RemoveNextHop removes a next hop and reports whether it existed. What is
// pending there stays pending: the face still answers.
func (s *Shard) RemoveNextHop(_ ndn.Time, prefix ndn.Name, face ndn.FaceID) bool {
	return s.fib.Remove(prefix, face)
}

// EachRoute calls fn for every FIB entry until it returns false. fn must not
// change the shard, and keeps nothing it got.
func (s *Shard) EachRoute(fn func(*table.FibEntry) bool) { s.fib.Each(fn) }

// EachRouteFrom is EachRoute in parts, between which the shard may do other
// things; see table.FIB.EachFrom.
func (s *Shard) EachRouteFrom(from uint32, fn func(*table.FibEntry) bool) (next uint32) {
	return s.fib.EachFrom(from, fn)
}

// bound is a strategy at the prefix it was chosen for.
type bound struct {
	live   bool // still chosen
	plain  int  // timers that belong to no entry
	name   ndn.Name
	s      strategy.Strategy
	loop   strategy.LoopHandler
	nack   strategy.NackHandler
	gaveUp strategy.GaveUpHandler
	timer  strategy.TimerHandler
	expiry strategy.ExpiryHandler
	hop    strategy.NextHopHandler
	pick   strategy.ReplicaSelector
	take   strategy.InheritHandler
	limits strategy.Suppression
}

func bind(st strategy.Strategy, name ndn.Name) *bound {
	b := &bound{live: true, name: name, s: st, limits: strategy.DefaultSuppression()}
	b.loop, _ = st.(strategy.LoopHandler)
	b.nack, _ = st.(strategy.NackHandler)
	b.gaveUp, _ = st.(strategy.GaveUpHandler)
	b.timer, _ = st.(strategy.TimerHandler)
	b.expiry, _ = st.(strategy.ExpiryHandler)
	b.hop, _ = st.(strategy.NextHopHandler)
	b.pick, _ = st.(strategy.ReplicaSelector)
	b.take, _ = st.(strategy.InheritHandler)
	if l, ok := st.(strategy.Suppressor); ok {
		b.limits = l.Suppression()
	}
	return b
}

// SetStrategy chooses the strategy of a prefix by name, as NFD:
// /localhost/nfd/strategy/<name>[/v=<version>][/<param>~<value>…]. It returns
// the full name. Interests that are pending stay so and are the new
// strategy's, which is shown them.
func (s *Shard) SetStrategy(now ndn.Time, prefix, name ndn.Name) (ndn.Name, error) {
	st, full, err := s.strategies.Resolve(name)
	if err != nil {
		return nil, err
	}
	old := s.choices.Find(prefix)
	if old != 0 && s.bound[old].name.Equal(full) {
		return full, nil
	}
	at := uint32(0)
	for i := 1; i < len(s.bound) && at == 0; i++ {
		if b := s.bound[i]; !b.live && b.plain == 0 {
			at = uint32(i)
		}
	}
	if at == 0 {
		at = uint32(len(s.bound))
		s.bound = append(s.bound, &bound{})
	}
	if err := s.choices.Set(prefix, at); err != nil {
		return nil, err
	}
	s.bound[at] = bind(st, full)
	s.rebind(now, old)
	return full, nil
}

// UnsetStrategy removes the choice of a prefix; ErrNoChoice if there is none.
// The empty prefix returns to the default strategy.
func (s *Shard) UnsetStrategy(now ndn.Time, prefix ndn.Name) error {
	if len(prefix) == 0 {
		_, err := s.SetStrategy(now, nil, s.cfg.DefaultStrategy)
		return err
	}
	old := s.choices.Find(prefix)
	if old == 0 {
		return ErrNoChoice
	}
	s.choices.Remove(prefix)
	s.rebind(now, old)
	return nil
}

// rebind gives pending Interests to the strategies that are theirs after a
// change of the choices, in which old is no longer chosen.
func (s *Shard) rebind(now ndn.Time, old uint32) {
	moved := s.entries(nil, func(e *table.PitEntry) bool {
		h := s.hasher.Prefixes(e.Name, s.hashes2[:0])
		b := s.choices.Longest(h, e.Name)
		if b == e.Strategy {
			return false
		}
		s.disarm(e)
		e.State.Clear()
		e.Strategy, e.Interval = b, 0
		return s.bound[b].take != nil && len(e.In) > 0
	})
	if old != 0 {
		b := s.bound[old]
		*b = bound{plain: b.plain}
	}
	for _, w := range moved {
		if e := w.entry; e.Arrived == w.arrived {
			s.begin(now, s.bound[e.Strategy], e, "Inherit")
			s.bound[e.Strategy].take.Inherit(s.ctx)
			s.ctx.End()
			s.settle(now, e)
		}
	}
}

// EachStrategy calls fn for every strategy choice until it returns false. fn
// must not change the shard, and keeps nothing it got.
func (s *Shard) EachStrategy(fn func(prefix, strategy ndn.Name) bool) {
	s.choices.Each(func(prefix ndn.Name, b uint32) bool { return fn(prefix, s.bound[b].name) })
}

// StrategyReport returns what the strategy of a name knows about the name's
// next hops, and the strategy's full name. ok is false when it keeps nothing
// that it could show.
func (s *Shard) StrategyReport(now ndn.Time, n ndn.Name) (r strategy.Report, name ndn.Name, ok bool) {
	if n.Len() > ndn.MaxComponents {
		return r, nil, false
	}
	number := s.choices.Longest(s.hasher.Prefixes(n, s.hashes2[:0]), n)
	b := s.bound[number]
	rep, ok := b.s.(strategy.Reporter)
	if !ok {
		return r, b.name, false
	}
	s.begin(now, b, nil, "Report")
	c := s.ctx.Setup()
	c.Name, c.Strategy = n, number
	r = rep.Report(s.ctx)
	s.ctx.End()
	return r, b.name, true
}

// SetTracer makes t see the decisions of all strategies; nil turns it off.
func (s *Shard) SetTracer(t strategy.Tracer) { s.ctx.SetTracer(t) }

// SetCS changes the content store's configuration. Data that no longer fit
// are evicted; another policy empties the store.
func (s *Shard) SetCS(c table.CSConfig) error { return s.cs.Configure(c) }

// CSInfo returns the content store's state.
func (s *Shard) CSInfo() table.CSInfo { return s.cs.Info() }

// EraseCS erases Data under a prefix from the content store, at most limit (0:
// all), and returns how many.
func (s *Shard) EraseCS(prefix ndn.Name, limit int) int { return s.cs.Erase(prefix, limit) }
