package fw

// waits lists the entries, by their slots, that have an in-record of one face.
// It lies in blocks that come from all faces' common pool and go back to it, so
// that neither a window of Interests that comes and goes allocates, nor a face
// keeps room that it needed once.
type waits struct {
	blocks []*waitBlock
	n      int
}

const waitBits = 6

type waitBlock [1 << waitBits]uint32

// keepBlocks is the room for blocks that an empty list keeps.
const keepBlocks = 64

// waitPool has the blocks that no list uses: at most as many as were in use at
// once.
type waitPool struct{ free []*waitBlock }

func (w *waits) at(i int) *uint32 { return &w.blocks[i>>waitBits][i&(1<<waitBits-1)] }

// push adds a slot and returns its place.
func (w *waits) push(p *waitPool, slot uint32) (place int) {
	if w.n>>waitBits == len(w.blocks) {
		b := (*waitBlock)(nil)
		if k := len(p.free); k > 0 {
			b, p.free = p.free[k-1], p.free[:k-1]
		} else {
			b = new(waitBlock)
		}
		w.blocks = append(w.blocks, b)
	}
	w.n++
	*w.at(w.n - 1) = slot
	return w.n - 1
}

// pop removes the last slot and returns it.
func (w *waits) pop(p *waitPool) (slot uint32) {
	w.n--
	slot = *w.at(w.n)
	if k := w.n >> waitBits; w.n&(1<<waitBits-1) == 0 {
		p.free = append(p.free, w.blocks[k])
		w.blocks[k] = nil
		w.blocks = w.blocks[:k]
		if k == 0 && cap(w.blocks) > keepBlocks {
			w.blocks = nil
		}
	}
	return slot
}
