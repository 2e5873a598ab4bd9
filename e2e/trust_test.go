package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ndnpop/internal/testbin"
)

// TestTrustAnchors: commands signed by keys of `ndnpop key` and `ndnd sec` at a
// forwarder that knows the root of their certificates only, and fetches the
// others from the forwarder where they are served.
func TestTrustAnchors(t *testing.T) {
	t.Parallel()
	home := startNode(t, nodeConf{})
	rootDir, dir := t.TempDir(), t.TempDir()
	ourKey(t, rootDir, "", "generate", "/org")
	rootKey, rootCert := filepath.Join(t.TempDir(), "root.key"), filepath.Join(t.TempDir(), "root.cert")
	writeFile(t, rootKey, ourKey(t, rootDir, "", "export", "/org"))
	writeFile(t, rootCert, ourKey(t, rootDir, "", "export", "/org", "--cert"))
	listed := filepath.Join(t.TempDir(), "listed.cert")
	ourKey(t, dir, "", "generate", "/listed", "--type", "rsa")
	writeFile(t, listed, ourKey(t, dir, "", "export", "/listed", "--cert"))

	// certified makes a key below an issuer of a keychain.
	certified := func(identity, issuer, keychain string) {
		ourKey(t, dir, "", "generate", identity)
		ourKey(t, dir, ourKey(t, keychain, ourKey(t, dir, "", "export", identity, "--cert"), "sign", issuer), "import")
	}
	certified("/org/ops", "/org", rootDir)
	certified("/org/ops/alice", "/org/ops", dir)
	// These have their keys only, and nobody their certificates.
	bare := t.TempDir()
	for _, who := range []string{"/org/ops/away", "/org/ops/mute"} {
		certified(who, "/org/ops", dir)
		ourKey(t, bare, ourKey(t, dir, "", "export", who), "import")
	}
	late := ndndSec(t, "", "keygen", "/org/late", "ecc", "secp256r1")
	ourKey(t, dir, late+ndndSec(t, late, "sign-cert", rootKey, "--start", "20200101000000", "--end", "20210101000000"), "import")
	ourKey(t, dir, "", "generate", "/org/alone")

	file := randomFile(t, 1000, 60)
	for _, who := range []string{"/org/ops/alice", "/org/late", "/org/alone"} {
		serve(t, home.unix(), who+"/content", file, "--sign", "key:"+who, "--keychain", dir)
	}

	n := startNode(t, nodeConf{
		faces: []faceConf{{"home", home.udpURI()}, {"mute", deaf(t)}},
		routes: []routeConf{
			{"/org/ops/KEY", "home", 0}, {"/org/ops/alice", "home", 0}, {"/org/late", "home", 0}, {"/org/alone", "home", 0}, {"/org/ops/mute", "mute", 0},
		},
		extra: fmt.Sprintf("[[mgmt.authorize]]\nmodules = [\"faces\"]\ntrust_anchors = [%q]\n[[mgmt.authorize]]\nmodules = [\"faces\"]\ncertificates = [%q]\n", rootCert, listed),
	})
	port := 20000
	for _, tc := range []struct {
		key, keychain string
		code          int
		want          string
	}{
		{"/org", rootDir, 0, ""},
		{"/listed", dir, 0, ""},
		{"/org/ops", dir, 0, ""},
		{"/org/ops/alice", dir, 0, ""},
		{"/org/late", dir, 1, "expired on 2021-01-01"},
		{"/org/alone", dir, 1, "self-signed"},
		{"/org/ops/away", bare, 1, "there is no route to it"},
		{"/org/ops/mute", bare, 1, "nobody answers"},
		{"", "", 1, "the key is not one that is allowed"},
	} {
		port++
		args := []string{"ctl", "face", "create", fmt.Sprintf("udp4://127.0.0.1:%d", port)}
		if tc.key != "" {
			args = append(args, "--sign", "key:"+tc.key, "--keychain", tc.keychain)
		}
		p, code := run(t, n.unix(), args...)
		if code != tc.code || !p.Stderr.Contains(tc.want) {
			t.Errorf("%s: ended with %d: %s%s", tc.key, code, p.Stdout, p.Stderr)
		}
		if code != 0 && (!p.Stderr.Contains("403") || !n.Stderr.Contains(tc.want)) {
			t.Errorf("%s: no 403, or the log does not say why: %s", tc.key, p.Stderr)
		}
	}
	if v := n.metric(t, `ndnpop_mgmt_commands_total{result="refused"}`); v != 5 {
		t.Errorf("%v commands refused", v)
	}
	if b, r := n.metric(t, `ndnpop_mgmt_keys_total{result="believed"}`), n.metric(t, `ndnpop_mgmt_keys_total{result="refused"}`); b != 2 || r != 4 {
		t.Errorf("%v keys believed, %v refused", b, r)
	}
	if !strings.Contains(n.Stderr.String(), `"message":"command refused"`) {
		t.Error("the log does not tell of refused commands")
	}

	// While the certificates are out of reach, what is known goes on.
	home.Kill()
	if p, code := run(t, n.unix(), "ctl", "face", "create", "udp4://127.0.0.1:20100", "--sign", "key:/org/ops/alice", "--keychain", dir); code != 0 {
		t.Errorf("ended with %d: %s", code, p.Stderr)
	}
}

// TestCertificatesAtHand: nobody serves the certificates of who commands; the
// forwarder gets them from the command's face. So put can register a prefix
// with the key whose certificates it will serve, here and from another host.
func TestCertificatesAtHand(t *testing.T) {
	t.Parallel()
	rootDir, dir := t.TempDir(), t.TempDir()
	ourKey(t, rootDir, "", "generate", "/org")
	root := filepath.Join(t.TempDir(), "root.cert")
	writeFile(t, root, ourKey(t, rootDir, "", "export", "/org", "--cert"))
	ourKey(t, dir, "", "generate", "/org/alice")
	ourKey(t, dir, ourKey(t, rootDir, ourKey(t, dir, "", "export", "/org/alice", "--cert"), "sign", "/org"), "import")
	n := startNode(t, nodeConf{extra: fmt.Sprintf("[mgmt]\nlocalhop = true\n[[mgmt.authorize]]\nfaces = \"any\"\ntrust_anchors = [%q]\n", root)})
	by := []string{"--sign", "key:/org/alice", "--keychain", dir}

	if p, code := run(t, n.unix(), append([]string{"ctl", "face", "create", deaf(t)}, by...)...); code != 0 {
		t.Errorf("ctl ended with %d: %s", code, p.Stderr)
	}
	file := randomFile(t, 100_000, 61)
	p := serve(t, n.unix(), "/org/alice/here", file, by...)
	for _, transport := range []string{n.unix(), n.tcpURI()} {
		out, s := fetch(t, transport, "/org/alice/here", "--verify", root)
		if sameFile(t, out, file); !s.Verified {
			t.Errorf("%+v", s)
		}
	}
	p.Stop(t, patience)
	restarted := startNode(t, n.conf)
	serve(t, restarted.udpURI(), "/org/alice/there", file, by...)
	out, _ := fetch(t, restarted.unix(), "/org/alice/there", "--verify", root)
	sameFile(t, out, file)
	pong := ndnpop(t, restarted.tcpURI(), append([]string{"pingserver", "/org/alice"}, by...)...)
	testbin.Eventually(t, patience, "pingserver to serve", func() bool { return printed(pong) }, pong)
	if p, code := run(t, restarted.unix(), "ping", "/org/alice", "-c", "1"); code != 0 {
		t.Errorf("ping ended with %d: %s", code, p.Stderr)
	}
	if p, code := run(t, restarted.unix(), "pingserver", "/x", "--sign", "hmac:"+root); code != 2 || !p.Stderr.Contains("digest or key:NAME") {
		t.Errorf("pingserver with an hmac ended with %d: %s", code, p.Stderr)
	}
	if p, code := run(t, restarted.unix(), "put", "/x", file, "-q"); code != 1 || !p.Stderr.Contains("403") {
		t.Errorf("put without a key ended with %d: %s", code, p.Stderr)
	}
}
