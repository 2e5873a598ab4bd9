package ndn

import (
	"testing"
	"time"
)

func sampleInterest() []byte {
	return AppendInterest(nil, &InterestFields{
		Name: MustName("/cdn/video/clip.mp4/v=1700000000000000/seg=12345"), Nonce: 0x01020304,
		Lifetime: 4 * time.Second, HopLimit: 32,
	})
}

func sampleData(tb testing.TB, payload int) []byte {
	w, err := AppendData(nil, &DataFields{
		Name:       MustName("/cdn/video/clip.mp4/v=1700000000000000/seg=12345"),
		Freshness:  time.Minute,
		FinalBlock: Name(nil).AppendNumber(TypeSegment, 99999),
		Content:    make([]byte, payload),
	}, DigestSigner{})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

func BenchmarkParseInterest(b *testing.B) {
	w := sampleInterest()
	var i Interest
	b.ReportAllocs()
	for b.Loop() {
		if err := i.Parse(w); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseData(b *testing.B) {
	w := sampleData(b, 8000)
	var d Data
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Parse(w); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPrefixHashes(b *testing.B) {
	h := NewHasher(1)
	n := MustName("/cdn/video/clip.mp4/v=1700000000000000/seg=12345")
	var buf [MaxComponents + 1]uint64
	b.ReportAllocs()
	for b.Loop() {
		h.Prefixes(n, buf[:0])
	}
}

func BenchmarkSignDigest8000(b *testing.B) {
	f := DataFields{
		Name:      MustName("/cdn/video/clip.mp4/v=1700000000000000/seg=12345"),
		Freshness: time.Minute, Content: make([]byte, 8000),
	}
	buf := make([]byte, 0, MaxPacketSize)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := AppendData(buf, &f, DigestSigner{}); err != nil {
			b.Fatal(err)
		}
	}
}
