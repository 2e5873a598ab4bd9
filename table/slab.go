package table

// slab is an array that grows by chunks: it is never copied, so pointers into
// it stay valid and growth costs the same at every size. Slots are recycled
// through a free list.
type slab[T any] struct {
	chunks [][]T
	free   []uint32
	n      uint32
}

const (
	slabBits = 6
	slabSize = 1 << slabBits
)

func (s *slab[T]) at(i uint32) *T { return &s.chunks[i>>slabBits][i&(slabSize-1)] }

// get returns a free slot, with what its last user left in it.
func (s *slab[T]) get() uint32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	if int(s.n>>slabBits) == len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, slabSize))
	}
	s.n++
	return s.n - 1
}

func (s *slab[T]) put(i uint32) { s.free = append(s.free, i) }
