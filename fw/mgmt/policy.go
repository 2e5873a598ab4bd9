package mgmt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	ndnd "github.com/named-data/ndnd/std/ndn"
	"github.com/named-data/ndnd/std/ndn/spec_2022"
	"github.com/named-data/ndnd/std/security/signer"

	"ndnpop/ndn"
	"ndnpop/ndn/certfile"
	"ndnpop/ndn/verify"
)

// Config says who may manage the forwarder. The zero value allows every local
// face everything that is signed in any way.
type Config struct {
	// Localhop answers rib/register and rib/unregister at /localhop/nfd, from
	// faces of any scope that a rule with Faces "any" allows.
	Localhop bool
	// Authorize are the rules; a command is allowed that one of them allows.
	// With none, local faces may do everything with any signature.
	Authorize []Authorization
	// Announcers are files with the certificates of those whose prefix
	// announcements are believed, in the formats of Certificates; those of
	// AnnouncerAnchors may also have others certified, for prefixes below the
	// others' identities. With none of both, every announcement that is whole is
	// believed.
	Announcers       []string
	AnnouncerAnchors []string
	// Now tells the time for certificates that are fetched; nil: time.Now.
	Now func() time.Time
}

// Authorization is a rule: which modules, from which faces, signed by whom.
type Authorization struct {
	Modules []string // of Modules; empty: all
	Faces   string   // "local" (or empty) or "any"
	// AnySignature accepts DigestSha256, which proves that the command is
	// whole, and signatures of keys that are not configured here, which prove
	// nothing: it is for faces that need no proof.
	AnySignature bool
	// Certificates are files with certificates whose keys may sign, in the
	// formats of ndnd and of ndnsec cert-dump.
	Certificates []string
	// TrustAnchors are files with certificates whose keys may sign, and may
	// certify the keys of others who then may, too. Their certificates are
	// fetched when they are needed.
	TrustAnchors []string
	// HMACKeys are files that hold nothing but a shared secret, all of whose
	// bytes count, as for those who sign with the same file.
	HMACKeys []string
}

// Modules that take commands.
var modules = []string{"faces", "fib", "rib", "cs", "strategy-choice"}

// Modules lists the names that Authorization.Modules may contain.
func Modules() []string { return slices.Clone(modules) }

// Errors of LoadPolicy.
var (
	ErrUnknownModule = errors.New("unknown management module")
	ErrUnknownFaces  = errors.New("unknown choice of faces")
	ErrNoSigner      = errors.New("rule allows no signature at all")
	ErrCertificate   = errors.New("not a certificate")
)

// ConfigError is what is wrong with what a Config names.
type ConfigError struct {
	Field string // in the notation of the configuration file, such as authorize[0].certificates[1]
	Err   error
}

func (e *ConfigError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

// Policy decides which commands are allowed.
type Policy struct {
	localhop   bool
	rules      []rule
	announcers announcers
}

// announcers are those whose prefix announcements are believed.
type announcers struct {
	certs []certificate
	trust *verify.Verifier // nil: without anchors
}

type rule struct {
	modules []string
	anyFace bool
	anySig  bool
	certs   []certificate
	trust   *verify.Verifier // of keys that chain to an anchor; nil: without anchors
	secrets [][]byte
}

type certificate struct {
	certfile.Certificate
	data ndnd.Data // the same, for that library's verifiers
}

// LoadPolicy reads the files of c with read (os.ReadFile) and checks it. An error
// is a *ConfigError.
func LoadPolicy(c Config, read func(name string) ([]byte, error)) (*Policy, error) {
	p := &Policy{localhop: c.Localhop}
	if len(c.Authorize) == 0 {
		p.rules = []rule{{anySig: true, anyFace: false}}
	}
	for i, a := range c.Authorize {
		r, err := loadRule(fmt.Sprintf("authorize[%d]", i), a, read, c.Now)
		if err != nil {
			return nil, err
		}
		p.rules = append(p.rules, r)
	}
	var err error
	if p.announcers.certs, err = loadCertificates("announcers", c.Announcers, read); err != nil {
		return nil, err
	}
	if p.announcers.trust, err = loadAnchors("announcer_anchors", c.AnnouncerAnchors, read, c.Now); err != nil {
		return nil, err
	}
	return p, nil
}

func loadRule(field string, a Authorization, read func(string) ([]byte, error), now func() time.Time) (rule, error) {
	r := rule{modules: slices.Clone(a.Modules), anySig: a.AnySignature}
	for _, m := range a.Modules {
		if !slices.Contains(modules, m) {
			return r, &ConfigError{field + ".modules", fmt.Errorf("%w %q; there are %s", ErrUnknownModule, m, strings.Join(modules, ", "))}
		}
	}
	switch a.Faces {
	case "", "local":
	case "any":
		r.anyFace = true
	default:
		return r, &ConfigError{field + ".faces", fmt.Errorf("%w %q; there are local, any", ErrUnknownFaces, a.Faces)}
	}
	var err error
	if r.certs, err = loadCertificates(field+".certificates", a.Certificates, read); err != nil {
		return r, err
	}
	if r.trust, err = loadAnchors(field+".trust_anchors", a.TrustAnchors, read, now); err != nil {
		return r, err
	}
	for i, file := range a.HMACKeys {
		b, err := read(file)
		if err == nil && len(b) == 0 {
			err = fmt.Errorf("%s: the key is empty", file)
		}
		if err != nil {
			return r, &ConfigError{fmt.Sprintf("%s.hmac_keys[%d]", field, i), err}
		}
		r.secrets = append(r.secrets, b)
	}
	if !r.anySig && len(r.certs) == 0 && r.trust == nil && len(r.secrets) == 0 {
		return r, &ConfigError{field, fmt.Errorf("%w: give certificates, trust anchors, hmac keys, or allow any signature", ErrNoSigner)}
	}
	return r, nil
}

func loadCertificates(field string, files []string, read func(string) ([]byte, error)) (all []certificate, err error) {
	certs, err := readCertificates(field, files, read)
	if err != nil {
		return nil, err
	}
	for _, c := range certs {
		d, _, err := spec_2022.Spec{}.ReadData(enc.NewBufferView(c.Data.Wire))
		if err != nil {
			return nil, &ConfigError{field, fmt.Errorf("%w: %s: %w", ErrCertificate, c.Data.Name, err)}
		}
		all = append(all, certificate{c, d})
	}
	return all, nil
}

// keyAge is how long a fetched certificate is believed without asking again.
const keyAge = time.Hour

// loadAnchors returns the verifier of those to whom the certificates in the
// files lead; nil without files.
func loadAnchors(field string, files []string, read func(string) ([]byte, error), now func() time.Time) (*verify.Verifier, error) {
	if len(files) == 0 {
		return nil, nil
	}
	certs, err := readCertificates(field, files, read)
	if err != nil {
		return nil, err
	}
	v, err := verify.New(verify.Config{Anchors: certs, MaxAge: keyAge, Now: now})
	if err != nil {
		return nil, &ConfigError{field, fmt.Errorf("%w: %w", ErrCertificate, err)}
	}
	return v, nil
}

// readCertificates reads the certificates of files, in any form that certfile
// reads.
func readCertificates(field string, files []string, read func(string) ([]byte, error)) (all []certfile.Certificate, err error) {
	for i, file := range files {
		b, err := read(file)
		var certs []certfile.Certificate
		if err == nil {
			certs, _, err = certfile.Decode(b)
			switch {
			case err != nil:
				err = fmt.Errorf("%s: %w: %w", file, ErrCertificate, err)
			case len(certs) == 0:
				err = fmt.Errorf("%s: %w but a secret key", file, ErrCertificate)
			}
		}
		if err != nil {
			return nil, &ConfigError{fmt.Sprintf("%s[%d]", field, i), err}
		}
		all = append(all, certs...)
	}
	return all, nil
}

// identity is who signed a command, as far as replays are concerned.
type identity struct {
	kind identityKind
	// of configured: which key or secret; of certifiedKey: the locator, which a
	// replay has as well, for the signature covers it.
	key string
}

// identityKind tells identities apart by what they prove and how many there
// are.
type identityKind uint8

const (
	anybody      identityKind = iota // proves nothing; one for all of them
	configured                       // a key or secret that the configuration names
	certifiedKey                     // a key that leads to an anchor of a rule
)

// verdict is what a policy says about a command.
type verdict struct {
	id     identity // whose replays count
	sig    *signature
	reason string // of a refusal; empty: it is allowed
	// wanted may allow the command when they know the certificates of its key.
	wanted []*verify.Verifier
}

// check decides about one command.
func (p *Policy) check(module string, local bool, i *ndn.Interest, wall time.Time) verdict {
	s, covered, err := commandSignature(i)
	if err != nil {
		return verdict{reason: err.Error()}
	}
	v := verdict{sig: &s, reason: "no rule allows module " + module + " from this face"}
	for k := range p.rules {
		r := &p.rules[k]
		if (!local && !r.anyFace) || (len(r.modules) > 0 && !slices.Contains(r.modules, module)) {
			continue
		}
		if v.id, v.reason = r.verify(&s, covered, wall); v.reason == "" {
			return verdict{id: v.id, sig: &s}
		}
		if r.trust == nil || s.key == nil {
			continue
		}
		signed := verify.Signed{Name: i.Name, SigType: s.typ, Key: s.key, Portion: covered, Value: s.value}
		switch err := r.trust.VerifyCommand(context.Background(), &signed, nil); {
		case err == nil:
			return verdict{id: identity{certifiedKey, string(s.key)}, sig: &s}
		case errors.Is(err, verify.ErrWanted):
			v.wanted = append(v.wanted, r.trust)
			v.reason = err.Error()
		default:
			v.reason = err.Error()
		}
	}
	return v
}

func (r *rule) verify(s *signature, covered []byte, wall time.Time) (identity, string) {
	wire := enc.Wire{covered}
	if s.typ == ndn.SigHmac {
		for k, secret := range r.secrets {
			if signer.ValidateHmac(wire, s, secret) {
				return identity{configured, fmt.Sprintf("hmac %d", k)}, ""
			}
		}
		if len(r.secrets) > 0 {
			return identity{}, "the hmac is wrong"
		}
	}
	known := false
	reason := ""
	for k := range r.certs {
		c := &r.certs[k]
		if s.key == nil || !s.key.HasPrefix(c.Key) {
			continue
		}
		known = true
		if ok, err := signer.ValidateData(signedInterest{sig: s}, wire, c.data); err != nil || !ok {
			reason = "the signature is wrong"
		} else if err := c.ValidAt(wall); err != nil {
			reason = fmt.Sprintf("the certificate is not valid now: %s %v", c.Data.Name, err)
		} else {
			return identity{configured, "key " + string(c.Key)}, ""
		}
	}
	switch {
	case known:
		return identity{}, reason
	case !r.anySig:
		return identity{}, "the key is not one that is allowed"
	case s.typ == ndn.SigDigestSha256 && !signer.ValidateSha256(wire, s):
		return identity{}, "the digest signature is wrong"
	case len(s.value) == 0:
		return identity{}, "the signature is empty"
	}
	return identity{}, ""
}
