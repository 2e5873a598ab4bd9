package table

// index is a hash index from 64-bit hashes to 32-bit slots of some table. It
// keeps 32 bits of the hash beside each slot, so that a probe touches the
// table itself only where it is likely to match; the caller compares names.
// Several slots may have the same hash.
//
// It is open addressing with linear probing. Growing is incremental: the old
// cells stay and a few of them move with every insertion, so that no
// insertion ever pays for a copy of the whole index.
type index struct {
	cells []uint64 // high 32 bits: of the hash; low 32: slot + cellSlot
	old   []uint64 // being moved out; holds tombstones, gains no slots
	moved int      // cells of old before this one are tombstones or empty
	used  int      // occupied cells of cells
	live  int      // slots in all
}

const (
	cellEmpty     = 0
	cellTombstone = 1
	cellSlot      = 2 // added to slots
	indexMin      = 16
	indexStep     = 16 // old cells moved per insertion
)

func cellOf(h uint64, slot uint32) uint64 { return h&^0xffffffff | uint64(slot+cellSlot) }

// probe walks the slots that may belong to a hash.
type probe struct {
	cells, rest []uint64
	tag         uint32
	pos         uint32
}

func (x *index) find(h uint64) probe {
	t := uint32(h >> 32)
	return probe{x.cells, x.old, t, t}
}

// next returns the next candidate. The index must not be changed meanwhile.
func (p *probe) next() (slot uint32, ok bool) {
	for {
		if n := uint32(len(p.cells)); n > 0 {
			for {
				c := p.cells[p.pos&(n-1)]
				if c == cellEmpty {
					break
				}
				p.pos++
				if uint32(c>>32) == p.tag && uint32(c) >= cellSlot {
					return uint32(c) - cellSlot, true
				}
			}
		}
		if p.rest == nil {
			return 0, false
		}
		p.cells, p.rest, p.pos = p.rest, nil, p.tag
	}
}

// far is how many cells an index has when it is likely to be outside the caches
// that are near the processor: 256 KiB.
const far = 1 << 15

// isFar reports whether it pays to read ahead.
func (x *index) isFar() bool { return len(x.cells) >= far }

// ahead reads the cells at which the searches for hashes begin. None waits for
// another: in a loop as small as this all are on their way from memory at once.
// The result only keeps the compiler from leaving the reads out.
func (x *index) ahead(hashes []uint64) (sum uint64) {
	mask := uint32(len(x.cells) - 1)
	for _, h := range hashes {
		sum += x.cells[uint32(h>>32)&mask]
	}
	return sum
}

// first finds the slots that the searches for hashes would look at first.
func (x *index) first(slots []uint32, hashes []uint64) []uint32 {
	for _, h := range hashes {
		it := x.find(h)
		if slot, ok := it.next(); ok {
			slots = append(slots, slot)
		}
	}
	return slots
}

// insert adds slot under the hash h. It does not look for an equal one.
func (x *index) insert(h uint64, slot uint32) {
	if x.old != nil {
		x.move()
	}
	if (x.used+1)*2 > len(x.cells) {
		for x.old != nil {
			x.move()
		}
		x.old, x.moved, x.used = x.cells, 0, 0
		x.cells = make([]uint64, max(indexMin, 2*len(x.old)))
		if len(x.old) == 0 {
			x.old = nil
		}
	}
	x.put(cellOf(h, slot))
	x.live++
}

func (x *index) put(c uint64) {
	mask := uint32(len(x.cells) - 1)
	i := uint32(c >> 32)
	for x.cells[i&mask] != cellEmpty {
		i++
	}
	x.cells[i&mask] = c
	x.used++
}

func (x *index) move() {
	for range indexStep {
		if x.moved == len(x.old) {
			x.old, x.moved = nil, 0
			return
		}
		if c := x.old[x.moved]; uint32(c) >= cellSlot {
			x.old[x.moved] = cellTombstone
			x.put(c)
		}
		x.moved++
	}
}

// has reports whether slot is in the index under h.
func (x *index) has(h uint64, slot uint32) bool {
	for it := x.find(h); ; {
		if s, ok := it.next(); !ok || s == slot {
			return ok
		}
	}
}

// remove takes slot, inserted under h, out of the index, if it is there.
func (x *index) remove(h uint64, slot uint32) {
	c, t := cellOf(h, slot), uint32(h>>32)
	if mask := uint32(len(x.cells) - 1); len(x.cells) > 0 {
		for i := t; x.cells[i&mask] != cellEmpty; i++ {
			if x.cells[i&mask] == c {
				x.close(i & mask)
				x.used--
				x.live--
				return
			}
		}
	}
	if mask := uint32(len(x.old) - 1); len(x.old) > 0 {
		for i := t; x.old[i&mask] != cellEmpty; i++ {
			if x.old[i&mask] == c {
				x.old[i&mask] = cellTombstone
				x.live--
				return
			}
		}
	}
}

// close empties cell i of cells and moves later cells of its run back, so
// that no tombstone is needed.
func (x *index) close(i uint32) {
	mask := uint32(len(x.cells) - 1)
	for j := i; ; {
		j = (j + 1) & mask
		c := x.cells[j]
		if c == cellEmpty {
			break
		}
		// The cell at j may fill the hole at i unless its home lies between.
		if home := uint32(c>>32) & mask; (j-home)&mask >= (j-i)&mask {
			x.cells[i], i = c, j
		}
	}
	x.cells[i] = cellEmpty
}
