package manifest

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"ndnpop/ndn"
)

// TestLayout: the leaves of all roots are all leaves, and the segments of all
// leaves all segments, in order.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Layout{
			Last:    rapid.Uint64Range(0, 500).Draw(t, "last"),
			PerLeaf: rapid.Uint64Range(1, 9).Draw(t, "per leaf"),
			PerRoot: rapid.Uint64Range(1, 9).Draw(t, "per root"),
		}
		leaf, seg := uint64(0), uint64(0)
		for root := uint64(0); root <= l.LastRoot(); root++ {
			first, n := l.Leaves(root)
			if first != leaf || n == 0 || n > int(l.PerRoot) {
				t.Fatalf("root %d of %+v: %d leaves from %d, want from %d", root, l, n, first, leaf)
			}
			for range n {
				first, n := l.Segments(leaf)
				if first != seg || n == 0 || n > int(l.PerLeaf) {
					t.Fatalf("leaf %d of %+v: %d segments from %d, want from %d", leaf, l, n, first, seg)
				}
				seg, leaf = seg+uint64(n), leaf+1
			}
		}
		if leaf != l.LastLeaf()+1 || seg != l.Last+1 {
			t.Errorf("%+v: %d leaves, %d segments", l, leaf, seg)
		}
		_, leaves := l.Leaves(l.LastRoot() + 1)
		if _, segments := l.Segments(l.LastLeaf() + 1); leaves != 0 || segments != 0 {
			t.Errorf("%+v: something beyond the end", l)
		}
	})
}

func TestRootRoundTrip(t *testing.T) {
	l := Layout{Last: 1000, PerLeaf: 240, PerRoot: 3}
	for root, leaves := range []int{3, 2} {
		want := bytes.Repeat([]byte{7}, leaves*DigestSize)
		got, digests, err := ParseRoot(l.AppendRoot(nil, want), uint64(root))
		if err != nil || got != l || !bytes.Equal(digests, want) {
			t.Errorf("root %d: %+v, %d bytes, %v", root, got, len(digests), err)
		}
	}
}

func TestParseRootRefuses(t *testing.T) {
	l := Layout{Last: 1000, PerLeaf: 240, PerRoot: 3}
	good := l.AppendRoot(nil, make([]byte, 3*DigestSize))
	with := func(l Layout, n int) []byte { return l.AppendRoot(nil, make([]byte, n)) }
	for name, c := range map[string]struct {
		content []byte
		root    uint64
	}{
		"empty":            {nil, 0},
		"truncated":        {good[:len(good)-1], 0},
		"another root":     {good, 1},
		"beyond the end":   {good, math.MaxUint64},
		"too few digests":  {with(l, 2*DigestSize), 0},
		"half a digest":    {with(l, 3*DigestSize-1), 0},
		"no segments":      {with(Layout{Last: 1000, PerRoot: 3}, 3*DigestSize), 0},
		"no leaves":        {with(Layout{Last: 1000, PerLeaf: 3}, 0), 0},
		"huge leaves":      {with(Layout{Last: math.MaxUint64, PerLeaf: math.MaxUint64, PerRoot: 1}, DigestSize), 0},
		"huge root":        {with(Layout{Last: math.MaxUint64, PerLeaf: 1, PerRoot: math.MaxUint64}, DigestSize), 0},
		"twice the end":    {append(ndn.AppendNatTLV(nil, TypeLast, 1), good...), 0},
		"digests twice":    {append(bytes.Clone(good), good[len(good)-3*DigestSize-4:]...), 0},
		"critical element": {ndn.AppendTLV(bytes.Clone(good), 0xf5a1, nil), 0},
	} {
		if _, _, err := ParseRoot(c.content, c.root); !errors.Is(err, ErrRoot) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := ParseRoot(ndn.AppendTLV(bytes.Clone(good), 0xf5b0, []byte{1}), 0); err != nil {
		t.Errorf("an element to ignore: %v", err)
	}
}

func FuzzParseRoot(f *testing.F) {
	f.Add(Layout{Last: 1000, PerLeaf: 240, PerRoot: 3}.AppendRoot(nil, make([]byte, 3*DigestSize)), uint64(0))
	f.Add(Layout{Last: math.MaxUint64, PerLeaf: 1, PerRoot: 2}.AppendRoot(nil, make([]byte, 2*DigestSize)), uint64(math.MaxUint64/2))
	f.Add(Layout{Last: math.MaxUint64, PerLeaf: 2, PerRoot: 1}.AppendRoot(nil, make([]byte, DigestSize)), uint64(0))
	f.Fuzz(func(t *testing.T, content []byte, root uint64) {
		l, digests, err := ParseRoot(content, root)
		if err != nil {
			return
		}
		first, n := l.Leaves(root)
		if n*DigestSize != len(digests) || n > MaxPerPacket {
			t.Fatalf("%+v: %d leaves, %d bytes", l, n, len(digests))
		}
		for leaf := first; leaf < first+uint64(n); leaf++ {
			seg, k := l.Segments(leaf)
			if k == 0 || k > MaxPerPacket || seg > l.Last || l.Last-seg < uint64(k)-1 {
				t.Fatalf("%+v: leaf %d holds %d segments from %d", l, leaf, k, seg)
			}
		}
		again, d, err := ParseRoot(l.AppendRoot(nil, digests), root)
		if err != nil || again != l || !bytes.Equal(d, digests) {
			t.Fatalf("%+v became %+v: %v", l, again, err)
		}
	})
}
