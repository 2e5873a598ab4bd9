package sign

import (
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
	"github.com/named-data/ndnd/std/object/storage"
	"github.com/named-data/ndnd/std/security"
	"github.com/named-data/ndnd/std/security/keychain"
	sig "github.com/named-data/ndnd/std/security/signer"

	"ndnpop/ndn"
)

// signed returns a Data signed by s as ndnd decodes it.
func signed(t *testing.T, s ndn.Signer) (ndnd.Data, enc.Wire) {
	t.Helper()
	w, err := ndn.AppendData(nil, &ndn.DataFields{
		Name: ndn.MustName("/a/v=1/seg=0"), Freshness: time.Second, Content: []byte("content"),
	}, s)
	if err != nil {
		t.Fatal(err)
	}
	d, covered, err := spec.Spec{}.ReadData(enc.NewBufferView(w))
	if err != nil {
		t.Fatal(err)
	}
	return d, covered
}

// TestSharedKey: ndnd verifies what we sign with a shared key.
func TestSharedKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("shared secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open("hmac:"+path, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the hash is used again
		d, covered := signed(t, s)
		if !sig.ValidateHmac(covered, d.Signature(), []byte("shared secret\n")) {
			t.Error("ndnd does not accept the signature")
		}
		if sig.ValidateHmac(covered, d.Signature(), []byte("other")) {
			t.Error("another key is accepted")
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = s.AppendSignature(make([]byte, 0, 32), nil) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func TestHashAndNull(t *testing.T) {
	for spec, typ := range map[string]ndnd.SigType{"digest": ndnd.SignatureDigestSha256, "null": ndnd.SigType(ndn.SigNull)} {
		s, err := Open(spec, "")
		if err != nil {
			t.Fatal(err)
		}
		d, covered := signed(t, s)
		if d.Signature().SigType() != typ {
			t.Errorf("%s: type %d", spec, d.Signature().SigType())
		}
		if spec == "digest" && !sig.ValidateSha256(covered, d.Signature()) {
			t.Error("ndnd does not accept the hash")
		}
	}
}

// testKeychain makes a keychain with two identities; /with has a certificate.
func testKeychain(t *testing.T) (uri string, keys map[string]ndnd.Signer, cert ndnd.Data) {
	dir := t.TempDir()
	uri = "dir://" + dir
	kc, err := keychain.NewKeyChain(uri, storage.NewMemoryStore())
	if err != nil {
		t.Fatal(err)
	}
	keys = make(map[string]ndnd.Signer)
	for _, id := range []string{"/with", "/without"} {
		n, _ := enc.NameFromStr(id)
		k, err := sig.KeygenEcc(security.MakeKeyName(n), elliptic.P256())
		if err != nil {
			t.Fatal(err)
		}
		if err := kc.InsertKey(k); err != nil {
			t.Fatal(err)
		}
		keys[id] = k
	}
	wire, err := security.SelfSign(security.SignCertArgs{
		Signer: keys["/with"], NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := kc.InsertCert(wire.Join()); err != nil {
		t.Fatal(err)
	}
	cert, _, err = spec.Spec{}.ReadData(enc.NewWireView(wire))
	if err != nil {
		t.Fatal(err)
	}
	return uri, keys, cert
}

// TestKeychain: keys of a keychain in ndnd's format sign so that ndnd
// verifies them with their certificate.
func TestKeychain(t *testing.T) {
	uri, keys, cert := testKeychain(t)
	s, err := Open("key:/with", uri)
	if err != nil {
		t.Fatal(err)
	}
	d, covered := signed(t, s)
	if ok, err := sig.ValidateData(d, covered, cert); err != nil || !ok {
		t.Errorf("ndnd does not accept the signature: %v", err)
	}
	if got := d.Signature().KeyName(); !got.Equal(cert.Name()) {
		t.Errorf("the key locator is %s, want %s", got, cert.Name())
	}
	name := keys["/without"].KeyName()
	if s, err = Open("key:"+name.String(), uri); err != nil {
		t.Fatal(err)
	}
	if d, _ = signed(t, s); !d.Signature().KeyName().Equal(name) {
		t.Errorf("the key locator is %s, want %s", d.Signature().KeyName(), name)
	}
}

func TestOpenFails(t *testing.T) {
	uri, _, _ := testKeychain(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec, keychain string
		is             error
		says           string
	}{
		{"rsa", uri, ErrChoice, "digest, null, hmac:FILE, key:NAME"},
		{"hmac:", uri, ErrChoice, "choose one of"},
		{"hmac:" + empty, uri, nil, "has 0 bytes"},
		{"hmac:" + empty + "x", uri, os.ErrNotExist, "no key to sign with"},
		{"key:/nobody", uri, ErrNoKey, "/with/KEY/"},
		{"key:/with/KEY/none", uri, ErrNoKey, "/with/KEY/none is not in the keychain"},
		{"key:/with", uri + "x", ErrKeychain, "ndnpop key generate"},
		{"key:/with", "mem://", ErrKeychain, "dir:///path/to/keys"},
	} {
		_, err := Open(c.spec, c.keychain)
		if err == nil || (c.is != nil && !errors.Is(err, c.is)) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.spec, err)
		}
	}
}
