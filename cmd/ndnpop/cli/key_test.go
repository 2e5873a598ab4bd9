package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/producer/sign"
)

// key runs a key command that must succeed and returns its output.
func key(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	j := begin(t, strings.NewReader(stdin), append([]string{"key", "--keychain", dir}, args...)...)
	if code := j.wait(); code != exitDone {
		t.Fatalf("key %v: code %d, %s", args, code, j.err.String())
	}
	return j.out.String()
}

func keyFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKeyCommands(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	for i, kind := range sign.KeyKinds() {
		name := strings.TrimSpace(key(t, dir, "", "generate", "/id/"+kind, "--type", kind, "--days", "30"))
		if !strings.HasPrefix(name, "/id/"+kind+"/KEY/") {
			t.Errorf("generate says %q", name)
		}
		var list []keyJSON
		if err := json.Unmarshal([]byte(key(t, dir, "", "list", "--json")), &list); err != nil || len(list) != i+1 {
			t.Fatalf("%d keys, %v", len(list), err)
		}
	}
	table := key(t, dir, "", "list")
	if strings.Count(table, "self-signed, 29 days left") != 3 || !strings.HasPrefix(table, "KEY") {
		t.Errorf("list says\n%s", table)
	}
	secret, cert := key(t, dir, "", "export", "/id/ecc"), key(t, dir, "", "export", "/id/ecc", "--cert")
	other := filepath.Join(t.TempDir(), "other")
	if out := key(t, other, secret+cert, "import"); !strings.Contains(out, "key /id/ecc/KEY/") || !strings.Contains(out, "certificate /id/ecc/KEY/") {
		t.Errorf("import says %q", out)
	}
	if out := key(t, other, "", "import", keyFile(t, cert)); !strings.HasPrefix(out, "certificate ") {
		t.Errorf("import of a file says %q", out)
	}
	if again := key(t, other, "", "export", "/id/ecc"); again != secret {
		t.Error("another key came out")
	}
	signed := key(t, dir, cert, "sign", "/id/rsa", "--issuer", "boss")
	key(t, other, signed, "import")
	if out := key(t, other, "", "list"); !strings.Contains(out, "by /id/rsa/KEY/") {
		t.Errorf("list says\n%s", out)
	}
}

func TestKeyFails(t *testing.T) {
	dir := t.TempDir()
	key(t, dir, "", "generate", "/a")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"generate"}, exitUsage, "see ndnpop key generate --help"},
		{[]string{"generate", "/x/../y"}, exitUsage, "not an NDN name"},
		{[]string{"generate", "/x", "--type=dsa"}, exitUsage, "choose one of ecc, rsa, ed25519"},
		{[]string{"generate", "/x", "--days=0"}, exitUsage, "--days 0"},
		{[]string{"export", "/b"}, exitFailed, "/a/KEY/"},
		{[]string{"export", "/b", "--keychain=" + dir + "/none"}, exitFailed, "ndnpop key generate"},
		{[]string{"import", dir + "/none"}, exitFailed, "no such file"},
		{[]string{"import", "key_test.go"}, exitFailed, "key_test.go: neither a certificate nor a key"},
		{[]string{"import"}, exitFailed, "standard input: neither a certificate nor a key"},
		{[]string{"sign", "/a"}, exitFailed, "neither a certificate nor a key"},
	} {
		args := append([]string{"key", "--keychain", dir}, c.args...)
		j := begin(t, strings.NewReader("junk"), args...)
		if code := j.wait(); code != c.code || !strings.Contains(j.err.String(), c.says) {
			t.Errorf("%v: code %d, %s", c.args, code, j.err.String())
		}
	}
}

// signedPut publishes with the key of an identity and returns what it is.
func signedPut(t *testing.T, transport, name, spec, dir string, size int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	content := randomFile(t, path, size)
	j := begin(t, nil, "put", name, path, transport, "--sign", spec, "--keychain", dir)
	j.says(&j.err, "fetch it with")
	return content
}

// TestVerifyTrusted: content signed by a trusted key, or by one that chains to
// it through certificates that the producer serves.
func TestVerifyTrusted(t *testing.T) {
	transport := forwarder(t)
	for _, kind := range sign.KeyKinds() {
		dir := t.TempDir()
		key(t, dir, "", "generate", "/cdn/"+kind, "--type", kind)
		want := signedPut(t, transport, "/cdn/"+kind+"/f", "key:/cdn/"+kind, dir, 300_000)
		anchor := keyFile(t, key(t, dir, "", "export", "/cdn/"+kind, "--cert"))
		out, msg, code := cat(t, "/cdn/"+kind+"/f", transport, "--verify", anchor, "-v")
		if code != exitDone || out != string(want) || !strings.Contains(msg, ", verified") {
			t.Errorf("%s: %d bytes, code %d, %s", kind, len(out), code, msg)
		}
		// Certified by a root that only the consumer has.
		ca := t.TempDir()
		key(t, ca, "", "generate", "/cdn")
		root := keyFile(t, key(t, ca, "", "export", "/cdn", "--cert"))
		key(t, dir, key(t, ca, key(t, dir, "", "export", "/cdn/"+kind, "--cert"), "sign", "/cdn"), "import")
		for name, code := range map[string]int{"/cdn/" + kind + "/g": exitDone, "/elsewhere/" + kind: exitVerify} {
			want := signedPut(t, transport, name, "key:/cdn/"+kind, dir, 100_000)
			out, msg, got := cat(t, name, transport, "--verify", root)
			if got != code || code == exitDone && out != string(want) || code != exitDone && (out != "" || !strings.Contains(msg, "may not sign")) {
				t.Errorf("%s: %d bytes, code %d, %s", name, len(out), got, msg)
			}
		}
	}
	shared := keyFile(t, "our secret")
	want := signedPut(t, transport, "/shared", "hmac:"+shared, "", 100_000)
	if out, msg, code := cat(t, "/shared", transport, "--verify", "hmac:"+shared); code != exitDone || out != string(want) {
		t.Errorf("hmac: %d bytes, code %d, %s", len(out), code, msg)
	}
}

// TestVerifyRefuses: wrong, expired, not yet valid and missing signatures end
// with 4, and nothing is under the final name.
func TestVerifyRefuses(t *testing.T) {
	transport := forwarder(t)
	dir := t.TempDir()
	chain, err := sign.OpenKeychain(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	anchors := map[string]string{}
	for id, days := range map[string][2]int{"/good": {-1, 1}, "/old": {-2, -1}, "/young": {1, 2}} {
		e, err := chain.Generate(ndn.MustName(id), "ecc", now.AddDate(0, 0, days[0]), now.AddDate(0, 0, days[1]))
		if err != nil {
			t.Fatal(err)
		}
		pem, err := e.ExportCert()
		if err != nil {
			t.Fatal(err)
		}
		anchors[id] = keyFile(t, string(pem))
		signedPut(t, transport, id, "key:"+id, dir, 30_000)
	}
	signedPut(t, transport, "/digest", "digest", "", 30_000)
	signedPut(t, transport, "/null", "null", "", 30_000)
	secret := keyFile(t, "our secret")
	signedPut(t, transport, "/shared", "hmac:"+secret, "", 30_000)
	for _, c := range []struct{ name, verify, says string }{
		{"/digest", anchors["/good"], "DigestSha256"},
		{"/null", anchors["/good"], "no signature"},
		{"/shared", anchors["/good"], "hmac:FILE"},
		{"/good", anchors["/old"], "self-signed and not among"},
		{"/old", anchors["/old"], "expired on"},
		{"/young", anchors["/young"], "not valid before"},
		{"/shared", "hmac:" + keyFile(t, "another"), "was not made with the shared key"},
		{"/good", "hmac:" + secret, "--verify FILE"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		_, msg, code := cat(t, c.name, transport, "--verify", c.verify, "-o", out)
		if code != exitVerify || !strings.Contains(msg, c.says) || !strings.Contains(msg, c.name+"/32=metadata/") {
			t.Errorf("%s: code %d, %s", c.name, code, msg)
		}
		if left, _ := filepath.Glob(out + "*"); len(left) != 0 {
			t.Errorf("%s: left behind %v", c.name, left)
		}
	}
	// What was begun with another check is not finished with this one.
	signedPut(t, transport, "/good/large", "key:/good", dir, 3_000_000)
	out := filepath.Join(t.TempDir(), "out")
	c := begin(t, nil, "cat", "/good/large", transport, "-o", out, "--max-rate", "20mbit")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if fi, err := os.Stat(out + ".part"); err == nil && fi.Size() > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing arrives: %s", c.err.String())
		}
	}
	if code := c.end(errors.New("interrupt signal received")); code != exitInterrupted {
		t.Fatalf("code %d, %s", code, c.err.String())
	}
	if _, msg, code := cat(t, "/good/large", transport, "--verify", anchors["/good"], "-o", out, "--resume"); code != exitFailed || !strings.Contains(msg, "verified with") {
		t.Errorf("code %d, %s", code, msg)
	}
}

func TestVerifyUsage(t *testing.T) {
	dir := t.TempDir()
	key(t, dir, "", "generate", "/a")
	secret, junk, empty := keyFile(t, key(t, dir, "", "export", "/a")), keyFile(t, "junk"), keyFile(t, "")
	cert := keyFile(t, key(t, dir, "", "export", "/a", "--cert"))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--verify="}, "want none, digest, a FILE"},
		{[]string{"--verify=everything"}, "want none, digest, a FILE"},
		{[]string{"--verify=" + junk}, "holds no certificates"},
		{[]string{"--verify=" + secret}, "ndnpop key export --cert"},
		{[]string{"--verify=hmac:" + empty}, "is empty"},
		{[]string{"--verify=" + cert, "--trust-schema=" + junk}, "not a usable trust schema"},
		{[]string{"--trust-schema=" + junk}, "needs --verify FILE"},
	} {
		if _, msg, code := cat(t, append([]string{"/x"}, c.args...)...); code != exitUsage || !strings.Contains(msg, c.says) {
			t.Errorf("%v: code %d, %s", c.args, code, msg)
		}
	}
}

// TestVerifyManifest: with any --manifest, a trusted consumer gets the same
// bytes; what only the manifest signs is no less verified.
func TestVerifyManifest(t *testing.T) {
	transport := forwarder(t)
	dir := t.TempDir()
	key(t, dir, "", "generate", "/m", "--type", "ed25519")
	cert := keyFile(t, key(t, dir, "", "export", "/m", "--cert"))
	other := t.TempDir()
	key(t, other, "", "generate", "/m", "--type", "ed25519")
	foreign := keyFile(t, key(t, other, "", "export", "/m", "--cert"))
	for _, how := range manifestChoices {
		name := "/m/" + how
		file := filepath.Join(t.TempDir(), "in")
		want := randomFile(t, file, 2_100_000)
		put := begin(t, nil, "put", name, file, transport, "--sign=key:/m", "--keychain="+dir, "--manifest="+how)
		put.says(&put.err, "fetch it with")
		for _, args := range [][]string{{"--verify", cert}, {"--verify", cert, "--range", "1900000-"}, {"--verify", "digest"}} {
			got, msg, code := cat(t, append([]string{name, transport}, args...)...)
			w := string(want)
			if len(args) > 2 {
				w = w[1900000:]
			}
			if code != exitDone || got != w {
				t.Errorf("--manifest %s, %v: code %d, %d bytes, %s", how, args, code, len(got), msg)
			}
		}
		if _, msg, code := cat(t, name, transport, "--verify", foreign); code != exitVerify {
			t.Errorf("--manifest %s, a foreign key: code %d, %s", how, code, msg)
		}
	}
}

// TestInvalidCertificateIsTold: who signs with a certificate that nobody will
// believe is told so.
func TestInvalidCertificateIsTold(t *testing.T) {
	transport, dir, now := forwarder(t), t.TempDir(), time.Now()
	k, err := sign.OpenKeychain(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	for id, from := range map[string]time.Time{"/old": now.Add(-48 * time.Hour), "/early": now.Add(24 * time.Hour), "/good": now.Add(-time.Hour)} {
		if _, err := k.Generate(ndn.MustName(id), "ecc", from, from.Add(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	good := key(t, dir, "", "export", "/good", "--cert")
	for id, says := range map[string]string{"/old": " expired on ", "/early": " is not valid before ", "/good": ""} {
		path := filepath.Join(t.TempDir(), "f")
		randomFile(t, path, 10)
		put := begin(t, nil, "put", id+"/f", path, transport, "--sign", "key:"+id, "--keychain", dir)
		put.says(&put.err, "fetch it with")
		certify := begin(t, strings.NewReader(good), "key", "--keychain", dir, "sign", id)
		certify.wait()
		for _, msg := range []string{put.err.String(), certify.err.String()} {
			if warned := strings.Contains(msg, "warning: "); warned != (says != "") || !strings.Contains(msg, says) {
				t.Errorf("%s: it says %q", id, msg)
			}
		}
	}
}
