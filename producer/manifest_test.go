package producer

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"ndnpop/ndn"
	"ndnpop/ndn/manifest"
)

// named is a signer that can be told from the digest signer.
type named struct{}

func (named) AppendSigInfo(b []byte) []byte {
	return ndn.AppendTLV(b, ndn.TypeSigInfo, ndn.AppendNatTLV(nil, ndn.TypeSigType, ndn.SigHmac))
}
func (named) AppendSignature(b, signed []byte) ([]byte, error) { return append(b, "signed"...), nil }

func newSigned(tb tester, store Store) (*Responder, *recorder) {
	rec := &recorder{tb: tb}
	r, err := New(Config{Prefix: ndn.MustName("/cdn"), Signer: named{}, Segments: ndn.DigestSigner{}, Manifest: true}, store, rec)
	if err != nil {
		tb.Fatal(err)
	}
	return r, rec
}

// settle turns the responder until nobody waits for digests.
func settle(tb tester, r *Responder) (ticks int) {
	for ; r.Deadline() <= 1; ticks++ {
		if ticks > 10000 {
			tb.Fatal("hashing does not end")
		}
		r.Tick(1)
	}
	return ticks
}

// ask returns the one answer.
func ask(tb tester, r *Responder, rec *recorder, text string) *ndn.Data {
	if err := r.Receive(1, asking(tb, text)); err != nil {
		tb.Fatal(err)
	}
	settle(tb, r)
	sent := rec.take()
	if len(sent) != 1 {
		tb.Fatalf("%s: %d answers", text, len(sent))
	}
	return &sent[0]
}

// TestManifest: the roots and leaves of an object that needs two roots hold
// the digests of all segments, and the keys sign what they should.
func TestManifest(t *testing.T) {
	const segment, segments = 10, manifestPerLeaf*manifestPerRoot + manifestPerLeaf + 7
	data := content(segment*segments - 3)
	r, rec := newSigned(t, memStore{"/a": {{version: 1, segment: segment, data: data}}})
	var got []byte
	for root, leaf := uint64(0), uint64(0); root < 2; root++ {
		d := ask(t, r, rec, fmt.Sprintf("/cdn/a/v=1/32=manifest/seg=%d", root))
		l, digests, err := manifest.ParseRoot(d.Content, root)
		if err != nil || l.Last != segments-1 || d.SigType != ndn.SigHmac {
			t.Fatalf("%+v, signature %d, %v", l, d.SigType, err)
		}
		for ; len(digests) > 0; leaf++ {
			d := ask(t, r, rec, fmt.Sprintf("/cdn/a/v=1/32=digests/seg=%d", leaf))
			if sum := sha256.Sum256(d.Content); !bytes.Equal(sum[:], digests[:32]) || d.SigType != ndn.SigDigestSha256 {
				t.Fatalf("leaf %d is not what the root says, or has signature %d", leaf, d.SigType)
			}
			got, digests = append(got, d.Content...), digests[32:]
		}
	}
	for i := range segments {
		d := ask(t, r, rec, fmt.Sprintf("/cdn/a/v=1/seg=%d", i))
		if sum := sha256.Sum256(d.Content); !bytes.Equal(sum[:], got[32*i:32*i+32]) || d.SigType != ndn.SigDigestSha256 {
			t.Fatalf("segment %d is not what the manifest says, or has signature %d", i, d.SigType)
		}
	}
	if len(got) != 32*segments {
		t.Errorf("%d bytes of digests for %d segments", len(got), segments)
	}
	if c := r.Counters(); c.Manifests != 2+18 || c.Nacks != 0 {
		t.Errorf("%+v", c)
	}
	for _, beyond := range []string{"32=manifest/seg=2", "32=digests/seg=18", "32=manifest/seg=18446744073709551615", "32=manifest", "32=digests/v=1"} {
		if d := ask(t, r, rec, "/cdn/a/v=1/"+beyond); d.ContentType != ndn.ContentNack {
			t.Errorf("%s: content type %d", beyond, d.ContentType)
		}
	}
}

// manifestName is what the metadata says of the manifest.
func manifestName(t *testing.T, d *ndn.Data) ndn.Name {
	t.Helper()
	for c := d.Content; len(c) > 0; {
		e, rest, err := ndn.NextElement(c)
		if err != nil {
			t.Fatal(err)
		}
		if c = rest; e.Type == manifest.TypeName {
			n, err := ndn.ParseNameTLV(e.Value)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return nil
}

func TestManifestInMetadata(t *testing.T) {
	store := memStore{
		"/large":   {{version: 1, segment: 4000, data: content(50_000)}},
		"/whole":   {{version: 1, segment: 4000, data: content(5_000)}},
		"/single":  {{version: 1, segment: 8000, data: content(8_000)}},
		"/growing": {{version: 1, segment: 4000, data: content(50_000), attr: Attributes{Growing: true}}},
	}
	r, rec := newSigned(t, store)
	for path, want := range map[string]string{
		"/large": "/cdn/large/v=1/32=manifest", "/whole": "/", "/single": "/", "/growing": "/",
	} {
		if got := manifestName(t, ask(t, r, rec, "/cdn"+path+"/32=metadata P F")); got.String() != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	for _, none := range []string{"/growing", "/single"} {
		if d := ask(t, r, rec, "/cdn"+none+"/v=1/32=manifest/seg=0"); d.ContentType != ndn.ContentNack {
			t.Errorf("%s has a manifest", none)
		}
		if d := ask(t, r, rec, "/cdn"+none+"/v=1/seg=0"); d.SigType != ndn.SigHmac {
			t.Errorf("a segment of %s has signature %d, and nothing else vouches for it", none, d.SigType)
		}
	}
	plain, rec := newTest(t, store)
	if got := manifestName(t, ask(t, plain, rec, "/cdn/large/32=metadata P F")); got != nil {
		t.Errorf("a manifest that nobody asked for: %s", got)
	}
	if d := ask(t, plain, rec, "/cdn/large/v=1/32=manifest/seg=0"); d.ContentType != ndn.ContentNack {
		t.Error("it is served")
	}
}

// TestManifestSteps: hashing leaves room for other Interests, several may
// wait for it, also for digests that had to make place for others, and a
// repeated Interest counts once.
func TestManifestSteps(t *testing.T) {
	const roots = maxHashed + 2
	data := content(10 * manifestPerLeaf * manifestPerRoot * roots)
	r, rec := newSigned(t, memStore{"/a": {{version: 1, segment: 10, data: data}}})
	for range 2 {
		for root := range roots {
			if err := r.Receive(1, asking(t, fmt.Sprintf("/cdn/a/v=1/32=manifest/seg=%d", root))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(rec.take()); n != 0 {
		t.Fatalf("%d answers before anything was hashed", n)
	}
	r.Tick(1)
	if err := r.Receive(1, asking(t, "/cdn/a/v=1/seg=5")); err != nil {
		t.Fatal(err)
	}
	if sent := rec.take(); len(sent) != 1 {
		t.Fatalf("%d answers to an Interest for a segment", len(sent))
	}
	if ticks := settle(t, r); ticks < roots*manifestPerLeaf*manifestPerRoot/hashStep-1 {
		t.Errorf("all was hashed in %d steps", ticks)
	}
	if n := len(rec.take()); n != roots {
		t.Errorf("%d answers for %d roots", n, roots)
	}
	if n := len(r.manifests.kept); n != maxHashed {
		t.Errorf("%d roots are kept", n)
	}
}

func TestManifestBounds(t *testing.T) {
	o := &memObject{version: 1, segment: 10, data: content(1_000_000)}
	r, rec := newSigned(t, memStore{"/a": {o}})
	for i := range maxAsking + 5 {
		if err := r.Receive(1, asking(t, fmt.Sprintf("/cdn/a/v=1/32=digests/seg=%d 1s", i))); err != nil {
			t.Fatal(err)
		}
	}
	if c := r.Counters(); c.Refused != 5 {
		t.Errorf("%d were refused", c.Refused)
	}
	r.Tick(ndn.Time(2e9))
	if c := r.Counters(); c.Expired != maxAsking || r.Deadline() != ndn.Never {
		t.Errorf("%d expired", c.Expired)
	}
	// The file changes while it is hashed.
	if err := r.Receive(1, asking(t, "/cdn/a/v=1/32=manifest/seg=0")); err != nil {
		t.Fatal(err)
	}
	o.err = ErrChanged
	settle(t, r)
	if sent := rec.take(); len(sent) != 1 || sent[0].ContentType != ndn.ContentNack {
		t.Errorf("%d answers", len(sent))
	}
}
