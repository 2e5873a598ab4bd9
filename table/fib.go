package table

import (
	"cmp"
	"errors"
	"slices"

	"ndnpop/ndn"
)

// Errors of table updates.
var (
	ErrFull    = errors.New("table: full")
	ErrTooLong = errors.New("table: name has over 32 components")
)

// NextHop is one way towards a prefix.
type NextHop struct {
	Face ndn.FaceID
	Cost uint64
	back uint32 // position in the face's list of routes
}

// FibEntry is the forwarding information of one prefix. It and its Prefix are
// valid until the FIB is changed.
type FibEntry struct {
	// Hops are ordered by cost, then by face.
	Hops   []NextHop
	one    [1]NextHop // what Hops begins in
	Prefix ndn.Name
	// Hash is that of Prefix.
	Hash uint64
}

// FIB is the forwarding information base. Updates are incremental: one next
// hop costs the same whatever the size of the table, and removing a face
// costs as much as the face has routes, and can be done in parts.
type FIB struct {
	set    prefixes[FibEntry]
	hasher ndn.Hasher
	limit  int
	routes int
	byFace map[ndn.FaceID][]uint32 // slots of entries; only looked up
}

// NewFIB returns an empty FIB that holds at most limit next hops.
func NewFIB(h ndn.Hasher, limit int) *FIB {
	return &FIB{hasher: h, limit: limit, byFace: make(map[ndn.FaceID][]uint32)}
}

// Len is the number of prefixes; Routes that of next hops in all.
func (f *FIB) Len() int { return f.set.count() }

// Routes is the number of next hops in all entries.
func (f *FIB) Routes() int { return f.routes }

// Longest returns the entry of the longest prefix of n, nil when there is
// none. hashes are those of n's prefixes.
func (f *FIB) Longest(hashes []uint64, n ndn.Name) *FibEntry {
	slot, ok := f.set.longest(hashes, n)
	if !ok {
		return nil
	}
	return &f.set.slab.at(slot).value
}

// Ahead reads what Longest will for at most MaxAhead names, each given by the hashes
// of its prefixes, so that the processor waits for all of it at once.
func (f *FIB) Ahead(names [][]uint64) { f.set.ahead(names) }

// Find returns the entry of exactly this prefix, nil when there is none.
func (f *FIB) Find(n ndn.Name) *FibEntry {
	slot, ok := f.set.get(f.hasher.Name(n), n)
	if !ok {
		return nil
	}
	return &f.set.slab.at(slot).value
}

// Set adds a next hop or changes its cost. isNew tells the two apart. The
// prefix is copied.
func (f *FIB) Set(prefix ndn.Name, face ndn.FaceID, cost uint64) (isNew bool, err error) {
	h := f.hasher.Name(prefix)
	slot, ok := f.set.get(h, prefix)
	if ok {
		e := &f.set.slab.at(slot).value
		if i := e.hop(face); i >= 0 {
			e.Hops[i].Cost = cost
			e.sort()
			return false, nil
		}
	}
	switch {
	case f.routes >= f.limit:
		return false, ErrFull
	case prefix.Len() > ndn.MaxComponents:
		return false, ErrTooLong
	}
	if !ok {
		slot = f.set.add(h, prefix)
		e := f.set.slab.at(slot)
		e.value.Prefix, e.value.Hash, e.value.Hops = e.name, h, e.value.one[:0]
	}
	e := &f.set.slab.at(slot).value
	list := f.byFace[face]
	e.Hops = append(e.Hops, NextHop{face, cost, uint32(len(list))})
	e.sort()
	f.byFace[face] = append(list, slot)
	f.routes++
	return true, nil
}

// Remove takes a next hop away, and the entry with its last one. It reports
// whether there was such a next hop.
func (f *FIB) Remove(prefix ndn.Name, face ndn.FaceID) bool {
	slot, ok := f.set.get(f.hasher.Name(prefix), prefix)
	if !ok {
		return false
	}
	i := f.set.slab.at(slot).value.hop(face)
	if i < 0 {
		return false
	}
	f.drop(slot, i)
	return true
}

// RemoveFace removes at most limit next hops over a face, and returns how many
// are left.
func (f *FIB) RemoveFace(face ndn.FaceID, limit int) (left int) {
	list := f.byFace[face]
	for ; len(list) > 0 && limit > 0; limit-- {
		slot := list[len(list)-1]
		f.drop(slot, f.set.slab.at(slot).value.hop(face))
		list = f.byFace[face]
	}
	return len(list)
}

func (f *FIB) drop(slot uint32, i int) {
	e := &f.set.slab.at(slot).value
	face, at := e.Hops[i].Face, e.Hops[i].back
	list := f.byFace[face]
	last := len(list) - 1
	if moved := list[last]; int(at) != last {
		list[at] = moved
		m := &f.set.slab.at(moved).value
		m.Hops[m.hop(face)].back = at
	}
	if last == 0 {
		delete(f.byFace, face)
	} else {
		f.byFace[face] = list[:last]
	}
	f.routes--
	e.Hops = slices.Delete(e.Hops, i, i+1)
	if len(e.Hops) == 0 {
		f.set.remove(slot)
	}
}

// Each calls fn for every entry until it returns false, in an order that
// depends on the history of the table alone.
func (f *FIB) Each(fn func(*FibEntry) bool) {
	f.set.each(func(_ ndn.Name, e *FibEntry) bool { return fn(e) })
}

// EachFrom is Each in parts, between which the table may change: it begins at
// from, 0 at first, and returns where to go on, 0 at the end. An entry that
// stays in the table all the time is passed once; one that leaves or comes
// meanwhile may be missed or, if it left and came back, be passed twice.
func (f *FIB) EachFrom(from uint32, fn func(*FibEntry) bool) (next uint32) {
	return f.set.eachFrom(from, func(_ ndn.Name, e *FibEntry) bool { return fn(e) })
}

func (e *FibEntry) hop(face ndn.FaceID) int {
	for i := range e.Hops {
		if e.Hops[i].Face == face {
			return i
		}
	}
	return -1
}

func (e *FibEntry) sort() {
	slices.SortFunc(e.Hops, func(a, b NextHop) int {
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(a.Face, b.Face))
	})
}
