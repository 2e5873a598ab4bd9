package mgmt

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/ndn"
)

// Localhost returns the prefix /localhost/nfd, under which a forwarder answers
// the applications of its own host.
func Localhost() ndn.Name { return ndn.Name(nil).AppendGeneric("localhost").AppendGeneric("nfd") }

// Localhop returns the prefix /localhop/nfd, under which it may accept route
// registrations from its neighbours.
func Localhop() ndn.Name { return ndn.Name(nil).AppendGeneric("localhop").AppendGeneric("nfd") }

// Lifetime of the Interests that this package makes.
const Lifetime = 4 * time.Second

// Stamp makes one command unlike all others: verifiers refuse a command whose
// time is old or whose nonce they have seen.
type Stamp struct {
	Time     time.Time // SigTime, milliseconds count
	SigNonce uint64
	Nonce    uint32 // of the Interest
}

// Stamper makes stamps whose times grow, as verifiers that follow ndn-cxx
// demand of one key even for two commands in one millisecond. The zero value
// is ready.
type Stamper struct{ last int64 }

// Stamp returns the stamp of a command that is sent at wall-clock time now.
// The caller supplies 64 random bits.
func (s *Stamper) Stamp(now time.Time, random uint64) Stamp {
	s.last = max(now.UnixMilli(), s.last+1)
	mixed := random * 0x9e3779b97f4a7c15
	return Stamp{time.UnixMilli(s.last), random, uint32(mixed >> 32)}
}

// Element types inside InterestSignatureInfo (packet specification, "Signed
// Interest").
const (
	typeSigNonce uint32 = 0x26
	typeSigTime  uint32 = 0x28
)

// AppendCommand appends a command Interest prefix/module/verb/parameters,
// signed with DigestSha256.
func AppendCommand(b []byte, prefix ndn.Name, module, verb string, p *ControlParameters, s Stamp) []byte {
	// The digest cannot fail.
	b, _ = AppendSignedCommand(b, prefix, module, verb, p, s, nil)
	return b
}

// ErrSign is wrapped when a signer could not sign a command.
var ErrSign = errors.New("mgmt: signing failed")

// AppendSignedCommand appends a command Interest that signer has signed; nil
// stands for DigestSha256. On error b is returned as it was.
func AppendSignedCommand(b []byte, prefix ndn.Name, module, verb string, p *ControlParameters, s Stamp, signer ndn.Signer) ([]byte, error) {
	if signer == nil {
		signer = ndn.DigestSigner{}
	}
	name := commandName(prefix, module, verb, p)
	tail := ndn.AppendTL(nil, ndn.TypeAppParameters, 0)
	tail, err := appendSigInfo(tail, s, signer)
	if err != nil {
		return b, err
	}
	signed := append(append([]byte(nil), name...), tail...)
	sig, err := signer.AppendSignature(nil, signed)
	if err != nil {
		return b, fmt.Errorf("%w: %w", ErrSign, err)
	}
	tail = ndn.AppendTLV(tail, ndn.TypeInterestSigVal, sig)
	digest := sha256.Sum256(tail)
	name = ndn.AppendTLV(name, ndn.TypeParamsDigest, digest[:])
	return ndn.AppendInterest(b, &ndn.InterestFields{
		Name: name, MustBeFresh: true, Nonce: s.Nonce, Lifetime: Lifetime, Params: tail,
	}), nil
}

func commandName(prefix ndn.Name, module, verb string, p *ControlParameters) ndn.Name {
	name := prefix.Clone().AppendGeneric(module).AppendGeneric(verb)
	return ndn.AppendTLV(name, ndn.TypeGeneric, p.AppendTo(nil))
}

// appendSigInfo appends an InterestSignatureInfo: the fields of the signer's
// SignatureInfo, and the stamp.
func appendSigInfo(b []byte, s Stamp, signer ndn.Signer) ([]byte, error) {
	info, err := unwrap(signer.AppendSigInfo(nil), ndn.TypeSigInfo)
	if err != nil {
		return b, fmt.Errorf("%w: %w", ErrSign, err)
	}
	start := len(b)
	b = append(b, make([]byte, 10)...)
	b = append(b, info...)
	b = binary.BigEndian.AppendUint64(ndn.AppendTL(b, typeSigNonce, 8), s.SigNonce)
	b = ndn.AppendNatTLV(b, typeSigTime, uint64(s.Time.UnixMilli()))
	return closeElement(b, start, ndn.TypeInterestSigInfo), nil
}

// Register returns the parameters of a rib/register of prefix towards the face
// that the command arrives on, by the named origin (OriginApp or OriginClient
// for applications: a forwarder announces the latter to its routing daemon).
func Register(prefix ndn.Name, origin, cost uint64) *ControlParameters {
	return &ControlParameters{
		Name:   optional.Some(prefix),
		Origin: optional.Some(origin),
		Cost:   optional.Some(cost),
		Flags:  optional.Some(RouteChildInherit),
	}
}

// Unregister returns the parameters of the rib/unregister that undoes
// Register.
func Unregister(prefix ndn.Name, origin uint64) *ControlParameters {
	return &ControlParameters{Name: optional.Some(prefix), Origin: optional.Some(origin)}
}
