package run

import (
	"cmp"
	"slices"

	"ndnpop/fw"
	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// listBatch is how many entries are copied under one hold of the shard's lock.
const listBatch = 256

// FIB lists the FIB in canonical order of prefixes; next hops by cost. Large
// ones are copied in parts, so that forwarding does not stall; a prefix that
// changes meanwhile is listed as it was before or after.
func (f *Forwarder) FIB() []FibEntry {
	var list []FibEntry
	u := f.units[0]
	for next, more := uint32(0), true; more; more = next != 0 {
		n := 0
		u.mu.Lock()
		next = u.shard.EachRouteFrom(next, func(e *table.FibEntry) bool {
			c := FibEntry{Prefix: e.Prefix.Clone(), NextHops: make([]NextHop, len(e.Hops))}
			for i, h := range e.Hops {
				c.NextHops[i] = NextHop{Face: h.Face, Cost: h.Cost}
			}
			list = append(list, c)
			n++
			return n < listBatch
		})
		u.mu.Unlock()
	}
	slices.SortStableFunc(list, func(a, b FibEntry) int { return a.Prefix.Compare(b.Prefix) })
	// One that left and came back may be there twice: the later copy counts.
	out := list[:0]
	for i := range list {
		if i+1 == len(list) || !list[i].Prefix.Equal(list[i+1].Prefix) {
			out = append(out, list[i])
		}
	}
	return out
}

// SetStrategy chooses the strategy of a prefix and returns its full,
// versioned name. An unknown strategy or parameter is an error that lists the
// choices.
func (f *Forwarder) SetStrategy(prefix, name ndn.Name) (full ndn.Name, err error) {
	f.call(func(now ndn.Time, s *fw.Shard) {
		if err == nil {
			full, err = s.SetStrategy(now, prefix, name)
		}
	})
	return full, err
}

// UnsetStrategy makes a prefix inherit its strategy again; fw.ErrNoChoice if
// it has none. The empty prefix returns to the default.
func (f *Forwarder) UnsetStrategy(prefix ndn.Name) (err error) {
	f.call(func(now ndn.Time, s *fw.Shard) {
		if err == nil {
			err = s.UnsetStrategy(now, prefix)
		}
	})
	return err
}

// Strategies lists the strategy choices in canonical order of prefixes.
func (f *Forwarder) Strategies() []StrategyChoice {
	var list []StrategyChoice
	u := f.units[0]
	u.mu.Lock()
	u.shard.EachStrategy(func(prefix, name ndn.Name) bool {
		list = append(list, StrategyChoice{Prefix: prefix.Clone(), Strategy: name.Clone()})
		return true
	})
	u.mu.Unlock()
	slices.SortFunc(list, func(a, b StrategyChoice) int { return a.Prefix.Compare(b.Prefix) })
	return list
}

// StrategyFactories lists the strategies to choose from, by name and version.
func (f *Forwarder) StrategyFactories() []strategy.Factory { return f.opts.Strategies.Factories() }

// StrategyReport is what the strategy of a name knows about the name's next
// hops; see fw.Shard.StrategyReport.
func (f *Forwarder) StrategyReport(name ndn.Name) (r strategy.Report, full ndn.Name, ok bool) {
	f.call(func(now ndn.Time, s *fw.Shard) {
		if !ok {
			r, full, ok = s.StrategyReport(now, name)
			full = full.Clone()
		}
	})
	return r, full, ok
}

// TraceStrategies makes t see the decisions of all strategies, or of those
// that it follows (strategy.TraceFilter); nil turns it off. t is called with a
// shard's lock held: it must not block or call the forwarder.
func (f *Forwarder) TraceStrategies(t strategy.Tracer) {
	f.call(func(_ ndn.Time, s *fw.Shard) { s.SetTracer(t) })
}

// CS describes the content store.
func (f *Forwarder) CS() CSInfo {
	u := f.units[0]
	u.mu.Lock()
	defer u.mu.Unlock()
	i := u.shard.CSInfo()
	return CSInfo{
		CapacityBytes: uint64(max(0, i.Config.Capacity)), UsedBytes: uint64(i.Memory), DataBytes: uint64(i.Bytes), Entries: uint64(i.Packets),
		Admit: !i.Config.NoAdmit, Serve: !i.Config.NoServe,
		Hits: i.Hits, Misses: i.Misses, Inserts: i.Inserts, Evicted: i.Evicted, Policy: i.Config.Policy,
	}
}

// ConfigureCS changes the content store.
func (f *Forwarder) ConfigureCS(c CSConfig) (err error) {
	f.call(func(_ ndn.Time, s *fw.Shard) {
		n := s.CSInfo().Config
		if c.CapacityBytes != nil {
			n.Capacity = int64(min(*c.CapacityBytes, 1<<62))
		}
		if c.Admit != nil {
			n.NoAdmit = !*c.Admit
		}
		if c.Serve != nil {
			n.NoServe = !*c.Serve
		}
		if c.Policy != nil {
			n.Policy = *c.Policy
		}
		err = cmp.Or(err, s.SetCS(n))
	})
	return err
}

// eraseBatch is how many Data are erased under one hold of the shard's lock.
const eraseBatch = 1024

// EraseCS erases at most limit Data under prefix and returns how many.
func (f *Forwarder) EraseCS(prefix ndn.Name, limit int) (n int) {
	for limit > n {
		some := 0
		f.call(func(_ ndn.Time, s *fw.Shard) {
			some += s.EraseCS(prefix, min(eraseBatch, limit-n-some))
		})
		n += some
		if some < eraseBatch {
			break
		}
	}
	return n
}
