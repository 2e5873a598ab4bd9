package verify

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"

	"ndnpop/ndn"
)

var errPublicKey = errors.New("it holds no public key that can be used")

// publicKey is an *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey.
type publicKey struct{ key any }

// Bounds of RSA keys, in bits: smaller ones can be broken, larger ones cost
// time.
const minRSA, maxRSA = 2048, 8192

// parsePublicKey reads the content of a certificate: a SubjectPublicKeyInfo.
func parsePublicKey(der []byte) (publicKey, error) {
	k, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return publicKey{}, fmt.Errorf("%w: %w", errPublicKey, err)
	}
	switch k := k.(type) {
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < minRSA || n > maxRSA {
			return publicKey{}, fmt.Errorf("%w: RSA with %d bits; %d to %d are accepted", errPublicKey, n, minRSA, maxRSA)
		}
	case *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return publicKey{}, fmt.Errorf("%w: %T", errPublicKey, k)
	}
	return publicKey{k}, nil
}

// verifies reports whether the key made the signature of a packet (NDN packet
// specification, "Signature types"). The packet cannot choose another
// algorithm than that of the key.
func (p publicKey) verifies(s *Signed) bool {
	switch k := p.key.(type) {
	case *rsa.PublicKey:
		sum := sha256.Sum256(s.Portion)
		return s.SigType == ndn.SigRsa && rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], s.Value) == nil
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(s.Portion)
		return s.SigType == ndn.SigEcdsa && ecdsa.VerifyASN1(k, sum[:], s.Value)
	case ed25519.PublicKey:
		return s.SigType == ndn.SigEd25519 && ed25519.Verify(k, s.Portion, s.Value)
	}
	return false
}
