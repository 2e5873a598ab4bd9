package table

import (
	"testing"

	"ndnpop/ndn"
)

func TestChoices(t *testing.T) {
	c := NewChoices(testHasher, 3)
	longest := func(n string) uint32 {
		name := ndn.MustName(n)
		return c.Longest(testHasher.Prefixes(name, nil), name)
	}
	if longest("/a") != 0 {
		t.Fatal("a choice in an empty table")
	}
	for n, v := range map[string]uint32{"/": 1, "/a": 2, "/a/b/c": 3} {
		if err := c.Set(ndn.MustName(n), v); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range map[string]uint32{"/x": 1, "/a": 2, "/a/b": 2, "/a/b/c": 3, "/a/b/c/d": 3, "/aa": 1} {
		if got := longest(n); got != want {
			t.Errorf("%s: %d, want %d", n, got, want)
		}
	}
	if err := c.Set(ndn.MustName("/z"), 4); err != ErrFull {
		t.Fatal(err)
	}
	if err := c.Set(ndn.MustName("/a"), 5); err != nil || c.Find(ndn.MustName("/a")) != 5 || c.Len() != 3 {
		t.Fatal(err)
	}
	if !c.Remove(ndn.MustName("/a")) || c.Remove(ndn.MustName("/a")) || longest("/a/b") != 1 {
		t.Fatal("remove")
	}
	var long ndn.Name
	for range 33 {
		long = long.AppendGeneric("x")
	}
	if err := c.Set(long, 1); err != ErrTooLong {
		t.Fatal(err)
	}
}
