package mgmt

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// A hundred thousand routes are cut into segments, every one of them is there
// again when asked for again, and they add up to the whole RIB.
func TestLargeDataset(t *testing.T) {
	const n = 100_000
	b := newBench(t, Config{}, nil)
	for i := range n {
		b.f.routes = append(b.f.routes, run.Route{
			Prefix: ndn.Name{}.AppendGeneric("cdn").AppendGeneric(fmt.Sprintf("%06d", i/2)),
			Face:   localFace + ndn.FaceID(i%2), Origin: proto.OriginStatic, Cost: uint64(i), ChildInherit: true,
			Expires: ndn.Time(i%3) * ndn.Time(time.Hour),
		})
	}
	b.f.routes[0].Capture = true
	prefix := dataset4("rib", "list")
	start := time.Now()
	first := b.data(b.fetch(localFace, prefix, true))
	t.Logf("first segment of %d routes after %v", n, time.Since(start))
	c, _ := first.Name.At(-1)
	if s, ok := c.NumberAs(ndn.TypeSegment); !ok || s != 0 {
		t.Fatalf("first answer is %s", first.Name)
	}
	last, ok := first.FinalBlockNumber(ndn.TypeSegment)
	if !ok || last < 100 {
		t.Fatalf("final block %d, %v", last, ok)
	}
	versioned := first.Name.Prefix(-1)
	var content []byte
	for seg := range last + 1 {
		name := versioned.Clone().AppendNumber(ndn.TypeSegment, seg)
		d := b.data(b.fetch(localFace, name, false))
		if !d.Name.Equal(name) {
			t.Fatalf("asked for %s, got %s", name, d.Name)
		}
		if len(d.Wire) > maxReply {
			t.Fatalf("segment %d has %d bytes", seg, len(d.Wire))
		}
		content = append(content, d.Content...)
	}
	again := b.data(b.fetch(localFace, first.Name, false))
	if !bytes.Equal(again.Wire, first.Wire) {
		t.Error("segment 0 differs the second time")
	}
	entries, err := proto.ParseRibEntries(content)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != n/2 {
		t.Errorf("%d entries", len(entries))
	}
	routes := 0
	for _, e := range entries {
		routes += len(e.Routes)
	}
	if routes != n || entries[0].Routes[0].Flags != 3 || entries[0].Routes[1].Expiration.GetOr(0) != 3600_000-1 {
		t.Errorf("%d routes, first %+v", routes, entries[0].Routes)
	}
	beyond := b.data(b.fetch(localFace, versioned.Clone().AppendNumber(ndn.TypeSegment, last+1), false))
	if beyond.ContentType != ndn.ContentNack {
		t.Error("there is a segment after the last")
	}
}

// A table that did not change keeps its version, a change makes a new one, and
// the old one stays for a while for those who are fetching it.
func TestDatasetVersions(t *testing.T) {
	b := newBench(t, Config{}, nil)
	prefix := dataset4("rib", "list")
	one := b.data(b.fetch(localFace, prefix, true))
	two := b.data(b.fetch(localFace, prefix, true))
	if !one.Name.Equal(two.Name) {
		t.Errorf("%s, then %s without a change", one.Name, two.Name)
	}
	if r := b.command(localFace, "rib", "register", *proto.Register(ndn.MustName("/a"), 0, 1)); !r.OK() {
		t.Fatal(r.Text)
	}
	three := b.data(b.fetch(localFace, prefix, true))
	if three.Name.Equal(one.Name) || len(three.Content) == 0 {
		t.Errorf("%s after a change, with %d bytes", three.Name, len(three.Content))
	}
	if one.Name.Compare(three.Name) >= 0 {
		t.Error("versions do not grow")
	}
	old := b.data(b.fetch(localFace, one.Name, false))
	if !bytes.Equal(old.Wire, one.Wire) {
		t.Error("the old version changed")
	}
	// With a version only, its first segment.
	if d := b.data(b.fetch(localFace, one.Name.Prefix(-1), true)); !d.Name.Equal(one.Name) {
		t.Errorf("the version's first answer is %s", d.Name)
	}
	b.advance(time.Minute)
	if d := b.data(b.fetch(localFace, one.Name, false)); d.ContentType != ndn.ContentNack {
		t.Error("a version is kept for more than a minute")
	}
	// Without CanBePrefix no answer could match.
	if sent := b.fetch(localFace, prefix, false); len(sent) != 0 {
		t.Error("answered an Interest that no answer matches")
	}
}

// python-ndn signs its Interests for datasets, so that their names end with the
// digest of their parameters, and takes only what is below that for an answer.
func TestSignedDataset(t *testing.T) {
	b := newBench(t, Config{}, nil)
	all := proto.FaceQueryFilter{}
	for _, name := range []ndn.Name{
		dataset4("faces", "list"), dataset4("rib", "list"),
		ndn.AppendTLV(dataset4("faces", "query"), ndn.TypeGeneric, all.AppendTo(nil)),
	} {
		tail := ndn.AppendTLV(nil, ndn.TypeAppParameters, nil)
		digest := sha256.Sum256(tail)
		signed := ndn.AppendTLV(name.Clone(), ndn.TypeParamsDigest, digest[:])
		first := b.data(b.deliver(localFace, ndn.AppendInterest(nil, &ndn.InterestFields{
			Name: signed, CanBePrefix: true, MustBeFresh: true, Nonce: 1, Params: tail,
		})))
		if !first.Name.Prefix(-2).Equal(signed) {
			t.Fatalf("asked for %s, got %s", signed, first.Name)
		}
		again := b.data(b.fetch(localFace, first.Name, false))
		if !bytes.Equal(again.Wire, first.Wire) || first.ContentType != ndn.ContentBlob {
			t.Errorf("%s differs the second time", first.Name)
		}
		plain := b.data(b.fetch(localFace, name, true))
		if !bytes.Equal(plain.Content, first.Content) {
			t.Errorf("%s differs from what an unsigned Interest gets", first.Name)
		}
	}
}

func TestDatasetStoreBounded(t *testing.T) {
	var d datasetStore
	wall := time.UnixMilli(1795000000000)
	for i := range 10 * keepVersions {
		d.add(1, wall, ndn.Name{}.AppendGeneric(fmt.Sprint(i)), 0, make([]byte, 100))
	}
	if len(d.versions) != keepVersions || d.bytes != 100*keepVersions {
		t.Errorf("%d versions, %d bytes", len(d.versions), d.bytes)
	}
	d.add(1, wall, ndn.Name{}.AppendGeneric("big"), 0, make([]byte, keepBytes))
	if len(d.versions) != 1 || d.bytes != keepBytes {
		t.Errorf("%d versions, %d bytes after a big one", len(d.versions), d.bytes)
	}
}

func BenchmarkRibList(b *testing.B) {
	be := newBench(b, Config{}, nil)
	for i := range 100_000 {
		be.f.routes = append(be.f.routes, run.Route{
			Prefix: ndn.Name{}.AppendGeneric("cdn").AppendGeneric(fmt.Sprintf("%06d", i)),
			Face:   localFace, Origin: proto.OriginStatic, Cost: 1, ChildInherit: true,
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, refusal := be.s.ribList(be.f.now, nil); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

func BenchmarkRegister(b *testing.B) {
	be := newBench(b, Config{}, nil)
	var p ndn.Packet
	b.ReportAllocs()
	for b.Loop() {
		be.wall = be.wall.Add(time.Millisecond)
		wire := be.signed(nil, proto.Localhost(), "rib", "register")
		if err := p.Parse(wire, &ndn.LpFields{IncomingFace: localFace}); err != nil {
			b.Fatal(err)
		}
		be.s.Handle(be.f.now, &p)
		be.f.sent = be.f.sent[:0]
	}
	if n := be.s.Counters().Refused; n > 0 {
		b.Fatalf("%d refused: %v", n, be.refused[0])
	}
}
