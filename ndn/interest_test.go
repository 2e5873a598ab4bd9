package ndn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// interestOf wraps elements, given in hexadecimal, into an Interest.
func interestOf(tb testing.TB, elements string) []byte {
	return AppendTLV(nil, TypeInterest, unhex(tb, elements))
}

const nameA = "07 03 08 01 41 " // the name /A

// TestInterestRules: what the packet specification and ndn-cxx's decoder
// accept and refuse.
func TestInterestRules(t *testing.T) {
	digest := strings.Repeat("00", 32)
	for _, c := range []struct {
		name, elements string
		err            error
	}{
		{"name only", nameA, nil},
		{"everything in order", nameA + "2100 1200 1e05 0703080142 0a0401020304 0c0203e8 220105 2400 2c03 1b0100 2e00", nil},

		{"nothing", "", ErrNoName},
		{"empty name", "0700", ErrNoName},
		{"no name", "0a0401020304", ErrNoName},
		{"ignorable element before the name", "f000 " + nameA, ErrNoName},
		{"second name", nameA + nameA, ErrCritical},

		{"unknown even type above 31", nameA + "f000", nil},
		{"unknown even type among the known", nameA + "2100 f001ff 1200", nil},
		{"unknown odd type", nameA + "f100", ErrCritical},
		{"unknown even type of the grandfathered range", nameA + "0e00", ErrCritical},
		{"type 0", nameA + "0000", ErrType},
		{"type over 32 bits", nameA + "ff0000000100000000 00", ErrType},

		{"CanBePrefix twice", nameA + "2100 2100", ErrCritical},
		{"CanBePrefix with a value", nameA + "2101ff", ErrLength},
		{"CanBePrefix after MustBeFresh", nameA + "1200 2100", ErrCritical},
		{"MustBeFresh with a value", nameA + "120100", ErrLength},
		{"MustBeFresh after Nonce", nameA + "0a0401020304 1200", ErrCritical},

		{"Nonce of 3 bytes", nameA + "0a03010203", ErrLength},
		{"Nonce of 5 bytes", nameA + "0a050102030405", ErrLength},
		{"Nonce twice", nameA + "0a0401020304 0a0401020304", ErrCritical},
		{"Nonce after the lifetime", nameA + "0c0110 0a0401020304", ErrCritical},
		{"lifetime of 3 bytes", nameA + "0c03000001", ErrLength},
		{"empty lifetime", nameA + "0c00", ErrLength},
		{"lifetime not in its shortest form", nameA + "0c0400000010", nil},
		{"lifetime of 2^64-1 ms", nameA + "0c08ffffffffffffffff", nil},

		{"HopLimit of 2 bytes", nameA + "22020001", ErrLength},
		{"empty HopLimit", nameA + "2200", ErrLength},
		{"HopLimit twice: non-critical, so the second is ignored", nameA + "220105 220107", nil},
		{"HopLimit out of order is not even looked at", nameA + "2400 2202ffff", nil},
		{"HopLimit before Nonce", nameA + "220105 0a0401020304", ErrCritical},

		{"empty hint", nameA + "1e00", ErrNoName},
		{"hint without a name", nameA + "1e02 f000", ErrNoName},
		{"hint of two names", nameA + "1e0a 0703080142 0703080143", nil},
		{"hint with an ignorable element", nameA + "1e07 f000 0703080142", nil},
		{"hint with a critical element", nameA + "1e07 f100 0703080142", ErrCritical},
		{"hint with a broken name", nameA + "1e05 0703080242", ErrTruncated},
		{"hint in the format before 2021", nameA + "1e0a 1f08 1e0101 0703080142", ErrCritical},

		{"component type over 65535", "07 06 fe00010000 00", ErrComponent},
		{"implicit digest of 31 bytes", "07 21 011f" + digest[:62], ErrComponent},
		{"length that ends after the packet", nameA + "0a05 01020304", ErrTruncated},
		{"length 2^63", nameA + "0aff8000000000000000 01020304", ErrTruncated},
		{"length not in its shortest form", nameA + "0afd0004 01020304", ErrVarNum},
	} {
		var i Interest
		if err := i.Parse(interestOf(t, c.elements)); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
	var i Interest
	for in, want := range map[string]error{
		"": ErrTruncated, "05": ErrTruncated, "06 05 " + nameA: ErrType,
		"05 05 " + nameA + "00": ErrTrailing, "05 06 " + nameA: ErrTruncated,
	} {
		if err := i.Parse(unhex(t, in)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", in, err, want)
		}
	}
}

func TestInterestFields(t *testing.T) {
	var i Interest
	// Fill i with what the next parse must not leave behind.
	if err := i.Parse(interestOf(t, nameA+"2100 1200 1e05 0703080142 0a0401020304 0c0203e8 220105 240155 2c03 1b0100 2e0166")); err != nil {
		t.Fatal(err)
	}
	if i.Name.String() != "/A" || i.NameLen != 1 || !i.CanBePrefix || !i.MustBeFresh || !i.HasNonce || i.Nonce != 0x01020304 ||
		i.Lifetime != time.Second || !i.HasHopLimit || i.HopLimit != 5 || string(i.AppParameters) != "U" ||
		!bytes.Equal(i.SigInfo, unhex(t, "1b0100")) || string(i.SigValue) != "f" {
		t.Errorf("%+v", i)
	}
	h, rest, ok := NextHint(i.ForwardingHint)
	if !ok || h.String() != "/B" || len(rest) != 0 {
		t.Errorf("hint %s, % x, %v", h, rest, ok)
	}
	if _, _, ok := NextHint(rest); ok {
		t.Error("a hint after the last one")
	}
	if !bytes.Equal(i.ParamsPortion(), unhex(t, "240155 2c03 1b0100 2e0166")) {
		t.Errorf("params portion % x", i.ParamsPortion())
	}

	if err := i.Parse(interestOf(t, nameA)); err != nil {
		t.Fatal(err)
	}
	if i.CanBePrefix || i.MustBeFresh || i.HasNonce || i.HasHopLimit || i.Lifetime != DefaultLifetime ||
		i.AppParameters != nil || i.SigInfo != nil || i.ForwardingHint != nil || i.ParamsPortion() != nil {
		t.Errorf("%+v", i)
	}
	// Without a Nonce or hop limit there is nothing to patch.
	i.SetHopLimit(3)
	i.SetNonce(3)
	if !bytes.Equal(i.Wire, interestOf(t, nameA)) || i.HopLimit != 0 || i.Nonce != 0 {
		t.Errorf("% x", i.Wire)
	}

	if err := i.Parse(interestOf(t, nameA+"0c08ffffffffffffffff 220105 220107 2400")); err != nil {
		t.Fatal(err)
	}
	if i.Lifetime != MaxLifetime || i.HopLimit != 5 || i.AppParameters == nil || len(i.AppParameters) != 0 {
		t.Errorf("%+v", i)
	}
	i.SetHopLimit(4)
	if i.HopLimit != 4 || !bytes.HasSuffix(i.Wire, unhex(t, "220104 220107 2400")) {
		t.Errorf("% x", i.Wire)
	}
	if err := i.Parse(interestOf(t, nameA+"0a0401020304")); err != nil {
		t.Fatal(err)
	}
	i.SetNonce(0xa1b2c3d4)
	if i.Nonce != 0xa1b2c3d4 || !bytes.HasSuffix(i.Wire, unhex(t, "0a04a1b2c3d4")) {
		t.Errorf("% x", i.Wire)
	}
}

func TestNextHintSkipsOthers(t *testing.T) {
	var i Interest
	if err := i.Parse(interestOf(t, nameA+"1e0e f000 0703080142 f200 0703080143")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for h := i.ForwardingHint; ; {
		n, rest, ok := NextHint(h)
		if !ok {
			break
		}
		got, h = append(got, n.String()), rest
	}
	if strings.Join(got, " ") != "/B /C" {
		t.Error(got)
	}
}

func TestImplicitDigest(t *testing.T) {
	d := strings.Repeat("ab", 32)
	for _, c := range []struct {
		name, value string
		data        string
		ok          bool
	}{
		{"no digest", "080141", "", false},
		{"digest at the end", "080141 0120" + d, "/A", true},
		{"digest alone", "0120" + d, "/", true},
		{"digest inside", "0120" + d + "080141", "", false},
		{"params digest at the end", "080141 0220" + d, "", false},
		// The last 34 bytes look like a digest but are the end of a longer
		// component, or straddle two.
		{"look-alike in a component", "0823 410120" + d, "", false},
		{"look-alike over two components", "0801 01 0820" + d, "", false},
		{"digest after a look-alike", "0823 410120" + d + "0120" + d, "", true},
	} {
		var i Interest
		n := unhex(t, c.value)
		if err := i.Parse(AppendTLV(nil, TypeInterest, AppendTLV(nil, TypeName, n))); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		digest, data, ok := i.ImplicitDigest()
		if ok != c.ok || ok && (!bytes.Equal(digest, unhex(t, d)) || c.data != "" && data.String() != c.data) {
			t.Errorf("%s: % x, %s, %v", c.name, digest, data, ok)
		}
		if ok && cap(data) != len(data) {
			t.Errorf("%s: appending to the Data's name would overwrite the digest", c.name)
		}
	}
	// Against the plain way, on any name.
	rapid.Check(t, func(t *rapid.T) {
		n := genName.Draw(t, "name")
		last, ok := n.At(-1)
		digest, data, got := splitDigest(n)
		want := ok && last.Type == TypeImplicitDigest
		if got != want || got && (!bytes.Equal(digest, last.Value) || !data.Equal(n.Prefix(-1))) {
			t.Fatalf("%s: % x, %s, %v", n, digest, data, got)
		}
	})
}

func TestSignedPortion(t *testing.T) {
	digest := "0220" + strings.Repeat("cd", 32)
	var i Interest
	if err := i.Parse(interestOf(t, "0725 080141"+digest+" 0a0401020304 220101 240155 f00133 2c03 1b0100 2e0166 f00144")); err != nil {
		t.Fatal(err)
	}
	got := i.SignedPortion([]byte{0xee})
	if !bytes.Equal(got, unhex(t, "ee 080141 240155 f00133 2c03 1b0100")) {
		t.Errorf("% x", got)
	}
	if !bytes.Equal(i.ParamsPortion(), unhex(t, "240155 f00133 2c03 1b0100 2e0166 f00144")) {
		t.Errorf("% x", i.ParamsPortion())
	}
	// A signature without ApplicationParameters before it covers no
	// parameters; whoever verifies must refuse it.
	if err := i.Parse(interestOf(t, nameA+"2c03 1b0100 2e0166")); err != nil {
		t.Fatal(err)
	}
	if got := i.SignedPortion(nil); !bytes.Equal(got, unhex(t, "080141")) || i.ParamsPortion() != nil {
		t.Errorf("% x", got)
	}
}

// TestAppendForwarded: what a forwarder sends on is what it received but for
// the Nonce and the hint.
func TestAppendForwarded(t *testing.T) {
	const nonce, hint, unknown = "0a04a1b2c3d4 ", "1e05 0703080142 ", "f00155 "
	for _, c := range []struct {
		name, in string
		strip    bool
		want     string
	}{
		{"nothing to do", nameA + "0a0401020304", false, nameA + "0a0401020304"},
		{"unknown fields survive", nameA + unknown + "0a0401020304" + unknown, true, nameA + unknown + "0a0401020304" + unknown},
		{"nonce after the name", nameA, false, nameA + nonce},
		{"nonce before the lifetime", nameA + "0c0110", false, nameA + nonce + "0c0110"},
		{"nonce before the hop limit", nameA + "220105", false, nameA + nonce + "220105"},
		{"nonce after all flags", nameA + "2100 1200 " + hint + "0c0110 2400", false, nameA + "2100 1200 " + hint + nonce + "0c0110 2400"},
		{"nonce with unknown fields around", nameA + unknown + "2100" + unknown + "0c0110" + unknown, false, nameA + unknown + "2100" + nonce + unknown + "0c0110" + unknown},
		{"hint stripped", nameA + "2100" + hint + "0a0401020304 0c0110", true, nameA + "2100 0a0401020304 0c0110"},
		{"hint stripped, nonce inserted", nameA + "2100" + hint + unknown + "0c0110", true, nameA + "2100" + nonce + unknown + "0c0110"},
		{"hint kept, nonce inserted", nameA + hint, false, nameA + hint + nonce},
		{"hint last", nameA + hint, true, nameA + nonce},
		{"no hint to strip", nameA + "0a0401020304", true, nameA + "0a0401020304"},
	} {
		var i Interest
		if err := i.Parse(interestOf(t, c.in)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := i.AppendForwarded([]byte("xy"), 0xa1b2c3d4, c.strip)
		if want := interestOf(t, c.want); string(got[:2]) != "xy" || !bytes.Equal(got[2:], want) {
			t.Errorf("%s:\n got % x\nwant % x", c.name, got[2:], want)
		}
	}
}

// genInterest draws the fields of an Interest that has no parameters.
var genInterest = rapid.Custom(func(t *rapid.T) InterestFields {
	return InterestFields{
		Name:           Name(nil).Append(rapid.SliceOfN(genComponent, 1, 6).Draw(t, "components")...),
		CanBePrefix:    rapid.Bool().Draw(t, "CanBePrefix"),
		MustBeFresh:    rapid.Bool().Draw(t, "MustBeFresh"),
		ForwardingHint: rapid.SliceOfN(genName, 0, 3).Draw(t, "hint"),
		Nonce:          rapid.Uint32().Draw(t, "nonce"),
		OmitNonce:      rapid.Bool().Draw(t, "omit nonce"),
		Lifetime:       time.Duration(rapid.Int64Range(0, 1<<33).Draw(t, "lifetime ms")) * time.Millisecond,
		HopLimit:       rapid.Byte().Draw(t, "hop limit"),
	}
})

func hints(i *Interest) (out []Name) {
	for n, rest, ok := NextHint(i.ForwardingHint); ok; n, rest, ok = NextHint(rest) {
		out = append(out, n)
	}
	return out
}

func TestInterestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := genInterest.Draw(t, "interest")
		w := AppendInterest(nil, &f)
		var i Interest
		if err := i.Parse(w); err != nil {
			t.Fatalf("% x: %v", w, err)
		}
		want := f.Lifetime
		if want == 0 {
			want = DefaultLifetime
		}
		if !i.Name.Equal(f.Name) || i.NameLen != f.Name.Len() || i.CanBePrefix != f.CanBePrefix || i.MustBeFresh != f.MustBeFresh ||
			i.HasNonce == f.OmitNonce || i.HasNonce && i.Nonce != f.Nonce || i.Lifetime != want ||
			i.HasHopLimit != (f.HopLimit > 0) || i.HopLimit != f.HopLimit {
			t.Fatalf("%+v became %+v", f, i)
		}
		hs := hints(&i)
		if len(hs) != len(f.ForwardingHint) {
			t.Fatalf("%d hints of %d", len(hs), len(f.ForwardingHint))
		}
		for k := range hs {
			if !hs[k].Equal(f.ForwardingHint[k]) {
				t.Fatalf("hint %d: %s", k, hs[k])
			}
		}

		// Forwarding changes the Nonce and the hint only.
		nonce, strip := rapid.Uint32().Draw(t, "new nonce"), rapid.Bool().Draw(t, "strip")
		var g Interest
		out := i.AppendForwarded(nil, nonce, strip)
		if err := g.Parse(out); err != nil {
			t.Fatal(err)
		}
		after := f
		if f.OmitNonce {
			after.Nonce, after.OmitNonce = nonce, false
		}
		if strip {
			after.ForwardingHint = nil
		}
		if !bytes.Equal(out, AppendInterest(nil, &after)) {
			t.Fatalf("forwarded % x as % x", w, out)
		}
	})
}

func TestLifetimeRounding(t *testing.T) {
	for in, want := range map[time.Duration]time.Duration{
		0: DefaultLifetime, -time.Second: DefaultLifetime, 1: time.Millisecond, time.Millisecond: time.Millisecond,
		time.Millisecond + 1: 2 * time.Millisecond, 1<<63 - 1: MaxLifetime,
	} {
		var i Interest
		if err := i.Parse(AppendInterest(nil, &InterestFields{Name: MustName("/a"), Lifetime: in})); err != nil || i.Lifetime != want {
			t.Errorf("%v became %v, %v", in, i.Lifetime, err)
		}
	}
}

// TestRebase: views of a copy, as the tables keep them.
func TestRebase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := genInterest.Draw(t, "interest")
		var i Interest
		if err := i.Parse(withUnknown(t, AppendInterest(nil, &f))); err != nil {
			t.Fatal(err)
		}
		wire := bytes.Clone(i.Wire)
		n, hint := i.Rebase(wire)
		if !n.Equal(i.Name) || !bytes.Equal(hint, i.ForwardingHint) || (hint == nil) != (i.ForwardingHint == nil) {
			t.Fatalf("%s, % x", n, hint)
		}
		clear(i.Wire)
		if n.Len() != f.Name.Len() {
			t.Fatal("the views are still of the old packet")
		}
	})
}

// TestAppendOut: AppendForwarded with another Nonce and hop limit.
func TestAppendOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := genInterest.Draw(t, "interest")
		var i Interest
		if err := i.Parse(withUnknown(t, AppendInterest(nil, &f))); err != nil {
			t.Fatal(err)
		}
		strip := rapid.Bool().Draw(t, "strip")
		before := bytes.Clone(i.Wire)
		out := i.AppendOut([]byte("x"), 0x11223344, 77, strip)[1:]
		if !bytes.Equal(i.Wire, before) {
			t.Fatal("the received packet was changed")
		}
		var g, h Interest
		if err := errors.Join(g.Parse(out), h.Parse(i.AppendForwarded(nil, 0x11223344, strip))); err != nil {
			t.Fatal(err)
		}
		if !g.HasNonce || g.Nonce != 0x11223344 || g.HasHopLimit != i.HasHopLimit || g.HasHopLimit && g.HopLimit != 77 {
			t.Fatalf("%+v", g)
		}
		h.SetNonce(g.Nonce)
		h.SetHopLimit(g.HopLimit)
		if !bytes.Equal(g.Wire, h.Wire) {
			t.Fatalf("% x\n% x", g.Wire, h.Wire)
		}
	})
}

// withUnknown inserts elements that may be ignored between those of an
// Interest or Data, wherever the specification allows them.
func withUnknown(t *rapid.T, wire []byte) []byte {
	e, _, err := NextElement(wire)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for b := e.Value; len(b) > 0; {
		_, rest, err := NextElement(b)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b[:len(b)-len(rest)]...)
		b = rest
		if rapid.Bool().Draw(t, "insert") {
			typ := rapid.SampledFrom([]uint32{0xf0, 0xfffe, 0x10000}).Draw(t, "unknown type")
			out = AppendTLV(out, typ, rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "unknown value"))
		}
	}
	return AppendTLV(nil, e.Type, out)
}

// TestUnknownFieldsSurvive: unknown non-critical elements change nothing that
// is read, and are all still there after forwarding.
func TestUnknownFieldsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := genInterest.Draw(t, "interest")
		plain := AppendInterest(nil, &f)
		wire := withUnknown(t, plain)
		var a, b Interest
		if err := errors.Join(a.Parse(plain), b.Parse(wire)); err != nil {
			t.Fatal(err)
		}
		if !a.Name.Equal(b.Name) || a.Nonce != b.Nonce || a.Lifetime != b.Lifetime || a.HopLimit != b.HopLimit || !bytes.Equal(a.ForwardingHint, b.ForwardingHint) {
			t.Fatalf("%+v and %+v", a, b)
		}
		out := b.AppendForwarded(nil, 1, true)
		var c Interest
		if err := c.Parse(out); err != nil {
			t.Fatal(err)
		}
		removed := 0
		if b.ForwardingHint != nil {
			removed = TLVSize(TypeForwardingHint, len(b.ForwardingHint))
		}
		added := 0
		if !b.HasNonce {
			added = 6
		}
		before, _, _ := NextElement(wire)
		after, _, _ := NextElement(out)
		if len(after.Value) != len(before.Value)-removed+added {
			t.Fatalf("% x forwarded as % x", wire, out)
		}
	})
}

func TestInterestWithParams(t *testing.T) {
	params := unhex(t, "2402 0102 2c03 1b0100")
	w := AppendInterest(nil, &InterestFields{Name: MustName("/a"), Params: params, HopLimit: 1})
	var i Interest
	if err := i.Parse(w); err != nil || !bytes.Equal(i.ParamsPortion(), params) || binary.BigEndian.Uint16(i.AppParameters) != 0x0102 {
		t.Errorf("% x, %v", i.ParamsPortion(), err)
	}
}
