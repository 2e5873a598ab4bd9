// Package due keeps things that have a deadline, the earliest first. They know
// their place, so that one can be moved or taken out when its deadline changes.
package due

import "container/heap"

// Item is what a Queue holds, a pointer: it must not change its order but by Set.
type Item[T any] interface {
	Before(T) bool
	// Place is where the queue keeps its place, for no one else to write.
	Place() *Place
}

// Place is where an item is in its queue. The zero Place is in none.
type Place int

// Queue is a heap of items. The zero Queue is ready.
type Queue[T Item[T]] struct{ items items[T] }

// Len is the number of items.
func (q *Queue[T]) Len() int { return len(q.items) }

// First is the item before all others. The queue must not be empty.
func (q *Queue[T]) First() T { return q.items[0] }

// Set puts an item in, or gives one that is in its new place.
func (q *Queue[T]) Set(x T) {
	if p := *x.Place(); p > 0 {
		heap.Fix(&q.items, int(p-1))
	} else {
		heap.Push(&q.items, x)
	}
}

// Remove takes an item out, if it is in.
func (q *Queue[T]) Remove(x T) {
	if p := *x.Place(); p > 0 {
		heap.Remove(&q.items, int(p-1))
	}
}

// items implements heap.Interface.
type items[T Item[T]] []T

func (s items[T]) Len() int           { return len(s) }
func (s items[T]) Less(i, j int) bool { return s[i].Before(s[j]) }
func (s items[T]) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	*s[i].Place(), *s[j].Place() = Place(i+1), Place(j+1)
}

func (s *items[T]) Push(v any) {
	x := v.(T)
	*s = append(*s, x)
	*x.Place() = Place(len(*s))
}

func (s *items[T]) Pop() any {
	old := *s
	last := len(old) - 1
	x := old[last]
	var none T
	old[last], *s = none, old[:last]
	*x.Place() = 0
	return x
}
