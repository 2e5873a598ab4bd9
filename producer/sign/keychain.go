package sign

import (
	"bytes"
	"cmp"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	ndnd "github.com/named-data/ndnd/std/ndn"
	spec "github.com/named-data/ndnd/std/ndn/spec_2022"
	"github.com/named-data/ndnd/std/security"
	"github.com/named-data/ndnd/std/security/signer"

	"ndnpop/ndn"
	"ndnpop/ndn/certfile"
)

// Errors of keychains.
var (
	ErrNoKey    = errors.New("not in the keychain")
	ErrKeychain = errors.New("there is no keychain")
	ErrKeyType  = errors.New("unknown kind of key")
)

// Keychain is a directory with keys and certificates in the format of ndnd:
// one file for each, in PEM, named by its hash.
type Keychain struct {
	dir  string
	keys []*KeyEntry // by identity, the default key of each first
	// Issuers are the certificates of keys that are not here.
	issuers []certfile.Certificate
	skipped []error
}

// KeyEntry is a key with its certificates, the best one first.
type KeyEntry struct {
	Name, Identity ndn.Name
	Certs          []certfile.Certificate
	signer         ndnd.Signer
	secret         []byte // as it is kept
}

// Kind is the kind of the key, as Generate takes it.
func (e *KeyEntry) Kind() string {
	switch e.signer.Type() {
	case ndnd.SignatureSha256WithRsa:
		return "rsa"
	case ndnd.SignatureSha256WithEcdsa:
		return "ecc"
	case ndnd.SignatureEd25519:
		return "ed25519"
	}
	return fmt.Sprintf("type %d", e.signer.Type())
}

// keychainDir is the directory that a keychain's URI names; an empty one is
// the user's.
func keychainDir(uri string) (string, error) {
	if uri == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no keychain: %w", err)
		}
		return filepath.Join(home, ".ndn", "keys"), nil
	}
	if !strings.Contains(uri, "://") {
		return uri, nil // a plain path
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "dir" || u.Host != "" || u.Path == "" {
		return "", fmt.Errorf("%w: %q is not of the form dir:///path/to/keys", ErrKeychain, uri)
	}
	return u.Path, nil
}

// OpenKeychain reads the keychain at a URI (dir:///path) or path; an empty
// one is the user's, ~/.ndn/keys. create makes the directory if it is
// missing.
func OpenKeychain(uri string, create bool) (*Keychain, error) {
	dir, err := keychainDir(uri)
	if err != nil {
		return nil, err
	}
	if create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	k := &Keychain{dir: dir}
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s; \"ndnpop key generate\" makes one", ErrKeychain, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeychain, err)
	}
	var certs []certfile.Certificate
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); f.IsDir() || ext != ".key" && ext != ".cert" && ext != ".pem" {
			continue
		}
		path := filepath.Join(dir, f.Name())
		b, err := os.ReadFile(path)
		if err != nil {
			k.skipped = append(k.skipped, err)
			continue
		}
		cs, secrets, err := certfile.Decode(b)
		if err != nil {
			k.skipped = append(k.skipped, fmt.Errorf("%s: %w", path, err))
			continue
		}
		certs = append(certs, cs...)
		for _, s := range secrets {
			if _, err := k.addSecret(s); err != nil {
				k.skipped = append(k.skipped, fmt.Errorf("%s: %w", path, err))
			}
		}
	}
	for _, c := range certs {
		k.addCert(c)
	}
	k.sort()
	return k, nil
}

func (k *Keychain) addSecret(wire []byte) (*KeyEntry, error) {
	d, _, err := spec.Spec{}.ReadData(enc.NewBufferView(wire))
	if err != nil {
		return nil, fmt.Errorf("malformed key: %w", err)
	}
	s, err := signer.UnmarshalSecret(d)
	if err != nil {
		return nil, fmt.Errorf("the key %s cannot be read: %w", d.Name(), err)
	}
	name := ndn.FromNdnd(s.KeyName())
	if e := k.byName(name); e != nil {
		return e, nil
	}
	e := &KeyEntry{Name: name, Identity: name.Prefix(-2), signer: s, secret: wire}
	k.keys = append(k.keys, e)
	own := func(c certfile.Certificate) bool { return c.Key.Equal(name) }
	for _, c := range k.issuers {
		if own(c) {
			e.addCert(c)
		}
	}
	k.issuers = slices.DeleteFunc(k.issuers, own)
	return e, nil
}

func (k *Keychain) byName(name ndn.Name) *KeyEntry {
	for _, e := range k.keys {
		if e.Name.Equal(name) {
			return e
		}
	}
	return nil
}

func (k *Keychain) addCert(c certfile.Certificate) {
	if e := k.byName(c.Key); e != nil {
		e.addCert(c)
		return
	}
	if !slices.ContainsFunc(k.issuers, func(o certfile.Certificate) bool { return o.Data.Name.Equal(c.Data.Name) }) {
		k.issuers = append(k.issuers, c)
	}
}

func (e *KeyEntry) addCert(c certfile.Certificate) {
	if !slices.ContainsFunc(e.Certs, func(o certfile.Certificate) bool { return o.Data.Name.Equal(c.Data.Name) }) {
		e.Certs = append(e.Certs, c)
	}
}

func selfSigned(c *certfile.Certificate) bool {
	l := certfile.Locator(&c.Data)
	return l != nil && l.HasPrefix(c.Key)
}

func versionOf(c *certfile.Certificate) uint64 {
	last, _ := c.Data.Name.At(-1)
	v, _ := last.NumberAs(ndn.TypeVersion)
	return v
}

// sort puts what is used first: certificates that are valid before others,
// those of others before self-signed ones, new ones before old ones; and of an
// identity's keys, as ndnd does, that with the newest certificate.
func (k *Keychain) sort() {
	now := time.Now()
	rank := func(c *certfile.Certificate) int {
		r := 0
		if c.ValidAt(now) != nil {
			r += 2
		}
		if selfSigned(c) {
			r++
		}
		return r
	}
	newest := func(e *KeyEntry) (v uint64) {
		for i := range e.Certs {
			v = max(v, versionOf(&e.Certs[i]))
		}
		return v
	}
	for _, e := range k.keys {
		slices.SortFunc(e.Certs, func(a, b certfile.Certificate) int {
			return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(versionOf(&b), versionOf(&a)), a.Data.Name.Compare(b.Data.Name))
		})
	}
	slices.SortFunc(k.keys, func(a, b *KeyEntry) int {
		return cmp.Or(a.Identity.Compare(b.Identity), cmp.Compare(newest(b), newest(a)), a.Name.Compare(b.Name))
	})
}

// Dir is the directory of the keychain.
func (k *Keychain) Dir() string { return k.dir }

// Keys lists the keys by identity; the first of an identity is its default.
func (k *Keychain) Keys() []*KeyEntry { return k.keys }

// Others lists the certificates of keys that are not in the keychain.
func (k *Keychain) Others() []certfile.Certificate { return k.issuers }

// Skipped tells which files could not be read, and why.
func (k *Keychain) Skipped() []error { return k.skipped }

// Find returns the key of a name, or an identity's default key.
func (k *Keychain) Find(name ndn.Name) (*KeyEntry, error) {
	for _, e := range k.keys {
		if e.Name.Equal(name) || e.Identity.Equal(name) {
			return e, nil
		}
	}
	return nil, fmt.Errorf("%s is %w %s, which has %s", name, ErrNoKey, k.dir, k.list())
}

// list names the keys, a few of them.
func (k *Keychain) list() string {
	const most = 10
	var names []string
	for _, e := range k.keys {
		if len(names) == most {
			names = append(names, "…")
			break
		}
		names = append(names, e.Name.String())
	}
	if names == nil {
		return "no keys"
	}
	return strings.Join(names, ", ")
}

// KeyKinds are the kinds of keys that Generate makes.
func KeyKinds() []string { return []string{"ecc", "rsa", "ed25519"} }

// Generate makes a key of a kind (KeyKinds) for an identity, and a self-signed
// certificate that is valid between two times.
func (k *Keychain) Generate(identity ndn.Name, kind string, from, to time.Time) (*KeyEntry, error) {
	name := security.MakeKeyName(identity.ToNdnd())
	var s ndnd.Signer
	var err error
	switch kind {
	case "ecc":
		s, err = signer.KeygenEcc(name, elliptic.P256())
	case "rsa":
		s, err = signer.KeygenRsa(name, 2048)
	case "ed25519":
		s, err = signer.KeygenEd25519(name)
	default:
		return nil, fmt.Errorf("%w %q: choose one of %s", ErrKeyType, kind, strings.Join(KeyKinds(), ", "))
	}
	if err != nil {
		return nil, err
	}
	secret, err := signer.MarshalSecret(s)
	if err != nil {
		return nil, err
	}
	cert, err := security.SelfSign(security.SignCertArgs{Signer: s, NotBefore: from, NotAfter: to})
	if err != nil {
		return nil, err
	}
	if _, _, err := k.Import(bytes.Join([][]byte{secret.Join(), cert.Join()}, nil)); err != nil {
		return nil, err
	}
	return k.Find(ndn.FromNdnd(name))
}

// Import takes the keys and certificates in a file, in any form that certfile
// reads, and tells their names.
func (k *Keychain) Import(file []byte) (keys, certs []ndn.Name, err error) {
	cs, secrets, err := certfile.Decode(file)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range secrets {
		e, err := k.addSecret(s)
		if err != nil {
			return keys, certs, err
		}
		if err := k.write(s, ".key"); err != nil {
			return keys, certs, err
		}
		keys = append(keys, e.Name)
	}
	for _, c := range cs {
		if err := k.write(c.Data.Wire, ".cert"); err != nil {
			return keys, certs, err
		}
		k.addCert(c)
		certs = append(certs, c.Data.Name)
	}
	k.sort()
	return keys, certs, nil
}

// write stores one packet, as ndnd does, and never half of it.
func (k *Keychain) write(wire []byte, ext string) error {
	text, err := security.PemEncode(wire)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(wire)
	path := filepath.Join(k.dir, hex.EncodeToString(sum[:])+ext)
	f, err := os.CreateTemp(k.dir, "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(text) // CreateTemp lets nobody else read it
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Export returns the secret key in PEM, as ndnd writes it.
func (e *KeyEntry) Export() ([]byte, error) { return security.PemEncode(e.secret) }

// ExportCert returns the best certificate in PEM.
func (e *KeyEntry) ExportCert() ([]byte, error) {
	if len(e.Certs) == 0 {
		return nil, fmt.Errorf("a certificate of %s is %w", e.Name, ErrNoKey)
	}
	return security.PemEncode(e.Certs[0].Data.Wire)
}

// Certify signs the key of another's certificate and returns the new
// certificate in PEM. issuer is a component of its name.
func (e *KeyEntry) Certify(c *certfile.Certificate, issuer string, from, to time.Time) ([]byte, error) {
	d, _, err := spec.Spec{}.ReadData(enc.NewBufferView(c.Data.Wire))
	if err != nil {
		return nil, fmt.Errorf("malformed certificate: %w", err)
	}
	by := &signer.ContextSigner{Signer: e.signer, KeyLocatorName: e.locator().ToNdnd()}
	w, err := security.SignCert(security.SignCertArgs{
		Signer: by, Data: d, IssuerId: enc.NewGenericComponent(issuer), NotBefore: from, NotAfter: to,
	})
	if err != nil {
		return nil, err
	}
	return security.PemEncode(w.Join())
}

// locator is what signatures name: the best certificate, or without one the
// key.
func (e *KeyEntry) locator() ndn.Name {
	if len(e.Certs) > 0 {
		return e.Certs[0].Data.Name
	}
	return e.Name
}

// Signer signs with the key. It names the best certificate, or without one
// the key, as its locator.
func (e *KeyEntry) Signer() *Key { return NewKey(e.signer, e.locator()) }

// Chain returns the certificates that a consumer needs to verify what the key
// signs, as far as the keychain has them: the best of the key, that of its
// issuer, and so on.
func (k *Keychain) Chain(e *KeyEntry) (chain []certfile.Certificate) {
	const most = 8
	if len(e.Certs) == 0 {
		return nil
	}
	for c := &e.Certs[0]; c != nil && len(chain) < most; c = k.issuerOf(c) {
		chain = append(chain, *c)
	}
	return chain
}

func (k *Keychain) issuerOf(c *certfile.Certificate) *certfile.Certificate {
	l := certfile.Locator(&c.Data)
	if l == nil || selfSigned(c) {
		return nil
	}
	for _, e := range k.keys {
		for i := range e.Certs {
			if e.Certs[i].Data.Name.HasPrefix(l) {
				return &e.Certs[i]
			}
		}
	}
	for i := range k.issuers {
		if k.issuers[i].Data.Name.HasPrefix(l) {
			return &k.issuers[i]
		}
	}
	return nil
}

// openKey finds the signer of a key by its name or its identity's.
func openKey(uri string, n ndn.Name) (*Key, error) {
	k, err := OpenKeychain(uri, false)
	if err != nil {
		return nil, err
	}
	e, err := k.Find(n)
	if err != nil {
		return nil, err
	}
	s := e.Signer()
	s.chain = k.Chain(e)
	return s, nil
}
