package run

import (
	"errors"
	"fmt"
	"runtime"

	"ndnpop/fw"
	"ndnpop/ndn"
)

// fibBatch is how many next hops are changed under one hold of a shard's
// lock, so that a large change does not stall forwarding.
const fibBatch = 64

// collect takes a change from the RIB (its sink); ribMu is held.
func (f *Forwarder) collect(c fibChange) {
	start := len(f.arena)
	f.arena = append(f.arena, c.prefix...)
	c.prefix = f.arena[start:len(f.arena):len(f.arena)]
	if f.pending = append(f.pending, c); len(f.pending) >= fibBatch {
		f.applyFIB()
		runtime.Gosched() // whoever waits for the shard is next
	}
}

// applyFIB gives the collected changes to the shards; ribMu is held.
func (f *Forwarder) applyFIB() {
	if len(f.pending) == 0 {
		return
	}
	f.call(func(now ndn.Time, s *fw.Shard) {
		for _, c := range f.pending {
			if c.remove {
				s.RemoveNextHop(now, c.prefix, c.face)
			} else if err := s.SetNextHop(now, c.prefix, c.face, c.cost); err != nil {
				f.fibErrors++
			}
		}
	})
	f.pending, f.arena = f.pending[:0], f.arena[:0]
}

// ErrReservedPrefix: a route there would take commands to this forwarder
// somewhere else.
var ErrReservedPrefix = errors.New("/localhost/nfd is the forwarder's own")

// managementPrefix is where management answers (NFD Management).
var managementPrefix = ndn.Name(nil).AppendGeneric("localhost").AppendGeneric("nfd")

// checkPrefix says why a face must not have a route or next hop with a prefix.
func checkPrefix(prefix ndn.Name, id ndn.FaceID) error {
	if n := prefix.Len(); n > ndn.MaxComponents {
		return fmt.Errorf("%w: %d, at most %d", ErrNameTooLong, n, ndn.MaxComponents)
	}
	if id != InternalFace && prefix.HasPrefix(managementPrefix) {
		return fmt.Errorf("%w: no route for %s", ErrReservedPrefix, prefix)
	}
	return nil
}

// AddRoute adds a route, or changes the one with the same prefix, face and
// origin. It keeps no slice of r.
func (f *Forwarder) AddRoute(r Route) error {
	if err := checkPrefix(r.Prefix, r.Face); err != nil {
		return err
	}
	f.ribMu.Lock()
	defer f.ribMu.Unlock()
	// Asked under the RIB's lock: a face that goes now takes the route along.
	if !f.willRoute(r.Face) {
		return fmt.Errorf("%w: %d", ErrNoFace, r.Face)
	}
	was := f.rib.get(r.Prefix, r.Face, r.Origin)
	if was != nil && was.same(&r) {
		return nil
	}
	if _, err := f.rib.add(&r); err != nil {
		return err
	}
	f.applyFIB()
	f.alarms.arm(f.ribTimer, f.rib.deadline())
	r.Prefix = r.Prefix.Clone()
	f.emit(Event{Kind: RouteAdded, Route: r})
	return nil
}

// willRoute notes that a face gets a route, and reports whether there is such a
// face. The RIB's lock is held.
func (f *Forwarder) willRoute(id ndn.FaceID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	fc := f.faces[id]
	if fc != nil {
		fc.routed = true
	}
	return fc != nil
}

// RemoveRoute removes a route and reports whether there was one.
func (f *Forwarder) RemoveRoute(prefix ndn.Name, id ndn.FaceID, origin uint64) bool {
	f.ribMu.Lock()
	defer f.ribMu.Unlock()
	r := f.rib.get(prefix, id, origin)
	if r == nil {
		return false
	}
	f.removeRoute(r)
	f.applyFIB()
	return true
}

func (f *Forwarder) removeRoute(r *route) {
	e := r.export()
	f.rib.remove(r)
	f.emit(Event{Kind: RouteRemoved, Route: e})
}

// Routes lists the RIB in canonical order of prefixes, then by face and
// origin.
func (f *Forwarder) Routes() []Route {
	f.ribMu.Lock()
	defer f.ribMu.Unlock()
	routes := make([]Route, 0, f.rib.count)
	f.rib.each(func(r *route) { routes = append(routes, r.export()) })
	return routes
}

// RouteCount is the number of routes.
func (f *Forwarder) RouteCount() int {
	f.ribMu.Lock()
	defer f.ribMu.Unlock()
	return f.rib.count
}

// SetNextHop sets a next hop of the FIB beside the RIB (NFD: fib/add-nexthop).
// The next change of a route to the same face and prefix overrides it.
func (f *Forwarder) SetNextHop(prefix ndn.Name, id ndn.FaceID, cost uint64) (err error) {
	if err := checkPrefix(prefix, id); err != nil {
		return err
	}
	f.ribMu.Lock()
	defer f.ribMu.Unlock()
	if !f.willRoute(id) {
		return fmt.Errorf("%w: %d", ErrNoFace, id)
	}
	f.call(func(now ndn.Time, s *fw.Shard) {
		if e := s.SetNextHop(now, prefix, id, cost); e != nil {
			err = e
		}
	})
	return err
}

// RemoveNextHop removes a next hop of the FIB, wherever it came from.
func (f *Forwarder) RemoveNextHop(prefix ndn.Name, id ndn.FaceID) error {
	if prefix.Len() > ndn.MaxComponents {
		return fmt.Errorf("%w: %d, at most %d", ErrNameTooLong, prefix.Len(), ndn.MaxComponents)
	}
	f.ribMu.Lock()
	defer f.ribMu.Unlock()
	f.call(func(now ndn.Time, s *fw.Shard) { s.RemoveNextHop(now, prefix, id) })
	return nil
}
