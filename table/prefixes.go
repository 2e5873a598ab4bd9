package table

import (
	"math/bits"

	"ndnpop/ndn"
)

// prefixes is a set of name prefixes, each with a T. Exact and
// longest-prefix look-ups use the hashes of ndn.Hasher and skip the lengths
// that do not occur. A T does not move while its prefix is in the set.
type prefixes[T any] struct {
	index   index
	slab    slab[prefixEntry[T]]
	lengths [ndn.MaxComponents + 1]uint32 // prefixes of each length
	mask    uint64                        // lengths that occur
	root    uint32                        // the slot of the empty name, if it is there
	read    uint64                        // what ahead read
}

// prefixEntry has what a look-up reads side by side: at a million prefixes it
// is not in any cache, and each place of its own would be fetched alone.
type prefixEntry[T any] struct {
	hash  uint64
	room  [46]byte // of names that fit
	name  ndn.Name // owned
	value T
	len   uint8 // components
	live  bool
}

func (p *prefixes[T]) count() int { return p.index.live }

// get returns the slot of exactly this name.
func (p *prefixes[T]) get(h uint64, n ndn.Name) (uint32, bool) {
	for slot, it, ok := p.index.find(h); ok; slot, it, ok = it.next() {
		if e := p.slab.at(slot); e.hash == h && e.name.Equal(n) {
			return slot, true
		}
	}
	return 0, false
}

// longest returns the slot of the longest prefix of n in the set. hashes are
// those of n's prefixes, hashes[i] of the first i components.
func (p *prefixes[T]) longest(hashes []uint64, n ndn.Name) (uint32, bool) {
	for m := p.mask & (1<<len(hashes) - 1); m != 0; {
		l := bits.Len64(m) - 1
		m &^= 1 << l
		if l == 0 {
			return p.root, true
		}
		h := hashes[l]
		for slot, it, ok := p.index.find(h); ok; slot, it, ok = it.next() {
			if e := p.slab.at(slot); e.hash == h && int(e.len) == l && n.HasPrefix(e.name) {
				return slot, true
			}
		}
	}
	return 0, false
}

// ahead reads what longest will for names, each given by the hashes of its
// prefixes.
func (p *prefixes[T]) ahead(names [][]uint64) {
	if !p.index.isFar() {
		return
	}
	x := uint64(0)
	for m := p.mask &^ 1; m != 0; m &= m - 1 {
		l := bits.TrailingZeros64(m)
		var hashes [MaxAhead]uint64
		n := 0
		for _, h := range names {
			if l < len(h) {
				hashes[n] = h[l]
				n++
			}
		}
		x += p.index.ahead(hashes[:n])
		var room [MaxAhead]uint32
		for _, slot := range p.index.first(room[:0], hashes[:n]) {
			e := p.slab.at(slot)
			x += e.hash + uint64(len(e.name)) + uint64(e.len)
		}
	}
	p.read = x
}

// add puts a name that is not in the set into it. It copies the name.
func (p *prefixes[T]) add(h uint64, n ndn.Name) uint32 {
	slot := p.slab.get()
	e := p.slab.at(slot)
	e.name, e.hash, e.len, e.live = append(ndn.Name(e.room[:0]), n...), h, uint8(n.Len()), true
	p.index.insert(h, slot)
	if e.len == 0 {
		p.root = slot
	}
	if p.lengths[e.len]++; p.lengths[e.len] == 1 {
		p.mask |= 1 << e.len
	}
	return slot
}

func (p *prefixes[T]) remove(slot uint32) {
	e := p.slab.at(slot)
	p.index.remove(e.hash, slot)
	if p.lengths[e.len]--; p.lengths[e.len] == 0 {
		p.mask &^= 1 << e.len
	}
	*e = prefixEntry[T]{}
	p.slab.put(slot)
}

// each calls f for every prefix, in the order of their slots, until f returns
// false.
func (p *prefixes[T]) each(f func(name ndn.Name, v *T) bool) { p.eachFrom(0, f) }

// eachFrom does so from a slot on and returns the slot to go on with, 0 at
// the end.
func (p *prefixes[T]) eachFrom(from uint32, f func(name ndn.Name, v *T) bool) (next uint32) {
	for i := from; i < p.slab.n; i++ {
		if e := p.slab.at(i); e.live && !f(e.name, &e.value) {
			return i + 1
		}
	}
	return 0
}
