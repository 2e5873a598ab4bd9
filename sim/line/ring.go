package line

// ringMin is the room of a ring that is used: little, because most directions of
// a large network carry few packets, and the ring walks through all of it.
const ringMin = 8

// ring is a double-ended queue in an array whose length is a power of two.
type ring[T any] struct {
	a       []T
	head, n int
}

func (r *ring[T]) at(i int) *T { return &r.a[(r.head+i)&(len(r.a)-1)] }

func (r *ring[T]) front() *T { return &r.a[r.head] }

// push appends v and returns its index.
func (r *ring[T]) push(v T) int {
	if r.n == len(r.a) {
		a := make([]T, max(ringMin, 2*len(r.a)))
		for i := range r.n {
			a[i] = *r.at(i)
		}
		r.a, r.head = a, 0
	}
	r.n++
	*r.at(r.n - 1) = v
	return r.n - 1
}

func (r *ring[T]) pop() T {
	var zero T
	v := r.a[r.head]
	r.a[r.head] = zero
	r.head = (r.head + 1) & (len(r.a) - 1)
	r.n--
	return v
}
