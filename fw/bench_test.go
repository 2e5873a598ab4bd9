package fw

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/strategies"
	"ndnpop/table"
)

// sink is a Sender that copies, as a driver does, and keeps nothing.
type sink struct {
	buf   [ndn.MaxPacketSize]byte
	token [32]byte
	size  int // of the Interest in buf
}

func (s *sink) Send(_ ndn.FaceID, wire []byte, f *ndn.LpFields) bool {
	if wire[0] == byte(ndn.TypeInterest) {
		s.size = copy(s.buf[:], wire)
	}
	copy(s.token[:], f.PitToken)
	return true
}

type benchNet struct {
	s        *Shard
	out      sink
	p        ndn.Packet
	interest []byte
	data     []byte
	now      ndn.Time
	tokens   [table.TokenLen]byte
}

func newBench(tb testing.TB, routes int, cs int64) *benchNet {
	set, err := strategy.NewSet(strategies.Builtin()...)
	if err != nil {
		tb.Fatal(err)
	}
	b := &benchNet{now: 1}
	if b.s, err = New(Config{Seed: 1, CS: table.CSConfig{Capacity: cs}}, set, &b.out); err != nil {
		tb.Fatal(err)
	}
	_ = b.s.AddFace(0, FaceInfo{ID: local1, Local: true})
	_ = b.s.AddFace(0, FaceInfo{ID: remote1})
	for i := range routes {
		n := ndn.Name(nil).AppendGeneric(fmt.Sprintf("site%d", i%1000)).AppendGeneric(fmt.Sprintf("obj%d", i))
		if err := b.s.SetNextHop(0, n, remote1, 1); err != nil {
			tb.Fatal(err)
		}
	}
	if err := b.s.SetNextHop(0, ndn.MustName("/cdn/video"), remote1, 1); err != nil {
		tb.Fatal(err)
	}
	name := ndn.MustName("/cdn/video/clip.mp4/v=1700000000000000").AppendNumber(ndn.TypeSegment, 0x10000)
	b.interest = ndn.AppendInterest(nil, &ndn.InterestFields{Name: name, Nonce: 1, Lifetime: 4 * time.Second, HopLimit: 32})
	b.data, err = ndn.AppendData(nil, &ndn.DataFields{Name: name, Freshness: time.Hour, Content: make([]byte, 8000)}, ndn.DigestSigner{})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// segment patches the segment number and the Nonce into both packets.
func (b *benchNet) segment(i uint32) {
	const at = 2 + 2 + 5 + 7 + 10 + 10 + 2 // type and length of packet and name, components
	binary.BigEndian.PutUint32(b.interest[at:], 0x10000+i)
	binary.BigEndian.PutUint32(b.data[at+2:], 0x10000+i)
	binary.BigEndian.PutUint32(b.interest[at+4+2:], i)
}

func (b *benchNet) ask(tb testing.TB) {
	if err := b.p.Parse(b.interest, &ndn.LpFields{PitToken: b.tokens[:4]}); err != nil {
		tb.Fatal(err)
	}
	b.s.Receive(b.now, local1, &b.p)
}

func (b *benchNet) answer(tb testing.TB) {
	copy(b.tokens[:], b.out.token[:])
	if err := b.p.Parse(b.data, &ndn.LpFields{PitToken: b.tokens[:]}); err != nil {
		tb.Fatal(err)
	}
	b.s.Receive(b.now, remote1, &b.p)
}

func (b *benchNet) pair(tb testing.TB, i uint32) {
	b.segment(i)
	b.now += 1000
	b.ask(tb)
	b.answer(tb)
	b.s.Tick(b.now)
}

func (b *benchNet) check(tb testing.TB, satisfied, hits int) {
	if c := b.s.Counters(); int(c.Satisfied) != satisfied || c.OutData != uint64(satisfied+hits) {
		tb.Fatalf("%+v", c)
	}
}

// BenchmarkPair is an Interest and its 8 KB Data through PIT, a FIB of
// 100,000 routes and the content store, parsing included.
func BenchmarkPair(b *testing.B) {
	n := newBench(b, 100_000, 256<<20)
	for i := range uint32(40_000) { // fill the store
		n.pair(b, i)
	}
	b.ReportAllocs()
	i := uint32(40_000)
	for b.Loop() {
		n.pair(b, i)
		i++
	}
	n.check(b, int(i), 0)
}

// BenchmarkPairNoCache is the same without a content store.
func BenchmarkPairNoCache(b *testing.B) {
	n := newBench(b, 100_000, 0)
	b.ReportAllocs()
	i := uint32(0)
	for b.Loop() {
		n.pair(b, i)
		i++
	}
	n.check(b, int(i), 0)
}

// BenchmarkHit is an Interest that the content store answers, out of 30,000
// packets of 8 KB.
func BenchmarkHit(b *testing.B) {
	n := newBench(b, 100_000, 256<<20)
	const held = 28_000
	for i := range uint32(held) {
		n.pair(b, i)
	}
	b.ReportAllocs()
	i, hits := uint32(0), 0
	for b.Loop() {
		n.segment(i * 7919 % held)
		n.now += 1000
		n.ask(b)
		i++
		hits++
	}
	n.check(b, held, hits)
}

// TestNoAllocations is the gate of the packet path.
func TestNoAllocations(t *testing.T) {
	for name, cs := range map[string]int64{"content store": 8 << 20, "no content store": 0} {
		n := newBench(t, 1000, cs)
		i := uint32(0)
		for ; i < 20_000; i++ {
			n.pair(t, i)
		}
		if a := testing.AllocsPerRun(2000, func() { n.pair(t, i); i++ }); a != 0 {
			t.Errorf("%s: %v allocations per pair", name, a)
		}
		n.check(t, int(i), 0)
		if cs == 0 {
			continue
		}
		n.segment(i - 1)
		if a := testing.AllocsPerRun(100, func() { n.ask(t) }); a != 0 {
			t.Errorf("%v allocations per hit", a)
		}
	}
}

// TestNoAllocationsElsewhere covers what happens when things go wrong:
// suppression, retransmission, loops, Nacks, give-ups, expiry.
func TestNoAllocationsElsewhere(t *testing.T) {
	n := newBench(t, 10, 8<<20)
	_ = n.s.AddFace(0, FaceInfo{ID: local2, Local: true})
	_ = n.s.AddFace(0, FaceInfo{ID: remote2})
	if err := n.s.SetNextHop(0, ndn.MustName("/cdn/video"), remote2, 2); err != nil {
		t.Fatal(err)
	}
	nack := ndn.LpFields{IsNack: true, NackReason: ndn.NackNoRoute}
	seq := uint32(0)
	again := func() {
		seq++
		n.segment(seq)
		n.ask(t)                         // to remote1
		n.s.Receive(n.now, local2, &n.p) // the same Nonce by another way
		n.now += ndn.Time(ms)
		n.interest[len(n.interest)-8]++
		n.ask(t) // suppressed
		if err := n.p.Parse(n.interest, &ndn.LpFields{}); err != nil {
			t.Fatal(err)
		}
		n.interest[len(n.interest)-8]++
		n.s.Receive(n.now, local2, &n.p) // loop
		n.now += ndn.Time(20 * ms)
		n.ask(t) // to remote2
		if err := n.p.Parse(n.out.buf[:n.out.size], &nack); err != nil {
			t.Fatal(err)
		}
		n.s.Receive(n.now, remote1, &n.p)
		n.s.Receive(n.now, remote2, &n.p)
		n.s.GaveUp(n.now, remote1, n.out.buf[:n.out.size])
		seq++
		n.segment(seq)
		n.ask(t)
		n.now += ndn.Time(5 * time.Second)
		n.s.Tick(n.now) // expires
	}
	for range 5000 {
		again()
	}
	if a := testing.AllocsPerRun(1000, again); a != 0 {
		t.Errorf("%v allocations", a)
	}
	if c := n.s.Counters(); c.Suppressed == 0 || c.Looped == 0 || c.Expired == 0 || c.InNacks == 0 || c.PitEntries != 0 {
		t.Fatalf("%+v", c)
	}
}

// TestRouteMemory: a quarter of a million routes in 100 MB, so a million in 400,
// as tables grow in powers of two.
func TestRouteMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := newBench(t, 250_000, 0)
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := after.HeapAlloc - before.HeapAlloc
	t.Logf("%d MB", used>>20)
	if used > 100<<20 {
		t.Fatalf("a quarter of a million routes take %d MB", used>>20)
	}
	runtime.KeepAlive(n)
}

// BenchmarkChanges is what changes of faces and routes cost while a hundred
// thousand Interests are pending, which wait for the shard meanwhile.
func BenchmarkChanges(b *testing.B) {
	n := newBench(b, 0, 0)
	for i := range 100_000 {
		w := ndn.AppendInterest(nil, &ndn.InterestFields{
			Name:  ndn.MustName("/cdn/video").AppendNumber(ndn.TypeSegment, uint64(i)),
			Nonce: uint32(i), Lifetime: time.Minute,
		})
		if err := n.p.Parse(w, &ndn.LpFields{}); err != nil {
			b.Fatal(err)
		}
		in := ndn.FaceID(1000 + i%4)
		_ = n.s.AddFace(0, FaceInfo{ID: in})
		n.s.Receive(n.now, in, &n.p)
	}
	if c := n.s.Counters(); c.PitEntries != 100_000 {
		b.Fatalf("%+v", c)
	}
	b.Run("face", func(b *testing.B) {
		for b.Loop() {
			_ = n.s.AddFace(0, FaceInfo{ID: 2000})
			n.s.RemoveFace(n.now, 2000)
		}
	})
	b.Run("route", func(b *testing.B) {
		prefix := ndn.MustName("/cdn/other")
		for b.Loop() {
			_ = n.s.SetNextHop(n.now, prefix, remote1, 1)
			n.s.RemoveNextHop(n.now, prefix, remote1)
		}
	})
}
