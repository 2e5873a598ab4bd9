package table

import (
	"fmt"
	"testing"

	"ndnpop/ndn"
)

// A listing in parts passes once what stays, whatever else comes and goes
// between the parts.
func TestFIBEachFrom(t *testing.T) {
	f := NewFIB(ndn.NewHasher(1), 1<<20)
	name := func(kind string, i int) ndn.Name {
		return ndn.Name{}.AppendGeneric(kind).AppendGeneric(fmt.Sprint(i))
	}
	const n = 2000
	for i := range n {
		for _, kind := range []string{"stays", "leaves"} {
			if _, err := f.Set(name(kind, i), 300, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := map[string]int{}
	parts := 0
	for next, more := uint32(0), true; more; more = next != 0 {
		got := 0
		next = f.EachFrom(next, func(e *FibEntry) bool {
			seen[string(e.Prefix)]++
			got++
			return got < 7
		})
		f.Remove(name("leaves", parts), 300)
		if _, err := f.Set(name("comes", parts), 301, 1); err != nil {
			t.Fatal(err)
		}
		parts++
	}
	for i := range n {
		if c := seen[string(name("stays", i))]; c != 1 {
			t.Fatalf("entry %d was passed %d times", i, c)
		}
	}
	if parts < 2*n/7 {
		t.Errorf("%d parts", parts)
	}
}
