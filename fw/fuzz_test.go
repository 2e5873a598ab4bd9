package fw

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/strategies"
	"ndnpop/table"
)

// script reads decisions from bytes.
type script struct{ b []byte }

func (s *script) byte() int {
	if len(s.b) == 0 {
		return 0
	}
	c := s.b[0]
	s.b = s.b[1:]
	return int(c)
}

// runner drives a shard through any sequence of calls and checks what must
// always hold. It writes everything it sees to log.
type runner struct {
	t    testing.TB
	s    *Shard
	now  ndn.Time
	log  io.Writer
	last [][]byte // recent Interests that were sent
}

func (r *runner) Send(to ndn.FaceID, wire []byte, f *ndn.LpFields) bool {
	h := ndn.LpHeader{LpFields: f}
	link := ndn.AppendLpPacket(nil, &h, wire)
	var lp ndn.LpPacket
	var p ndn.Packet
	if err := lp.Parse(link); err != nil {
		r.t.Fatalf("invalid link packet: %v", err)
	}
	if err := p.Parse(lp.Fragment, &lp.LpFields); err != nil {
		r.t.Fatalf("invalid packet: %v %x", err, wire)
	}
	fc := r.s.faces.get(to)
	if fc == nil || !fc.Local && (p.Kind != ndn.KindData && p.Interest.Name.HasPrefix(localhost) || p.Kind == ndn.KindData && p.Data.Name.HasPrefix(localhost)) {
		r.t.Fatal("out of scope")
	}
	fmt.Fprintf(r.log, "%d %x\n", to, link)
	if p.Kind == ndn.KindInterest {
		r.last = append(r.last, bytes.Clone(wire))
		if len(r.last) > 8 {
			r.last = r.last[1:]
		}
	}
	return len(wire)%13 != 0 // some queues are full
}

var fuzzFaces = []ndn.FaceID{local1, local2, remote1, remote2, multi, adhoc, 9999}

func run(t testing.TB, seed uint64, input []byte, log io.Writer) *runner {
	set, err := strategy.NewSet(strategies.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{t: t, now: 1, log: log}
	r.s, err = New(Config{
		Seed: seed, CS: table.CSConfig{Capacity: 300 << 10, MaxPackets: 20},
		PIT:             table.PITConfig{MaxEntries: 20, MaxEntriesPerFace: 12, MaxInRecords: 3, MaxOutRecords: 3, MaxVariants: 3},
		MaxDeadNonces:   16,
		ProducerRegions: []ndn.Name{ndn.MustName("/h/1")}, TrustedHints: []ndn.Name{ndn.MustName("/h/2")},
		Unsolicited: AdmitLocal,
	}, set, r)
	if err != nil {
		t.Fatal(err)
	}
	infos := []FaceInfo{
		{ID: local1, Local: true}, {ID: local2, Local: true}, {ID: remote1}, {ID: remote2},
		{ID: multi, MultiAccess: true}, {ID: adhoc, AdHoc: true},
	}
	for _, f := range infos {
		_ = r.s.AddFace(1, f)
	}
	for _, n := range []ndn.Name{nil, ndn.MustName("/h"), localhost, localhop} {
		_ = r.s.SetNextHop(1, n, remote1, 1)
		_ = r.s.SetNextHop(1, n, remote2, 2)
		_ = r.s.SetNextHop(1, n, local2, 3)
	}
	s := &script{input}
	for len(s.b) > 0 {
		r.step(s, infos)
		checkWaits(t, r.s)
	}
	// Everything ends.
	for r.s.Deadline() != ndn.Never {
		r.now = max(r.now, r.s.Deadline())
		r.s.Tick(r.now)
	}
	if c := r.s.Counters(); c.PitEntries != 0 || c.Timers != 0 {
		t.Fatalf("left behind: %+v", c)
	}
	if r.s.waiting != 0 {
		t.Fatalf("%d in-records", r.s.waiting)
	}
	i := r.s.CSInfo()
	fmt.Fprintf(r.log, "%+v %+v\n", r.s.Counters(), i)
	return r
}

// checkWaits checks that every face knows the entries with an in-record of it,
// and they their places.
func checkWaits(t testing.TB, s *Shard) {
	t.Helper()
	records := 0
	s.pit.Each(func(e *table.PitEntry) {
		records += len(e.In)
		for _, r := range e.In {
			if f := s.faces.get(r.Face); f == nil || int(r.Place) >= f.waits.n || *f.waits.at(int(r.Place)) != e.Slot() {
				t.Fatalf("face %d does not wait for %s at %d", r.Face, e.Name, r.Place)
			}
		}
	})
	waits := 0
	for _, f := range s.faces.live {
		weight := 0
		for i := range f.waits.n {
			weight += s.pit.At(*f.waits.at(i)).Weight()
		}
		if weight != f.pending {
			t.Fatalf("face %d counts %d, waits for %d", f.ID, f.pending, weight)
		}
		waits += f.waits.n
	}
	if records != waits || records != s.waiting {
		t.Fatalf("%d in-records, %d of faces, %d counted", records, waits, s.waiting)
	}
}

// name draws one of few names.
func (r *runner) name(s *script) ndn.Name {
	n := ndn.Name(nil)
	switch s.byte() % 8 {
	case 0:
		n = localhost.Clone()
	case 1:
		n = localhop.Clone()
	case 2:
		n = ndn.MustName("/h")
	}
	for range s.byte() % 4 {
		n = n.AppendGeneric(string(rune('0' + s.byte()%3)))
	}
	return n
}

func (r *runner) step(s *script, infos []FaceInfo) {
	face := fuzzFaces[s.byte()%len(fuzzFaces)]
	sh := r.s
	var f ndn.LpFields
	flags := s.byte()
	switch flags & 3 {
	case 1:
		f.PitToken = []byte{0, 0, 0, 0, byte(s.byte() % 8), byte(s.byte() % 8)}
	case 2:
		f.PitToken = make([]byte, 1+s.byte()%32)
	}
	f.HasPathTag = flags&4 != 0
	f.HasReplicaSelect, f.ReplicaSelect = flags&8 != 0, uint64(s.byte()%3)
	f.NoCache = flags&16 != 0
	f.CongestionMark = uint64(flags >> 7)
	if flags&32 != 0 {
		f.HasNextHopFace, f.NextHopFace = true, fuzzFaces[s.byte()%len(fuzzFaces)]
	}
	switch op := s.byte() % 16; op {
	case 0, 1, 2, 3, 4:
		k := s.byte()
		i := ndn.InterestFields{
			Name: r.name(s), Nonce: uint32(s.byte() % 16), CanBePrefix: k&1 != 0, MustBeFresh: k&2 != 0,
			OmitNonce: k&4 != 0, HopLimit: uint8(k >> 6), Lifetime: time.Duration(s.byte()) * 20 * ms,
		}
		if k&8 != 0 {
			i.ForwardingHint = []ndn.Name{ndn.MustName("/h").AppendGeneric(string(rune('0' + s.byte()%4)))}
		}
		if k&16 != 0 {
			i.Name = i.Name.Append(ndn.Component{Type: ndn.TypeImplicitDigest, Value: make([]byte, 32)})
		}
		w := ndn.AppendInterest(nil, &i)
		if k := s.byte(); len(r.last) > 0 && k&1 != 0 { // the same again
			w = r.last[(k>>2)%len(r.last)]
			var again ndn.Interest
			if k&2 != 0 && again.Parse(w) == nil {
				w = again.AppendOut(nil, i.Nonce, i.HopLimit, false)
			}
		}
		r.receive(face, w, &f)
	case 5, 6, 7:
		n := r.name(s)
		if k := s.byte(); len(r.last) > 0 && k&3 != 0 { // an answer
			var i ndn.Interest
			if i.Parse(r.last[(k>>2)%len(r.last)]) == nil {
				n = i.Name
			}
		}
		w, err := ndn.AppendData(nil, &ndn.DataFields{
			Name: n, Freshness: time.Duration(s.byte()) * 10 * ms, Content: make([]byte, s.byte()*32),
		}, ndn.DigestSigner{})
		if err != nil {
			r.t.Fatal(err)
		}
		r.receive(face, w, &f)
	case 8:
		if len(r.last) > 0 {
			f.IsNack, f.NackReason = true, ndn.NackReason(50*(s.byte()%4))
			r.receive(face, r.last[s.byte()%len(r.last)], &f)
		}
	case 9:
		if len(r.last) > 0 {
			sh.GaveUp(r.now, face, r.last[s.byte()%len(r.last)])
		}
	case 10:
		_ = sh.SetNextHop(r.now, r.name(s), face, uint64(s.byte()%3))
	case 11:
		sh.RemoveNextHop(r.now, r.name(s), face)
	case 12:
		switch s.byte() % 8 {
		case 0:
			sh.FaceDown(r.now, face)
		case 1, 2, 3:
			sh.FaceUp(r.now, face)
		case 4:
			sh.RemoveFace(r.now, face)
		default:
			_ = sh.AddFace(r.now, infos[s.byte()%len(infos)])
		}
	case 13:
		names := []string{"best-route", "multicast", "multicast/retx-suppression-initial~50"}
		if k := s.byte() % 4; k == 3 {
			_ = sh.UnsetStrategy(r.now, r.name(s))
		} else {
			_, _ = sh.SetStrategy(r.now, r.name(s), ndn.MustName("/localhost/nfd/strategy/"+names[k]))
		}
	case 14:
		sh.EraseCS(r.name(s), s.byte()%3)
	case 15: // bytes as they come
		n := s.byte()
		if n > len(s.b) {
			n = len(s.b)
		}
		w := s.b[:n]
		s.b = s.b[n:]
		r.receive(face, w, &f)
	}
	r.now = r.now.Add(time.Duration(s.byte()*s.byte()) * 400 * time.Nanosecond)
	if flags&64 != 0 {
		sh.Tick(r.now)
	}
}

func (r *runner) receive(face ndn.FaceID, w []byte, f *ndn.LpFields) {
	var p ndn.Packet
	w = bytes.Clone(w)
	if p.Parse(w, f) != nil {
		return
	}
	r.s.Receive(r.now, face, &p)
	for i := range w {
		w[i] = 0xee
	}
}

func randomScript(seed uint64, n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		seed += 0x9e3779b97f4a7c15
		b = binary.LittleEndian.AppendUint64(b, mix(seed))
	}
	return b
}

func FuzzShard(f *testing.F) {
	for i := range uint64(20) {
		f.Add(randomScript(i, 2000))
	}
	f.Fuzz(func(t *testing.T, b []byte) { run(t, 1, b, io.Discard) })
}

// TestDeterminism: the same calls with the same seed give the same bytes;
// another seed gives other Nonces.
func TestDeterminism(t *testing.T) {
	sum := func(seed, script uint64) uint64 {
		h := fnv.New64a()
		run(t, seed, randomScript(script, 20_000), h)
		return h.Sum64()
	}
	for i := range uint64(5) {
		if first, second := sum(1, i), sum(1, i); first != second {
			t.Fatalf("script %d differs", i)
		}
	}
	if sum(1, 0) == sum(2, 0) {
		t.Fatal("the seed changes nothing")
	}
}

// TestChurn: tables stay as small as what lives in them.
func TestChurn(t *testing.T) {
	r := run(t, 1, randomScript(1000, 1_000_000), io.Discard)
	if c := r.s.Counters(); c.InInterests == 0 || c.Satisfied == 0 || c.Expired == 0 || c.OutNacks == 0 || c.Looped == 0 ||
		c.Aggregated == 0 || c.Suppressed == 0 || c.PitFull+c.PitFace == 0 || c.InRecordsFull == 0 {
		t.Fatalf("the scripts do not reach everything: %+v", c)
	}
	if i := r.s.CSInfo(); i.Hits == 0 || i.Evicted == 0 || i.Hits+i.Misses == 0 {
		t.Fatalf("%+v", i)
	}
}
