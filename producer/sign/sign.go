// Package sign makes the signers of a producer: hashes, shared keys, and keys
// from a keychain in ndnd's format.
package sign

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"strings"

	enc "github.com/named-data/ndnd/std/encoding"
	ndnd "github.com/named-data/ndnd/std/ndn"

	"ndnpop/ndn"
	"ndnpop/ndn/certfile"
)

// Choices are the forms that Open understands.
const Choices = "digest, null, hmac:FILE, key:NAME"

// Errors of Open.
var (
	// ErrChoice: the signer is none of the choices.
	ErrChoice = errors.New("unknown signer")
	// ErrKey: it is one, but its key cannot be had.
	ErrKey = errors.New("no key to sign with")
)

// Open returns the signer that spec names: "digest" (a hash: integrity only),
// "null" (nothing), "hmac:FILE" (the bytes of FILE are the shared key) or
// "key:NAME" (the key of that name, or the identity's default key, in the
// keychain at the URI keychain).
func Open(spec, keychain string) (ndn.Signer, error) {
	kind, arg, _ := strings.Cut(spec, ":")
	switch {
	case spec == "digest":
		return ndn.DigestSigner{}, nil
	case spec == "null":
		return Null{}, nil
	case kind == "hmac" && arg != "":
		key, err := readKey(arg)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKey, err)
		}
		return NewHmac(key), nil
	case kind == "key" && arg != "":
		n, err := ndn.ParseName(arg)
		if err != nil {
			return nil, fmt.Errorf("%w %q: %w", ErrChoice, spec, err)
		}
		s, err := openKey(keychain, n)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKey, err)
		}
		return s, nil
	}
	return nil, fmt.Errorf("%w %q: choose one of %s", ErrChoice, spec, Choices)
}

// maxKey bounds the size of a file with a shared key, in bytes.
const maxKey = 64 << 10

func readKey(path string) ([]byte, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if fi.Size() == 0 || fi.Size() > maxKey {
		return nil, fmt.Errorf("the shared key in %s has %d bytes, it should have 1 to %d", path, fi.Size(), maxKey)
	}
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return key, nil
}

// Null is the null signer (packet specification, "Null signature").
type Null struct{}

// AppendSigInfo implements ndn.Signer.
func (Null) AppendSigInfo(b []byte) []byte {
	return append(b, byte(ndn.TypeSigInfo), 3, byte(ndn.TypeSigType), 1, byte(ndn.SigNull))
}

// AppendSignature implements ndn.Signer.
func (Null) AppendSignature(b, _ []byte) ([]byte, error) { return b, nil }

// Hmac signs with HMAC-SHA-256. It is not safe for concurrent use.
type Hmac struct{ mac hash.Hash }

// NewHmac returns a signer with a shared key.
func NewHmac(key []byte) *Hmac { return &Hmac{hmac.New(sha256.New, key)} }

// AppendSigInfo implements ndn.Signer. Like ndnd's, the signature names no
// key: who shares one knows which.
func (*Hmac) AppendSigInfo(b []byte) []byte {
	return append(b, byte(ndn.TypeSigInfo), 3, byte(ndn.TypeSigType), 1, byte(ndn.SigHmac))
}

// AppendSignature implements ndn.Signer.
func (h *Hmac) AppendSignature(b, signed []byte) ([]byte, error) {
	h.mac.Reset()
	h.mac.Write(signed)
	return h.mac.Sum(b), nil
}

// Key signs with one of ndnd's signers.
type Key struct {
	signer ndnd.Signer
	info   []byte // the SignatureInfo element
	covers enc.Wire
	chain  []certfile.Certificate
}

// Chain is what Keychain.Chain says of the key, when Open found it there.
func (k *Key) Chain() []certfile.Certificate { return k.chain }

// NewKey wraps a signer of ndnd's. locator goes into the KeyLocator: the name
// of the key or of its certificate.
func NewKey(s ndnd.Signer, locator ndn.Name) *Key {
	kl := locator.AppendTLVTo(nil)
	v := ndn.AppendNatTLV(nil, ndn.TypeSigType, uint64(s.Type()))
	v = ndn.AppendTLV(v, ndn.TypeKeyLocator, kl)
	return &Key{signer: s, info: ndn.AppendTLV(nil, ndn.TypeSigInfo, v), covers: make(enc.Wire, 1)}
}

// AppendSigInfo implements ndn.Signer.
func (k *Key) AppendSigInfo(b []byte) []byte { return append(b, k.info...) }

// AppendSignature implements ndn.Signer.
func (k *Key) AppendSignature(b, signed []byte) ([]byte, error) {
	k.covers[0] = signed
	sig, err := k.signer.Sign(k.covers)
	k.covers[0] = nil
	if err != nil {
		return b, err
	}
	return append(b, sig...), nil
}
