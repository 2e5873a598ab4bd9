package output

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"ndnpop/consumer"
	"ndnpop/ndn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var objectV1 = consumer.Object{Name: ndn.MustName("/o/v=1"), HasVersion: true, Version: 1, SegmentSize: 100}

func create(t testing.TB, path string) *File {
	t.Helper()
	f, err := CreateFile(path, "all")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(&objectV1); err != nil {
		t.Fatal(err)
	}
	return f
}

func mustWrite(t testing.TB, f *File, p string, done uint64) {
	t.Helper()
	if err := f.Write([]byte(p), consumer.Resume{Segment: done / 100, Done: done}); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func TestCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := create(t, path)
	mustWrite(t, f, "content", 7)
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Fatalf("the final name holds %q before the end", b)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "content" {
		t.Fatalf("%q", b)
	}
	if exists(path+".part") || exists(path+".part.journal") {
		t.Fatal("part file or journal is left")
	}
}

// A crash at any point leaves a part file that ResumeFile continues rightly.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		path := filepath.Join(dir, "f")
		f := create(t, path)
		var all []byte
		for i := range rapid.IntRange(1, 6).Draw(rt, "writes") {
			p := bytes.Repeat([]byte{byte(i + 1)}, rapid.IntRange(0, 300).Draw(rt, "n"))
			all = append(all, p...)
			mustWrite(t, f, string(p), uint64(len(all)))
			if rapid.Bool().Draw(rt, "save") {
				if err := f.save(); err != nil {
					rt.Fatal(err)
				}
			}
		}
		f.f.Close() // the crash; perhaps the disk lost something
		part := path + ".part"
		b, _ := os.ReadFile(part)
		if len(b) > 0 && rapid.Bool().Draw(rt, "lost") {
			at := rapid.IntRange(0, len(b)-1).Draw(rt, "at")
			if rapid.Bool().Draw(rt, "truncated") {
				b = b[:at]
			} else {
				b[at] = 0
			}
			os.WriteFile(part, b, 0o600)
		}
		sum := sha256.New()
		g, err := ResumeFile(t.Context(), path, "all", sum)
		if err != nil {
			rt.Fatal(err)
		}
		defer g.f.Close()
		r, err := g.Open(&objectV1)
		if err != nil {
			rt.Fatal(err)
		}
		had, _ := os.ReadFile(part)
		want := sha256.Sum256(all[:r.Done])
		if !bytes.Equal(had, all[:r.Done]) || !bytes.Equal(sum.Sum(nil), want[:]) {
			rt.Fatalf("goes on after %d bytes with %d others", r.Done, len(had))
		}
	})
}

// What a power failure kept from the disk, the end of the part file or a page
// within, costs what came after it and less than twice as much before it.
func TestPowerFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	const saves, each = 150, 10
	f := create(t, path)
	var all []byte
	for i := range saves {
		p := bytes.Repeat([]byte{byte(i + 1)}, each)
		all = append(all, p...)
		if err := f.Write(p, consumer.Resume{Segment: uint64(i), Done: uint64(len(all)), Final: saves, HasFinal: true}); err != nil {
			t.Fatal(err)
		}
		if err := f.save(); err != nil {
			t.Fatal(err)
		}
	}
	f.f.Close()
	j, err := readJournal(f.journal())
	if err != nil || len(j.Earlier) > 16 {
		t.Fatalf("%d earlier places, %v", len(j.Earlier), err)
	}
	saved, _ := os.ReadFile(f.journal())
	for left := 0; left < len(all); left += 7 {
		for _, hole := range []bool{false, true} {
			b := bytes.Clone(all)
			if hole {
				clear(b[left:min(left+5, len(b))])
			} else {
				b = b[:left]
			}
			os.WriteFile(f.part, b, 0o600)
			os.WriteFile(f.journal(), saved, 0o600)
			sum := sha256.New()
			g, err := ResumeFile(t.Context(), path, "all", sum)
			if err != nil {
				t.Fatal(err)
			}
			r, err := g.Open(&objectV1)
			if err != nil {
				t.Fatal(err)
			}
			gone := (len(all) - left + each - 1) / each
			if least := (saves - 3*gone) * each; int(r.Done) < least || int(r.Done) > left || g.Lost() != uint64(len(all))-r.Done {
				t.Fatalf("%d bytes are there, hole %v: goes on after %d, lost %d", left, hole, r.Done, g.Lost())
			}
			if want := sha256.Sum256(all[:r.Done]); !bytes.Equal(sum.Sum(nil), want[:]) {
				t.Fatalf("%d bytes are there, hole %v: the hash is not that of %d", left, hole, r.Done)
			}
			if r.Done == 0 && r != (consumer.Resume{}) {
				t.Fatalf("begins anew at %+v", r)
			}
			if left%175 == 0 {
				mustWrite(t, g, string(all[r.Done:]), uint64(len(all)))
				if err := g.Commit(); err != nil {
					t.Fatal(err)
				}
				if b, _ := os.ReadFile(path); !bytes.Equal(b, all) {
					t.Fatalf("%d bytes were there: the whole is wrong", left)
				}
			}
			g.f.Close()
		}
	}
}

// A kill costs a tenth of a second of the transfer, whatever its rate.
func TestJournalFollows(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := create(t, filepath.Join(dir, "f"))
		defer f.f.Close()
		for done := uint64(100); done <= 3000; done += 100 {
			time.Sleep(10 * time.Millisecond)
			mustWrite(t, f, strings.Repeat("x", 100), done)
			if j, err := readJournal(f.journal()); err != nil || j.Done+1000 < done {
				t.Fatalf("after %d bytes, a hundred each 10 ms, the journal has %d: %v", done, j.Done, err)
			}
		}
	})
}

func TestNothingToResume(t *testing.T) {
	_, err := ResumeFile(t.Context(), filepath.Join(t.TempDir(), "f"), "all", nil)
	if !errors.Is(err, ErrNothingToResume) {
		t.Fatal(err)
	}
}

func TestTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := create(t, path)
	defer f.f.Close()
	if _, err := CreateFile(path, "all"); !errors.Is(err, ErrBusy) {
		t.Fatalf("error %v", err)
	}
}

func TestUnversionedIsNotResumed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	o := consumer.Object{Name: ndn.MustName("/o")}
	f, _ := CreateFile(path, "all")
	if _, err := f.Open(&o); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, f, "x", 1)
	if err := f.Abort(errors.New("stop")); err != nil {
		t.Fatal(err)
	}
	g, err := ResumeFile(t.Context(), path, "all", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer g.f.Close()
	if _, err := g.Open(&o); !errors.Is(err, ErrOtherObject) {
		t.Fatalf("error %v", err)
	}
}

// A journal that says another place than it did is refused: bytes of elsewhere
// would follow.
func TestDamagedJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := create(t, path)
	mustWrite(t, f, strings.Repeat("x", 300), 300)
	f.Abort(errors.New("interrupted"))
	good, err := os.ReadFile(path + ".part.journal")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range good {
		if c < '0' || c > '9' {
			continue
		}
		b := bytes.Clone(good)
		b[i] ^= 1
		os.WriteFile(path+".part.journal", b, 0o600)
		if g, err := ResumeFile(t.Context(), path, "all", nil); !errors.Is(err, ErrJournal) || !strings.Contains(err.Error(), "run without --resume") {
			t.Errorf("%s: %v", b, err)
			if err == nil {
				g.f.Close()
			}
		}
	}
}

// Where nothing vouches for what is there, since the part file is gone or a power
// failure has emptied the journal, the fetch begins anew, and says so.
func TestNothingIsVouchedFor(t *testing.T) {
	for what, lose := range map[string]func(part string) error{
		"no part file":     os.Remove,
		"empty journal":    func(part string) error { return os.WriteFile(part+".journal", nil, 0o600) },
		"zeros as journal": func(part string) error { return os.WriteFile(part+".journal", make([]byte, 200), 0o600) },
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			f := create(t, path)
			mustWrite(t, f, strings.Repeat("x", 300), 300)
			f.Abort(errors.New("interrupted"))
			if err := lose(path + ".part"); err != nil {
				t.Fatal(err)
			}
			f, err := ResumeFile(t.Context(), path, "all", nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Abort(errors.New("no forwarder")); err != nil {
				t.Error(err)
			}
			sum := sha256.New()
			if f, err = ResumeFile(t.Context(), path, "all", sum); err != nil {
				t.Fatal(err)
			}
			r, err := f.Open(&objectV1)
			if empty := sha256.Sum256(nil); err != nil || r != (consumer.Resume{}) || f.Lost() != 300 || !bytes.Equal(sum.Sum(nil), empty[:]) {
				t.Errorf("goes on at %+v, %d lost: %v", r, f.Lost(), err)
			}
			mustWrite(t, f, "content", 7)
			if err := f.save(); err != nil {
				t.Fatal(err)
			}
			if j, err := readJournal(f.journal()); err != nil || j.Name != "/o/v=1" || j.Range != "all" || j.Done != 7 {
				t.Errorf("the journal is %+v: %v", j, err)
			}
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
			if b, _ := os.ReadFile(path); string(b) != "content" || exists(path+".part.journal") {
				t.Errorf("%q", b)
			}
		})
	}
}

// A fetch that opened the part file before another completed it does not write
// to what has the final name now.
func TestPartFileOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := create(t, path)
	mustWrite(t, f, "content", 7)
	late, err := os.OpenFile(path+".part", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := claim(late); !errors.Is(err, ErrBusy) {
		t.Errorf("claimed what is called %s now: %v", path, err)
	}
}

// Two fetches in turn, as fast as can be, never cut each other's file short.
func TestTwoFetchesOfOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	const content = "the whole content"
	fetch := func() error {
		f, err := CreateFile(path, "all")
		if errors.Is(err, ErrBusy) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := f.Open(&objectV1); err != nil {
			return err
		}
		if err := f.Write([]byte(content), consumer.Resume{Done: uint64(len(content))}); err != nil {
			return err
		}
		return f.Commit()
	}
	if err := fetch(); err != nil {
		t.Fatal(err)
	}
	var others sync.WaitGroup
	defer others.Wait()
	for range 2 {
		others.Go(func() {
			for range 500 {
				if err := fetch(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2000 {
		if b, err := os.ReadFile(path); err != nil || string(b) != content {
			t.Fatalf("%q, %v", b, err)
		}
	}
}

// What a full disk took of a block, and the journal does not know of, is not left
// in the way of the journal.
func TestAbortMakesRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := create(t, path)
	mustWrite(t, f, strings.Repeat("x", 300), 300)
	if _, err := f.f.WriteString("part of a block"); err != nil {
		t.Fatal(err)
	}
	if err := f.Abort(errors.New("no space left on device")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path + ".part"); err != nil || len(b) != 300 {
		t.Errorf("%d bytes are left of 300, %v", len(b), err)
	}
}

// A fetch that fails before it knows the object leaves an older part file as
// it was, and none where there was none.
func TestAbortBeforeOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := CreateFile(path, "all")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Abort(errors.New("no forwarder")); err != nil {
		t.Fatal(err)
	}
	if exists(path + ".part") {
		t.Fatal("an empty part file is left")
	}
	g := create(t, path)
	mustWrite(t, g, "partial", 7)
	g.Abort(errors.New("interrupted"))
	f, _ = CreateFile(path, "all")
	f.Abort(errors.New("no forwarder"))
	if _, err := ResumeFile(t.Context(), path, "all", nil); err != nil {
		t.Fatalf("the older part file is gone: %v", err)
	}
}

func TestBadPaths(t *testing.T) {
	dir := t.TempDir()
	if _, err := CreateFile(dir, "all"); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := CreateFile(filepath.Join(dir, "no", "such"), "all"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}

func TestPipeOrderAndPool(t *testing.T) {
	var buf bytes.Buffer
	p := NewPipe(Config{Backlog: 1 << 20, Sum: true}, NewStream(&buf, "buffer"), nil)
	var want []byte
	for i := range 3000 {
		for !p.Ready() {
			p.Kick()
		}
		c := bytes.Repeat([]byte{byte(i)}, 1+i%5000)
		want = append(want, c...)
		p.Deliver(&consumer.Piece{Content: c, Then: consumer.Resume{Done: uint64(len(want))}})
		if i%7 == 0 {
			p.Kick()
		}
	}
	r, err := p.Close(nil, true)
	sum := sha256.Sum256(want)
	if err != nil || !bytes.Equal(buf.Bytes(), want) || !bytes.Equal(r.Sha256, sum[:]) || r.Verified {
		t.Fatalf("%v, %d of %d bytes, %+v", err, buf.Len(), len(want), r)
	}
	if n := len(p.free); n > (1<<20)/blockSize+2 {
		t.Errorf("%d blocks were made", n)
	}
}

func TestPipeVerifiesAndCuts(t *testing.T) {
	var buf bytes.Buffer
	p := NewPipe(Config{Verify: VerifyDigest}, NewStream(&buf, "buffer"), nil)
	w, err := ndn.AppendData(nil, &ndn.DataFields{Name: ndn.MustName("/a/seg=0"), Content: []byte("0123456789")}, ndn.DigestSigner{})
	if err != nil {
		t.Fatal(err)
	}
	p.Deliver(&consumer.Piece{Wire: w, Content: []byte("234"), Head: 2})
	p.Deliver(&consumer.Piece{Wire: w, Content: []byte("01"), Head: 0})
	r, err := p.Close(nil, false)
	if err != nil || buf.String() != "23401" || !r.Verified {
		t.Fatalf("%v, %q, %+v", err, buf.String(), r)
	}
}

// TestPipeBlamesThePacket: with packets that are checked two at a time, the first
// that must not be believed is told, and why.
func TestPipeBlamesThePacket(t *testing.T) {
	why := map[string]error{}
	check := func(a, b *ndn.Data) (errA, errB error) {
		if b == nil {
			return why[a.Name.String()], nil
		}
		return why[a.Name.String()], why[b.Name.String()]
	}
	for n := 1; n < 6; n++ {
		for bad := range n {
			p := NewPipe(Config{Verify: VerifyTrust, Check: check}, NewStream(new(bytes.Buffer), "buffer"), nil)
			clear(why)
			var name ndn.Name
			for i := range n {
				at := ndn.MustName("/a").AppendNumber(ndn.TypeSegment, uint64(i))
				w, err := ndn.AppendData(nil, &ndn.DataFields{Name: at, Content: []byte("content")}, ndn.DigestSigner{})
				if err != nil {
					t.Fatal(err)
				}
				if i == bad {
					name, why[at.String()] = at, errors.New("no reason")
				}
				p.Deliver(&consumer.Piece{Wire: w, Content: []byte("content")})
			}
			var e *PacketError
			if _, err := p.Close(nil, false); !errors.As(err, &e) || !e.Name.Equal(name) || e.Err != why[name.String()] {
				t.Errorf("packet %d of %d: %v", bad, n, err)
			}
		}
	}
}

// TestPipeFindsWrongDigests: whichever packets of a block are wrong, the first of
// them is told; others with signatures of keys among them make no difference.
func TestPipeFindsWrongDigests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const right, wrong, other = 0, 1, 2
		kinds := rapid.SliceOfN(rapid.SampledFrom([]int{right, right, right, wrong, other}), 1, 20).Draw(t, "packets")
		var buf bytes.Buffer
		p := NewPipe(Config{Verify: VerifyDigest}, NewStream(&buf, "buffer"), nil)
		var want []byte
		var first ndn.Name
		for i, k := range kinds {
			name := ndn.MustName("/a").AppendNumber(ndn.TypeSegment, uint64(i))
			content := bytes.Repeat([]byte{byte(i)}, 80)
			w, err := ndn.AppendData(nil, &ndn.DataFields{Name: name, Content: content}, ndn.DigestSigner{})
			if err != nil {
				t.Fatal(err)
			}
			switch k {
			case wrong:
				w[len(w)-1]++
				if first == nil {
					first = name
				}
			case other:
				w[len(w)-32-3]++ // the signature type
			}
			want = append(want, content...)
			p.Deliver(&consumer.Piece{Wire: w, Content: content})
		}
		r, err := p.Close(nil, false)
		var bad *PacketError
		switch {
		case first != nil:
			if !errors.As(err, &bad) || !bad.Name.Equal(first) || buf.Len() > 0 {
				t.Fatalf("%v instead of %s, %d bytes", err, first, buf.Len())
			}
		case err != nil || !bytes.Equal(buf.Bytes(), want) || r.Verified == slices.Contains(kinds, other):
			t.Fatalf("%v, %d bytes of %d, %+v", err, buf.Len(), len(want), r)
		}
	})
}

// What the producer says of the whole content holds also when nobody else asks
// for the hash, and for a fetch that was interrupted.
func TestProducersHash(t *testing.T) {
	const had, rest = "what was there, ", "and the rest"
	right, wrong := sha256.Sum256([]byte(had+rest)), sha256.Sum256(nil)
	for _, c := range []struct {
		name   string
		sha    []byte
		prefix hash.Hash
		ok     bool
	}{
		{"right", right[:], nil, true},
		{"wrong", wrong[:], nil, false},
		{"right, resumed", right[:], sha256.New(), true},
		{"wrong, resumed", wrong[:], sha256.New(), false},
	} {
		content := had + rest
		if c.prefix != nil {
			c.prefix.Write([]byte(had))
			content = rest
		}
		var buf bytes.Buffer
		p := NewPipe(Config{}, NewStream(&buf, "buffer"), c.prefix)
		o := objectV1
		o.Sha256 = c.sha
		if _, err := p.Object(&o); err != nil {
			t.Fatal(err)
		}
		p.Deliver(&consumer.Piece{Content: []byte(content)})
		if _, err := p.Close(nil, true); errors.Is(err, ErrVerify) == c.ok || c.ok && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func BenchmarkPipe(b *testing.B) {
	for _, v := range []struct {
		name string
		v    Verify
	}{{"none", VerifyNone}, {"digest", VerifyDigest}} {
		b.Run(v.name, func(b *testing.B) {
			out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer out.Close()
			p := NewPipe(Config{Verify: v.v}, NewStream(out, "null"), nil)
			w, _ := ndn.AppendData(nil, &ndn.DataFields{Name: ndn.MustName("/a/seg=0"), Content: make([]byte, 8000)}, ndn.DigestSigner{})
			var d ndn.Data
			d.Parse(w)
			pc := consumer.Piece{Wire: d.Wire, Content: d.Content}
			b.SetBytes(8000)
			b.ReportAllocs()
			for b.Loop() {
				for !p.Ready() {
					p.Kick()
				}
				p.Deliver(&pc)
				p.Kick()
			}
			if _, err := p.Close(nil, false); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func FuzzJournal(f *testing.F) {
	good := journal{Format: journalFormat, Name: "/o/v=1", SegmentSize: 100, Range: "all", place: place{9, 3, 0, 300, 12}, Earlier: []place{{8, 2, 0, 200, 11}}}
	good.Check = good.checksum()
	b, err := json.Marshal(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"journal":3,"done":18446744073709551615}`))
	f.Add([]byte(`{} {}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := parseJournal(b)
		if err != nil {
			if !errors.Is(err, ErrJournal) {
				t.Fatalf("error %v", err)
			}
			return
		}
		path := filepath.Join(t.TempDir(), "j")
		if err := j.save(path); err != nil {
			t.Fatal(err)
		}
		if k, err := readJournal(path); err != nil || !reflect.DeepEqual(k, j) {
			t.Fatalf("%+v became %+v: %v", j, k, err)
		}
	})
}

// TestStreamTellsWhyOnce: the message has the name that people know, and no
// other one beside it.
func TestStreamTellsWhyOnce(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer f.Close()
	err = NewStream(f, "standard output").Write([]byte("x"), consumer.Resume{})
	if err == nil || !strings.HasPrefix(err.Error(), "write standard output: no space") {
		t.Errorf("error %v", err)
	}
}
