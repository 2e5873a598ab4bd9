package due

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type item struct {
	at, id int
	place  Place
}

func (x *item) Before(y *item) bool { return x.at < y.at || x.at == y.at && x.id < y.id }
func (x *item) Place() *Place       { return &x.place }

// TestAgainstModel sets, moves and removes items at random: the first is the
// smallest of those that are in, and everyone knows whether it is in.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[*item]
		all := make([]*item, 20)
		for i := range all {
			all[i] = &item{id: i}
		}
		in := map[*item]bool{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			x := rapid.SampledFrom(all).Draw(t, "item")
			if rapid.Bool().Draw(t, "set") {
				x.at = rapid.IntRange(0, 9).Draw(t, "at")
				q.Set(x)
				in[x] = true
			} else {
				q.Remove(x)
				delete(in, x)
			}
			if q.Len() != len(in) {
				t.Fatalf("%d items, want %d", q.Len(), len(in))
			}
			var first *item
			for _, y := range all {
				if in[y] != (y.place > 0) {
					t.Fatalf("item %d: in %t, place %d", y.id, in[y], y.place)
				}
				if in[y] && (first == nil || y.Before(first)) {
					first = y
				}
			}
			if first != nil && q.First() != first {
				t.Fatalf("first is %+v, want %+v", q.First(), first)
			}
		}
		var got []*item
		for q.Len() > 0 {
			got = append(got, q.First())
			q.Remove(q.First())
		}
		if len(got) != len(in) || !slices.IsSortedFunc(got, func(x, y *item) int {
			if x.Before(y) {
				return -1
			}
			return 1
		}) {
			t.Fatalf("%d of %d items, in their order: %v", len(got), len(in), got)
		}
	})
}
