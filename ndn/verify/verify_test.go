package verify

import (
	"bytes"
	"context"
	"crypto/elliptic"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	ndnd "github.com/named-data/ndnd/std/ndn"
	spec "github.com/named-data/ndnd/std/ndn/spec_2022"
	"github.com/named-data/ndnd/std/security"
	sig "github.com/named-data/ndnd/std/security/signer"
	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/ndn"
	"ndnpop/ndn/certfile"
)

var now = time.Date(2030, 6, 1, 0, 0, 0, 0, time.UTC)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func nameOf(s string) enc.Name { return must(enc.NameFromStr(s)) }

// party is somebody with a key and a certificate, made by ndnd.
type party struct {
	signer ndnd.Signer
	cert   certfile.Certificate
}

func newSigner(kind, identity string) ndnd.Signer {
	n := security.MakeKeyName(nameOf(identity))
	switch kind {
	case "rsa":
		return must(sig.KeygenRsa(n, 2048))
	case "ed25519":
		return must(sig.KeygenEd25519(n))
	case "p384":
		return must(sig.KeygenEcc(n, elliptic.P384()))
	}
	return must(sig.KeygenEcc(n, elliptic.P256()))
}

// issue certifies a key; by nil is self-signed.
func issue(key ndnd.Signer, by *party, from, to time.Time) *party {
	args := security.SignCertArgs{
		Signer: key, Data: must(sig.MarshalSecretToData(key)), IssuerId: enc.NewGenericComponent("CA"),
		NotBefore: from, NotAfter: to,
	}
	if by != nil {
		args.Signer = &located{by.signer, by.cert.Data.Name.ToNdnd()}
	}
	w := must(security.SignCert(args))
	return &party{key, must(certfile.Parse(w.Join()))}
}

// located names a certificate in the KeyLocator.
type located struct {
	ndnd.Signer
	locator enc.Name
}

func (l *located) KeyLocator() enc.Name { return l.locator }

func valid(key ndnd.Signer, by *party) *party {
	return issue(key, by, now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0))
}

// data signs a packet with ndnd.
func data(name string, s ndnd.Signer) *ndn.Data {
	w := must(spec.Spec{}.MakeData(nameOf(name), &ndnd.DataConfig{
		ContentType: optional.Some(ndnd.ContentTypeBlob), Freshness: optional.Some(time.Second),
	}, enc.Wire{[]byte("content")}, s))
	d := new(ndn.Data)
	if err := d.Parse(w.Wire.Join()); err != nil {
		panic(err)
	}
	return d
}

// shelf serves certificates by prefix and counts.
type shelf struct {
	certs []*party
	asked int
}

var errNothing = errors.New("nobody answers")

func (s *shelf) fetch(_ context.Context, n ndn.Name) ([]byte, error) {
	s.asked++
	for _, p := range s.certs {
		if p.cert.Data.Name.HasPrefix(n) {
			return p.cert.Data.Wire, nil
		}
	}
	return nil, errNothing
}

func verifier(t *testing.T, c Config) *Verifier {
	t.Helper()
	c.Now = func() time.Time { return now }
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func anchors(ps ...*party) (c []certfile.Certificate) {
	for _, p := range ps {
		c = append(c, p.cert)
	}
	return c
}

func check(t *testing.T, v *Verifier, s *shelf, d *ndn.Data, is error, says ...string) {
	t.Helper()
	err := v.Verify(t.Context(), d, s.fetch)
	if is == nil && err != nil || is != nil && !errors.Is(err, is) {
		t.Errorf("%s: %v, want %v", d.Name, err, is)
		return
	}
	for _, w := range says {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not tell %q", d.Name, err, w)
		}
	}
}

// TestKinds: every kind of key that ndnd makes; one bit changed anywhere in
// the packet is noticed.
func TestKinds(t *testing.T) {
	for _, kind := range []string{"ecc", "p384", "rsa", "ed25519"} {
		p := valid(newSigner(kind, "/alice"), nil)
		v, s := verifier(t, Config{Anchors: anchors(p)}), &shelf{}
		d := data("/anything/at/all", p.signer)
		check(t, v, s, d, nil)
		check(t, v, s, data("/x", &located{p.signer, p.cert.Data.Name.ToNdnd()}), nil)
		for i := range d.Wire {
			w := bytes.Clone(d.Wire)
			w[i] ^= 1
			var bad ndn.Data
			if bad.Parse(w) == nil && v.Verify(t.Context(), &bad, s.fetch) == nil {
				t.Errorf("%s: byte %d changed unnoticed", kind, i)
			}
		}
	}
}

// TestNobodySigned: digests, null signatures and HMACs prove nothing to who
// has certificates.
func TestNobodySigned(t *testing.T) {
	p := valid(newSigner("ecc", "/alice"), nil)
	v, s := verifier(t, Config{Anchors: anchors(p)}), &shelf{}
	check(t, v, s, data("/alice/x", sig.NewSha256Signer()), ErrNoKey, "DigestSha256")
	check(t, v, s, data("/alice/x", sig.NewHmacSigner([]byte("key"))), ErrNoKey, "hmac:FILE")
	check(t, v, s, data("/alice/x", &located{p.signer, nil}), ErrNoKey)
	check(t, v, s, data("/alice/x", &located{p.signer, nameOf("/alice")}), ErrNoKey, "no key")
	if s.asked != 0 {
		t.Errorf("%d certificates were asked for", s.asked)
	}
}

func TestSharedSecret(t *testing.T) {
	v, s := verifier(t, Config{Secret: []byte("secret")}), &shelf{}
	check(t, v, s, data("/x", sig.NewHmacSigner([]byte("secret"))), nil)
	check(t, v, s, data("/x", sig.NewHmacSigner([]byte("other"))), ErrSignature, "shared key")
	check(t, v, s, data("/x", sig.NewSha256Signer()), ErrNoKey)
	check(t, v, s, data("/x", newSigner("ed25519", "/a")), ErrNoKey, "certificate")
}

// TestWrongKey: another key under the name of the trusted one.
func TestWrongKey(t *testing.T) {
	p := valid(newSigner("ecc", "/alice"), nil)
	mallory := newSigner("ecc", "/mallory")
	v, s := verifier(t, Config{Anchors: anchors(p)}), &shelf{}
	check(t, v, s, data("/x", &located{mallory, p.signer.KeyName()}), ErrSignature, p.cert.Data.Name.String())
	check(t, v, s, data("/x", &located{newSigner("ed25519", "/m"), p.signer.KeyName()}), ErrSignature)
}

func TestValidity(t *testing.T) {
	key := newSigner("ecc", "/alice")
	old := issue(key, nil, now.AddDate(-2, 0, 0), now.AddDate(-1, 0, 0))
	young := issue(key, nil, now.AddDate(1, 0, 0), now.AddDate(2, 0, 0))
	d, s := data("/alice/x", key), &shelf{}
	check(t, verifier(t, Config{Anchors: anchors(old)}), s, d, ErrValidity, "expired on 2029-06-01")
	check(t, verifier(t, Config{Anchors: anchors(young)}), s, d, ErrValidity, "not valid before 2031-06-01")
	check(t, verifier(t, Config{Anchors: anchors(old, young, valid(key, nil))}), s, d, nil)
	// The same of certificates in a chain, and of one that expires while it is
	// remembered.
	root := valid(newSigner("ecc", "/"), nil)
	for _, bad := range []*party{issue(key, root, now.AddDate(-2, 0, 0), now.AddDate(-1, 0, 0)), issue(key, root, now.AddDate(1, 0, 0), now.AddDate(2, 0, 0))} {
		check(t, verifier(t, Config{Anchors: anchors(root)}), &shelf{certs: []*party{bad}}, d, ErrValidity, bad.cert.Data.Name.String())
	}
	v := verifier(t, Config{Anchors: anchors(root)})
	s = &shelf{certs: []*party{issue(key, root, now.AddDate(-1, 0, 0), now.Add(time.Hour))}}
	check(t, v, s, d, nil)
	v.cfg.Now = func() time.Time { return now.Add(2 * time.Hour) }
	check(t, v, s, d, ErrValidity)
}

// TestChain: certificates are fetched by what the packet names, once, and
// only names below an identity may be signed by it.
func TestChain(t *testing.T) {
	root := valid(newSigner("rsa", "/ca"), nil)
	site := valid(newSigner("ecc", "/site"), root)
	alice := valid(newSigner("ed25519", "/site/alice"), site)
	v, s := verifier(t, Config{Anchors: anchors(root)}), &shelf{certs: []*party{site, alice}}
	for range 3 {
		check(t, v, s, data("/site/alice/f", alice.signer), nil)
	}
	if s.asked != 2 {
		t.Errorf("%d certificates were asked for, not 2", s.asked)
	}
	check(t, v, s, data("/site/f", site.signer), nil)
	check(t, v, s, data("/site/bob/f", alice.signer), ErrNotAllowed, "below /site/alice")
	// Certified by alice for a name that is not hers.
	bob := valid(newSigner("ecc", "/site/bob"), alice)
	s.certs = append(s.certs, bob)
	check(t, v, s, data("/site/bob/f", bob.signer), ErrNotAllowed, alice.cert.Data.Name.String())
	if _, ok := v.cache.Get(string(ndn.FromNdnd(bob.signer.KeyName()))); ok {
		t.Error("a certificate that was refused is remembered")
	}
}

// TestChainExpires: a key is believed no longer than every certificate above
// it, and no longer than MaxAge without asking again.
func TestChainExpires(t *testing.T) {
	root := valid(newSigner("ecc", "/ca"), nil)
	site := issue(newSigner("ecc", "/site"), root, now.AddDate(-1, 0, 0), now.Add(time.Hour))
	alice := valid(newSigner("ecc", "/site/alice"), site)
	v, s := verifier(t, Config{Anchors: anchors(root), MaxAge: 40 * time.Minute}), &shelf{certs: []*party{site, alice}}
	d := data("/site/alice/f", alice.signer)
	check(t, v, s, d, nil)
	v.cfg.Now = func() time.Time { return now.Add(39 * time.Minute) }
	check(t, v, s, d, nil)
	if s.asked != 2 {
		t.Errorf("%d certificates were asked for, not 2", s.asked)
	}
	v.cfg.Now = func() time.Time { return now.Add(41 * time.Minute) }
	check(t, v, s, d, nil)
	if s.asked != 4 {
		t.Errorf("%d certificates were asked for, not 4", s.asked)
	}
	v.cfg.Now = func() time.Time { return now.Add(61 * time.Minute) }
	check(t, v, s, d, ErrValidity, site.cert.Data.Name.String())
}

// TestCommands: whoever is certified may command, whatever the name, and
// nothing is fetched unless it is allowed.
func TestCommands(t *testing.T) {
	root := valid(newSigner("ecc", "/ca"), nil)
	site := valid(newSigner("ecc", "/site"), root)
	alice := valid(newSigner("ed25519", "/site/alice"), site)
	stray := valid(newSigner("ecc", "/other"), site)
	s := &shelf{certs: []*party{site, alice, stray}}
	v := verifier(t, Config{Anchors: anchors(root)})
	signed := func(p *party) *Signed { return signedData(data("/localhost/nfd/rib/register", p.signer)) }
	if err := v.VerifyCommand(t.Context(), signed(root), nil); err != nil {
		t.Error(err)
	}
	if err := v.VerifyCommand(t.Context(), signed(alice), nil); !errors.Is(err, ErrWanted) || errors.Is(err, ErrFetch) {
		t.Error(err)
	}
	loc := ndn.FromNdnd(alice.signer.KeyLocator())
	if err := v.Learn(t.Context(), loc, s.fetch); err != nil {
		t.Error(err)
	}
	if err := v.VerifyCommand(t.Context(), signed(alice), nil); err != nil {
		t.Error(err)
	}
	bad := signed(alice)
	bad.Portion = bytes.Clone(bad.Portion)
	bad.Portion[0] ^= 1
	if err := v.VerifyCommand(t.Context(), bad, nil); !errors.Is(err, ErrSignature) {
		t.Error(err)
	}
	if err := v.VerifyCommand(t.Context(), signed(stray), s.fetch); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("certified by another than its parent: %v", err)
	}
	asked := s.asked
	if err := v.Learn(t.Context(), loc, s.fetch); err != nil || s.asked != asked {
		t.Errorf("%v, asked %d times more", err, s.asked-asked)
	}
}

func TestBrokenChains(t *testing.T) {
	root := valid(newSigner("ecc", "/ca"), nil)
	stranger := valid(newSigner("ecc", "/alice"), nil)
	v := verifier(t, Config{Anchors: anchors(root)})
	check(t, v, &shelf{certs: []*party{stranger}}, data("/alice/x", stranger.signer), ErrUntrusted, "self-signed")
	check(t, v, &shelf{}, data("/alice/x", stranger.signer), ErrFetch, "nobody answers")
	// Two that certify each other, and a long line.
	a, b := newSigner("ecc", "/a"), newSigner("ecc", "/a")
	pa := valid(a, &party{b, certfile.Certificate{Data: ndn.Data{Name: ndn.FromNdnd(b.KeyName())}}})
	pb := valid(b, pa)
	s := &shelf{certs: []*party{pa, pb}}
	check(t, v, s, data("/a/x", a), ErrUntrusted)
	if s.asked > maxChain {
		t.Errorf("%d certificates were asked for", s.asked)
	}
	s = &shelf{}
	last := root
	for range maxChain + 1 {
		last = valid(newSigner("ecc", "/a"), last)
		s.certs = append(s.certs, last)
	}
	check(t, v, s, data("/a/x", s.certs[maxChain-1].signer), nil)
	check(t, verifier(t, Config{Anchors: anchors(root)}), s, data("/a/x", last.signer), ErrUntrusted)
	// What comes is not what was asked for, or no certificate.
	wrong := func(context.Context, ndn.Name) ([]byte, error) { return root.cert.Data.Wire, nil }
	if err := v.Verify(t.Context(), data("/alice/x", stranger.signer), wrong); !errors.Is(err, certfile.ErrCertificate) {
		t.Error(err)
	}
	junk := func(context.Context, ndn.Name) ([]byte, error) { return data("/x", stranger.signer).Wire, nil }
	if err := v.Verify(t.Context(), data("/alice/x", stranger.signer), junk); !errors.Is(err, certfile.ErrCertificate) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	waits := func(ctx context.Context, _ ndn.Name) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
	if err := v.Verify(ctx, data("/alice/x", stranger.signer), waits); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func readSchema(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "blog.lvs"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSchema: the schema of the LVS documentation, /a/blog with admins,
// authors and articles (testdata/blog.trust).
func TestSchema(t *testing.T) {
	schema, err := ParseSchema(readSchema(t))
	if err != nil {
		t.Fatal(err)
	}
	root := valid(newSigner("ecc", "/a/blog"), nil)
	admin := valid(newSigner("ecc", "/a/blog/admin/ann"), root)
	author := valid(newSigner("ecc", "/a/blog/author/bob"), admin)
	fake := valid(newSigner("ecc", "/a/blog/author/eve"), root)
	s := &shelf{certs: []*party{admin, author, fake}}
	v := verifier(t, Config{Anchors: anchors(root), Schema: schema})
	by := func(p *party) ndnd.Signer { return &located{p.signer, p.cert.Data.Name.ToNdnd()} }
	check(t, v, s, data("/a/blog/article/math/2022/03", by(author)), nil)
	check(t, v, s, data("/a/blog/article/math/2022/03", by(admin)), ErrNotAllowed, "trust schema")
	check(t, v, s, data("/a/blog/article/math/2022/03", by(root)), ErrNotAllowed)
	check(t, v, s, data("/a/blog/other", by(author)), ErrNotAllowed)
	check(t, v, s, data("/a/blog/article/math/2022/03", by(fake)), ErrNotAllowed, root.cert.Data.Name.String())
	if !strings.Contains(v.Describe(), "schema") || !strings.Contains(v.Describe(), "/a/blog/KEY") {
		t.Error(v.Describe())
	}
}

func TestSchemaRefused(t *testing.T) {
	b := readSchema(t)
	for what, bad := range map[string][]byte{
		"nothing": nil, "half": b[:len(b)/2], "text": []byte("#a: \"b\""), "start": bytes.Replace(b, []byte{0x25, 1, 0, 0x69}, []byte{0x25, 1, 200, 0x69}, 1),
	} {
		if _, err := ParseSchema(bad); !errors.Is(err, ErrSchema) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add(readSchema(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := ParseSchema(b); err == nil {
			s.allows(ndn.MustName("/a/blog/article/x"), ndn.MustName("/a/blog/KEY/1/2/3"))
		}
	})
}

func TestNew(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("nothing is trusted")
	}
	w := must(ndn.AppendData(nil, &ndn.DataFields{Name: ndn.MustName("/a/KEY/k/i/v=1"), ContentType: ndn.ContentKey, Content: []byte("x")}, ndn.DigestSigner{}))
	if _, err := New(Config{Anchors: []certfile.Certificate{must(certfile.Parse(w))}}); !errors.Is(err, errPublicKey) {
		t.Error(err)
	}
	small := valid(must(sig.KeygenRsa(security.MakeKeyName(nameOf("/a")), 1024)), nil)
	if _, err := New(Config{Anchors: anchors(small)}); err == nil || !strings.Contains(err.Error(), "1024 bits") {
		t.Error(err)
	}
}

func BenchmarkVerify(b *testing.B) {
	for _, kind := range []string{"ecc", "rsa", "ed25519"} {
		b.Run(kind, func(b *testing.B) {
			p := valid(newSigner(kind, "/alice"), nil)
			v := must(New(Config{Anchors: anchors(p), Now: func() time.Time { return now }}))
			w := must(spec.Spec{}.MakeData(nameOf("/x"), &ndnd.DataConfig{}, enc.Wire{make([]byte, 8000)}, p.signer))
			var d ndn.Data
			if err := d.Parse(w.Wire.Join()); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(8000)
			b.ReportAllocs()
			for b.Loop() {
				if err := v.Verify(context.Background(), &d, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
