package ndn

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// unhex decodes hexadecimal digits, ignoring spaces.
func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// boundaries are the numbers around every change of encoding.
var boundaries = []uint64{
	0, 1, 252, 253, 254, 255, 256, 0xffff, 0x10000, 0xffffffff, 0x100000000,
	math.MaxInt64, 1 << 63, math.MaxUint64,
}

func TestVarNumRoundTrip(t *testing.T) {
	for _, v := range boundaries {
		b := AppendVarNum(nil, v)
		if len(b) != VarNumSize(v) {
			t.Errorf("%d: VarNumSize %d, wrote %d", v, VarNumSize(v), len(b))
		}
		got, n, err := ReadVarNum(append(b, 0xaa))
		if err != nil || got != v || n != len(b) {
			t.Errorf("%d read back as %d, %d bytes, %v", v, got, n, err)
		}
		for i := range b {
			if _, _, err := ReadVarNum(b[:i]); !errors.Is(err, ErrTruncated) {
				t.Errorf("%d cut to %d bytes: %v", v, i, err)
			}
		}
	}
}

// TestVarNumShortest: each number has one encoding only (packet
// specification, "Variable-Size Encoding for Type and Length").
func TestVarNumShortest(t *testing.T) {
	for _, s := range []string{
		"fd 0000", "fd 00fc", "fe 00000000", "fe 0000ffff",
		"ff 0000000000000000", "ff 00000000ffffffff",
	} {
		if _, _, err := ReadVarNum(unhex(t, s)); !errors.Is(err, ErrVarNum) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestNat(t *testing.T) {
	for _, v := range boundaries {
		b := AppendNat(nil, v)
		if got, err := ParseNat(b); err != nil || got != v || len(b) != NatSize(v) {
			t.Errorf("%d: % x read back as %d, %v", v, b, got, err)
		}
	}
	// A longer encoding than needed is allowed, another length is not.
	for n, ok := range []bool{0: false, 1: true, 2: true, 3: false, 4: true, 5: false, 6: false, 7: false, 8: true, 9: false} {
		b := make([]byte, n)
		if n > 0 {
			b[n-1] = 7
		}
		v, err := ParseNat(b)
		if ok && (err != nil || v != 7) || !ok && !errors.Is(err, ErrLength) {
			t.Errorf("%d bytes: %d, %v", n, v, err)
		}
	}
}

func TestReadTL(t *testing.T) {
	for _, c := range []struct {
		in  string
		err error
	}{
		{"", ErrTruncated},
		{"08", ErrTruncated},
		{"08 01", ErrTruncated},
		{"00 00", ErrType},                       // type 0 is reserved
		{"fd 0000 00", ErrVarNum},                // and not in its shortest form
		{"ff 0000000100000000 00", ErrType},      // types have 32 bits
		{"fd 0008 00", ErrVarNum},                // 8 fits one byte
		{"08 fd 0005 00", ErrVarNum},             // so does a length of 5
		{"08 ff 7fffffffffffffff", ErrTruncated}, // lengths beyond any memory
		{"08 ff 8000000000000000", ErrTruncated},
		{"08 ff ffffffffffffffff", ErrTruncated},
		{"fe ffffffff 00", nil},
	} {
		_, _, _, err := ReadTL(unhex(t, c.in))
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.in, err, c.err)
		}
	}
	typ, l, n, err := ReadTL(unhex(t, "fd 0320 02 aabb cc"))
	if err != nil || typ != 0x320 || l != 2 || n != 4 {
		t.Errorf("got %#x %d %d %v", typ, l, n, err)
	}
	e, rest, err := NextElement(unhex(t, "fd 0320 02 aabb cc"))
	if err != nil || e.Type != 0x320 || !bytes.Equal(e.Value, []byte{0xaa, 0xbb}) || !bytes.Equal(rest, []byte{0xcc}) {
		t.Errorf("got %v % x %v", e, rest, err)
	}
	if cap(e.Value) != 2 {
		t.Error("appending to an element's value would overwrite what follows it")
	}
}

func TestTLVRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.Uint32Range(1, math.MaxUint32).Draw(t, "type")
		val := rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "value")
		b := AppendTLV(nil, typ, val)
		if len(b) != TLVSize(typ, len(val)) {
			t.Fatalf("TLVSize %d, wrote %d", TLVSize(typ, len(val)), len(b))
		}
		e, rest, err := NextElement(b)
		if err != nil || e.Type != typ || !bytes.Equal(e.Value, val) || len(rest) != 0 {
			t.Fatalf("got %v, % x, %v", e, rest, err)
		}
	})
}

func TestCritical(t *testing.T) {
	for typ, want := range map[uint32]bool{1: true, 2: true, 30: true, 31: true, 32: false, 33: true, 34: false, 800: false, 801: true} {
		if Critical(typ) != want {
			t.Errorf("type %d critical: %v", typ, !want)
		}
	}
}

func TestPacketSize(t *testing.T) {
	for _, c := range []struct {
		name, in string
		size     int
		err      error
	}{
		{"nothing", "", 0, nil},
		{"type only", "06", 0, nil},
		{"half a type", "fd 03", 0, nil},
		{"half a length", "06 fd 01", 0, nil},
		{"header only", "06 05", 7, nil},
		{"long header", "06 fd 1000", 4100, nil},
		{"as large as allowed", "06 fd 225c", 8800, nil},
		{"one byte more", "06 fd 225d", 0, ErrLength},
		{"length 2^32-1", "06 fe ffffffff", 0, ErrLength},
		{"length 2^63", "06 ff 8000000000000000", 0, ErrLength},
		{"length 2^64-1", "06 ff ffffffffffffffff", 0, ErrLength},
		{"length not shortest", "06 fd 0001", 0, ErrVarNum},
		{"type 0", "00 05", 0, ErrType},
		{"type of 33 bits", "ff 0000000100000000 00", 0, ErrType},
	} {
		size, err := PacketSize(unhex(t, c.in), MaxPacketSize)
		if size != c.size || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, size, err, c.size, c.err)
		}
	}
}

// checkStream splits b as a stream face does and checks that PacketSize never
// contradicts ReadTL, whatever part of the stream has arrived.
func checkStream(t *testing.T, b []byte) {
	for len(b) > 0 {
		size, err := PacketSize(b, MaxPacketSize)
		_, l, n, tlErr := ReadTL(b)
		switch {
		case err != nil:
			if tlErr == nil && l+n <= MaxPacketSize {
				t.Fatalf("PacketSize refuses (%v) what ReadTL reads", err)
			}
			return
		case size == 0 || size > len(b):
			if tlErr == nil {
				t.Fatalf("PacketSize wants %d bytes of %d, ReadTL is content", size, len(b))
			}
			return
		case tlErr != nil || size != n+l:
			t.Fatalf("PacketSize %d, ReadTL %d+%d, %v", size, n, l, tlErr)
		}
		// What arrives in parts is judged alike: more is needed, or the size.
		for k := range min(size, 20) {
			if s, err := PacketSize(b[:k], MaxPacketSize); err != nil || (s != 0 && s != size) {
				t.Fatalf("%d of %d bytes: %d, %v", k, size, s, err)
			}
		}
		b = b[size:]
	}
}

func FuzzPacketSize(f *testing.F) {
	f.Add(sampleInterest())
	f.Add(append(sampleData(f, 100), sampleInterest()...))
	f.Add(unhex(f, "06 ff 8000000000000000"))
	f.Add(unhex(f, "06 fd 225d"))
	f.Fuzz(func(t *testing.T, b []byte) { checkStream(t, b) })
}

func FuzzReadTL(f *testing.F) {
	f.Add(unhex(f, "fd 0320 02 aabb cc"))
	f.Add(unhex(f, "08 ff ffffffffffffffff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		typ, l, n, err := ReadTL(b)
		if typ2, l2, n2, err2 := readTLSlow(b); typ != typ2 || l != l2 || n != n2 || err != err2 {
			t.Fatalf("% x: %d %d %d %v, without shortcuts %d %d %d %v", b, typ, l, n, err, typ2, l2, n2, err2)
		}
		if err != nil {
			return
		}
		// There is only one encoding, so writing it again gives the same bytes.
		if !bytes.Equal(AppendTL(nil, typ, l), b[:n]) {
			t.Fatalf("% x is not how %#x, %d is written", b[:n], typ, l)
		}
		if l > len(b)-n {
			t.Fatal("the value lies outside the buffer")
		}
	})
}

// TestReadTLShortcuts: headers that are read without the general decoder are
// read as it does.
func TestReadTLShortcuts(t *testing.T) {
	lengths := []int{0, 1, 2, 3, 4, 5, 252, 253, 254, 255, 256, 257, 258, 300}
	for _, typ := range []byte{0, 1, 6, 252, 253, 254, 255} {
		for second := range 256 {
			for _, third := range []byte{0, 1, 255} {
				for _, fourth := range []byte{0, 5, 252, 253, 254, 255} {
					for _, n := range lengths {
						b := make([]byte, 300)
						copy(b, []byte{typ, byte(second), third, fourth})
						b = b[:n]
						gotT, gotL, gotN, err := ReadTL(b)
						wantT, wantL, wantN, wantErr := readTLSlow(b)
						if gotT != wantT || gotL != wantL || gotN != wantN || err != wantErr {
							t.Fatalf("% x of %d bytes: %d %d %d %v, want %d %d %d %v", b[:min(4, n)], n, gotT, gotL, gotN, err, wantT, wantL, wantN, wantErr)
						}
						if tt, l, ok := shortTL(b); ok && (tt != wantT || l != wantL || wantN != 2) {
							t.Fatalf("% x of %d bytes: short %d %d", b[:min(4, n)], n, tt, l)
						}
					}
				}
			}
		}
	}
}

func TestPutNat(t *testing.T) {
	b := AppendNatTLV(nil, TypeSegment, 0x12345)
	if !bytes.Equal(b, unhex(t, "32 04 00012345")) || binary.BigEndian.Uint32(b[2:]) != 0x12345 {
		t.Errorf("% x", b)
	}
}
