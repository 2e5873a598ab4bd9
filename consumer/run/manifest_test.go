package run

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"ndnpop/consumer/output"
	"ndnpop/ndn"
	"ndnpop/ndn/certfile"
	"ndnpop/ndn/manifest"
	"ndnpop/ndn/verify"
)

// publisher makes the manifest of object, in small parts.
type publisher struct {
	key    owner
	layout manifest.Layout
	name   ndn.Name
	// change, if set, gets each part before it is signed or hashed into the
	// next, root first.
	change func(kind string, n uint64, content []byte) []byte
	signed ndn.Signer // of roots; nil: key
	roots  atomic.Int64
}

func newPublisher() *publisher {
	return &publisher{
		key:    owner{key: keyOf(2), locator: ndn.MustName("/run/KEY/2")},
		layout: manifest.Layout{Last: uint64(len(object)-1) / 8000, PerLeaf: 20, PerRoot: 4},
		name:   ndn.MustName("/run/test/v=1"),
	}
}

func (p *publisher) verifier(t *testing.T) *verify.Verifier {
	t.Helper()
	c, err := certfile.Parse(p.key.certify(ndn.MustName("/run/KEY/2/self/v=1"), p.key.key.Public().(ed25519.PublicKey)))
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify.New(verify.Config{Anchors: []certfile.Certificate{c}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (p *publisher) leaf(i uint64) (b []byte) {
	from, n := p.layout.Segments(i)
	for seg := int(from); seg < int(from)+n; seg++ {
		sum := sha256.Sum256(object[seg*8000 : min(len(object), (seg+1)*8000)])
		b = append(b, sum[:]...)
	}
	return b
}

// part implements server.part.
func (p *publisher) part(n ndn.Name) []byte {
	f := &ndn.DataFields{Name: n}
	var by ndn.Signer = ndn.DigestSigner{}
	root, isRoot := segmentBelow(n, manifest.RootName(nil, p.name))
	leaf, isLeaf := segmentBelow(n, manifest.LeafName(nil, p.name))
	change := func(kind string, i uint64, b []byte) []byte {
		if p.change == nil {
			return b
		}
		return p.change(kind, i, b)
	}
	switch {
	case isRoot:
		p.roots.Add(1)
		first, k := p.layout.Leaves(root)
		var digests []byte
		for i := first; i < first+uint64(k); i++ {
			sum := sha256.Sum256(p.leaf(i))
			digests = append(digests, sum[:]...)
		}
		f.Content = change("root", root, p.layout.AppendRoot(nil, digests))
		if by = p.signed; by == nil {
			by = p.key
		}
	case isLeaf:
		f.Content = change("leaf", leaf, p.leaf(leaf))
	default:
		return nil
	}
	w, err := ndn.AppendData(nil, f, by)
	if err != nil {
		panic(err)
	}
	return w
}

// none answers that there is no such part.
func (p *publisher) none(n ndn.Name) []byte {
	if p.part(n) == nil {
		return nil
	}
	w, err := ndn.AppendData(nil, &ndn.DataFields{Name: n, ContentType: ndn.ContentNack}, p.key)
	if err != nil {
		panic(err)
	}
	return w
}

// serve makes a server offer it; only says that nothing but roots and
// metadata is signed with the key.
func (p *publisher) serve(s *server, only bool) {
	s.signer, s.part = p.key, p.part
	s.extra = ndn.AppendTLV(nil, manifest.TypeName, manifest.RootName(nil, p.name).AppendTLVTo(nil))
	if only {
		s.mangle = func(_ uint64, w []byte) []byte { return digested(w, nil) }
	}
}

// digested makes a segment that is signed by a digest alone, with content if
// that is not nil.
func digested(wire, content []byte) []byte {
	var d ndn.Data
	if err := d.Parse(wire); err != nil {
		panic(err)
	}
	if content == nil {
		content = d.Content
	}
	w, err := ndn.AppendData(nil, &ndn.DataFields{Name: d.Name, Content: content, FinalBlock: d.FinalBlock}, ndn.DigestSigner{})
	if err != nil {
		panic(err)
	}
	return w
}

// TestManifest: with a manifest, segments need no signature but its.
func TestManifest(t *testing.T) {
	for name, set := range map[string]func(*publisher, *server){
		"segments signed too":     func(p *publisher, s *server) { p.serve(s, false) },
		"the manifest alone":      func(p *publisher, s *server) { p.serve(s, true) },
		"not in the metadata":     func(p *publisher, s *server) { p.serve(s, true); s.extra = nil },
		"none, but in signatures": func(p *publisher, s *server) { p.serve(s, false); s.part = p.none },
		"of another object": func(p *publisher, s *server) {
			p.serve(s, false)
			s.extra = ndn.AppendTLV(nil, manifest.TypeName, ndn.MustName("/run/other/v=1/32=manifest").AppendTLVTo(nil))
			s.part = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPublisher()
			path, res, err := fetchTrusted(t, p.verifier(t), func(s *server) { set(p, s) })
			if err != nil || !res.Output.Verified || !res.Complete {
				t.Fatalf("%v, %+v", err, res.Output)
			}
			if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, object) {
				t.Errorf("%d bytes, %v", len(b), err)
			}
			if n := p.roots.Load(); strings.Contains(name, "manifest") && (n <= int64(p.layout.LastRoot()) || n > askAttempts*int64(p.layout.LastRoot()+1)) {
				t.Errorf("roots were asked for %d times", n)
			}
		})
	}
}

// TestManifestOfTwo: each of two packets is judged by what the manifest says of it,
// also where the other is not in the manifest.
func TestManifestOfTwo(t *testing.T) {
	name := ndn.MustName("/run/test/v=1")
	content := [][]byte{bytes.Repeat([]byte("a"), 8000), bytes.Repeat([]byte("b"), 8000), []byte("the last")}
	p := &part{done: make(chan struct{}), layout: manifest.Layout{Last: 2, PerLeaf: 20, PerRoot: 4}}
	close(p.done)
	for _, c := range content {
		sum := sha256.Sum256(c)
		p.digests = append(p.digests, sum[:]...)
	}
	refused := errors.New("refused")
	c := &checker{
		ctx: t.Context(), object: name, named: true,
		loaded: [2]map[uint64]*part{{0: p}, {0: p}},
		trust:  func(context.Context, *ndn.Data) error { return refused },
	}
	data := func(n ndn.Name, content []byte) *ndn.Data {
		w, err := ndn.AppendData(nil, &ndn.DataFields{Name: n, Content: content}, ndn.DigestSigner{})
		if err != nil {
			t.Fatal(err)
		}
		d := new(ndn.Data)
		if err := d.Parse(w); err != nil {
			t.Fatal(err)
		}
		return d
	}
	of := map[*ndn.Data]error{nil: nil, data(ndn.MustName("/run/other"), content[0]): refused}
	for seg, right := range content {
		n := name.Clone().AppendNumber(ndn.TypeSegment, uint64(seg))
		of[data(n, right)] = nil
		of[data(n, content[(seg+1)%3])] = errDigest
	}
	for a, wantA := range of {
		for b, wantB := range of {
			if a == nil {
				continue
			}
			if errA, errB := c.check(a, b); errA != wantA || errB != wantB {
				t.Errorf("%v: %v, %v", a.Name, errA, wantA)
				if b != nil {
					t.Errorf("  beside %v: %v, %v", b.Name, errB, wantB)
				}
			}
		}
	}
}

// TestManifestRefused: whatever is wrong with a manifest or with a segment
// that it lists, nothing gets the final name, and the error says verification.
func TestManifestRefused(t *testing.T) {
	other := owner{key: keyOf(3), locator: ndn.MustName("/run/KEY/2")}
	flip := func(kind string, n uint64) func(string, uint64, []byte) []byte {
		return func(k string, i uint64, b []byte) []byte {
			if k == kind && i == n {
				b = bytes.Clone(b)
				b[len(b)-1] ^= 1
			}
			return b
		}
	}
	for name, c := range map[string]struct {
		set  func(*publisher, *server)
		want error
	}{
		"forged root":             {func(p *publisher, s *server) { p.signed = other }, verify.ErrSignature},
		"root without signature":  {func(p *publisher, s *server) { p.signed = ndn.DigestSigner{} }, verify.ErrNoKey},
		"wrong leaf":              {func(p *publisher, s *server) { p.change = flip("leaf", 7) }, errDigest},
		"root with other digests": {func(p *publisher, s *server) { p.change = flip("root", 1) }, errDigest},
		"malformed root": {func(p *publisher, s *server) {
			p.change = func(_ string, _ uint64, b []byte) []byte { return b[:len(b)-1] }
		}, manifest.ErrRoot},
		"short leaf": {func(p *publisher, s *server) {
			p.change = func(k string, i uint64, b []byte) []byte {
				if k == "leaf" {
					return b[:32]
				}
				return b
			}
		}, errDigest},
		"another segment": {func(p *publisher, s *server) {
			s.mangle = func(seg uint64, w []byte) []byte {
				if seg == 100 {
					return digested(w, make([]byte, 8000))
				}
				return digested(w, nil)
			}
		}, errDigest},
		"a signed segment that the manifest does not list": {func(p *publisher, s *server) {
			s.mangle = func(seg uint64, w []byte) []byte {
				if seg != 100 {
					return w
				}
				var d ndn.Data
				if err := d.Parse(w); err != nil {
					panic(err)
				}
				w, err := ndn.AppendData(nil, &ndn.DataFields{Name: d.Name, Content: make([]byte, 8000)}, p.key)
				if err != nil {
					panic(err)
				}
				return w
			}
		}, errDigest},
		"roots that contradict one another": {func(p *publisher, s *server) {
			p.change = func(k string, i uint64, b []byte) []byte {
				if k == "root" && i == 1 {
					l := p.layout
					_, digests, _ := manifest.ParseRoot(b, i)
					l.Last++
					return l.AppendRoot(nil, digests)
				}
				return b
			}
		}, manifest.ErrRoot},
		"digests alone and no manifest": {func(p *publisher, s *server) { s.part = p.none }, verify.ErrNoKey},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublisher()
			path, res, err := fetchTrusted(t, p.verifier(t), func(s *server) { p.serve(s, true); c.set(p, s) })
			if !errors.Is(err, output.ErrVerify) || !errors.Is(err, c.want) || res.Output.Verified {
				t.Errorf("error %v", err)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Error("there is something under the final name")
			}
			if b, err := os.ReadFile(path + ".part"); err == nil && !bytes.HasPrefix(object, b) {
				t.Error("the part file holds what was not verified")
			}
		})
	}
}

// TestManifestTellsTheEnd: segments that only a manifest vouches for cannot
// end the object before its end.
func TestManifestTellsTheEnd(t *testing.T) {
	p := newPublisher()
	end := ndn.Name(nil).AppendNumber(ndn.TypeSegment, 4)
	tr := serve(t, 1, func(s *server) {
		p.serve(s, true)
		s.mangle = func(seg uint64, w []byte) []byte {
			var d ndn.Data
			if err := d.Parse(w); err != nil {
				panic(err)
			}
			w, err := ndn.AppendData(nil, &ndn.DataFields{Name: d.Name, Content: d.Content, FinalBlock: end}, ndn.DigestSigner{})
			if err != nil {
				panic(err)
			}
			return w
		}
	})
	o := trusting(t, tr, output.NewStream(&bytes.Buffer{}, "buffer"), p.verifier(t))
	o.Fetch.Name = ndn.MustName("/run/test/v=1") // nothing is known of the end
	if _, err := Run(t.Context(), o); !errors.Is(err, output.ErrVerify) || !errors.Is(err, errDigest) {
		t.Errorf("error %v", err)
	}
}
