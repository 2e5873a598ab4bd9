package ndn

import (
	"testing"
	"time"
)

// TestAllocations: nothing on the packet path allocates, for good packets and
// for bad ones.
func TestAllocations(t *testing.T) {
	interest, data := sampleInterest(), sampleData(t, 8000)
	bad := append([]byte(nil), data...)
	bad[len(bad)-40] = 0xff
	name := MustName("/cdn/video/clip.mp4/v=1700000000000000/seg=12345")
	fields := LpFields{PitToken: make([]byte, 8), CongestionMark: 1, HasPathTag: true, PathTag: PathTag{1, 2, 0}}
	header := LpHeader{LpFields: &fields, HasSequence: true, FragCount: 2, HasTx: true, Acks: []uint64{1, 2}}
	frame := AppendLpPacket(nil, &header, data[:1000])
	plain := LpHeader{LpFields: &LpFields{}}
	dataFields := DataFields{Name: name, Freshness: time.Minute, Content: make([]byte, 8000)}
	interestFields := InterestFields{Name: name, CanBePrefix: true, Nonce: 1, Lifetime: time.Second, HopLimit: 9}
	hasher := NewHasher(1)
	signer := Signer(DigestSigner{})

	buf := make([]byte, 0, 2*MaxPacketSize)
	var hashes [MaxComponents + 1]uint64
	var i Interest
	var d Data
	var lp LpPacket
	var p Packet
	if err := i.Parse(interest); err != nil {
		t.Fatal(err)
	}
	if err := d.Parse(data); err != nil {
		t.Fatal(err)
	}
	sink := 0
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"parse Interest", func() { _ = i.Parse(interest) }},
		{"parse Data", func() { _ = d.Parse(data) }},
		{"parse bad Data", func() { _ = d.Parse(bad) }},
		{"parse link packet", func() {
			_ = lp.Parse(frame)
			for _, ok := lp.NextAck(); ok; _, ok = lp.NextAck() {
				sink++
			}
		}},
		{"parse bare packet", func() { _ = lp.Parse(data); _ = p.Parse(lp.Fragment, &lp.LpFields) }},
		{"parse name", func() { _, n, _ := ParseNameValue(name); sink += n }},
		{"walk name", func() {
			c, _ := name.At(-1)
			sink += len(c.Value) + name.Len() + len(name.Prefix(-1)) + name.Compare(i.Name)
		}},
		{"split digest", func() { _, _, ok := i.ImplicitDigest(); sink += b2i(ok) }},
		{"hash prefixes", func() { sink += len(hasher.Prefixes(name, hashes[:0])) }},
		{"hash name", func() { sink += int(hasher.Name(name)) }},
		{"digest", func() { x := d.Digest(); sink += int(x[0]) }},
		{"verify digest", func() { sink += b2i(d.VerifyDigest()) }},
		{"encode Interest", func() { buf = AppendInterest(buf[:0], &interestFields) }},
		{"forward Interest", func() { buf = i.AppendForwarded(buf[:0], 1, true) }},
		{"encode and sign Data", func() { buf, _ = AppendData(buf[:0], &dataFields, signer) }},
		{"encode link packet", func() { buf = AppendLpPacket(buf[:0], &header, data[:1000]) }},
		{"encode bare packet", func() { buf = AppendLpPacket(buf[:0], &plain, data) }},
		{"split stream", func() { n, _ := PacketSize(data, MaxPacketSize); sink += n }},
	} {
		if n := testing.AllocsPerRun(100, c.f); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
	_ = sink
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
