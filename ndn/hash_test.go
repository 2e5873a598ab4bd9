package ndn

import (
	"fmt"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// TestHasherAgrees: however a hash is reached, it is the same.
func TestHasherAgrees(t *testing.T) {
	h := NewHasher(42)
	rapid.Check(t, func(t *rapid.T) {
		n := Name(nil).Append(rapid.SliceOfN(genComponent, 0, MaxComponents+3).Draw(t, "components")...)
		hs := h.Prefixes(n, nil)
		if len(hs) != min(n.Len(), MaxComponents+1)+1 || hs[0] != h.Root() {
			t.Fatalf("%d hashes of %d components", len(hs), n.Len())
		}
		for i, x := range hs {
			if h.Name(n.Prefix(i)) != x {
				t.Fatalf("Name of %d components", i)
			}
			if h.Extend(x, n.Suffix(i)) != h.Name(n) {
				t.Fatalf("Extend from %d components", i)
			}
		}
	})
}

// TestHasherSpreads: names that differ little, as those of segments do, get
// hashes that differ much, in every bit, and none collide.
func TestHasherSpreads(t *testing.T) {
	const n = 20000
	h := NewHasher(7)
	prefix := MustName("/cdn/video/v=1")
	seen := make(map[uint64]string, n)
	var buckets [256]int
	var flips, pairs int
	var last uint64
	add := func(name Name) {
		x := h.Name(name)
		if other, ok := seen[x]; ok {
			t.Fatalf("%s and %s have the same hash", name, other)
		}
		seen[x] = name.String()
		buckets[x&255]++
		if last != 0 {
			flips += bits.OnesCount64(x ^ last)
			pairs++
		}
		last = x
	}
	for i := range n / 2 {
		add(prefix.Clone().AppendNumber(TypeSegment, uint64(i)))
		add(prefix.Clone().AppendGeneric(fmt.Sprintf("object-with-a-long-name-%06d.ts", i)))
	}
	for b, c := range buckets {
		// 78 are expected; 5.5 standard deviations to either side.
		if c < 78-49 || c > 78+49 {
			t.Errorf("bucket %d holds %d of %d", b, c, n)
		}
	}
	if mean := float64(flips) / float64(pairs); mean < 31 || mean > 33 {
		t.Errorf("%.2f bits differ on average, not 32", mean)
	}
}

// TestHasherBoundaries: where one component ends and the next begins matters,
// and so do lengths and types.
func TestHasherBoundaries(t *testing.T) {
	h := NewHasher(7)
	seen := map[uint64]string{}
	for _, s := range []string{"/", "/...", "/.../...", "/a", "/a/...", "/ab", "/a/b", "/abc", "/ab/c", "/a/bc", "/a/b/c", "/32=a", "/9=a", "/%00", "/%00%00", "/%00/%00"} {
		x := h.Name(MustName(s))
		if o, ok := seen[x]; ok {
			t.Errorf("%s and %s have the same hash", s, o)
		}
		seen[x] = s
	}
	if NewHasher(8).Name(MustName("/a")) == h.Name(MustName("/a")) {
		t.Error("the seed does not matter")
	}
}
