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

// probe is how far a search for the slots of a hash has come. It is passed by
// value, and small enough to stay in registers.
type probe struct {
	x        *index
	tag, pos uint32
	old      bool // it is among the old cells
}

// find returns the first slot that may belong to a hash, and where next finds
// the others.
func (x *index) find(h uint64) (slot uint32, rest probe, ok bool) {
	t := uint32(h >> 32)
	return probe{x, t, t, false}.next()
}

// next returns the next candidate. The index must not be changed meanwhile.
func (p probe) next() (slot uint32, rest probe, ok bool) {
	cells := p.x.cells
	if p.old {
		cells = p.x.old
	}
	for {
		if n := uint32(len(cells)); n > 0 {
			for {
				c := cells[p.pos&(n-1)]
				if c == cellEmpty {
					break
				}
				p.pos++
				if uint32(c>>32) == p.tag && uint32(c) >= cellSlot {
					return uint32(c) - cellSlot, p, true
				}
			}
		}
		if p.old || p.x.old == nil {
			return 0, p, false
		}
		cells, p.pos, p.old = p.x.old, p.tag, true
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
		if slot, _, ok := x.find(h); ok {
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
	for s, it, ok := x.find(h); ok; s, it, ok = it.next() {
		if s == slot {
			return true
		}
	}
	return false
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
