package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// oddTree makes a directory tree with names that are not easy.
func oddTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, size := range map[string]int{
		"plain": 10, "with some spaces.txt": 20_000, "100%25 sure%": 9_000, "ünïcödé/名前": 300_000, "a.part": 1, "a": 2,
		"v=7/seg=0": 33, "32=ls": 44, "quote's \"and\" \\back": 55, "line\nbreak": 66, "...": 77, "empty": 0,
		"deep/er/est/file": 88, "~!$&*()[]{}|;<>?": 99, "\xff\xfe not UTF-8": 111,
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		randomFile(t, p, size)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "plain", "linked": "deep", "deep/loop": "..", "out": "/etc", "dangling": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	return dir
}

// contents reads a tree, links followed.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.IsDir() {
			out[rel+"/"] = ""
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return nil // of the links that lead nowhere, or to directories
		}
		out[rel] = string(b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sameTree(t *testing.T, got, want map[string]string) {
	t.Helper()
	for p := range want {
		if g, ok := got[p]; !ok || g != want[p] {
			t.Errorf("%q: %d bytes, want %d; there: %v", p, len(g), len(want[p]), ok)
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("%q should not be there", p)
		}
	}
}

// TestTree publishes a tree with odd names and fetches all of it, with and
// without certificates, and one file of it by what listings and people write.
func TestTree(t *testing.T) {
	transport := forwarder(t)
	dir, keys := oddTree(t), t.TempDir()
	key(t, keys, "", "generate", "/site")
	j := begin(t, nil, "put", "/site/my tree", dir, transport, "--sign", "key:/site", "--keychain", keys)
	j.says(&j.err, "fetch it with: ndnpop cat '/site/my%20tree'")
	anchor := keyFile(t, key(t, keys, "", "export", "/site", "--cert"))

	want := contents(t, dir)
	want["linked/"], want["linked/er/"], want["linked/er/est/"] = "", "", ""
	want["linked/er/est/file"] = want["deep/er/est/file"]
	for _, verify := range []string{"digest", anchor} {
		out, stats := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "stats")
		_, msg, code := cat(t, "/site/my%20tree", transport, "-o", out+"/", "--verify", verify, "-v", "--stats", stats)
		if code != exitDone {
			t.Fatalf("code %d, %s", code, msg)
		}
		sameTree(t, contents(t, out), want)
		if !strings.Contains(msg, `"line\nbreak"`+"\n") || strings.Count(msg, " files: ") != 1 {
			t.Errorf("it says\n%s", msg)
		}
		var s catSummary
		b, err := os.ReadFile(stats)
		if err == nil {
			err = json.Unmarshal(b, &s)
		}
		if err != nil || s.Files == nil || *s.Files != 17 || !s.Complete || s.Verified != (verify == anchor) || s.Bytes < 300_000 {
			t.Errorf("%s, %v", b, err)
		}
	}
	for name, file := range map[string]string{
		"/site/my%20tree/with%20some%20spaces.txt": "with some spaces.txt",
		"/site/my tree/100%2525%20sure%25":         "100%25 sure%",
		"/site/my%20tree/ünïcödé/名前":               "ünïcödé/名前",
		"/site/my%20tree/8=v%3D7/8=seg%3D0":        "v=7/seg=0",
		"/site/my%20tree/linked/er/est/file":       "deep/er/est/file",
		"/site/my%20tree/......":                   "...",
	} {
		if out, msg, code := cat(t, name, transport); code != exitDone || out != want[file] {
			t.Errorf("%s: %d bytes, code %d, %s", name, len(out), code, msg)
		}
	}
	for _, name := range []string{"/site/my%20tree/out/passwd", "/site/my%20tree/dangling", "/site/my%20tree/..%2F..%2Fetc%2Fpasswd", "/site/my%20tree/deep/......./x"} {
		if out, msg, code := cat(t, name, transport); code != exitNoContent {
			t.Errorf("%s: %d bytes, code %d, %s", name, len(out), code, msg)
		}
	}
	// A person who forgets the slash or -o is told.
	if _, msg, code := cat(t, "/site/my%20tree", transport); code != exitDone || !strings.Contains(msg, "cat '/site/my%20tree' -o DIR/") {
		t.Errorf("code %d, %s", code, msg)
	}
	if _, msg, code := cat(t, "/site/my%20tree/32=ls", transport); code != exitDone || msg != "" {
		t.Errorf("code %d, %s", code, msg)
	}
	if _, msg, code := cat(t, "/site/my%20tree", transport, "-o", t.TempDir()); code != exitFailed || !strings.Contains(msg, "/ fetches a tree into it") {
		t.Errorf("code %d, %s", code, msg)
	}
}

// TestTreeResumed: an interrupted fetch of a tree goes on.
func TestTreeResumed(t *testing.T) {
	transport := forwarder(t)
	dir := t.TempDir()
	for _, n := range []string{"a", "b", "c", "d", "e", "f"} {
		randomFile(t, filepath.Join(dir, n), 1_000_000+len(n))
	}
	j := begin(t, nil, "put", "/tree", dir, transport)
	j.says(&j.err, "fetch it with")
	out := filepath.Join(t.TempDir(), "out")
	c := begin(t, nil, "cat", "/tree", transport, "-o", out+"/", "--max-rate", "20mbit", "-v")
	c.says(&c.err, "\n") // one file is complete
	if code := c.end(errors.New("interrupt signal received")); code != exitInterrupted || !strings.Contains(c.err.String(), "--resume") {
		t.Fatalf("code %d, %s", code, c.err.String())
	}
	stats := filepath.Join(t.TempDir(), "stats")
	_, msg, code := cat(t, "/tree", transport, "-o", out+"/", "--resume", "--stats", stats, "-v")
	if code != exitDone || !strings.Contains(msg, "more were there already") {
		t.Fatalf("code %d, %s", code, msg)
	}
	sameTree(t, contents(t, out), contents(t, dir))
	var s catSummary
	if b, err := os.ReadFile(stats); err != nil || json.Unmarshal(b, &s) != nil || s.Bytes >= 5_500_000 {
		t.Errorf("%d bytes were fetched again, %v", s.Bytes, err)
	}
}

func TestTreeUsage(t *testing.T) {
	for _, flag := range []string{"--range=0-1", "--segments=0-1", "--sha256=" + strings.Repeat("00", 32), "-D", "--trace=x"} {
		if _, msg, code := cat(t, "/x", "-o", t.TempDir()+"/", flag); code != exitUsage || !strings.Contains(msg, "is for one file") {
			t.Errorf("%s: code %d, %s", flag, code, msg)
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, msg, code := cat(t, "/none", forwarder(t), "-o", out+"/"); code != exitGaveUp {
		t.Errorf("code %d, %s", code, msg)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Error("a directory is left behind")
	}
}
