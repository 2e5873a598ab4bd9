// Package verify decides whether a packet was signed by someone who may: with
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
	// ErrWanted: a certificate would have to be fetched, and nothing may be.
	ErrWanted = errors.New("the certificate is not at hand")
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
	// MaxAge is how long a fetched certificate is believed before it is fetched
	// again; 0: as long as it and those above it are valid.
	MaxAge time.Duration
	// Now tells the time for validity periods; nil: time.Now.
	Now func() time.Time
}

// Fetch gets the Data with a name of which name is a prefix, as the bytes of
// the packet. Where nil is allowed for it, nothing is fetched, and ErrWanted is
// the reason when something would have to be.
type Fetch func(ctx context.Context, name ndn.Name) ([]byte, error)

// Signed is a signature with what it covers. The slices stay the caller's.
type Signed struct {
	Name    ndn.Name // of the packet
	SigType uint64
	Key     ndn.Name // of the KeyLocator; nil when it names none
	Portion []byte   // the bytes that are signed
	Value   []byte
}

func signedData(d *ndn.Data) *Signed {
	return &Signed{Name: d.Name, SigType: d.SigType, Key: certfile.Locator(d), Portion: d.Signed(), Value: d.SigValue}
}

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
	until  time.Time // it is remembered; of chained keys
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
// fetch, which may be nil, for certificates that it lacks, and takes as long as
// that does.
func (v *Verifier) Verify(ctx context.Context, d *ndn.Data, fetch Fetch) error {
	if v.cfg.Secret != nil {
		return v.verifySecret(d)
	}
	_, err := v.verify(ctx, signedData(d), fetch, maxChain, false)
	return err
}

// VerifyCommand is Verify for a packet whose name says what is to be done, not
// whose it is: every key may sign it that is trusted or to whose certificate a
// chain leads. Of the chain's certificates each must lie below its issuer's
// identity all the same. It needs a Config without Secret and Schema.
func (v *Verifier) VerifyCommand(ctx context.Context, s *Signed, fetch Fetch) error {
	_, err := v.verify(ctx, s, fetch, maxChain, true)
	return err
}

// Learn fetches the certificates of a key, named as in a KeyLocator, so that
// what it signs can be verified without fetching. It says why they are not
// believed.
func (v *Verifier) Learn(ctx context.Context, locator ndn.Name, fetch Fetch) error {
	if v.trusted(locator) || v.cached(locator) != nil {
		return nil
	}
	_, err := v.chained(ctx, locator, fetch, maxChain)
	return err
}

// trusted reports whether a locator names the key of a trusted certificate.
func (v *Verifier) trusted(loc ndn.Name) bool {
	for _, k := range v.anchors {
		if loc.HasPrefix(k.cert.Key) {
			return true
		}
	}
	return false
}

// cached returns a chained key that is remembered, as long as all of its chain
// is valid.
func (v *Verifier) cached(loc ndn.Name) *key {
	k, ok := v.cache.Get(string(loc))
	if !ok || v.cfg.Now().After(k.until) {
		return nil
	}
	return k
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

// verify checks a packet whose chain may be left more certificates long, and
// returns the key that signed it. With anyName, its name does not matter.
func (v *Verifier) verify(ctx context.Context, s *Signed, fetch Fetch, left int, anyName bool) (*key, error) {
	switch s.SigType {
	case ndn.SigRsa, ndn.SigEcdsa, ndn.SigEd25519:
	default:
		return nil, fmt.Errorf("%w: it has %s", ErrNoKey, sigName(s.SigType))
	}
	if s.Key == nil {
		return nil, fmt.Errorf("%w that it names", ErrNoKey)
	}
	known := false
	var err error
	for _, k := range v.anchors {
		if !s.Key.HasPrefix(k.cert.Key) {
			continue
		}
		known = true
		if err = v.signed(s, k, anyName); err == nil {
			return k, nil
		}
	}
	if known {
		return nil, err
	}
	k := v.cached(s.Key)
	if k == nil {
		if k, err = v.chained(ctx, s.Key, fetch, left); err != nil {
			return nil, err
		}
	}
	return k, v.signed(s, k, anyName)
}

// chained fetches a certificate and verifies it.
func (v *Verifier) chained(ctx context.Context, loc ndn.Name, fetch Fetch, left int) (*key, error) {
	if left == 0 {
		return nil, fmt.Errorf("%w: more than %d would be needed", ErrUntrusted, maxChain)
	}
	if !namesKey(loc) {
		return nil, fmt.Errorf("%w: it names %s, which is no key", ErrNoKey, loc)
	}
	if fetch == nil {
		return nil, fmt.Errorf("signed by %s: %w", loc, ErrWanted)
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
	now := v.cfg.Now()
	if err := c.ValidAt(now); err != nil {
		return nil, fmt.Errorf("signed by %s: %w: it %w", name, ErrValidity, err)
	}
	p, err := parsePublicKey(c.Data.Content)
	if err != nil {
		return nil, fmt.Errorf("signed by %s: %w: %w", name, certfile.ErrCertificate, err)
	}
	issuer, err := v.verify(ctx, signedData(&c.Data), fetch, left-1, false)
	if err != nil {
		return nil, fmt.Errorf("signed by %s, a certificate that is %w", name, err)
	}
	k := &key{cert: c, public: p, until: earlier(c.NotAfter, issuer.end())}
	if v.cfg.MaxAge > 0 {
		k.until = earlier(k.until, now.Add(v.cfg.MaxAge))
	}
	v.cache.Add(string(loc), k)
	return k, nil
}

// end is when a key cannot vouch for others any more.
func (k *key) end() time.Time {
	if k.anchor {
		return k.cert.NotAfter
	}
	return k.until
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// signed checks a packet against a key. With anyName, the key may sign any name.
func (v *Verifier) signed(s *Signed, k *key, anyName bool) error {
	err := v.allowed(s.Name, k, anyName)
	if err == nil && !k.public.verifies(s) {
		err = ErrSignature
	}
	if err != nil {
		return fmt.Errorf("signed by %s: %w", k.cert.Data.Name, err)
	}
	return nil
}

func (v *Verifier) allowed(name ndn.Name, k *key, anyName bool) error {
	c := &k.cert
	if err := c.ValidAt(v.cfg.Now()); err != nil {
		return fmt.Errorf("%w: it %w", ErrValidity, err)
	}
	switch {
	case anyName:
	case v.cfg.Schema != nil:
		if !v.cfg.Schema.allows(name, c.Data.Name) {
			return fmt.Errorf("%w: the trust schema has no rule for it", ErrNotAllowed)
		}
	case !k.anchor && !name.HasPrefix(c.Identity):
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
