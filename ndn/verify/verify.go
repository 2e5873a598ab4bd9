// Package verify decides whether Data was signed by someone who may: with
// trusted certificates, certificates that chain to them, and a trust schema.
//
// A key signs wrongly or it does not, which mathematics tells. Which key may
// sign what is policy:
//
//   - With a trust schema (Light VerSec, as ndnd and python-ndn use it) the
//     schema says it, for each packet and each certificate of a chain.
//   - Without one, the keys of the trusted certificates may sign anything, for
//     their owner was named by whoever asks. Those of other certificates may
//     sign only names below their identity (/alice/KEY/… signs /alice/…), so
//     that whoever got a certificate for a name cannot speak for another.
//   - With a shared secret (HMAC) whoever knows it may sign anything.
package verify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"ndnpop/ndn"
	"ndnpop/ndn/certfile"
)

// Reasons of refusals. What Verify returns wraps one of them.
var (
	// ErrNoKey: nobody's key signed the packet.
	ErrNoKey = errors.New("nobody signed it")
	// ErrSignature: the signature is not that of the key.
	ErrSignature = errors.New("the signature is wrong")
	// ErrNotAllowed: the key may not sign this name.
	ErrNotAllowed = errors.New("that key may not sign this")
	// ErrValidity: the certificate is not valid now.
	ErrValidity = errors.New("the certificate is not valid now")
	// ErrUntrusted: no chain leads to a trusted certificate.
	ErrUntrusted = errors.New("no chain of certificates leads to a trusted one")
	// ErrFetch: a certificate that is needed cannot be had.
	ErrFetch = errors.New("the certificate cannot be had")
)

// Bounds of what a packet can cause.
const (
	// maxChain is the largest number of certificates between a packet and a
	// trusted one.
	maxChain = 8
	// maxCached is the number of fetched certificates that are remembered.
	maxCached = 256
)

// Config of a Verifier: Secret, or Anchors.
type Config struct {
	// Anchors are the trusted certificates.
	Anchors []certfile.Certificate
	// Schema says which key may sign what; nil: the rule above.
	Schema *Schema
	// Secret, if not nil, is a key that is shared with the producer. Only
	// HMAC signatures are accepted then.
	Secret []byte
	// Now tells the time for validity periods; nil: time.Now.
	Now func() time.Time
}

// Fetch gets the Data with a name of which name is a prefix, as the bytes of
// the packet.
type Fetch func(ctx context.Context, name ndn.Name) ([]byte, error)

// Verifier checks packets. It is safe for concurrent use.
type Verifier struct {
	cfg     Config
	anchors []*key
	cache   *lru.Cache[string, *key] // of chained keys by what a locator said
}

// key is a public key and the certificate that it came from.
type key struct {
	cert   certfile.Certificate
	public publicKey
	anchor bool
}

// New returns a Verifier. It fails when a trusted certificate holds no key
// that can be used.
func New(cfg Config) (*Verifier, error) {
	v := &Verifier{cfg: cfg}
	if cfg.Now == nil {
		v.cfg.Now = time.Now
	}
	var err error
	if v.cache, err = lru.New[string, *key](maxCached); err != nil {
		return nil, err
	}
	for _, c := range cfg.Anchors {
		p, err := parsePublicKey(c.Data.Content)
		if err != nil {
			return nil, fmt.Errorf("certificate %s: %w", c.Data.Name, err)
		}
		v.anchors = append(v.anchors, &key{cert: c, public: p, anchor: true})
	}
	if cfg.Secret == nil && len(v.anchors) == 0 {
		return nil, errors.New("no certificate to trust")
	}
	return v, nil
}

// Verify says why a packet must not be believed; nil if it may be. It calls
// fetch for certificates that it lacks, and takes as long as that does.
func (v *Verifier) Verify(ctx context.Context, d *ndn.Data, fetch Fetch) error {
	if v.cfg.Secret != nil {
		return v.verifySecret(d)
	}
	return v.verify(ctx, d, fetch, maxChain)
}

func (v *Verifier) verifySecret(d *ndn.Data) error {
	if d.SigType != ndn.SigHmac {
		return fmt.Errorf("%w with the shared key: it has %s", ErrNoKey, sigName(d.SigType))
	}
	m := hmac.New(sha256.New, v.cfg.Secret)
	m.Write(d.Signed())
	if !hmac.Equal(m.Sum(nil), d.SigValue) {
		return fmt.Errorf("%w: it was not made with the shared key", ErrSignature)
	}
	return nil
}

// verify checks a packet whose chain may be left more certificates long.
func (v *Verifier) verify(ctx context.Context, d *ndn.Data, fetch Fetch, left int) error {
	switch d.SigType {
	case ndn.SigRsa, ndn.SigEcdsa, ndn.SigEd25519:
	default:
		return fmt.Errorf("%w: it has %s", ErrNoKey, sigName(d.SigType))
	}
	loc := certfile.Locator(d)
	if loc == nil {
		return fmt.Errorf("%w that it names", ErrNoKey)
	}
	known := false
	var err error
	for _, k := range v.anchors {
		if !loc.HasPrefix(k.cert.Key) {
			continue
		}
		known = true
		if err = v.signed(d, k); err == nil {
			return nil
		}
	}
	if known {
		return err
	}
	if k, ok := v.cache.Get(string(loc)); ok {
		return v.signed(d, k)
	}
	k, err := v.chained(ctx, loc, fetch, left)
	if err != nil {
		return err
	}
	return v.signed(d, k)
}

// chained fetches a certificate and verifies it.
func (v *Verifier) chained(ctx context.Context, loc ndn.Name, fetch Fetch, left int) (*key, error) {
	if left == 0 {
		return nil, fmt.Errorf("%w: more than %d would be needed", ErrUntrusted, maxChain)
	}
	if !namesKey(loc) {
		return nil, fmt.Errorf("%w: it names %s, which is no key", ErrNoKey, loc)
	}
	wire, err := fetch(ctx, loc)
	if err != nil {
		return nil, fmt.Errorf("signed by %s: %w: %w", loc, ErrFetch, err)
	}
	c, err := certfile.Parse(wire)
	if err == nil && !c.Data.Name.HasPrefix(loc) {
		err = fmt.Errorf("%w: %s is another", certfile.ErrCertificate, c.Data.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("signed by %s: %w", loc, err)
	}
	name := c.Data.Name
	if issuer := certfile.Locator(&c.Data); issuer != nil && issuer.HasPrefix(c.Key) {
		return nil, fmt.Errorf("signed by %s: %w: it is self-signed and not among them", name, ErrUntrusted)
	}
	if err := c.ValidAt(v.cfg.Now()); err != nil {
		return nil, fmt.Errorf("signed by %s: %w: it %w", name, ErrValidity, err)
	}
	p, err := parsePublicKey(c.Data.Content)
	if err != nil {
		return nil, fmt.Errorf("signed by %s: %w: %w", name, certfile.ErrCertificate, err)
	}
	if err := v.verify(ctx, &c.Data, fetch, left-1); err != nil {
		return nil, fmt.Errorf("signed by %s, a certificate that is %w", name, err)
	}
	k := &key{cert: c, public: p}
	v.cache.Add(string(loc), k)
	return k, nil
}

// signed checks a packet against a key.
func (v *Verifier) signed(d *ndn.Data, k *key) error {
	err := v.allowed(d, k)
	if err == nil && !k.public.verifies(d) {
		err = ErrSignature
	}
	if err != nil {
		return fmt.Errorf("signed by %s: %w", k.cert.Data.Name, err)
	}
	return nil
}

func (v *Verifier) allowed(d *ndn.Data, k *key) error {
	c := &k.cert
	if err := c.ValidAt(v.cfg.Now()); err != nil {
		return fmt.Errorf("%w: it %w", ErrValidity, err)
	}
	switch {
	case v.cfg.Schema != nil:
		if !v.cfg.Schema.allows(d.Name, c.Data.Name) {
			return fmt.Errorf("%w: the trust schema has no rule for it", ErrNotAllowed)
		}
	case !k.anchor && !d.Name.HasPrefix(c.Identity):
		return fmt.Errorf("%w: it is for names below %s", ErrNotAllowed, c.Identity)
	}
	return nil
}

// namesKey reports whether a locator is the name of a key or of one of its
// certificates.
func namesKey(n ndn.Name) bool {
	for i := -2; i >= -4; i-- {
		if c, ok := n.At(i); ok && c.Type == ndn.TypeGeneric && string(c.Value) == "KEY" {
			return true
		}
	}
	return false
}

// sigName names a kind of signature for messages.
func sigName(t uint64) string {
	switch t {
	case ndn.SigDigestSha256:
		return "only a digest (DigestSha256), which anyone can make"
	case ndn.SigNull:
		return "no signature (null)"
	case ndn.SigHmac:
		return "an HMAC, which certificates cannot verify; use --verify hmac:FILE"
	case ndn.SigRsa, ndn.SigEcdsa, ndn.SigEd25519:
		return "the signature of a public key; use --verify FILE with its certificate"
	}
	return fmt.Sprintf("a signature of the unknown type %d", t)
}

// Describe says in a line what is trusted, for people.
func (v *Verifier) Describe() string {
	if v.cfg.Secret != nil {
		return "a shared key"
	}
	var names []string
	for _, k := range v.anchors {
		names = append(names, k.cert.Data.Name.String())
	}
	s := strings.Join(names, ", ")
	if v.cfg.Schema != nil {
		s += ", by a trust schema"
	}
	return s
}
