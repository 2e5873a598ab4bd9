package e2e

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"ndnpop/internal/testbin"
	"ndnpop/ndn"
	"ndnpop/ndn/certfile"
)

// tool runs a program of ours or ndnd's with an input and returns what it
// printed. It has to succeed.
func tool(t *testing.T, path, stdin string, args ...string) string {
	t.Helper()
	p, code := testbin.Run(t, testbin.Cmd{Path: path, Args: args, Env: appEnv(t, "unix:///nowhere"), Stdin: strings.NewReader(stdin)}, patience)
	if code != 0 {
		t.Fatalf("%s %v ended with %d: %s", filepath.Base(path), args, code, p.Stderr)
	}
	return p.Stdout.String()
}

func ourKey(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	return tool(t, testbin.Ndnpop(t), stdin, append([]string{"key", "--keychain", dir}, args...)...)
}

func ndndSec(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	return tool(t, testbin.Ndnd(t), stdin, append([]string{"sec"}, args...)...)
}

// sameSecret compares exported keys. ndnd signs what it exports, anew each
// time.
func sameSecret(t *testing.T, a, b string) bool {
	t.Helper()
	var content [2][]byte
	for i, file := range []string{a, b} {
		_, secrets, err := certfile.Decode([]byte(file))
		if err != nil || len(secrets) != 1 {
			t.Fatalf("%d keys, %v", len(secrets), err)
		}
		var d ndn.Data
		if err := d.Parse(secrets[0]); err != nil {
			t.Fatal(err)
		}
		content[i] = append(d.Name.Clone(), d.Content...)
	}
	return bytes.Equal(content[0], content[1])
}

// TestKeysOfNdnd: keys and certificates go between our keychain and ndnd's in
// files, and both read one directory.
func TestKeysOfNdnd(t *testing.T) {
	t.Parallel()
	kinds := map[string][]string{"ecc": {"ecc", "secp256r1"}, "rsa": {"rsa", "2048"}, "ed25519": {"ed25519"}}
	for kind, args := range kinds {
		t.Run(kind, func(t *testing.T) {
			// From ndnd to us: a key, a certificate of it, and back.
			secret := ndndSec(t, "", append([]string{"keygen", "/theirs/" + kind}, args...)...)
			file := filepath.Join(t.TempDir(), "key")
			writeFile(t, file, secret)
			cert := ndndSec(t, secret, "sign-cert", file)
			dir := filepath.Join(t.TempDir(), "keys")
			if out := ourKey(t, dir, secret+cert, "import"); !strings.Contains(out, "key /theirs/") || !strings.Contains(out, "certificate /theirs/") {
				t.Errorf("import says %s", out)
			}
			if out := ourKey(t, dir, "", "list"); !strings.Contains(out, kind) || !strings.Contains(out, "self-signed, 36") {
				t.Errorf("list says %s", out)
			}
			if got := ourKey(t, dir, "", "export", "/theirs/"+kind); got != secret {
				t.Errorf("the key came out as\n%s, and went in as\n%s", got, secret)
			}
			if got := ourKey(t, dir, "", "export", "/theirs/"+kind, "--cert"); got != cert {
				t.Errorf("the certificate came out as\n%s, and went in as\n%s", got, cert)
			}
			// One directory for both.
			name := strings.TrimSpace(ourKey(t, dir, "", "generate", "/ours/"+kind, "--type", kind))
			list := ndndSec(t, "", "key-list", "dir://"+dir)
			if !strings.Contains(list, "==> "+name) || !strings.Contains(list, "/theirs/"+kind) {
				t.Errorf("ndnd lists %s", list)
			}
			if got, want := ndndSec(t, "", "key-export", "dir://"+dir, "/ours/"+kind), ourKey(t, dir, "", "export", "/ours/"+kind); !sameSecret(t, got, want) {
				t.Error("ndnd exports another key than we do")
			}
			// From us to another keychain of ndnd, which we read again.
			other := filepath.Join(t.TempDir(), "other")
			ndndSec(t, ourKey(t, dir, "", "export", "/ours/"+kind), "key-import", "dir://"+other)
			ndndSec(t, ourKey(t, dir, "", "export", "/ours/"+kind, "--cert"), "key-import", "dir://"+other)
			if out := ourKey(t, other, "", "list"); !strings.Contains(out, name) || !strings.Contains(out, "self-signed, 364 days left") {
				t.Errorf("list says %s", out)
			}
			// ndnd certifies our key, and we theirs.
			by := ndndSec(t, ourKey(t, dir, "", "export", "/ours/"+kind, "--cert"), "sign-cert", file, "--issuer", "them")
			ourKey(t, dir, by, "import")
			if out := ourKey(t, dir, "", "list"); !strings.Contains(out, "by /theirs/") {
				t.Errorf("list says %s", out)
			}
			by = ourKey(t, dir, cert, "sign", "/ours/"+kind)
			ndndSec(t, by, "key-import", "dir://"+other)
		})
	}
}

// TestTrustAcrossForwarders: a tree signed by a key that ndnd's tool
// certified, fetched through two forwarders by who knows only the root; and a
// forger who says the same name.
func TestTrustAcrossForwarders(t *testing.T) {
	t.Parallel()
	origin := startNode(t, nodeConf{})
	edge := startNode(t, nodeConf{
		faces:  []faceConf{{"origin", origin.udpURI()}},
		routes: []routeConf{{"/cdn", "origin", 0}},
	})
	root := ndndSec(t, "", "keygen", "/cdn", "ed25519")
	rootKey, rootCert := filepath.Join(t.TempDir(), "root.key"), filepath.Join(t.TempDir(), "root.cert")
	writeFile(t, rootKey, root)
	writeFile(t, rootCert, ndndSec(t, root, "sign-cert", rootKey))
	dir := t.TempDir()
	ourKey(t, dir, "", "generate", "/cdn/origin")
	ourKey(t, dir, ndndSec(t, ourKey(t, dir, "", "export", "/cdn/origin", "--cert"), "sign-cert", rootKey), "import")

	file := randomFile(t, 5*mb, 40)
	good := serve(t, origin.unix(), "/cdn/origin/site", filepath.Dir(file), "--sign", "key:/cdn/origin", "--keychain", dir)
	out, s := fetch(t, edge.unix(), "/cdn/origin/site/file", "--verify", rootCert)
	sameFile(t, out, file)
	if !s.Verified {
		t.Errorf("%+v", s)
	}
	tree := filepath.Join(t.TempDir(), "tree")
	if p, code := run(t, edge.unix(), "cat", "/cdn/origin/site", "-o", tree+"/", "--verify", rootCert); code != 0 {
		t.Fatalf("cat ended with %d: %s", code, p.Stderr)
	}
	sameFile(t, filepath.Join(tree, "file"), file)
	good.Stop(t, patience)

	forged := t.TempDir()
	ourKey(t, forged, "", "generate", "/cdn/origin")
	serve(t, origin.unix(), "/cdn/origin/site", filepath.Dir(randomFile(t, mb, 41)), "--sign", "key:/cdn/origin", "--keychain", forged, "--version", "18000000000000000000")
	to := filepath.Join(t.TempDir(), "out")
	testbin.Eventually(t, patience, "the forged version", func() bool {
		p, code := run(t, edge.unix(), "cat", "/cdn/origin/site/file", "-o", to, "--verify", rootCert)
		if code != 0 && (code != 4 || !p.Stderr.Contains("verification failed: /cdn/origin/site/file/") || !p.Stderr.Contains("/cdn/origin/KEY/")) {
			t.Fatalf("cat ended with %d: %s", code, p.Stderr)
		}
		return code == 4
	})
	if rest, _ := filepath.Glob(to + ".*"); len(rest) != 0 {
		t.Errorf("left behind: %v", rest)
	}
	if b, _ := filepath.Glob(to); len(b) > 0 { // of a run that still got the true one
		sameFile(t, to, file)
	}
}

// TestSecretsStayPrivate: what cat and put say never holds a key.
func TestSecretsStayPrivate(t *testing.T) {
	n := startNode(t, nodeConf{})
	secret := filepath.Join(t.TempDir(), "secret")
	writeFile(t, secret, "correct horse battery staple")
	p := serve(t, n.unix(), "/private", randomFile(t, 1000, 42), "-S", "hmac:"+secret, "-v")
	c, code := run(t, n.unix(), "cat", "/private", "--verify", "hmac:"+secret, "-v")
	if code != 0 {
		t.Fatal(c.Stderr)
	}
	for _, out := range [][]byte{p.Stdout.Bytes(), p.Stderr.Bytes(), c.Stderr.Bytes()} {
		if bytes.Contains(out, []byte("battery")) {
			t.Errorf("it says %s", out)
		}
	}
}
