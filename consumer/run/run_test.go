package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/consumer/output"
	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/face/mem"
	"ndnpop/mgmt"
	"ndnpop/ndn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers Interests for one object on the other end of a link.
type server struct {
	tr      face.Server
	link    *lp.Link
	prefix  ndn.Name
	name    ndn.Name
	content []byte
	seg     int
	sha     []byte // stated in the metadata
	p       ndn.Packet
	out     face.Frames
	start   time.Time
	drop    func(n int) bool // the nth segment Interest
	mangle  func(seg uint64, wire []byte) []byte
	meta    func(wire []byte) []byte // the metadata, mangled
	told    func(n ndn.Name)         // commands to the forwarder
	nack    bool
	signer  ndn.Signer // nil: a digest
	cert    func(in *ndn.Interest) []byte
	extra   []byte                // at the end of the metadata
	part    func(ndn.Name) []byte // of the manifest; nil: it is no part
	hook    func(n int)
	n       int
	mu      sync.Mutex
	cache   map[uint64][]byte
}

var object = func() []byte {
	b := make([]byte, 3_000_123)
	rand.NewChaCha8([32]byte{3}).Read(b)
	return b
}()

func newServer(tr face.Server, version uint64) *server {
	s := &server{
		tr: tr, link: lp.New(lp.Config{Marking: lp.Marking{Off: true}}), prefix: ndn.MustName("/run/test"),
		content: object, seg: 8000, start: time.Now(), cache: map[uint64][]byte{},
	}
	s.name = s.prefix.Clone().AppendNumber(ndn.TypeVersion, version)
	return s
}

func (s *server) Receive(frames [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := ndn.Time(time.Since(s.start)) + 1
	for _, f := range frames {
		if ok, err := s.link.Receive(now, f, &s.p); err != nil || !ok {
			continue
		}
		in := &s.p.Interest
		if s.nack {
			s.link.Send(now, in.Wire, &ndn.LpFields{IsNack: true, NackReason: ndn.NackNoRoute}, &s.out)
			continue
		}
		if w := s.answer(in); w != nil {
			s.link.Send(now, w, nil, &s.out)
		}
	}
	s.tr.Send(&s.out)
	s.out.Reset()
}
func (s *server) Flush()       {}
func (s *server) Closed(error) {}

func (s *server) answer(in *ndn.Interest) []byte {
	meta := s.prefix.Clone().Append(ndn.Component{Type: ndn.TypeKeyword, Value: []byte("metadata")})
	final := uint64((len(s.content) - 1) / s.seg)
	fb := ndn.Name(nil).AppendNumber(ndn.TypeSegment, final)
	if in.Name.Equal(meta) {
		c := s.name.AppendTLVTo(nil)
		c = ndn.AppendTLV(c, ndn.TypeFinalBlock, fb)
		c = ndn.AppendNatTLV(c, 0xf500, uint64(s.seg))
		c = ndn.AppendNatTLV(c, 0xf502, uint64(len(s.content)))
		if s.sha != nil {
			c = ndn.AppendTLV(c, 0xf584, s.sha)
		}
		c = append(c, s.extra...)
		w := s.sign(&ndn.DataFields{Name: meta.AppendNumber(ndn.TypeVersion, 1).AppendNumber(ndn.TypeSegment, 0), Content: c})
		if s.meta != nil {
			w = s.meta(w)
		}
		return w
	}
	if in.Name.HasPrefix(mgmt.Localhost()) {
		if s.told != nil {
			s.told(in.Name)
		}
		return nil
	}
	if s.part != nil {
		if w := s.part(in.Name); w != nil {
			return w
		}
	}
	if s.cert != nil && !in.Name.HasPrefix(s.prefix) {
		return s.cert(in)
	}
	if !in.Name.HasPrefix(s.name) {
		return s.sign(&ndn.DataFields{Name: in.Name, ContentType: ndn.ContentNack})
	}
	last, _ := in.Name.At(-1)
	n, _ := last.NumberAs(ndn.TypeSegment)
	s.n++
	if s.hook != nil {
		s.hook(s.n)
	}
	if s.drop != nil && s.drop(s.n) {
		return nil
	}
	w := s.cache[n]
	if w == nil {
		w = s.sign(&ndn.DataFields{Name: in.Name, FinalBlock: fb, Content: s.content[n*uint64(s.seg) : min(len(s.content), (int(n)+1)*s.seg)]})
		s.cache[n] = w
	}
	if s.mangle != nil {
		w = s.mangle(n, w)
	}
	return w
}

func (s *server) sign(f *ndn.DataFields) []byte {
	signer := s.signer
	if signer == nil {
		signer = ndn.DigestSigner{}
	}
	w, err := ndn.AppendData(nil, f, signer)
	if err != nil {
		panic(err)
	}
	return w
}

// serve starts a server for a fetch and returns the fetch's end of the link.
func serve(t testing.TB, version uint64, set func(*server)) face.Server {
	a, b := mem.Pair()
	s := newServer(b, version)
	if set != nil {
		set(s)
	}
	done := make(chan struct{})
	go func() { defer close(done); b.Serve(s) }()
	t.Cleanup(func() { b.Close(); <-done })
	return a
}

func options(t testing.TB, tr face.Server, to output.Target) Options {
	t.Helper()
	c, err := cc.NewCubic(cc.Params{})
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Transport: tr, Fetch: consumer.DefaultConfig(ndn.MustName("/run/test")), Controller: c,
		Target: to, Output: output.Config{Verify: output.VerifyDigest, Sum: true},
	}
}

func TestFetchToStream(t *testing.T) {
	for _, pipe := range cc.Builtin() {
		var buf bytes.Buffer
		o := options(t, serve(t, 1, nil), output.NewStream(&buf, "buffer"))
		c, err := pipe.New(cc.Params{})
		if err != nil {
			t.Fatal(err)
		}
		o.Controller = c
		var reports atomic.Int32
		o.Progress = func(Progress) { reports.Add(1) }
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v, %+v", pipe.Name, err, r)
		}
		sum := sha256.Sum256(object)
		if !bytes.Equal(buf.Bytes(), object) || !r.Complete || !r.Output.Verified || !bytes.Equal(r.Output.Sha256, sum[:]) {
			t.Errorf("%s: %d bytes, %+v", pipe.Name, buf.Len(), r)
		}
		if reports.Load() == 0 {
			t.Error("no progress reported")
		}
	}
}

func TestLossyLink(t *testing.T) {
	var buf bytes.Buffer
	tr := serve(t, 1, func(s *server) { s.drop = func(n int) bool { return n%37 == 0 } })
	r, err := Run(t.Context(), options(t, tr, output.NewStream(&buf, "buffer")))
	if err != nil || !bytes.Equal(buf.Bytes(), object) {
		t.Fatalf("%v, %+v", err, r)
	}
	if r.Stats.Retransmissions == 0 {
		t.Error("nothing was repeated")
	}
}

func TestBadDigest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := output.CreateFile(path, "all")
	if err != nil {
		t.Fatal(err)
	}
	tr := serve(t, 1, func(s *server) {
		s.mangle = func(seg uint64, w []byte) []byte {
			if seg == 200 {
				w = bytes.Clone(w)
				w[len(w)/2] ^= 1
			}
			return w
		}
	})
	r, err := Run(t.Context(), options(t, tr, f))
	if !errors.Is(err, output.ErrVerify) || r.Complete || r.Output.Verified {
		t.Fatalf("error %v, %+v", err, r)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("something is left under the final name")
	}
	if b, err := os.ReadFile(path + ".part"); err == nil && !bytes.HasPrefix(object, b) {
		t.Error("the part file holds wrong bytes")
	}
}

func TestWrongHash(t *testing.T) {
	for _, where := range []string{"wanted", "stated"} {
		path := filepath.Join(t.TempDir(), "out")
		f, err := output.CreateFile(path, "all")
		if err != nil {
			t.Fatal(err)
		}
		tr := serve(t, 1, func(s *server) {
			if where == "stated" {
				s.sha = make([]byte, 32)
			}
		})
		o := options(t, tr, f)
		if where == "wanted" {
			o.Output.Want = make([]byte, 32)
		}
		if _, err = Run(t.Context(), o); !errors.Is(err, output.ErrVerify) {
			t.Fatalf("%s: error %v", where, err)
		}
		left, _ := filepath.Glob(path + "*")
		if len(left) != 0 {
			t.Errorf("%s: left behind: %v", where, left)
		}
	}
}

func TestInterruptAndResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := output.CreateFile(path, "all")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tr := serve(t, 1, func(s *server) {
		s.hook = func(n int) {
			if n == 150 {
				cancel()
			}
		}
		s.drop = func(n int) bool { return n >= 150 }
	})
	if _, err = Run(ctx, options(t, tr, f)); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("something is left under the final name")
	}
	part, err := os.ReadFile(path + ".part")
	if err != nil || len(part) == 0 || !bytes.HasPrefix(object, part) {
		t.Fatalf("part file of %d bytes: %v", len(part), err)
	}

	t.Run("another version", func(t *testing.T) {
		f, err := output.ResumeFile(t.Context(), path, "all", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Run(t.Context(), options(t, serve(t, 2, nil), f))
		if !errors.Is(err, output.ErrOtherObject) || !strings.Contains(err.Error(), "/run/test/v=1,") ||
			!strings.Contains(err.Error(), "/run/test/v=2;") {
			t.Fatalf("error %v", err)
		}
		if now, err := os.ReadFile(path + ".part"); err != nil || !bytes.Equal(now, part) {
			t.Fatal("the part file was touched")
		}
	})
	t.Run("another range", func(t *testing.T) {
		if _, err := output.ResumeFile(t.Context(), path, "bytes 1-", nil); !errors.Is(err, output.ErrOtherObject) {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("same version", func(t *testing.T) {
		sum := sha256.New()
		f, err := output.ResumeFile(t.Context(), path, "all", sum)
		if err != nil {
			t.Fatal(err)
		}
		o := options(t, serve(t, 1, nil), f)
		o.Prefix = sum
		want := sha256.Sum256(object)
		o.Output.Want = want[:]
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, object) {
			t.Fatalf("%d bytes under the final name: %v", len(b), err)
		}
		if r.Stats.Bytes+uint64(len(part)) != uint64(len(object)) {
			t.Errorf("fetched %d bytes, had %d", r.Stats.Bytes, len(part))
		}
		left, _ := filepath.Glob(path + ".*")
		if len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// full is a device that is full after some bytes.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.left {
		n := f.left
		f.left = 0
		return n, syscall.ENOSPC
	}
	f.left -= len(p)
	return len(p), nil
}

func TestFullOutput(t *testing.T) {
	_, err := Run(t.Context(), options(t, serve(t, 1, nil), output.NewStream(&full{100_000}, "disk")))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v", err)
	}
}

func TestClosedPipe(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		io.CopyN(io.Discard, r, 1000)
		r.Close()
	}()
	_, err := Run(t.Context(), options(t, serve(t, 1, nil), output.NewStream(w, "pipe")))
	if !errors.Is(err, output.ErrNoReader) {
		t.Fatalf("error %v", err)
	}
}

// A reader slower than the network holds the fetch back; nothing is lost and
// nothing times out.
func TestSlowReader(t *testing.T) {
	r, w := io.Pipe()
	got := make(chan []byte, 1)
	var served atomic.Int64
	var early atomic.Int64
	go func() {
		// The first byte is read when the fetch has stopped asking.
		last := int64(-1)
		for last != served.Load() || last < 30 {
			last = served.Load()
			time.Sleep(20 * time.Millisecond)
		}
		early.Store(last)
		b, _ := io.ReadAll(r)
		got <- b
	}()
	o := options(t, serve(t, 1, func(s *server) { s.hook = func(int) { served.Add(1) } }), output.NewStream(w, "pipe"))
	o.Output.Backlog = 200_000
	o.Fetch.ReorderBytes = 200_000
	res, err := Run(t.Context(), o)
	w.Close()
	if err != nil || !bytes.Equal(<-got, object) {
		t.Fatalf("%v, %+v", err, res)
	}
	if n := early.Load(); n > 60 {
		t.Errorf("%d segments were asked for while nobody read", n)
	}
	if res.Stats.Timeouts != 0 {
		t.Errorf("%d timeouts", res.Stats.Timeouts)
	}
}

func TestNoRoute(t *testing.T) {
	tr := serve(t, 1, func(s *server) { s.nack = true })
	_, err := Run(t.Context(), options(t, tr, output.NewStream(io.Discard, "nothing")))
	if !errors.Is(err, consumer.ErrNoRoute) {
		t.Fatalf("error %v", err)
	}
}

func TestForwarderGoesAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := output.CreateFile(path, "all")
	if err != nil {
		t.Fatal(err)
	}
	tr := serve(t, 1, func(s *server) {
		s.hook = func(n int) {
			if n == 100 {
				go s.tr.Close()
			}
		}
		s.drop = func(n int) bool { return n > 100 }
	})
	if _, err = Run(t.Context(), options(t, tr, f)); !errors.Is(err, ErrTransport) {
		t.Fatalf("error %v", err)
	}
	if _, err := output.ResumeFile(t.Context(), path, "all", nil); err != nil {
		t.Fatalf("not resumable: %v", err)
	}
}

func TestForwarderComesBack(t *testing.T) {
	var buf bytes.Buffer
	first := serve(t, 1, func(s *server) {
		s.hook = func(n int) {
			if n == 100 {
				go s.tr.Close()
			}
		}
		s.drop = func(n int) bool { return n > 100 }
	})
	o := options(t, first, output.NewStream(&buf, "buffer"))
	tries := 0
	o.Redial = func() (face.Server, error) {
		if tries++; tries < 3 {
			return nil, errors.New("not yet")
		}
		return serve(t, 1, nil), nil
	}
	var told []error
	o.Connection = func(ended error) { told = append(told, ended) }
	r, err := Run(t.Context(), o)
	if err != nil || !bytes.Equal(buf.Bytes(), object) || tries != 3 {
		t.Fatalf("%v after %d tries, %+v", err, tries, r)
	}
	if len(told) != 2 || told[0] == nil || told[1] != nil {
		t.Errorf("told of the connection: %v", told)
	}
}

// TestForwarderStaysAway: who is given up for want of answers while the forwarder
// is away is told so, whether there is no connection or a silent one.
func TestForwarderStaysAway(t *testing.T) {
	for says, redial := range map[string]func() (face.Server, error){
		"no other (not yet)":            func() (face.Server, error) { return nil, errors.New("not yet") },
		"nothing came over another: no": func() (face.Server, error) { a, _ := mem.Pair(); return a, nil },
	} {
		gone := serve(t, 1, func(s *server) {
			s.hook = func(n int) {
				if n == 100 {
					go s.tr.Close()
				}
			}
			s.drop = func(n int) bool { return n > 100 }
		})
		o := options(t, gone, output.NewStream(io.Discard, "nothing"))
		o.Redial, o.Fetch.Retries, o.Fetch.Lifetime = redial, 0, 100*time.Millisecond
		told := 0
		o.Connection = func(ended error) { told++ }
		_, err := Run(t.Context(), o)
		if !errors.Is(err, ErrTransport) || !strings.Contains(err.Error(), says) || told != 1 {
			t.Errorf("told %d times; %v lacks %q", told, err, says)
		}
	}
}

// A forwarder that takes connections and ends them is not asked ever faster.
func TestForwarderTurnsUsAway(t *testing.T) {
	var first time.Time
	var took time.Duration
	tries := 0
	away := func() face.Server {
		a, b := mem.Pair()
		b.Close()
		return a
	}
	var buf bytes.Buffer
	o := options(t, away(), output.NewStream(&buf, "buffer"))
	o.Redial = func() (face.Server, error) {
		switch tries++; tries {
		case 1:
			first = time.Now()
		case 4:
			took = time.Since(first)
			return serve(t, 1, nil), nil
		}
		return away(), nil
	}
	told := 0
	o.Connection = func(error) { told++ }
	if _, err := Run(t.Context(), o); err != nil || !bytes.Equal(buf.Bytes(), object) {
		t.Fatal(err)
	}
	if told != 2 { // that it went and came, and nothing of those between
		t.Errorf("told %d times of the connection", told)
	}
	if least := firstRedial + 2*firstRedial + 4*firstRedial; took < least {
		t.Fatalf("tried 4 times within %v", took)
	}
}

func TestTrace(t *testing.T) {
	var events, cwnd, rtt bytes.Buffer
	o := options(t, serve(t, 1, func(s *server) { s.drop = func(n int) bool { return n == 40 } }), output.NewStream(io.Discard, "nothing"))
	tr := NewTrace(&events, &cwnd, &rtt)
	o.Tracer = tr
	o.Fetch.Range = consumer.Range{Kind: consumer.RangeSegments, From: 0, To: 99}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	last := -1.0
	for line := range strings.Lines(events.String()) {
		var e struct {
			T       float64
			Kind    string
			Segment *uint64
			Cwnd    float64
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if e.T < last || math.IsNaN(e.Cwnd) {
			t.Fatalf("bad line %s", line)
		}
		last = e.T
		kinds[e.Kind]++
	}
	if kinds["send"] != 102 || kinds["data"] != 101 || kinds["loss"]+kinds["timeout"] != 1 || kinds["window"] != 1 {
		t.Errorf("kinds %v", kinds)
	}
	if n := strings.Count(rtt.String(), "\n"); n != 100 {
		t.Errorf("%d lines of round-trip times", n)
	}
	if !strings.HasPrefix(cwnd.String(), "time\tcwndsize\n0.000000\t") {
		t.Errorf("window log begins with %.40q", cwnd.String())
	}
}
