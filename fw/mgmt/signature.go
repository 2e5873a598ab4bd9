package mgmt

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	ndnd "github.com/named-data/ndnd/std/ndn"
	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/ndn"
)

// signature is what a command's signature elements say. It implements
// ndnd.Signature for that library's verifiers.
type signature struct {
	typ     uint64
	key     ndn.Name // of the KeyLocator, nil when absent
	nonce   []byte
	time    uint64 // milliseconds since the Unix epoch
	hasTime bool
	value   []byte
}

var (
	errNotSigned    = errors.New("the command is not signed")
	errNoParams     = errors.New("the command is signed but has no application parameters")
	errParamsDigest = errors.New("the parameters digest in the name is wrong")
	errSigInfo      = errors.New("malformed signature info")
	errSigTime      = errors.New("malformed signature time")
)

// commandSignature reads the signature of a command in one of two forms, and
// returns the bytes that it covers: a signed Interest (packet specification,
// "Signed Interest"), or the form before it, in which all of the signature is in
// the name. NFD takes both, and python-ndn's first API knows the older only.
func commandSignature(i *ndn.Interest) (s signature, covered []byte, err error) {
	switch {
	case i.SigInfo != nil && i.SigValue != nil:
		if i.AppParameters == nil {
			// Then the signature would cover the name alone: who has seen a command
			// could put all that is signed of it there, and any time and nonce beside.
			return s, nil, errNoParams
		}
		if !digestMatches(i) {
			return s, nil, errParamsDigest
		}
		s, err = parseSignature(i.SigInfo, i.SigValue)
		return s, i.SignedPortion(nil), err
	case i.SigInfo == nil && i.SigValue == nil:
		return nameSignature(i.Name)
	}
	return s, nil, errNotSigned
}

// nameSignature reads the signature that the last four components of a name
// are: a time in milliseconds, a nonce, and the elements SignatureInfo and
// SignatureValue, each in a component (ndn-cxx, "command-interest.hpp").
// It covers all of the name but the last component.
func nameSignature(n ndn.Name) (s signature, covered []byte, err error) {
	element := func(at int, typ uint32) ([]byte, bool) {
		c, ok := n.At(at)
		if !ok || c.Type != ndn.TypeGeneric {
			return nil, false
		}
		e, rest, err := ndn.NextElement(c.Value)
		return e.Value, err == nil && len(rest) == 0 && e.Type == typ
	}
	value, ok1 := element(-1, ndn.TypeSigValue)
	info, ok2 := element(-2, ndn.TypeSigInfo)
	nonce, ok3 := n.At(-3)
	stamp, ok4 := n.At(-4)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return s, nil, errNotSigned
	}
	if s, err = parseSignature(info, value); err != nil {
		return s, nil, err
	}
	if s.time, err = ndn.ParseNat(stamp.Value); err != nil {
		return s, nil, errSigTime
	}
	s.nonce, s.hasTime = nonce.Value, true
	return s, n.Prefix(-1), nil
}

func digestMatches(i *ndn.Interest) bool {
	last, ok := i.Name.At(-1)
	if !ok || last.Type != ndn.TypeParamsDigest {
		return false
	}
	sum := sha256.Sum256(i.ParamsPortion())
	return bytes.Equal(sum[:], last.Value)
}

// parseSignature reads the values of a SignatureInfo of either kind and of the
// signature's value.
func parseSignature(info, value []byte) (signature, error) {
	s := signature{value: value}
	hasType := false
	for v := info; len(v) > 0; {
		e, rest, err := ndn.NextElement(v)
		if err != nil {
			return s, errSigInfo
		}
		v = rest
		switch e.Type {
		case ndn.TypeSigType:
			if hasType {
				return s, errSigInfo
			}
			hasType = true
			if s.typ, err = ndn.ParseNat(e.Value); err != nil {
				return s, errSigInfo
			}
		case ndn.TypeKeyLocator:
			if len(e.Value) > 0 && e.Value[0] == byte(ndn.TypeName) {
				if s.key, err = ndn.ParseNameTLV(e.Value); err != nil {
					return s, errSigInfo
				}
			}
		case 0x26: // SignatureNonce
			s.nonce = e.Value
		case 0x28: // SignatureTime
			if s.time, err = ndn.ParseNat(e.Value); err != nil {
				return s, errSigInfo
			}
			s.hasTime = true
		case 0x2a: // SignatureSeqNum: not used by management
		default:
			if ndn.Critical(e.Type) {
				return s, errSigInfo
			}
		}
	}
	if !hasType {
		return s, errSigInfo
	}
	return s, nil
}

// SigType implements ndnd.Signature.
func (s *signature) SigType() ndnd.SigType {
	if s.typ > 1<<16 {
		return ndnd.SignatureNone
	}
	return ndnd.SigType(s.typ)
}

// KeyName implements ndnd.Signature.
func (s *signature) KeyName() enc.Name { return s.key.ToNdnd() }

// Validity implements ndnd.Signature; commands have none.
func (s *signature) Validity() (from, to optional.Optional[time.Time]) { return }

// SigValue implements ndnd.Signature.
func (s *signature) SigValue() []byte { return s.value }

// SigNonce implements ndnd.Signature.
func (s *signature) SigNonce() []byte { return s.nonce }

// SigTime implements ndnd.Signature.
func (s *signature) SigTime() *time.Time {
	if !s.hasTime {
		return nil
	}
	t := time.UnixMilli(int64(min(s.time, 1<<62)))
	return &t
}

// SigSeqNum implements ndnd.Signature.
func (s *signature) SigSeqNum() *uint64 { return nil }

// signedInterest lends an Interest's signature to signer.ValidateData, which
// looks at nothing else of a packet.
type signedInterest struct {
	ndnd.Data
	sig *signature
}

// Signature implements ndnd.Data.
func (s signedInterest) Signature() ndnd.Signature { return s.sig }
