package certfile

import (
	"bytes"
	"crypto/elliptic"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/security"
	sig "github.com/named-data/ndnd/std/security/signer"

	"ndnpop/ndn"
)

var from, to = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2040, 1, 2, 3, 4, 5, 0, time.UTC)

// files returns a certificate and its key as ndnd writes them, bare.
func files(t testing.TB, identity string) (cert, secret []byte) {
	t.Helper()
	n, err := enc.NameFromStr(identity)
	if err != nil {
		t.Fatal(err)
	}
	k, err := sig.KeygenEcc(security.MakeKeyName(n), elliptic.P256())
	if err != nil {
		t.Fatal(err)
	}
	w, err := security.SelfSign(security.SignCertArgs{Signer: k, NotBefore: from, NotAfter: to})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sig.MarshalSecret(k)
	if err != nil {
		t.Fatal(err)
	}
	return w.Join(), s.Join()
}

func pemOf(t *testing.T, wire []byte) []byte {
	t.Helper()
	b, err := security.PemEncode(wire)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ndnsec folds base64 at 64 characters.
func folded(wire []byte) []byte {
	s := base64.StdEncoding.EncodeToString(wire)
	var b bytes.Buffer
	for ; len(s) > 64; s = s[64:] {
		b.WriteString(s[:64] + "\n")
	}
	b.WriteString(s + "\n")
	return b.Bytes()
}

func join(bs ...[]byte) []byte { return bytes.Join(bs, nil) }

// TestForms: each form, alone and several in one file.
func TestForms(t *testing.T) {
	a, secret := files(t, "/alice")
	b, _ := files(t, "/bob/of some/%20town")
	for what, file := range map[string][]byte{
		"bare": join(a, b, secret), "PEM": join([]byte("a comment\n"), pemOf(t, a), pemOf(t, b), pemOf(t, secret)),
		"base64": join(folded(a), folded(b), folded(secret)),
	} {
		certs, secrets, err := Decode(file)
		if err != nil || len(certs) != 2 || len(secrets) != 1 || !bytes.Equal(secrets[0], secret) ||
			!bytes.Equal(certs[0].Data.Wire, a) || !bytes.Equal(certs[1].Data.Wire, b) {
			t.Errorf("%s: %d certificates, %d keys, %v", what, len(certs), len(secrets), err)
			continue
		}
		c := certs[0]
		if c.Identity.String() != "/alice" || !c.Key.HasPrefix(ndn.MustName("/alice/KEY")) || c.Key.Len() != 3 ||
			!c.NotBefore.Equal(from) || !c.NotAfter.Equal(to) {
			t.Errorf("%s: %s, key %s, %v to %v", what, c.Identity, c.Key, c.NotBefore, c.NotAfter)
		}
		if l := Locator(&c.Data); !l.Equal(c.Key) {
			t.Errorf("%s: signed by %s", what, l)
		}
	}
}

func TestValidAt(t *testing.T) {
	w, _ := files(t, "/alice")
	c, err := Parse(w)
	if err != nil {
		t.Fatal(err)
	}
	for at, says := range map[time.Time]string{
		from: "", to: "", from.Add(-time.Second): "not valid before 2020-01-02 03:04:05", to.Add(time.Second): "expired on 2040-01-02",
	} {
		if err := c.ValidAt(at); says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%v: %v", at, err)
		}
	}
	var never Certificate
	if never.ValidAt(from) == nil {
		t.Error("without a period it is valid")
	}
}

func TestRefused(t *testing.T) {
	w, secret := files(t, "/alice")
	plain, err := ndn.AppendData(nil, &ndn.DataFields{Name: ndn.MustName("/a/KEY/b/c/d"), Content: []byte("x")}, ndn.DigestSigner{})
	if err != nil {
		t.Fatal(err)
	}
	short, err := ndn.AppendData(nil, &ndn.DataFields{Name: ndn.MustName("/a"), ContentType: ndn.ContentKey}, ndn.DigestSigner{})
	if err != nil {
		t.Fatal(err)
	}
	for what, file := range map[string][]byte{
		"nothing": nil, "spaces": []byte(" \n"), "text": []byte("no certificate"), "half": w[:len(w)/2], "data": plain, "name": short,
		"a good and a bad one": join(w, plain), "half a base64": folded(w)[:77], "other PEM": []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
		"too much": bytes.Repeat(secret, 2+(4<<20)/len(secret)),
	} {
		if c, s, err := Decode(file); err == nil || !errors.Is(err, ErrFormat) && !errors.Is(err, ErrCertificate) {
			t.Errorf("%s: %d certificates, %d keys, %v", what, len(c), len(s), err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	w, s := files(f, "/alice")
	f.Add(w)
	f.Add(folded(s))
	f.Fuzz(func(t *testing.T, b []byte) {
		certs, _, err := Decode(b)
		if err != nil {
			return
		}
		for _, c := range certs {
			if c.Key.Len() < 2 || !c.Data.Name.HasPrefix(c.Key) || !c.Key.HasPrefix(c.Identity) {
				t.Errorf("%s: key %s, identity %s", c.Data.Name, c.Key, c.Identity)
			}
		}
	})
}
