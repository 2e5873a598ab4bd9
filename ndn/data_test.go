package ndn

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// dataOf wraps elements, given in hexadecimal, into a Data.
func dataOf(tb testing.TB, elements string) []byte {
	return AppendTLV(nil, TypeData, unhex(tb, elements))
}

const sigs = " 16 03 1b0100 17 02 abcd" // SignatureInfo and SignatureValue

func TestDataRules(t *testing.T) {
	for _, c := range []struct {
		name, elements string
		err            error
	}{
		{"least", nameA + sigs, nil},
		{"everything", nameA + "14 0b 180102 190164 1a03 320105 15 02 6869" + sigs, nil},
		{"empty name", "0700" + sigs, nil},
		{"empty MetaInfo and Content", nameA + "1400 1500" + sigs, nil},
		{"empty SignatureValue", nameA + "16 03 1b0100 17 00", nil},

		{"nothing", "", ErrNoName},
		{"no name", "1500" + sigs, ErrNoName},
		{"ignorable element before the name", "f000" + nameA + sigs, ErrNoName},
		{"no SignatureInfo", nameA + "17 02 abcd", ErrNoSignature},
		{"no SignatureValue", nameA + "16 03 1b0100", ErrNoSignature},
		{"empty SignatureInfo", nameA + "16 00 17 00", ErrNoSignature},
		{"SignatureInfo with a key locator only", nameA + "16 02 1c00 17 00", ErrNoSignature},
		{"SignatureType after the key locator", nameA + "16 05 1c00 1b0100 17 00", ErrNoSignature},
		{"SignatureType twice", nameA + "16 06 1b0100 1b0100 17 00", ErrCritical},
		{"SignatureType of 3 bytes", nameA + "16 05 1b03000001 17 00", ErrLength},
		{"key locator", nameA + "16 0a 1b0103 1c05 0703080142 17 00", nil},
		{"signature time", nameA + "16 06 1b0100 280105 17 00", nil},
		{"validity period, critical by its number but known", nameA + "16 05 1b0100 fd00fd00 17 00", ErrTruncated},
		{"validity period", nameA + "16 07 1b0100 fd00fd00 17 00", nil},
		{"unknown critical element in SignatureInfo", nameA + "16 05 1b0100 f100 17 00", ErrCritical},
		{"unknown element in SignatureInfo", nameA + "16 05 1b0100 f000 17 00", nil},

		{"MetaInfo twice", nameA + "1400 1400" + sigs, ErrCritical},
		{"MetaInfo after Content", nameA + "1500 1400" + sigs, ErrCritical},
		{"Content after the signature", nameA + sigs + "1500", ErrCritical},
		{"SignatureValue before SignatureInfo", nameA + "17 02 abcd 16 03 1b0100", ErrCritical},
		{"ignorable elements anywhere after the name", nameA + "f000 1400 f000 1500 f000 16 03 1b0100 f000 17 02 abcd f000", nil},
		{"unknown critical element", nameA + "f100" + sigs, ErrCritical},

		{"FreshnessPeriod before ContentType", nameA + "14 06 190164 180102" + sigs, ErrCritical},
		{"ContentType of 3 bytes", nameA + "14 05 1803000001" + sigs, ErrLength},
		{"FreshnessPeriod of 2^64-1 ms", nameA + "14 0a 1908ffffffffffffffff" + sigs, nil},
		{"FinalBlockId without a component", nameA + "14 02 1a00" + sigs, ErrComponent},
		{"FinalBlockId of two components", nameA + "14 08 1a06 320105 320105" + sigs, ErrComponent},
		{"FinalBlockId that is no component", nameA + "14 04 1a02 3205" + sigs, ErrComponent},
		{"unknown element in MetaInfo", nameA + "14 02 2600" + sigs, nil},
		{"unknown critical element in MetaInfo", nameA + "14 02 2700" + sigs, ErrCritical},
		// ndn-cxx lets applications add elements of types 128 to 252 here.
		{"application's element in MetaInfo", nameA + "14 05 180102 8100" + sigs, nil},
		{"application's type beyond the range", nameA + "14 04 fd00fd00" + sigs, ErrCritical},

		{"bytes beyond the end", nameA + "15 05 6869" + sigs[:6], ErrTruncated},
	} {
		var d Data
		if err := d.Parse(dataOf(t, c.elements)); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
	var d Data
	good := dataOf(t, nameA+sigs)
	for name, c := range map[string]struct {
		in  []byte
		err error
	}{
		"trailing byte": {append(bytes.Clone(good), 0), ErrTrailing},
		"cut":           {good[:len(good)-1], ErrTruncated},
		"an Interest":   {interestOf(t, nameA), ErrType},
		"nothing":       {nil, ErrTruncated},
	} {
		if err := d.Parse(c.in); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
	}
}

func TestDataFields(t *testing.T) {
	var d Data
	wire := dataOf(t, nameA+"14 0b 180102 190164 1a03 320105 15 02 6869 16 0a 1b0103 1c05 0703080142 f00177 17 02 abcd f00188")
	if err := d.Parse(wire); err != nil {
		t.Fatal(err)
	}
	seg, ok := d.FinalBlockNumber(TypeSegment)
	if d.Name.String() != "/A" || d.NameLen != 1 || d.ContentType != ContentKey || d.Freshness != 100*time.Millisecond ||
		!ok || seg != 5 || string(d.Content) != "hi" || d.SigType != SigEcdsa || !bytes.Equal(d.KeyLocator, unhex(t, "0703080142")) ||
		!bytes.Equal(d.SigValue, unhex(t, "abcd")) {
		t.Errorf("%+v", d)
	}
	if _, ok := d.FinalBlockNumber(TypeVersion); ok {
		t.Error("a segment taken for a version")
	}
	// Signed: from the name up to SignatureValue, whatever lies between.
	if want := wire[2 : len(wire)-7]; !bytes.Equal(d.Signed(), want) {
		t.Errorf("signed portion % x", d.Signed())
	}
	if d.Digest() != sha256.Sum256(wire) {
		t.Error("the implicit digest covers the whole packet")
	}

	// Nothing is left of the Data before.
	if err := d.Parse(dataOf(t, nameA+sigs)); err != nil {
		t.Fatal(err)
	}
	if d.ContentType != 0 || d.Freshness != 0 || d.FinalBlock != nil || d.Content != nil || d.MetaInfo != nil || d.KeyLocator != nil || d.SigType != 0 {
		t.Errorf("%+v", d)
	}
	if _, ok := d.FinalBlockNumber(TypeSegment); ok {
		t.Error("a final block out of nowhere")
	}
	if err := d.Parse(dataOf(t, nameA+"14 0a 1908ffffffffffffffff 1500"+sigs)); err != nil || d.Freshness != MaxLifetime {
		t.Errorf("%v, %v", d.Freshness, err)
	}
	if d.Content == nil {
		t.Error("an empty Content is there all the same")
	}
}

// fakeSigner makes signatures of any length.
type fakeSigner struct {
	info []byte
	sig  []byte
	err  error
}

func (s fakeSigner) AppendSigInfo(b []byte) []byte { return AppendTLV(b, TypeSigInfo, s.info) }
func (s fakeSigner) AppendSignature(b, signed []byte) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	return append(b, s.sig...), nil
}

// TestAppendDataSizes crosses every change in the size of the packet's and the
// signature's headers.
func TestAppendDataSizes(t *testing.T) {
	for _, sig := range []int{0, 1, 32, 252, 253, 254, 256, 600} {
		for _, n := range []int{-1, 0, 1, 180, 190, 200, 206, 207, 208, 209, 210, 211, 212, 213, 214, 215, 216, 217, 218, 219, 220, 221, 222, 223, 224, 225,
			226, 227, 228, 229, 230, 231, 232, 233, 234, 235, 236, 237, 238, 239, 240, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255, 256, 8000} {
			f := DataFields{Name: MustName("/a/seg=1"), Freshness: time.Second}
			if n >= 0 {
				f.Content = bytes.Repeat([]byte{7}, n)
			}
			s := fakeSigner{unhex(t, "1b0100"), bytes.Repeat([]byte{9}, sig), nil}
			w, err := AppendData([]byte("before"), &f, s)
			if err != nil {
				t.Fatal(err)
			}
			if string(w[:6]) != "before" {
				t.Fatalf("content %d, signature %d: overwrote what was there", n, sig)
			}
			var d Data
			if err := d.Parse(w[6:]); err != nil {
				t.Fatalf("content %d, signature %d: %v", n, sig, err)
			}
			if (d.Content == nil) != (n < 0) || !bytes.Equal(d.Content, f.Content) || !bytes.Equal(d.SigValue, s.sig) || d.Freshness != time.Second {
				t.Fatalf("content %d, signature %d: %+v", n, sig, d)
			}
		}
	}
}

func TestAppendDataErrors(t *testing.T) {
	bad := errors.New("no key")
	f := DataFields{Name: MustName("/a")}
	b, err := AppendData([]byte("x"), &f, fakeSigner{err: bad})
	if !errors.Is(err, bad) || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
	b, err = AppendData([]byte("x"), &f, fakeSigner{sig: make([]byte, 0x10000)})
	if !errors.Is(err, ErrLength) || string(b) != "x" {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	f.Content = make([]byte, 0x10000)
	b, err = AppendData([]byte("x"), &f, DigestSigner{})
	if !errors.Is(err, ErrLength) || string(b) != "x" {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// TestBeginData: content filled in place makes the same packet.
func TestBeginData(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 200, 252, 253, 8000} {
		f := DataFields{Name: MustName("/a/seg=1"), Freshness: -time.Second, FinalBlock: MustName("/seg=9")}
		b, content := BeginData([]byte("x"), &f, n)
		if len(content) != max(n, 0) || cap(content) != len(content) {
			t.Fatalf("%d bytes of content, capacity %d", len(content), cap(content))
		}
		for i := range content {
			content[i] = byte(i)
		}
		if n >= 0 {
			f.Content = append([]byte{}, content...)
		}
		got, err := EndData(b, 1, DigestSigner{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := AppendData([]byte("x"), &f, DigestSigner{})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: % x, want % x, %v", n, got, want, err)
		}
		var d Data
		if err := d.Parse(got[1:]); err != nil || d.Freshness != 0 || !d.VerifyDigest() {
			t.Errorf("%d bytes: %+v, %v", n, d, err)
		}
	}
}

var genData = rapid.Custom(func(t *rapid.T) DataFields {
	f := DataFields{
		Name:        genName.Draw(t, "name"),
		ContentType: rapid.OneOf(rapid.Uint64Range(0, 5), rapid.Uint64()).Draw(t, "content type"),
		Freshness:   time.Duration(rapid.Int64Range(0, 1<<33).Draw(t, "freshness ms")) * time.Millisecond,
	}
	if rapid.Bool().Draw(t, "has final block") {
		f.FinalBlock = genComponent.Draw(t, "final block").AppendTo(nil)
	}
	if rapid.Bool().Draw(t, "has content") {
		f.Content = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "content")
	}
	return f
})

func TestDataRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := genData.Draw(t, "data")
		w, err := AppendData(nil, &f, DigestSigner{})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range [][]byte{w, withUnknown(t, w)} {
			var d Data
			if err := d.Parse(w); err != nil {
				t.Fatalf("% x: %v", w, err)
			}
			if !d.Name.Equal(f.Name) || d.NameLen != f.Name.Len() || d.ContentType != f.ContentType || d.Freshness != f.Freshness ||
				!bytes.Equal(d.FinalBlock, f.FinalBlock) || (d.Content == nil) != (f.Content == nil) || !bytes.Equal(d.Content, f.Content) {
				t.Fatalf("%+v became %+v", f, d)
			}
		}
		var d Data
		if err := d.Parse(w); err != nil || !d.VerifyDigest() {
			t.Fatalf("the digest does not verify: %v", err)
		}
		// Any changed bit of the signed portion or the signature is noticed.
		at := rapid.IntRange(0, len(w)-1).Draw(t, "at")
		w[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if err := d.Parse(w); err == nil && d.VerifyDigest() {
			t.Fatalf("changed byte %d, and it still verifies", at)
		}
	})
}

func TestVerifyDigestRefuses(t *testing.T) {
	var d Data
	for _, in := range []string{
		nameA + "16 03 1b0101 17 02 abcd", // another signature type
		nameA + "16 03 1b0100 17 00",
		nameA + "16 03 1b0100 17 02 abcd",
	} {
		if err := d.Parse(dataOf(t, in)); err != nil || d.VerifyDigest() {
			t.Errorf("%s: %v, or verified", in, err)
		}
	}
}

// TestFillDigest: what is signed later is the same packet, also of two at once.
func TestFillDigest(t *testing.T) {
	sizes := []int{0, 1, 90, 200, 7999, 8000}
	data := func(n int, s Signer) []byte {
		w, err := AppendData(nil, &DataFields{Name: MustName("/a/b"), Content: bytes.Repeat([]byte{7}, n), FinalBlock: []byte{50, 1, 1}}, s)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for _, n := range sizes {
		want, got := data(n, DigestSigner{}), data(n, DigestLater{})
		if bytes.Equal(got, want) {
			t.Fatalf("%d bytes: signed too early", n)
		}
		if FillDigest(got); !bytes.Equal(got, want) {
			t.Errorf("%d bytes: another packet", n)
		}
		for _, m := range sizes {
			a, b := data(n, DigestLater{}), data(m, DigestLater{})
			if FillDigests(a, b); !bytes.Equal(a, want) || !bytes.Equal(b, data(m, DigestSigner{})) {
				t.Errorf("%d and %d bytes: another packet", n, m)
			}
		}
	}
}

// disguised makes digests and calls them something else.
type disguised struct{ DigestSigner }

func (disguised) AppendSigInfo(b []byte) []byte {
	b = DigestSigner{}.AppendSigInfo(b)
	b[len(b)-1] = byte(SigDigestSha256) + 1
	return b
}

// TestVerifyDigests: of two packets each is judged for itself.
func TestVerifyDigests(t *testing.T) {
	packet := func(n int, s Signer, spoil func(w []byte)) *Data {
		w, err := AppendData(nil, &DataFields{Name: MustName("/a"), Content: make([]byte, n)}, s)
		if err != nil {
			t.Fatal(err)
		}
		spoil(w)
		d := new(Data)
		if err := d.Parse(w); err != nil {
			t.Fatal(err)
		}
		return d
	}
	var all []*Data
	for _, n := range []int{10, 300, 310} {
		all = append(all,
			packet(n, DigestSigner{}, func([]byte) {}),
			packet(n, disguised{}, func([]byte) {}),
			packet(n, DigestSigner{}, func(w []byte) { w[len(w)-1]++ }), // another digest
			packet(n, DigestSigner{}, func(w []byte) { w[15]++ }),       // another content
		)
	}
	for _, a := range all {
		for _, b := range all {
			if okA, okB := VerifyDigests(a, b); okA != a.VerifyDigest() || okB != b.VerifyDigest() {
				t.Errorf("%x and %x: %t, %t", a.Wire, b.Wire, okA, okB)
			}
		}
	}
}
