package sign

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/named-data/ndnd/std/object/storage"
	"github.com/named-data/ndnd/std/security/keychain"

	"ndnpop/ndn"
	"ndnpop/ndn/certfile"
)

func openAt(t *testing.T, dir string) *Keychain {
	t.Helper()
	k, err := OpenKeychain(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func generate(t *testing.T, k *Keychain, id, kind string, days int) *KeyEntry {
	t.Helper()
	now := time.Now()
	e, err := k.Generate(ndn.MustName(id), kind, now.AddDate(-1, 0, 0), now.AddDate(0, 0, days))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestKeychainOfNdnd: what we store ndnd reads, and nobody else may read it.
func TestKeychainOfNdnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "keys")
	k := openAt(t, dir)
	for _, kind := range KeyKinds() {
		e := generate(t, k, "/id/"+kind, kind, 10)
		if e.Kind() != kind || len(e.Certs) != 1 || e.Certs[0].ValidAt(time.Now()) != nil {
			t.Errorf("%s: %+v", kind, e)
		}
	}
	kc, err := keychain.NewKeyChain("dir://"+dir, storage.NewMemoryStore())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(kc.Identities()); n != len(KeyKinds()) {
		t.Errorf("ndnd finds %d identities", n)
	}
	for _, id := range kc.Identities() {
		if len(id.Keys()) != 1 || len(id.Keys()[0].UniqueCerts()) != 1 {
			t.Errorf("%s: %d keys", id.Name(), len(id.Keys()))
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2*len(KeyKinds()) {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		fi, err := f.Info()
		if err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), fi.Mode(), err)
		}
	}
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", fi.Mode(), err)
	}
}

// TestExportImport: a key and its certificate go over to another keychain,
// twice without harm.
func TestExportImport(t *testing.T) {
	a, b := openAt(t, t.TempDir()), openAt(t, t.TempDir())
	e := generate(t, a, "/alice", "ecc", 10)
	secret, err := e.Export()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := e.ExportCert()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(secret, []byte("NDN KEY")) || !bytes.Contains(cert, []byte("NDN CERT")) || bytes.Contains(cert, []byte("NDN KEY")) {
		t.Errorf("%s%s", secret, cert)
	}
	for range 2 {
		keys, certs, err := b.Import(append(bytes.Clone(cert), secret...))
		if err != nil || len(keys) != 1 || len(certs) != 1 || !keys[0].Equal(e.Name) {
			t.Fatalf("%v, %v, %v", keys, certs, err)
		}
	}
	again := openAt(t, b.Dir())
	for _, k := range []*Keychain{b, again} {
		if len(k.Keys()) != 1 || len(k.Keys()[0].Certs) != 1 || len(k.Others()) != 0 {
			t.Errorf("%d keys, %d other certificates", len(k.Keys()), len(k.Others()))
		}
	}
	if _, _, err := b.Import([]byte("nonsense")); !errors.Is(err, certfile.ErrFormat) {
		t.Error(err)
	}
}

// TestBestCertificate: what is valid comes first, then what others issued,
// then what is new; and the chain follows the issuers.
func TestBestCertificate(t *testing.T) {
	ca, k := openAt(t, t.TempDir()), openAt(t, t.TempDir())
	root := generate(t, ca, "/ca", "ecc", 10)
	e := generate(t, k, "/ca/alice", "ecc", 10)
	certify := func(by *KeyEntry, issuer string, from, to int) []byte {
		t.Helper()
		now := time.Now()
		b, err := by.Certify(&e.Certs[0], issuer, now.AddDate(0, 0, from), now.AddDate(0, 0, to))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := k.Import(b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	certify(root, "old", -3, -2)
	if last, _ := e.Certs[0].Data.Name.At(-2); string(last.Value) != "self" {
		t.Errorf("best is %s", e.Certs[0].Data.Name)
	}
	certify(root, "good", -3, 2)
	if last, _ := e.Certs[0].Data.Name.At(-2); string(last.Value) != "good" {
		t.Errorf("best is %s", e.Certs[0].Data.Name)
	}
	chain := k.Chain(e)
	if len(chain) != 1 {
		t.Errorf("a chain of %d without the root", len(chain))
	}
	rootCert, err := root.ExportCert()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Import(rootCert); err != nil {
		t.Fatal(err)
	}
	if chain = openAt(t, k.Dir()).Chain(e); len(chain) != 2 || !chain[1].Key.Equal(root.Name) {
		t.Errorf("a chain of %d", len(chain))
	}
	if len(k.Others()) != 1 {
		t.Errorf("%d other certificates", len(k.Others()))
	}
	d, _ := signed(t, e.Signer())
	if got := ndn.FromNdnd(d.Signature().KeyName()); !got.Equal(e.Certs[0].Data.Name) {
		t.Errorf("signatures name %s", got)
	}
}

// TestUnreadableEntries are told and harm nothing else.
func TestUnreadableEntries(t *testing.T) {
	k := openAt(t, t.TempDir())
	generate(t, k, "/alice", "ed25519", 10)
	for name, content := range map[string]string{"a.key": "junk", "b.cert": "", "README.txt": "junk"} {
		if err := os.WriteFile(filepath.Join(k.Dir(), name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k = openAt(t, k.Dir())
	if len(k.Keys()) != 1 || len(k.Skipped()) != 2 || !strings.Contains(errors.Join(k.Skipped()...).Error(), "a.key") {
		t.Errorf("%d keys, skipped %v", len(k.Keys()), k.Skipped())
	}
	if _, err := k.Generate(ndn.MustName("/a"), "dsa", time.Now(), time.Now()); !errors.Is(err, ErrKeyType) || !strings.Contains(err.Error(), "ecc, rsa, ed25519") {
		t.Error(err)
	}
	if _, err := OpenKeychain(filepath.Join(k.Dir(), "none"), false); !errors.Is(err, ErrKeychain) {
		t.Error(err)
	}
	if _, err := OpenKeychain("mem://", false); !errors.Is(err, ErrKeychain) {
		t.Error(err)
	}
}
