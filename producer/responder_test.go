package producer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	rdr "github.com/named-data/ndnd/std/ndn/rdr_2024"
	spec "github.com/named-data/ndnd/std/ndn/spec_2022"
	sig "github.com/named-data/ndnd/std/security/signer"
	"pgregory.net/rapid"

	"ndnpop/ndn"
)

// tester is what the helpers need of testing.T, testing.F and rapid.T.
type tester interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// memObject is an Object in memory whose end may be open.
type memObject struct {
	version uint64
	segment int
	data    []byte
	open    bool // the end is not known
	attr    Attributes
	err     error // of ReadAt
}

func (o *memObject) Version() uint64        { return o.version }
func (o *memObject) SegmentSize() int       { return o.segment }
func (o *memObject) Size() (uint64, bool)   { return uint64(len(o.data)), !o.open }
func (o *memObject) Attributes() Attributes { return o.attr }
func (o *memObject) ReadAt(b []byte, off uint64) error {
	if o.err != nil {
		return o.err
	}
	if copy(b, o.data[off:]) != len(b) {
		return errors.New("read beyond the end")
	}
	return nil
}

// memStore maps paths (as URIs, with "ls " before listings) to the versions
// of an object, the newest last.
type memStore map[string][]*memObject

func (s memStore) find(p Path) []*memObject {
	if p.Listing {
		return s["ls "+p.Name.String()]
	}
	return s[p.Name.String()]
}

func (s memStore) Latest(p Path) (Object, error) {
	l := s.find(p)
	if len(l) == 0 && !p.Listing {
		l = s["ls "+p.Name.String()]
	}
	if len(l) == 0 {
		return nil, ErrNotFound
	}
	return l[len(l)-1], nil
}

func (s memStore) At(p Path, v uint64) (Object, error) {
	for _, o := range s.find(p) {
		if o.version == v {
			return o, nil
		}
	}
	return nil, ErrNotFound
}

// recorder keeps the answers, decoded.
type recorder struct {
	tb   tester
	sent []ndn.Data
	tok  [][]byte
}

func (r *recorder) Send(wire []byte, f *ndn.LpFields) {
	var d ndn.Data
	if err := d.Parse(bytes.Clone(wire)); err != nil {
		r.tb.Fatalf("the answer is no Data: %v", err)
	}
	if n := ndn.LpPacketSize(&ndn.LpHeader{LpFields: f}, len(wire)); n > ndn.MaxPacketSize {
		r.tb.Fatalf("the answer takes %d bytes on the link", n)
	}
	r.sent = append(r.sent, d)
	r.tok = append(r.tok, bytes.Clone(f.PitToken))
}

func (r *recorder) take() []ndn.Data {
	s := r.sent
	r.sent, r.tok = nil, nil
	return s
}

// asking builds the packet of an Interest from a URI followed by options: P
// (CanBePrefix), F (MustBeFresh), and a lifetime.
func asking(tb tester, text string) *ndn.Packet {
	words := strings.Fields(text)
	f := ndn.InterestFields{Nonce: 1}
	f.Name = name(tb, words[0])
	lp := ndn.LpFields{PitToken: []byte{1, 2, 3, 4}}
	for _, w := range words[1:] {
		switch w {
		case "P":
			f.CanBePrefix = true
		case "F":
			f.MustBeFresh = true
		default:
			d, err := time.ParseDuration(w)
			if err != nil {
				tb.Fatal(err)
			}
			f.Lifetime = d
		}
	}
	var p ndn.Packet
	if err := p.Parse(ndn.AppendInterest(nil, &f), &lp); err != nil {
		tb.Fatal(err)
	}
	return &p
}

func name(tb tester, uri string) ndn.Name {
	n, err := ndn.ParseName(uri)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func newTest(tb tester, store Store) (*Responder, *recorder) {
	rec := &recorder{tb: tb}
	r, err := New(Config{Prefix: ndn.MustName("/cdn")}, store, rec)
	if err != nil {
		tb.Fatal(err)
	}
	return r, rec
}

func content(n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestScript runs Interests (">" lines) against a fixed store and compares
// the answers: name, kind, length of content, FinalBlockId.
func TestScript(t *testing.T) {
	store := memStore{
		"/a.bin": {{version: 5, segment: 1000, data: content(2500)}, {version: 7, segment: 1000, data: content(2000)}},
		"/empty": {{version: 1, segment: 1000}},
		"ls /":   {{version: 3, segment: 1000, data: []byte("a.bin\x00empty\x00"), attr: Attributes{Listing: true}}},
	}
	const script = `
> /cdn/a.bin/v=7/seg=0
< /cdn/a.bin/v=7/seg=0 blob 1000 seg=1
> /cdn/a.bin/v=7/seg=1
< /cdn/a.bin/v=7/seg=1 blob 1000 seg=1
> /cdn/a.bin/v=7/seg=2
< /cdn/a.bin/v=7/seg=2 nack
> /cdn/a.bin/v=5/seg=2
< /cdn/a.bin/v=5/seg=2 blob 500 seg=2
> /cdn/a.bin/v=6/seg=0
< /cdn/a.bin/v=6/seg=0 nack
> /cdn/none/v=7/seg=0
< /cdn/none/v=7/seg=0 nack
> /cdn/empty/v=1/seg=0
< /cdn/empty/v=1/seg=0 blob 0 seg=0
> /cdn/empty/v=1/seg=1
< /cdn/empty/v=1/seg=1 nack
> /cdn/a.bin/32=metadata P F
< /cdn/a.bin/32=metadata/v=7/seg=0 blob 2076 seg=0
> /cdn/a.bin/32=metadata F
> /cdn/a.bin/32=metadata/v=7/seg=0
< /cdn/a.bin/32=metadata/v=7/seg=0 blob 2076 seg=0
> /cdn/a.bin/32=metadata/v=5 P
< /cdn/a.bin/32=metadata/v=5/seg=0 blob 2576 seg=0
> /cdn/a.bin/32=metadata/v=5
< /cdn/a.bin/32=metadata/v=5 nack
> /cdn/a.bin/32=metadata/v=6/seg=0
< /cdn/a.bin/32=metadata/v=6/seg=0 nack
> /cdn/a.bin/32=metadata/v=7/seg=1
< /cdn/a.bin/32=metadata/v=7/seg=1 nack
> /cdn/none/32=metadata P F
< /cdn/none/32=metadata nack
> /cdn/a.bin P
< /cdn/a.bin/v=7/seg=0 blob 1000 seg=1
> /cdn/a.bin
< /cdn/a.bin nack
> /cdn/a.bin/v=5 P
< /cdn/a.bin/v=5/seg=0 blob 1000 seg=2
> /cdn/a.bin/v=5
< /cdn/a.bin/v=5 nack
> /cdn/a.bin/v=5/seg=0/more
< /cdn/a.bin/v=5/seg=0/more nack
> /cdn/a.bin/32=other
< /cdn/a.bin/32=other nack
> /cdn/32=metadata P F
< /cdn/32=metadata/v=3/seg=0 blob 82 seg=0
> /cdn/32=ls/32=metadata P F
< /cdn/32=ls/32=metadata/v=3/seg=0 blob 82 seg=0
> /cdn/32=ls/v=3/seg=0
< /cdn/32=ls/v=3/seg=0 blob 12 seg=0
> /cdn/v=3/seg=0
< /cdn/v=3/seg=0 nack
> /cdn P
< /cdn/32=ls/v=3/seg=0 blob 12 seg=0
> /other/name
`
	r, rec := newTest(t, store)
	var got strings.Builder
	got.WriteString("\n")
	for _, line := range strings.Split(script, "\n") {
		ask, ok := strings.CutPrefix(line, "> ")
		if !ok {
			continue
		}
		fmt.Fprintln(&got, line)
		if err := r.Receive(1, asking(t, ask)); err != nil {
			t.Errorf("%s: %v", ask, err)
		}
		for _, d := range rec.take() {
			if !d.VerifyDigest() {
				t.Errorf("%s: bad digest", d.Name)
			}
			if d.ContentType == ndn.ContentNack {
				fmt.Fprintln(&got, "<", d.Name, "nack")
				continue
			}
			fmt.Fprintln(&got, "<", d.Name, "blob", len(d.Content), ndn.Name(d.FinalBlock).String()[1:])
		}
	}
	if got.String() != script {
		t.Errorf("got:%s", got.String())
	}
	if c := r.Counters(); c.Interests != 27 || c.Nacks != 13 || c.Errors != 0 {
		t.Errorf("counters %+v", c)
	}
}

// TestImplicitDigest: an Interest that names the digest gets the Data, and
// never a Nack, which could not match.
func TestImplicitDigest(t *testing.T) {
	r, rec := newTest(t, memStore{"/a": {{version: 1, segment: 100, data: content(50)}}})
	with := func(uri string) {
		n := ndn.AppendTLV(name(t, uri), ndn.TypeImplicitDigest, make([]byte, 32))
		var p ndn.Packet
		if err := p.Parse(ndn.AppendInterest(nil, &ndn.InterestFields{Name: n}), &ndn.LpFields{}); err != nil {
			t.Fatal(err)
		}
		if err := r.Receive(1, &p); err != nil {
			t.Fatal(err)
		}
	}
	with("/cdn/a/v=1/seg=0")
	if got := rec.take(); len(got) != 1 || got[0].Name.String() != "/cdn/a/v=1/seg=0" {
		t.Errorf("got %v", got)
	}
	with("/cdn/a/v=1/seg=1")
	with("/cdn/b")
	if got := rec.take(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestMetadataReadByNdnd decodes the metadata with ndnd's decoder, which
// knows the fields of ndn6-file-server and has to skip ours.
func TestMetadataReadByNdnd(t *testing.T) {
	data := content(20000)
	sum := sha256.Sum256(data)
	r, rec := newTest(t, memStore{"/f": {{
		version: 9, segment: 8000, data: data,
		attr: Attributes{Mode: 0o100644, Atime: 1, Btime: 2, Ctime: 3, Mtime: 4e18, SHA256: &sum},
	}}})
	if err := r.Receive(1, asking(t, "/cdn/f/32=metadata P F")); err != nil {
		t.Fatal(err)
	}
	d := rec.take()[0]
	nd, covered, err := spec.Spec{}.ReadData(enc.NewBufferView(d.Wire))
	if err != nil {
		t.Fatal(err)
	}
	if !sig.ValidateSha256(covered, nd.Signature()) {
		t.Error("ndnd does not accept the signature")
	}
	m, err := rdr.ParseMetaData(enc.NewWireView(nd.Content()), false)
	if err != nil {
		t.Fatal(err)
	}
	if m.Name.String() != "/cdn/f/v=9" || !bytes.Equal(m.FinalBlockID, enc.NewSegmentComponent(2).Bytes()) ||
		m.SegmentSize.Unwrap() != 8000 || m.Size.Unwrap() != 20000 || m.Mode.Unwrap() != 0o100644 ||
		m.Atime.Unwrap() != 1 || m.Btime.Unwrap() != 2 || m.Ctime.Unwrap() != 3 || m.Mtime.Unwrap() != 4e18 {
		t.Errorf("ndnd reads %+v", m)
	}
	f := metaFields(t, d.Content)
	if !bytes.Equal(f[TypeContentStart], data[:8000]) {
		t.Errorf("the start of the content has %d bytes or is wrong", len(f[TypeContentStart]))
	}
	if !bytes.Equal(f[TypeContentHash], sum[:]) {
		t.Error("wrong hash")
	}
}

func metaFields(tb tester, b []byte) map[uint32][]byte {
	out := make(map[uint32][]byte)
	for last := uint32(0); len(b) > 0; {
		e, rest, err := ndn.NextElement(b)
		if err != nil {
			tb.Fatal(err)
		}
		if e.Type <= last {
			tb.Fatalf("field %#x after %#x", e.Type, last)
		}
		last = e.Type
		out[e.Type], b = e.Value, rest
	}
	return out
}

// TestReassembly: for any content and segment size, the segments put together
// are the content, and the metadata begins with it.
func TestReassembly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ss := rapid.IntRange(1, 8000).Draw(t, "segment size")
		size := rapid.OneOf(
			rapid.IntRange(0, 3*ss),
			rapid.Just(0), rapid.Just(1), rapid.Just(ss), rapid.Just(2*ss), rapid.Just(ss+1),
		).Draw(t, "size")
		data := content(size)
		rec := &recorder{tb: t}
		r, err := New(Config{Prefix: ndn.MustName("/cdn")}, memStore{"/f": {{version: 1, segment: ss, data: data}}}, rec)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for seg := 0; ; seg++ {
			n := ndn.MustName("/cdn/f/v=1").AppendNumber(ndn.TypeSegment, uint64(seg))
			var p ndn.Packet
			if err := p.Parse(ndn.AppendInterest(nil, &ndn.InterestFields{Name: n}), &ndn.LpFields{}); err != nil {
				t.Fatal(err)
			}
			if err := r.Receive(1, &p); err != nil {
				t.Fatal(err)
			}
			d := rec.take()[0]
			got = append(got, d.Content...)
			last, ok := d.FinalBlockNumber(ndn.TypeSegment)
			if !ok {
				t.Fatal("no FinalBlockId")
			}
			if last == uint64(seg) {
				break
			}
		}
		if !bytes.Equal(got, data) {
			t.Fatalf("%d bytes in segments of %d came out as %d others", size, ss, len(got))
		}
		if err := r.Receive(1, asking(t, "/cdn/f/32=metadata P")); err != nil {
			t.Fatal(err)
		}
		start := metaFields(t, rec.take()[0].Content)[TypeContentStart]
		if !bytes.HasPrefix(data, start) {
			t.Fatal("the metadata begins with something else")
		}
		if size > 0 && size <= 8000 && len(start) < size {
			t.Fatalf("only %d of %d bytes went with the metadata", len(start), size)
		}
	})
}

// endless is an object of 2^62 zero bytes.
type endless struct{ memObject }

func (endless) Size() (uint64, bool)        { return 1 << 62, true }
func (endless) ReadAt([]byte, uint64) error { return nil }

type endlessStore struct{ o endless }

func (s *endlessStore) Latest(Path) (Object, error)     { return &s.o, nil }
func (s *endlessStore) At(Path, uint64) (Object, error) { return &s.o, nil }

// varying is a signer whose signatures vary in length, as ECDSA's.
type varying struct{ n int }

func (v *varying) AppendSigInfo(b []byte) []byte { return ndn.DigestSigner{}.AppendSigInfo(b) }
func (v *varying) AppendSignature(b, _ []byte) ([]byte, error) {
	v.n++
	return append(b, make([]byte, 66+v.n%7)...), nil
}

// TestLargestSegment: what MaxSegmentSize allows fits, with the largest
// numbers and every name, and so does the metadata.
func TestLargestSegment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := ndn.Name(nil).AppendGeneric(strings.Repeat("n", rapid.IntRange(0, 8700).Draw(t, "name")))
		signer := &varying{rapid.IntRange(0, 6).Draw(t, "first signature")}
		most, err := MaxSegmentSize(prefix, signer)
		if err != nil {
			t.Fatal(err)
		}
		if most < 1 {
			if len(prefix) < 4000 {
				t.Fatalf("no room with a name of %d bytes", len(prefix))
			}
			return
		}
		rec := &recorder{tb: t}
		store := &endlessStore{endless{memObject{version: 1 << 63, segment: most, attr: Attributes{
			Mode: 1 << 31, Atime: 1 << 63, Btime: 1 << 63, Ctime: 1 << 63, Mtime: 1 << 63, SHA256: new([32]byte),
		}}}}
		r, err := New(Config{Prefix: prefix, Signer: signer, Freshness: 1 << 62}, store, rec)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []ndn.Name{
			prefix.Clone().AppendNumber(ndn.TypeVersion, 1<<63).AppendNumber(ndn.TypeSegment, 1<<62/uint64(most)-1),
			append(prefix.Clone(), ndn.MustName("/32=metadata")...),
		} {
			var p ndn.Packet
			if err := p.Parse(ndn.AppendInterest(nil, &ndn.InterestFields{Name: n, CanBePrefix: true}), &ndn.LpFields{}); err != nil {
				t.Fatal(err)
			}
			if err := r.Receive(1, &p); err != nil {
				t.Fatalf("name of %d bytes, segment of %d: %v", len(prefix), most, err)
			}
			if len(rec.take()) != 1 {
				t.Fatal("no answer")
			}
		}
	})
}
