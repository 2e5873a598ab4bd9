package producer

import (
	"testing"

	"ndnpop/ndn"
)

// segmentInterests returns n Interests for consecutive segments.
func segmentInterests(tb tester, prefix string, n int) []ndn.Packet {
	out := make([]ndn.Packet, n)
	for i := range out {
		w := ndn.AppendInterest(nil, &ndn.InterestFields{
			Name: name(tb, prefix).AppendNumber(ndn.TypeSegment, uint64(i)), Nonce: uint32(i),
		})
		if err := out[i].Parse(w, &ndn.LpFields{PitToken: []byte{1, 2, 3, 4, 5, 6}}); err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

// oneStore is a store of one object that does not allocate.
type oneStore struct{ o memObject }

func (s *oneStore) Latest(Path) (Object, error)     { return &s.o, nil }
func (s *oneStore) At(Path, uint64) (Object, error) { return &s.o, nil }

func newBench(tb testing.TB, n int) (*Responder, []ndn.Packet) {
	s := &oneStore{memObject{version: 1, segment: 8000, data: make([]byte, 8000*n)}}
	r, err := New(Config{Prefix: ndn.MustName("/cdn")}, s, &discard{})
	if err != nil {
		tb.Fatal(err)
	}
	return r, segmentInterests(tb, "/cdn/video/clip.mp4/v=1700000000008000", n)
}

// TestSegmentAllocates: answering with a signed segment allocates nothing.
func TestSegmentAllocates(t *testing.T) {
	r, ps := newBench(t, 64)
	i := 0
	if n := testing.AllocsPerRun(500, func() {
		if err := r.Receive(1, &ps[i%len(ps)]); err != nil {
			t.Fatal(err)
		}
		i++
	}); n != 0 {
		t.Errorf("%v allocations per segment", n)
	}
}

func BenchmarkSegment8000(b *testing.B) {
	r, ps := newBench(b, 64)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := r.Receive(1, &ps[i%len(ps)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
