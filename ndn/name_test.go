package ndn

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	enc "github.com/named-data/ndnd/std/encoding"
	"pgregory.net/rapid"
)

// genComponent draws components, biased to the lengths and types at which
// encodings change.
var genComponent = rapid.Custom(func(t *rapid.T) Component {
	typ := rapid.OneOf(
		rapid.Just(TypeGeneric),
		rapid.SampledFrom([]uint32{1, 2, 3, 7, 8, 32, 50, 54, 58, 252, 253, 254, 300, 0xffff}),
	).Draw(t, "type")
	n := rapid.OneOf(rapid.IntRange(0, 9), rapid.SampledFrom([]int{31, 32, 33, 252, 253, 254, 255, 256, 300})).Draw(t, "length")
	if typ <= TypeParamsDigest {
		n = 32
	}
	return Component{typ, rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "value")}
})

var genName = rapid.Custom(func(t *rapid.T) Name {
	return Name(nil).Append(rapid.SliceOfN(genComponent, 0, 8).Draw(t, "components")...)
})

func components(n Name) (cs []Component) {
	for len(n) > 0 {
		var c Component
		c, n = n.Next()
		cs = append(cs, c)
	}
	return cs
}

func TestParseNameValue(t *testing.T) {
	for _, c := range []struct {
		name, in string
		n        int
		err      error
	}{
		{"empty", "", 0, nil},
		{"two components", "08 01 61 08 00", 2, nil},
		{"type 65535", "fd ffff 00", 1, nil},
		{"type 65536", "fe 00010000 00", 0, ErrComponent},
		{"type 0", "00 00", 0, ErrType},
		{"implicit digest", "01 20" + strings.Repeat("ab", 32), 1, nil},
		{"implicit digest of 31 bytes", "01 1f" + strings.Repeat("ab", 31), 0, ErrComponent},
		{"implicit digest of 33 bytes", "01 21" + strings.Repeat("ab", 33), 0, ErrComponent},
		{"empty implicit digest", "01 00", 0, ErrComponent},
		{"params digest of 31 bytes", "02 1f" + strings.Repeat("ab", 31), 0, ErrComponent},
		{"cut short", "08 02 61", 0, ErrTruncated},
		{"length not shortest", "08 fd 0001 61", 0, ErrVarNum},
		{"length 2^63", "08 ff 8000000000000000 61", 0, ErrTruncated},
	} {
		n, k, err := ParseNameValue(unhex(t, c.in))
		if !errors.Is(err, c.err) || k != c.n {
			t.Errorf("%s: %s, %d, %v", c.name, n, k, err)
		}
	}
}

func TestParseNameTLV(t *testing.T) {
	n := MustName("/a/b")
	got, err := ParseNameTLV(n.AppendTLVTo(nil))
	if err != nil || !got.Equal(n) {
		t.Errorf("%s, %v", got, err)
	}
	for in, want := range map[string]error{
		"07 03 080161 00": ErrTrailing, "08 01 61": ErrType, "07 03 0801": ErrTruncated, "": ErrTruncated,
	} {
		if _, err := ParseNameTLV(unhex(t, in)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", in, err, want)
		}
	}
}

// TestNameModel checks every operation against a plain slice of components.
func TestNameModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cs := rapid.SliceOfN(genComponent, 0, 8).Draw(t, "components")
		n := Name(nil).Append(cs...)
		parsed, count, err := ParseNameValue(n)
		if err != nil || count != len(cs) || !parsed.Equal(n) || n.Len() != len(cs) {
			t.Fatalf("%v: %d components of %d, %v", n, count, len(cs), err)
		}
		if !slices.EqualFunc(components(n), cs, Component.Equal) {
			t.Fatal("components differ")
		}
		for i := -len(cs) - 2; i <= len(cs)+1; i++ {
			at := i
			if at < 0 {
				at += len(cs)
			}
			c, ok := n.At(i)
			if want := at >= 0 && at < len(cs); ok != want || ok && !c.Equal(cs[at]) {
				t.Fatalf("At(%d) = %v, %v", i, c, ok)
			}
			k := min(max(at, 0), len(cs))
			if p := n.Prefix(i); !slices.EqualFunc(components(p), cs[:k], Component.Equal) || !n.HasPrefix(p) {
				t.Fatalf("Prefix(%d) = %s", i, p)
			} else if cap(p) != len(p) {
				t.Fatal("appending to a prefix would overwrite the name")
			}
			if s := n.Suffix(i); !slices.EqualFunc(components(s), cs[k:], Component.Equal) {
				t.Fatalf("Suffix(%d) = %s", i, s)
			}
		}
		c := n.Clone()
		if !c.Equal(n) || len(n) > 0 && &c[0] == &n[0] {
			t.Fatal("Clone shares memory")
		}
		tlv := n.AppendTLVTo(nil)
		if back, err := ParseNameTLV(tlv); err != nil || !back.Equal(n) || len(tlv) != TLVSize(TypeName, len(n)) {
			t.Fatalf("round trip: %v", err)
		}
	})
}

// TestNameOrder: the canonical order equals both its definition over
// components and the order of the encodings (packet specification, "Canonical
// Order"), and agrees with ndnd's.
func TestNameOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genName.Draw(t, "a"), genName.Draw(t, "b")
		if rapid.Bool().Draw(t, "share a prefix") {
			b = append(a.Prefix(rapid.IntRange(0, a.Len()).Draw(t, "shared")).Clone(), b...)
		}
		want := slices.CompareFunc(components(a), components(b), Component.Compare)
		if got := a.Compare(b); got != want || bytes.Compare(a, b) != want || b.Compare(a) != -want {
			t.Fatalf("%s against %s: %d, want %d, bytes %d", a, b, got, want, bytes.Compare(a, b))
		}
		if theirs := a.ToNdnd().Compare(b.ToNdnd()); theirs != want {
			t.Fatalf("ndnd orders %s and %s as %d, not %d", a, b, theirs, want)
		}
		if a.HasPrefix(b) != b.ToNdnd().IsPrefix(a.ToNdnd()) || a.Equal(b) != a.ToNdnd().Equal(b.ToNdnd()) {
			t.Fatalf("ndnd disagrees on prefix or equality of %s and %s", a, b)
		}
	})
}

func TestComponentNumber(t *testing.T) {
	c, _ := Name(nil).AppendNumber(TypeSegment, 300).At(0)
	if v, ok := c.NumberAs(TypeSegment); !ok || v != 300 {
		t.Errorf("%d, %v", v, ok)
	}
	if _, ok := c.NumberAs(TypeVersion); ok {
		t.Error("a segment taken for a version")
	}
	if _, ok := (Component{TypeSegment, []byte{1, 2, 3}}).Number(); ok {
		t.Error("three bytes are no number")
	}
}

func TestNdndNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := genName.Draw(t, "name")
		if back := FromNdnd(n.ToNdnd()); !back.Equal(n) {
			t.Fatalf("%s became %s", n, back)
		}
		theirs, err := enc.NameFromBytes(n.AppendTLVTo(nil))
		if err != nil || !FromNdnd(theirs).Equal(n) {
			t.Fatalf("ndnd reads %s as %s, %v", n, theirs, err)
		}
	})
	// ndnd v1.5.3 writes the length of such a component as a
	// NonNegativeInteger (Component.EncodeInto); the specification wants a
	// variable-size number.
	long := Name(nil).AppendGeneric(strings.Repeat("x", 300))
	if back := FromNdnd(long.ToNdnd()); !back.Equal(long) {
		t.Error("a component of 300 bytes does not survive")
	}
}

func FuzzName(f *testing.F) {
	f.Add([]byte(MustName("/cdn/video/v=1/seg=2")))
	f.Add(unhex(f, "01 20"+strings.Repeat("ab", 32)))
	f.Add(unhex(f, "08 fd 0001 61"))
	f.Add(unhex(f, "fe 00010000 00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, k, err := ParseNameValue(b)
		if err != nil {
			return
		}
		if n.Len() != k || !n.Equal(Name(nil).Append(components(n)...)) {
			t.Fatalf("% x does not survive", b)
		}
		back, err := ParseName(n.String())
		if err != nil || !back.Equal(n) {
			t.Fatalf("%s reads back as %s, %v", n, back, err)
		}
		if !FromNdnd(n.ToNdnd()).Equal(n) {
			t.Fatalf("%s does not survive ndnd", n)
		}
		h := NewHasher(1)
		hs := h.Prefixes(n, nil)
		for i := range hs {
			if h.Name(n.Prefix(i)) != hs[i] {
				t.Fatalf("hash %d of %s differs", i, n)
			}
		}
	})
}
