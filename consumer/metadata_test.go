package consumer

import (
	"encoding/hex"
	"errors"
	"testing"

	"ndnpop/ndn"
)

// The metadata that ndnputchunks sends (recorded) holds the name alone.
func TestMetadataOfNdnputchunks(t *testing.T) {
	b, err := hex.DecodeString("0714080363646e080366336b3608000001a22c352cdc")
	if err != nil {
		t.Fatal(err)
	}
	m, err := ParseMetadata(b)
	if err != nil || !m.HasVersion || m.HasFinal || m.HasSize || m.SegmentSize != 0 || m.Name.Len() != 3 {
		t.Fatalf("%+v, %v", m, err)
	}
}

func TestMetadataRefused(t *testing.T) {
	name := ndn.MustName("/a/v=1").AppendTLVTo(nil)
	with := func(typ uint32, v []byte) []byte { return ndn.AppendTLV(append([]byte(nil), name...), typ, v) }
	nat := func(b []byte, typ uint32, v uint64) []byte { return ndn.AppendNatTLV(b, typ, v) }
	for what, b := range map[string][]byte{
		"empty":             {},
		"no version":        ndn.MustName("/a/b").AppendTLVTo(nil),
		"empty name":        ndn.Name(nil).AppendTLVTo(nil),
		"two names":         append(append([]byte(nil), name...), name...),
		"name not first":    append(nat(nil, typeMetaSize, 1), name...),
		"cut short":         name[:len(name)-1],
		"segment size 0":    with(typeMetaSegmentSize, []byte{0}),
		"segment too large": with(typeMetaSegmentSize, []byte{0xff, 0xff}),
		"huge size":         with(typeMetaSize, []byte{0xff, 0, 0, 0, 0, 0, 0, 0}),
		"size of 3 bytes":   with(typeMetaSize, []byte{1, 2, 3}),
		"hash of 3 bytes":   with(typeMetaSha256, []byte{1, 2, 3}),
		"unknown critical":  with(0xf501, nil),
		"final block":       with(ndn.TypeFinalBlock, nil),
		"contradiction": nat(nat(with(ndn.TypeFinalBlock, ndn.Name(nil).AppendNumber(ndn.TypeSegment, 9)),
			typeMetaSegmentSize, 100), typeMetaSize, 100),
		"inline longer than the object": ndn.AppendTLV(nat(append([]byte(nil), name...), typeMetaSize, 1), typeMetaInline, []byte("ab")),
	} {
		if _, err := ParseMetadata(b); !errors.Is(err, ErrMetadata) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	if m, err := ParseMetadata(with(0xf5fe, []byte("unknown"))); err != nil || m.Version != 1 {
		t.Errorf("an unknown field that may be ignored: %v", err)
	}
}

func FuzzMetadata(f *testing.F) {
	o := newOrigin(12345, 1000)
	o.inline = 200
	f.Add(o.metadata())
	f.Add(ndn.AppendTLV(o.metadata(), typeMetaSha256, make([]byte, 32)))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMetadata(b)
		if err != nil {
			if !errors.Is(err, ErrMetadata) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if m.SegmentSize > ndn.MaxPacketSize || m.Size > maxObjectSize || (m.Sha256 != nil && len(m.Sha256) != 32) ||
			!m.HasVersion || (m.HasSize && uint64(len(m.Inline)) > m.Size) {
			t.Fatalf("%+v", m)
		}
	})
}

func TestRangeSyntax(t *testing.T) {
	for s, want := range map[string]string{
		"0-0": "bytes 0-0", "5-": "bytes 5-", "-7": "bytes -7", "10-20": "bytes 10-20",
	} {
		r, err := ParseByteRange(s)
		if err != nil || r.String() != want {
			t.Errorf("%s: %v, %v", s, r, err)
		}
	}
	for _, s := range []string{"", "-", "5", "-0", "a-b", "5-4", "1-2-3", "--5", "99999999999999999999-"} {
		if r, err := ParseByteRange(s); err == nil {
			t.Errorf("%q was taken as %v", s, r)
		}
	}
	if r, err := ParseSegmentRange("3"); err != nil || r.String() != "segments 3-3" {
		t.Errorf("%v, %v", r, err)
	}
}
