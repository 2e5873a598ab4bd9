package run

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ndnpop/consumer/output"
	"ndnpop/face"
	"ndnpop/ndn"
	"ndnpop/ndn/certfile"
	"ndnpop/ndn/verify"
)

// shared signs with a shared key.
type shared struct{ key []byte }

func (shared) AppendSigInfo(b []byte) []byte {
	return ndn.AppendTLV(b, ndn.TypeSigInfo, ndn.AppendNatTLV(nil, ndn.TypeSigType, ndn.SigHmac))
}
func (s shared) AppendSignature(b, signed []byte) ([]byte, error) {
	m := hmac.New(sha256.New, s.key)
	m.Write(signed)
	return m.Sum(b), nil
}

// owner signs with a key of its own.
type owner struct {
	key     ed25519.PrivateKey
	locator ndn.Name
	extra   []byte // of SignatureInfo
}

func (o owner) AppendSigInfo(b []byte) []byte {
	v := ndn.AppendNatTLV(nil, ndn.TypeSigType, ndn.SigEd25519)
	v = ndn.AppendTLV(v, ndn.TypeKeyLocator, o.locator.AppendTLVTo(nil))
	return ndn.AppendTLV(b, ndn.TypeSigInfo, append(v, o.extra...))
}
func (o owner) AppendSignature(b, signed []byte) ([]byte, error) {
	return append(b, ed25519.Sign(o.key, signed)...), nil
}

// certify makes a certificate with a name, issued by o.
func (o owner) certify(name ndn.Name, key ed25519.PublicKey) []byte {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic(err)
	}
	const at = "20060102T150405"
	p := ndn.AppendTLV(nil, 0xfe, []byte(time.Now().Add(-time.Hour).UTC().Format(at)))
	p = ndn.AppendTLV(p, 0xff, []byte(time.Now().Add(time.Hour).UTC().Format(at)))
	o.extra = ndn.AppendTLV(nil, 0xfd, p)
	w, err := ndn.AppendData(nil, &ndn.DataFields{Name: name, ContentType: ndn.ContentKey, Freshness: time.Hour, Content: der}, o)
	if err != nil {
		panic(err)
	}
	return w
}

func keyOf(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// trustKey trusts one shared key.
func trustKey(t *testing.T) *verify.Verifier {
	t.Helper()
	v, err := verify.New(verify.Config{Secret: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func trusting(t *testing.T, tr face.Server, to output.Target, v *verify.Verifier) Options {
	o := options(t, tr, to)
	o.Output.Verify, o.Trust = output.VerifyNone, v
	return o
}

// fetchTrusted fetches to a file.
func fetchTrusted(t *testing.T, v *verify.Verifier, set func(*server)) (path string, res Result, err error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "out")
	f, err := output.CreateFile(path, "all")
	if err != nil {
		t.Fatal(err)
	}
	res, err = Run(t.Context(), trusting(t, serve(t, 1, set), f, v))
	return path, res, err
}

func TestTrusted(t *testing.T) {
	path, res, err := fetchTrusted(t, trustKey(t), func(s *server) { s.signer = shared{[]byte("key")} })
	if err != nil || !res.Output.Verified || !res.Complete {
		t.Fatalf("%v, %+v", err, res.Output)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, object) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// wrong re-signs a segment with another key, and another end if final is set.
func wrong(wire []byte, final []byte) []byte {
	var d ndn.Data
	if err := d.Parse(wire); err != nil {
		panic(err)
	}
	f := &ndn.DataFields{Name: d.Name, Content: d.Content, FinalBlock: d.FinalBlock}
	if final != nil {
		f.FinalBlock = final
	}
	w, err := ndn.AppendData(nil, f, shared{[]byte("other")})
	if err != nil {
		panic(err)
	}
	return w
}

// TestForgedMetadata does not lead the fetch anywhere.
func TestForgedMetadata(t *testing.T) {
	var segments atomic.Int64
	path, _, err := fetchTrusted(t, trustKey(t), func(s *server) { s.hook = func(int) { segments.Add(1) } })
	var p *output.PacketError
	if !errors.Is(err, output.ErrVerify) || !errors.As(err, &p) || !strings.Contains(p.Name.String(), "32=metadata") {
		t.Errorf("error %v", err)
	}
	if n := segments.Load(); n != 0 {
		t.Errorf("%d segments were asked for", n)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestForgedSegment: the fetch ends, and what is good before it can be gone on
// with.
func TestForgedSegment(t *testing.T) {
	const bad = 100
	path, _, err := fetchTrusted(t, trustKey(t), func(s *server) {
		s.signer = shared{[]byte("key")}
		s.mangle = func(seg uint64, w []byte) []byte {
			if seg == bad {
				return wrong(w, nil)
			}
			return w
		}
	})
	var p *output.PacketError
	if !errors.As(err, &p) || !strings.HasSuffix(p.Name.String(), "seg=100") || !errors.Is(err, verify.ErrSignature) {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("there is something under the final name")
	}
	b, err := os.ReadFile(path + ".part")
	if err != nil || !bytes.HasPrefix(object, b) || len(b) > bad*8000 {
		t.Errorf("the part file: %d bytes, %v", len(b), err)
	}
}

// TestForgedEnd: a forged packet that says that the object is over, and lies
// beyond what it says, is never delivered. It must not cut the object.
func TestForgedEnd(t *testing.T) {
	end := ndn.Name(nil).AppendNumber(ndn.TypeSegment, 4)
	path := filepath.Join(t.TempDir(), "out")
	f, err := output.CreateFile(path, "all")
	if err != nil {
		t.Fatal(err)
	}
	tr := serve(t, 1, func(s *server) {
		s.signer = shared{[]byte("key")}
		s.mangle = func(seg uint64, w []byte) []byte {
			var d ndn.Data
			if err := d.Parse(w); err != nil {
				panic(err)
			}
			switch seg {
			case 5, 6:
				return nil // lost
			case 7:
				return wrong(w, end)
			}
			// The true producer tells the end in the last segment only.
			w, err := ndn.AppendData(nil, &ndn.DataFields{Name: d.Name, Content: d.Content}, s.signer)
			if err != nil {
				panic(err)
			}
			return w
		}
	})
	o := trusting(t, tr, f, trustKey(t))
	o.Fetch.Name = ndn.MustName("/run/test/v=1") // nothing is known of the end
	_, err = Run(t.Context(), o)
	if !errors.Is(err, output.ErrVerify) || !strings.Contains(err.Error(), "segment 4") {
		t.Errorf("error %v", err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestChainFromTheNetwork: certificates come over the connection of the
// fetch, although the first Interest for each is lost.
func TestChainFromTheNetwork(t *testing.T) {
	root := owner{key: keyOf(1), locator: ndn.MustName("/ca/KEY/1")}
	site := owner{key: keyOf(2), locator: ndn.MustName("/run/KEY/2")}
	anchor := root.certify(ndn.MustName("/ca/KEY/1/self/v=1"), root.key.Public().(ed25519.PublicKey))
	cert := root.certify(ndn.MustName("/run/KEY/2/ca/v=1"), site.key.Public().(ed25519.PublicKey))
	c, err := certfile.Parse(anchor)
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify.New(verify.Config{Anchors: []certfile.Certificate{c}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time the certificate is known
		asked := 0
		path, _, err := fetchTrusted(t, v, func(s *server) {
			s.signer = site
			s.cert = func(in *ndn.Interest) []byte {
				if asked++; asked == 1 || !in.CanBePrefix || !ndn.MustName("/run/KEY/2/ca/v=1").HasPrefix(in.Name) {
					return nil
				}
				return cert
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, object) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
}

// TestInterruptedWhileVerifying: a certificate that does not come holds
// nothing up.
func TestInterruptedWhileVerifying(t *testing.T) {
	root := owner{key: keyOf(1), locator: ndn.MustName("/ca/KEY/1")}
	c, err := certfile.Parse(root.certify(ndn.MustName("/ca/KEY/1/self/v=1"), root.key.Public().(ed25519.PublicKey)))
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify.New(verify.Config{Anchors: []certfile.Certificate{c}})
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	tr := serve(t, 1, func(s *server) {
		s.signer = owner{key: keyOf(2), locator: ndn.MustName("/run/KEY/2")}
		s.cert = func(*ndn.Interest) []byte { cancel(stop); return nil }
	})
	_, err = Run(ctx, trusting(t, tr, output.NewStream(&bytes.Buffer{}, "buffer"), v))
	if !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}
