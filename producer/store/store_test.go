package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/ndn"
	"ndnpop/producer"
)

var opts = Options{SegmentSize: 8000, Room: 8400}

func write(t *testing.T, path string, data string, mtime time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
	if !mtime.IsZero() {
		if err := os.Chtimes(path, mtime, mtime); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, o producer.Object) string {
	t.Helper()
	n, _ := o.Size()
	b := make([]byte, n)
	if err := o.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func latest(t *testing.T, s producer.Store, p producer.Path) producer.Object {
	t.Helper()
	o, err := s.Latest(p)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var root producer.Path

// TestVersion: the version tells time and segment size, and fits a double.
func TestVersion(t *testing.T) {
	mtime := time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC).UnixNano()
	for _, c := range []struct {
		mtime   int64
		segment int
		want    uint64
	}{
		{mtime, 8000, 1796040000128000},
		{mtime, 1, 1796040000120001},
		{mtime + 10e6, 8000, 1796040000138000},
		{-5, 4400, 4400},
		{1<<63 - 1, 8000, 9007199254728000},
	} {
		if got := version(c.mtime, c.segment); got != c.want || got >= 1<<53 {
			t.Errorf("version(%d, %d) = %d, want %d", c.mtime, c.segment, got, c.want)
		}
	}
}

// TestSameFileSameVersion: a restart does not invalidate caches, another
// segment size does.
func TestSameFileSameVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "content", time.Time{})
	versions := make([]uint64, 3)
	for i, o := range []Options{opts, opts, {SegmentSize: 4000, Room: 8400}} {
		s, err := NewFile(path, o)
		if err != nil {
			t.Fatal(err)
		}
		versions[i] = latest(t, s, root).Version()
		s.Close()
	}
	if versions[0] != versions[1] || versions[0] == versions[2] {
		t.Errorf("versions %v", versions)
	}
}

// TestChangedFile: every change is a new version, and no version ever yields
// bytes of another.
func TestChangedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	old := time.Now().Add(-time.Hour)
	write(t, path, "first", old)
	s, err := NewFile(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v1 := latest(t, s, root)
	if again := latest(t, s, root); again != v1 {
		t.Error("a look made a new version")
	}

	// Replaced: the old version stays readable for those who are at it.
	write(t, path+".new", "second", old) // the same time even
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	v2 := latest(t, s, root)
	if v2.Version() <= v1.Version() {
		t.Errorf("version %d after %d", v2.Version(), v1.Version())
	}
	if got := read(t, v1) + read(t, v2); got != "firstsecond" {
		t.Errorf("read %q", got)
	}
	if o, err := s.At(root, v1.Version()); err != nil || o != v1 {
		t.Errorf("At: %v, %v", o, err)
	}

	// Overwritten in place: the version is gone.
	write(t, path, "third!", time.Time{})
	if err := v2.ReadAt(make([]byte, 6), 0); !errors.Is(err, producer.ErrChanged) {
		t.Errorf("reading what was overwritten: %v", err)
	}
	if _, err := s.At(root, v2.Version()); !errors.Is(err, producer.ErrChanged) {
		t.Errorf("At: %v", err)
	}
	v3 := latest(t, s, root)
	if v3.Version() <= v2.Version() || read(t, v3) != "third!" {
		t.Errorf("version %d after %d", v3.Version(), v2.Version())
	}

	// Cut short: likewise.
	if err := os.Truncate(path, 2); err != nil {
		t.Fatal(err)
	}
	if err := v3.ReadAt(make([]byte, 6), 0); !errors.Is(err, producer.ErrChanged) {
		t.Errorf("reading what was cut off: %v", err)
	}

	// Removed: there is nothing to discover.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Latest(root); !errors.Is(err, producer.ErrNotFound) {
		t.Errorf("Latest: %v", err)
	}
	if _, err := s.At(root, 1); !errors.Is(err, producer.ErrNotFound) {
		t.Errorf("At: %v", err)
	}
}

// TestChosenVersion: --version N is the first one, a change the next.
// TestReadAhead reads a file in runs and at random, by pieces of any size.
func TestReadAhead(t *testing.T) {
	want := make([]byte, 5*readAhead+123)
	for i := range want {
		want[i] = byte(i * i >> 8)
	}
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, string(want), time.Unix(1000, 0))
	s, err := NewFile(path, Options{SegmentSize: 8000, Room: 8000})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := latest(t, s, producer.Path{})
	rapid.Check(t, func(t *rapid.T) {
		off := rapid.IntRange(0, len(want)-1).Draw(t, "from")
		for range rapid.IntRange(1, 40).Draw(t, "run") {
			b := make([]byte, min(rapid.IntRange(1, 9000).Draw(t, "size"), len(want)-off))
			if err := o.ReadAt(b, uint64(off)); err != nil || !bytes.Equal(b, want[off:off+len(b)]) {
				t.Fatalf("%d bytes at %d are wrong, %v", len(b), off, err)
			}
			if off += len(b); off == len(want) {
				break
			}
		}
	})
	// In order to the end, after which nothing is kept.
	for off, b := 0, make([]byte, 8000); off < len(want); off += len(b) {
		b = b[:min(len(b), len(want)-off)]
		if err := o.ReadAt(b, uint64(off)); err != nil {
			t.Fatal(err)
		}
	}
	if n := cap(o.(*object).ahead); n != 0 {
		t.Errorf("%d bytes are kept", n)
	}
}

func TestChosenVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "a", time.Time{})
	o := opts
	o.Version = 7
	s, err := NewFile(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := latest(t, s, root).Version()
	write(t, path, "bc", time.Time{})
	if second := latest(t, s, root).Version(); first != 7 || second != 8 {
		t.Errorf("versions %d, %d", first, second)
	}
}

// TestOpenFile serves redirected standard input.
func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "redirected", time.Time{})
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := NewOpenFile(f, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := read(t, latest(t, s, root)); got != "redirected" {
		t.Errorf("read %q", got)
	}
}

func TestSegmentSize(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{SegmentSize: 0, Room: 8400}, "the smallest is 1"},
		{Options{SegmentSize: 8401, Room: 8400}, "the largest is 8400"},
		{Options{SegmentSize: 1, Room: -3}, "no room"},
	} {
		if err := c.o.Check(); !errors.Is(err, ErrSegmentSize) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

func pathOf(parts ...string) producer.Path {
	var p producer.Path
	for _, s := range parts {
		p.Name = p.Name.AppendGeneric(s)
	}
	return p
}

// TestDirectory serves a tree with the names that people give.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	names := []string{"plain", "with space", "50%", "%41", "ünï", "日本語", "a=b", "...", "-x", "v=1", "line\nbreak", "\xff\xfe"}
	if err := os.Mkdir(filepath.Join(dir, "sub dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		write(t, filepath.Join(dir, "sub dir", n), "in "+n, time.Time{})
	}
	d, err := NewDir(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, n := range names {
		// The name goes through its URI, as a consumer would type it.
		p := pathOf("sub dir", n)
		again, err := ndn.ParseName(p.Name.String())
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		if got := read(t, latest(t, d, producer.Path{Name: again})); got != "in "+n {
			t.Errorf("%q as %s: %q", n, p.Name, got)
		}
	}
	l := latest(t, d, pathOf("sub dir"))
	if !l.Attributes().Listing {
		t.Error("a directory is not its listing")
	}
	got := strings.Split(strings.TrimSuffix(read(t, l), "\x00"), "\x00")
	if len(got) != len(names) {
		t.Errorf("listing %q", got)
	}
	if got := read(t, latest(t, d, producer.Path{Listing: true})); got != "sub dir/\x00" {
		t.Errorf("listing of the root %q", got)
	}
	v := l.Version()
	p := pathOf("sub dir")
	if _, err := d.At(p, v); !errors.Is(err, producer.ErrNotFound) {
		t.Errorf("a version of a directory without 32=ls: %v", err)
	}
	p.Listing = true
	if o, err := d.At(p, v); err != nil || o != l {
		t.Errorf("At: %v, %v", o, err)
	}
	// A new file is a new version of the listing.
	write(t, filepath.Join(dir, "sub dir", "new"), "", time.Time{})
	if n := latest(t, d, p); n.Version() <= v || !strings.Contains(read(t, n), "\x00new\x00") {
		t.Errorf("version %d after %d", n.Version(), v)
	}
	if read(t, l) == "" {
		t.Error("the former listing is gone")
	}
}

// TestDirectoryRefuses: what lies outside, and what is no file.
func TestDirectoryRefuses(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"), "secret", time.Time{})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "f", time.Time{})
	for link, to := range map[string]string{
		"out": filepath.Join(outside, "secret"), "outdir": outside, "loop": "loop", "in": "f", "self": ".",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	left := map[string]string{}
	o := opts
	o.LeftOut = func(path string, why error) { left[path] = why.Error() }
	d, err := NewDir(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, p := range []producer.Path{
		pathOf(".."), pathOf("."), pathOf(""), pathOf("..", filepath.Base(outside), "secret"), pathOf("../" + filepath.Base(outside)),
		pathOf("f\x00"), pathOf("f", "x"), pathOf("f", ""), pathOf("/f"), pathOf("none"),
		pathOf("out"), pathOf("outdir", "secret"), pathOf("loop"), pathOf(strings.Repeat("n", 300)),
		{Name: pathOf("f").Name, Listing: true},
	} {
		if _, err := d.Latest(p); !errors.Is(err, producer.ErrNotFound) {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	if got := read(t, latest(t, d, pathOf("in"))); got != "f" {
		t.Errorf("a link inside leads to %q", got)
	}
	if got := read(t, latest(t, d, root)); got != "f\x00in\x00" {
		t.Errorf("listing %q", got)
	}
	if len(left) != 4 || left["out"] == "" || left["outdir"] == "" || left["loop"] == "" || left["self"] != errWithin.Error() {
		t.Errorf("left out: %q", left)
	}
}

// TestOpenFilesAreBounded: old paths are closed, and asking again works.
func TestOpenFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	n := maxOpen + 20
	name := func(i int) string { return "f" + strings.Repeat("x", i) }
	for i := range n {
		write(t, filepath.Join(dir, name(i)), name(i), time.Time{})
	}
	d, err := NewDir(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for range 2 {
		for i := range n {
			if got := read(t, latest(t, d, pathOf(name(i)))); got != name(i) {
				t.Fatalf("read %q", got)
			}
			if d.lru.Len() > maxOpen || len(d.byName) != d.lru.Len() {
				t.Fatalf("%d entries, %d names", d.lru.Len(), len(d.byName))
			}
		}
	}
	for range 1000 {
		_, _ = d.Latest(pathOf("made up"))
	}
	if d.lru.Len() != maxOpen {
		t.Error("made-up names pushed out real ones")
	}
}

// TestSpool feeds a stream in pieces.
func TestSpool(t *testing.T) {
	began := time.UnixMicro(1700000000001234)
	s, err := NewSpool(t.TempDir(), began, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, w := io.Pipe()
	done := make(chan error, 1)
	grew := make(chan struct{}, 100)
	go func() { done <- s.Fill(r, func() { grew <- struct{}{} }) }()
	o := latest(t, s, root)
	if n, final := o.Size(); n != 0 || final || !o.Attributes().Growing {
		t.Errorf("%d bytes, final %t", n, final)
	}
	_, _ = io.WriteString(w, "hello ")
	<-grew
	if n, final := o.Size(); n != 6 || final {
		t.Errorf("%d bytes, final %t", n, final)
	}
	_, _ = io.WriteString(w, "world")
	<-grew
	w.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n, final := o.Size(); n != 11 || !final || read(t, o) != "hello world" {
		t.Errorf("%d bytes, final %t", n, final)
	}
	if o.Attributes().SHA256 == nil || o.Version() != 1700000000008000 {
		t.Errorf("version %d", o.Version())
	}
	if _, err := s.At(root, o.Version()); err != nil {
		t.Error(err)
	}
	if _, err := s.At(root, 1); !errors.Is(err, producer.ErrNotFound) {
		t.Error(err)
	}
}

// TestSpoolFails passes the reader's error on and never claims an end.
func TestSpoolFails(t *testing.T) {
	s, err := NewSpool(t.TempDir(), time.Now(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	broken := errors.New("broken")
	if err := s.Fill(io.MultiReader(strings.NewReader("abc"), errReader{broken}), func() {}); !errors.Is(err, broken) {
		t.Error(err)
	}
	if n, final := s.Size(); n != 3 || final {
		t.Errorf("%d bytes, final %t", n, final)
	}
}

type errReader struct{ error }

func (e errReader) Read([]byte) (int, error) { return 0, e.error }

type discard struct{}

func (discard) Send([]byte, *ndn.LpFields) {}

// fileBench returns a responder for a file and Interests for its segments.
func fileBench(tb testing.TB, n int) (*producer.Responder, []ndn.Packet) {
	path := filepath.Join(tb.TempDir(), "f")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 8000*n), 0o644); err != nil {
		tb.Fatal(err)
	}
	o := opts
	o.Version = 1
	s, err := NewFile(path, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	r, err := producer.New(producer.Config{Prefix: ndn.MustName("/cdn/video")}, s, discard{})
	if err != nil {
		tb.Fatal(err)
	}
	ps := make([]ndn.Packet, n)
	for i := range ps {
		w := ndn.AppendInterest(nil, &ndn.InterestFields{
			Name: ndn.MustName("/cdn/video/v=1").AppendNumber(ndn.TypeSegment, uint64(i)),
		})
		if err := ps[i].Parse(w, &ndn.LpFields{}); err != nil {
			tb.Fatal(err)
		}
	}
	return r, ps
}

// TestFileSegmentAllocates: reading, checking and signing a segment of a file
// allocates nothing.
func TestFileSegmentAllocates(t *testing.T) {
	r, ps := fileBench(t, 64)
	i := 0
	if n := testing.AllocsPerRun(500, func() {
		if err := r.Receive(1, &ps[i%len(ps)]); err != nil {
			t.Fatal(err)
		}
		i++
	}); n != 0 {
		t.Errorf("%v allocations per segment", n)
	}
	if c := r.Counters(); c.Segments < 500 {
		t.Errorf("%+v", c)
	}
}

func BenchmarkFileSegment8000(b *testing.B) {
	r, ps := fileBench(b, 1000)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := r.Receive(1, &ps[i%len(ps)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
