package cli

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func randomFile(t *testing.T, path string, size int) []byte {
	t.Helper()
	b := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = rng.Read(b)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return b
}

func fetch(t *testing.T, name, transport string) (content string, code int) {
	t.Helper()
	j := begin(t, nil, "cat", name, transport)
	code = j.wait()
	return j.out.String(), code
}

// TestPutFile publishes a file, which is fetched, changes, and is fetched
// again, and stops as a signal says.
func TestPutFile(t *testing.T) {
	transport := forwarder(t)
	path := filepath.Join(t.TempDir(), "f")
	want := randomFile(t, path, 100_000)
	j := begin(t, nil, "put", "/cdn/f", path, "-p", transport)
	j.says(&j.err, "fetch it with: ndnpop cat '/cdn/f'")
	if got, code := fetch(t, "/cdn/f", transport); got != string(want) || code != exitDone {
		t.Errorf("fetched %d bytes, code %d", len(got), code)
	}
	versioned := strings.TrimSpace(j.out.String())
	if !strings.HasPrefix(versioned, "/cdn/f/v=") {
		t.Errorf("standard output says %q", versioned)
	}
	if got, _ := fetch(t, versioned, transport); got != string(want) {
		t.Errorf("fetched %d bytes of %s", len(got), versioned)
	}
	if _, code := fetch(t, "/cdn/f/other", transport); code != exitNoContent {
		t.Errorf("what does not exist is fetched with code %d", code)
	}
	next := randomFile(t, path, 50_000)
	// The old version is what the forwarder may answer until the metadata is
	// stale.
	for limit := time.Now().Add(10 * time.Second); ; {
		got, code := fetch(t, "/cdn/f", transport)
		if got == string(next) && code == exitDone {
			break
		}
		if got != string(want) || code != exitDone || time.Now().After(limit) {
			t.Fatalf("after the change fetched %d bytes, code %d", len(got), code)
		}
	}
	if code := j.end(errors.New("interrupt signal received")); code != exitInterrupted {
		t.Errorf("an interrupt ends put with %d", code)
	}
	j.says(&j.err, "served ")
}

// TestPutNested: whoever publishes a prefix does not stand in the way of who
// publishes a longer one, whichever came first.
func TestPutNested(t *testing.T) {
	transport := forwarder(t)
	want := map[string][]byte{}
	for _, name := range []string{"/n/a", "/n", "/n/a/b/c", "/n/a/b"} {
		path := filepath.Join(t.TempDir(), "f")
		want[name] = randomFile(t, path, 20_000+len(name))
		j := begin(t, nil, "put", name, path, transport)
		j.says(&j.err, "fetch it with")
	}
	for name, content := range want {
		if got, code := fetch(t, name, transport); got != string(content) || code != exitDone {
			t.Errorf("%s: fetched %d bytes, code %d", name, len(got), code)
		}
	}
}

// TestPutStdin serves standard input while it comes.
func TestPutStdin(t *testing.T) {
	transport := forwarder(t)
	r, w := io.Pipe()
	j := begin(t, r, "put", "/cdn/in", transport, "--version", "7")
	j.says(&j.err, "publishing standard input as /cdn/in/v=7")
	c := begin(t, nil, "cat", "/cdn/in", transport)
	first := strings.Repeat("a", 8000)
	_, _ = io.WriteString(w, first+"b")
	c.says(&c.out, first)
	_, _ = io.WriteString(w, "c")
	w.Close()
	if code := c.wait(); code != exitDone || c.out.String() != first+"bc" {
		t.Errorf("fetched %d bytes, code %d", len(c.out.String()), code)
	}
	if code := j.end(errors.New("terminated signal received")); code != exitDone {
		t.Errorf("a termination ends put with %d", code)
	}
}

// TestPutInputFails: put does not serve half of what it should.
func TestPutInputFails(t *testing.T) {
	transport := forwarder(t)
	r, w := io.Pipe()
	j := begin(t, r, "put", "/cdn/in", transport)
	w.CloseWithError(errors.New("broken"))
	if code := j.wait(); code != exitFailed || !strings.Contains(j.err.String(), "reading standard input: broken") {
		t.Errorf("code %d: %s", code, j.err.String())
	}
}

// TestPutTree publishes a directory.
func TestPutTree(t *testing.T) {
	transport := forwarder(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := randomFile(t, filepath.Join(dir, "sub dir", "100% ünï"), 20_000)
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "out")); err != nil {
		t.Skip(err)
	}
	j := begin(t, nil, "put", "/cdn/tree", dir, transport)
	j.says(&j.err, "fetch it with")
	if got, code := fetch(t, "/cdn/tree/sub%20dir/100%25%20%C3%BCn%C3%AF", transport); got != string(want) {
		t.Errorf("fetched %d bytes, code %d", len(got), code)
	}
	if got, _ := fetch(t, "/cdn/tree/32=ls", transport); got != "sub dir/\x00" {
		t.Errorf("the listing is %q", got)
	}
	j.says(&j.err, "not published: "+filepath.Join(dir, "out")+": it is a link")
	if _, code := fetch(t, "/cdn/tree/none", transport); code != exitNoContent {
		t.Errorf("what does not exist is fetched with code %d", code)
	}
}

// TestPutSigned serves with a shared key, which cat's digest check refuses
// and no check accepts.
func TestPutSigned(t *testing.T) {
	transport := forwarder(t)
	dir := t.TempDir()
	key, path := filepath.Join(dir, "key"), filepath.Join(dir, "f")
	randomFile(t, key, 32)
	want := randomFile(t, path, 30_000)
	j := begin(t, nil, "put", "/cdn/f", path, "-S", "hmac:"+key, transport)
	j.says(&j.err, "fetch it with")
	c := begin(t, nil, "cat", "/cdn/f", "--verify", "none", transport)
	if c.wait(); !bytes.Equal(c.out.b.Bytes(), want) {
		t.Errorf("fetched %d bytes", c.out.b.Len())
	}
}

// TestPutComesBack: put survives a restart of the forwarder.
func TestPutComesBack(t *testing.T) {
	dir, err := os.MkdirTemp("", "ndnpop")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	path := filepath.Join(dir, "f")
	want := randomFile(t, path, 1000)
	first := forwarderAt(t, socket)
	j := begin(t, nil, "put", "/cdn/f", path, first.transport)
	j.says(&j.err, "fetch it with")
	first.end(errors.New("terminated signal received"))
	j.says(&j.err, "trying to come back")
	second := forwarderAt(t, socket)
	j.says(&j.err, "connected to the forwarder again")
	if got, code := fetch(t, "/cdn/f", second.transport); got != string(want) {
		t.Errorf("fetched %d bytes, code %d", len(got), code)
	}
}

// TestPutFails checks messages and exit codes.
func TestPutFails(t *testing.T) {
	dir := t.TempDir()
	f := filepath.Join(dir, "f")
	randomFile(t, f, 10)
	secret := filepath.Join(dir, "secret")
	randomFile(t, secret, 10)
	if err := os.Chmod(secret, 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{}, exitUsage, "usage: ndnpop put NAME [PATH or -], not"},
		{[]string{"/x", f, f}, exitUsage, "usage: ndnpop put NAME [PATH or -], not"},
		{[]string{"/", f}, exitUsage, "at least one"},
		{[]string{"/localhost/nfd", f}, exitUsage, "not below /localhost/nfd"},
		{[]string{"/localhop/nfd/rib", f}, exitUsage, "not below /localhop/nfd"},
		{[]string{"/x/../y", f}, exitUsage, "not an NDN name"},
		{[]string{"/x/32=metadata", f}, exitUsage, "32=metadata in /x/32=metadata is not generic"},
		{[]string{"/x/v=3", f, "--version=4"}, exitUsage, "version 3 and --version 4"},
		{[]string{"/x", f, "-s=0"}, exitUsage, "the smallest is 1"},
		{[]string{"/x", f, "-s=9000"}, exitUsage, "the largest is 85"},
		{[]string{"/x/" + strings.Repeat("n", 8700), f}, exitUsage, "no room for content"},
		{[]string{strings.Repeat("/x", 30), f}, exitUsage, "at most 32"},
		{[]string{"/x", f, "-f=-1"}, exitUsage, "freshness"},
		{[]string{"/x", f, "--manifest=always"}, exitUsage, "choose one of also, only, none"},
		{[]string{"/x", f, "--manifest=only"}, exitUsage, "needs --sign key:NAME"},
		{[]string{"/x", f, "-S=rsa"}, exitUsage, "choose one of digest, null, hmac:FILE, key:NAME"},
		{[]string{"/x", f, "-S=hmac:" + f + "x"}, exitFailed, "no key to sign with"},
		{[]string{"/x", f, "-S=key:/me", "--keychain=dir://" + dir}, exitFailed, "/me is not in the keychain"},
		{[]string{"/x", f, "--transport=here"}, exitUsage, "unix:///run/nfd/nfd.sock"},
		{[]string{"/x", f, "--transport=ftp://here"}, exitUsage, "unknown scheme"},
		{[]string{"/x", f + "x"}, exitFailed, "cannot publish that"},
		{[]string{"/x", f}, exitGaveUp, "start one with \"ndnpop run\""},
	} {
		args := append([]string{"put"}, c.args...)
		if !strings.Contains(strings.Join(args, " "), "--transport") {
			args = append(args, "--transport=unix://"+filepath.Join(dir, "none"))
		}
		j := begin(t, nil, args...)
		if code := j.wait(); code != c.code || !strings.Contains(j.err.String(), c.says) {
			t.Errorf("%v: code %d, %s", c.args, code, j.err.String())
		}
	}
	if os.Getuid() != 0 {
		j := begin(t, nil, "put", "/x", secret)
		if code := j.wait(); code != exitFailed || !strings.Contains(j.err.String(), "permission denied") {
			t.Errorf("unreadable: code %d, %s", code, j.err.String())
		}
	}
}
