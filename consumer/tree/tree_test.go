package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ndnpop/consumer"
	"ndnpop/consumer/output"
	"ndnpop/ndn"
)

// origin publishes a tree to the targets that it is given: files by their path
// below /t, directories ending with a slash, whose content is the listing.
type origin struct {
	t       *testing.T
	content map[string]string
	version uint64
	mu      sync.Mutex
	fetched []string
	fail    func(path string, written int) error // after some bytes of a file
}

var errCut = errors.New("cut off")

// pathOf turns a name into the path.
func pathOf(n ndn.Name) string {
	var parts []string
	for rest := n.Suffix(1); len(rest) > 0; {
		var c ndn.Component
		c, rest = rest.Next()
		parts = append(parts, string(c.Value))
	}
	return strings.Join(parts, "/")
}

func (o *origin) fetch(ctx context.Context, n ndn.Name, to output.Target) error {
	p := pathOf(n)
	o.mu.Lock()
	o.fetched = append(o.fetched, p)
	content, isFile := o.content[p]
	listing, isDir := o.content[p+"/"]
	o.mu.Unlock()
	obj := &consumer.Object{Name: n.Clone(), HasVersion: true, Version: o.version}
	switch {
	case isDir:
		content = listing
		obj.Name = obj.Name.Append(ndn.Component{Type: ndn.TypeKeyword, Value: []byte("ls")})
	case !isFile:
		return errors.Join(to.Abort(consumer.ErrNoContent), consumer.ErrNoContent)
	}
	obj.Name = obj.Name.AppendNumber(ndn.TypeVersion, o.version)
	from, err := to.Open(obj)
	done := int(from.Done)
	for err == nil && done < len(content) {
		if err = ctx.Err(); err != nil {
			break
		}
		if o.fail != nil && !isDir {
			if err = o.fail(p, done); err != nil {
				break
			}
		}
		err = to.Write([]byte(content[done:done+1]), consumer.Resume{Segment: uint64(done + 1), Done: uint64(done + 1)})
		done++
	}
	if err != nil {
		return errors.Join(err, to.Abort(err))
	}
	return to.Commit()
}

func (o *origin) options(dir string) Options {
	return Options{Name: ndn.MustName("/t"), Dir: dir, Parallel: 3, Fetch: o.fetch}
}

// files reads a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.IsDir() {
			if rel != "." {
				got[rel+"/"] = ""
			}
			return nil
		}
		b, err := os.ReadFile(p)
		got[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func sample() map[string]string {
	return map[string]string{
		"/":      "a file\x00a.part\x00%41\x00ünï\x00d/\x00empty/\x00",
		"a file": "with spaces", "a.part": "like a part file", "%41": "percent", "ünï": "",
		"d/": "x\x00e/\x00", "d/x": "deep", "d/e/": "…\x00", "d/e/…": "deeper", "empty/": "",
	}
}

// want is a sample as it lies on the disk.
func want(content map[string]string) map[string]string {
	w := map[string]string{}
	for p, c := range content {
		if p == "/" {
			continue
		}
		if strings.HasSuffix(p, "/") {
			c = ""
		}
		w[p] = c
	}
	return w
}

func TestWholeTree(t *testing.T) {
	o := &origin{t: t, content: sample(), version: 1}
	dir := filepath.Join(t.TempDir(), "new", "dir")
	var said []string
	opt := o.options(dir)
	opt.Done = func(p string, before bool) { said = append(said, fmt.Sprint(p, before)) }
	res, err := Fetch(t.Context(), opt)
	if err != nil || res.Files != 6 || res.Before != 0 || res.Dirs != 3 || len(said) != 6 {
		t.Fatalf("%+v, %v, %q", res, err, said)
	}
	if got := files(t, dir); !maps.Equal(got, want(o.content)) {
		t.Errorf("got %q", got)
	}
	// Again, over what is there.
	o.content["a file"] = "other"
	if _, err := Fetch(t.Context(), o.options(dir)); err != nil || files(t, dir)["a file"] != "other" {
		t.Errorf("%v, %q", err, files(t, dir))
	}
}

// TestInterruptedTree: what is complete is not fetched again, what is begun is
// gone on with, and what changed is begun anew.
func TestInterruptedTree(t *testing.T) {
	o := &origin{t: t, content: sample(), version: 1}
	dir := t.TempDir()
	o.fail = func(p string, n int) error {
		if p == "d/e/…" && n == 3 {
			return errCut
		}
		return nil
	}
	opt := o.options(dir)
	opt.Parallel = 1
	if _, err := Fetch(t.Context(), opt); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	before := files(t, dir)
	if before["a file"] != "with spaces" || before["d/e/…"] != "" {
		t.Errorf("%q", before)
	}
	resumedAt := -1
	o.fail = func(p string, n int) error {
		if p == "d/e/…" && resumedAt < 0 {
			resumedAt = n
		}
		return nil
	}
	opt.Resume = true
	res, err := Fetch(t.Context(), opt)
	if err != nil || res.Before == 0 || res.Before+res.Files != 6 || resumedAt != 3 {
		t.Errorf("%+v, resumed at %d, %v", res, resumedAt, err)
	}
	if got := files(t, dir); !maps.Equal(got, want(o.content)) {
		t.Errorf("got %q", got)
	}

	// Cut again; then everything changes.
	o.fail = func(p string, n int) error {
		if p == "d/x" && n == 2 {
			return errCut
		}
		return nil
	}
	opt.Resume = false
	if _, err := Fetch(t.Context(), opt); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	o.fail, o.version, o.content["d/x"] = nil, 2, "changed"
	opt.Resume = true
	res, err = Fetch(t.Context(), opt)
	if err != nil || res.Before != 0 || res.Files != 6 || files(t, dir)["d/x"] != "changed" {
		t.Errorf("%+v, %v, %q", res, err, files(t, dir))
	}
}

// TestOtherCheck: a part that was fetched without verification is not gone on
// with when there is to be one.
func TestOtherCheck(t *testing.T) {
	o := &origin{t: t, content: map[string]string{"/": "f\x00", "f": "content"}, version: 1}
	o.fail = func(_ string, n int) error {
		if n == 3 {
			return errCut
		}
		return nil
	}
	opt := o.options(t.TempDir())
	if _, err := Fetch(t.Context(), opt); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	first := -1
	o.fail = func(_ string, n int) error {
		if first < 0 {
			first = n
		}
		return nil
	}
	opt.Resume, opt.Check = true, ", verified"
	if _, err := Fetch(t.Context(), opt); err != nil || first != 0 {
		t.Errorf("began at %d, %v", first, err)
	}
}

// TestMissingFile: the others are fetched all the same.
func TestMissingFile(t *testing.T) {
	o := &origin{t: t, content: sample(), version: 1}
	delete(o.content, "d/x")
	dir := t.TempDir()
	res, err := Fetch(t.Context(), o.options(dir))
	if !errors.Is(err, ErrMissing) || !errors.Is(err, consumer.ErrNoContent) || res.Files != 5 {
		t.Errorf("%+v, %v", res, err)
	}
	dir = filepath.Join(t.TempDir(), "new")
	if _, err := Fetch(t.Context(), Options{Name: ndn.MustName("/t/none"), Dir: dir, Fetch: o.fetch}); !errors.Is(err, consumer.ErrNoContent) {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("a directory is left behind")
	}
}

func TestSingleFile(t *testing.T) {
	o := &origin{t: t, content: sample(), version: 1}
	dir := t.TempDir()
	opt := o.options(dir)
	opt.Name = ndn.MustName("/t/d/x")
	if res, err := Fetch(t.Context(), opt); err != nil || res.Files != 1 || !maps.Equal(files(t, dir), map[string]string{"x": "deep"}) {
		t.Errorf("%+v, %v, %q", res, err, files(t, dir))
	}
}

// TestTraversal: no listing leads out of the directory, nor do links in it.
func TestTraversal(t *testing.T) {
	for _, entry := range []string{
		"..", ".", "", "../x", "/etc/x", "a/b", "../", "./", "/", "a//", stateDir, stateDir + "/", "x\x00y", // the last is cut off
	} {
		top := t.TempDir()
		dir := filepath.Join(top, "in")
		o := &origin{t: t, content: map[string]string{"/": entry + "\x00", "x": "x"}, version: 1}
		if entry == "x\x00y" {
			o.content["/"] = entry
		}
		if _, err := Fetch(t.Context(), o.options(dir)); !errors.Is(err, ErrListing) {
			t.Errorf("%q: %v", entry, err)
		}
		if got := files(t, top); len(got) != 0 {
			t.Errorf("%q: %q", entry, got)
		}
	}
	// Directories that are links to elsewhere.
	top := t.TempDir()
	outside, dir := filepath.Join(top, "outside"), filepath.Join(top, "in")
	for _, d := range []string{outside, dir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "d")); err != nil {
		t.Skip(err)
	}
	o := &origin{t: t, content: sample(), version: 1}
	if _, err := Fetch(t.Context(), o.options(dir)); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "d")+" cannot be") {
		t.Errorf("the link was followed, or is not named: %v", err)
	}
	if got := files(t, outside); len(got) != 0 {
		t.Errorf("outside: %q", got)
	}
	// And the directory of what is unfinished.
	dir = filepath.Join(top, "in2")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, stateDir)); err != nil {
		t.Fatal(err)
	}
	if _, err := Fetch(t.Context(), o.options(dir)); !errors.Is(err, errStateDir) {
		t.Error(err)
	}
	if got := files(t, outside); len(got) != 0 {
		t.Errorf("outside: %q", got)
	}
}

// TestDeepTree: a tree without an end ends.
func TestDeepTree(t *testing.T) {
	o := &origin{t: t, content: map[string]string{"/": "d/\x00"}, version: 1}
	for i, p := 0, ""; i < maxDepth+10; i++ {
		p = strings.TrimPrefix(p+"/d", "/")
		o.content[p+"/"] = "d/\x00"
	}
	if _, err := Fetch(t.Context(), o.options(t.TempDir())); !errors.Is(err, ErrListing) {
		t.Error(err)
	}
}

func TestTwoAtOnce(t *testing.T) {
	o := &origin{t: t, content: sample(), version: 1}
	dir := t.TempDir()
	once := sync.Once{}
	var second error
	o.fail = func(string, int) error {
		once.Do(func() {
			inner := &origin{t: t, content: sample(), version: 1}
			_, second = Fetch(t.Context(), inner.options(dir))
		})
		return nil
	}
	if _, err := Fetch(t.Context(), o.options(dir)); err != nil || !errors.Is(second, output.ErrBusy) {
		t.Errorf("first %v, second %v", err, second)
	}
}

func TestOrder(t *testing.T) {
	o := &origin{t: t, content: sample(), version: 1}
	opt := o.options(t.TempDir())
	opt.Parallel = 1
	if _, err := Fetch(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	if got := o.fetched; !slices.Equal(got, []string{"", "a file", "a.part", "%41", "ünï", "d", "d/x", "d/e", "d/e/…", "empty"}) {
		t.Errorf("%q", got)
	}
}
