package stream

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
	"ndnpop/face/internal/share"
	"ndnpop/ndn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair makes two connected sockets.
func pair(t testing.TB) (a, b Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c.(Conn), s.(Conn)
}

type collect struct {
	frames [][]byte
	flush  int
}

func (c *collect) Receive(frames [][]byte) {
	for _, f := range frames {
		c.frames = append(c.frames, bytes.Clone(f))
	}
}
func (c *collect) Flush()       { c.flush++ }
func (c *collect) Closed(error) {}

// However the stream is cut, the same frames come out, up to the first that
// is malformed.
func TestDeliver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var b face.Frames
		n := rng.IntN(600)
		for i := range n {
			size := 16 + rng.IntN(200)
			if rng.IntN(20) == 0 {
				size = 16 + rng.IntN(ndn.MaxPacketSize-15)
			}
			facetest.Frame(&b, uint64(i), size)
		}
		stream := bytes.Clone(b.Buf)
		bad := rng.IntN(3) == 0
		if bad {
			stream = append(stream, 0x06, 0xfd, 0x22, 0x61)
		}
		var got collect
		var buf []byte
		var err error
		scratch := make([][]byte, 0, batchFrames)
		for len(stream) > 0 && err == nil {
			take := min(1+rng.IntN(20000), len(stream))
			buf = append(buf, stream[:take]...)
			stream = stream[take:]
			var used int
			used, err = deliver(buf, scratch, &got)
			buf = append(buf[:0], buf[used:]...)
		}
		if errors.Is(err, face.ErrFraming) != bad || len(got.frames) != n {
			t.Fatalf("%d of %d frames, %v", len(got.frames), n, err)
		}
		for i, f := range got.frames {
			if !bytes.Equal(f, b.Frame(i)) {
				t.Fatalf("frame %d has changed", i)
			}
		}
		if n > 0 && got.flush == 0 {
			t.Fatal("not flushed")
		}
	})
}

// A stream that does not begin as NDN does is ended at once, whatever follows: a
// web page can have a browser on this host send nearly anything else.
func TestForeignStreams(t *testing.T) {
	data := func() []byte {
		var b face.Frames
		facetest.Frame(&b, 1, 100)
		return b.Buf
	}()
	interest := ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/a")})
	lp := func(fields ...byte) []byte { return ndn.AppendTLV(nil, ndn.TypeLpPacket, fields) }
	token := func(n int) []byte {
		return ndn.AppendLpPacket(nil, &ndn.LpHeader{LpFields: &ndn.LpFields{PitToken: bytes.Repeat([]byte{'t'}, n)}}, interest)
	}
	for _, c := range []struct {
		name string
		in   []byte
		ok   bool
	}{
		{"Interest", interest, true},
		{"Data", data, true},
		{"link packet", ndn.AppendLpPacket(nil, &ndn.LpHeader{LpFields: &ndn.LpFields{CongestionMark: 1}}, interest), true},
		{"idle", lp(), true},
		{"what is no packet, but looks like one", lp(0xf1, 0), true},
		{"token of text", token(4), true},
		{"longest token of text", token(32), true},
		{"large", ndn.AppendLpPacket(nil, &ndn.LpHeader{LpFields: &ndn.LpFields{PitToken: []byte("token")}}, bytes.Repeat(data, 50)), true},

		{"GET", append([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), data...), false},
		{"POST", append([]byte("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), data...), false},
		{"a method of d", append([]byte("dX / HTTP/1.1\r\nHost: a.example:6363\r\nA: \x05\r\n\r\n"), data...), false},
		{"TLS", append([]byte{0x16, 3, 1, 0, 200}, data...), false},
		{"a type that is none here", append([]byte{0x99, 0}, data...), false},
		{"type 0", append([]byte{0, 0}, data...), false},
	} {
		for _, step := range []int{1, 3, 1 << 20} {
			in := inbox{pool: new(buffers)}
			var got collect
			var err error
			for rest := c.in; len(rest) > 0 && err == nil; {
				in.take()
				in.n = copy(in.buf.bytes[in.have:], rest[:min(step, len(rest))])
				rest = rest[in.n:]
				err = in.deliver(&got)
				in.release()
			}
			in.close()
			if c.ok && (err != nil || len(got.frames) != 1 || !bytes.Equal(got.frames[0], c.in)) {
				t.Errorf("%s, %d bytes at a time: %d frames, %v", c.name, step, len(got.frames), err)
			}
			if !c.ok && (!errors.Is(err, face.ErrFraming) || len(got.frames) != 0) {
				t.Errorf("%s, %d bytes at a time: %d frames, %v", c.name, step, len(got.frames), err)
			}
		}
	}
}

func TestQueue(t *testing.T) {
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var model []byte
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range 100 {
			switch rng.IntN(5) {
			case 0, 1:
				at := rng.IntN(200_000)
				p := noise[at : at+rng.IntN(100_000)]
				q.append(p)
				model = append(model, p...)
			case 2, 3:
				p := q.first()
				if (len(p) == 0) != (len(model) == 0) || !bytes.Equal(p, model[:len(p)]) {
					t.Fatal("the front differs")
				}
				if len(p) > 0 {
					n := rng.IntN(len(p) + 1)
					q.drop(n)
					model = model[n:]
				}
			case 4:
				if rng.IntN(10) == 0 {
					q.reset()
					model = nil
				}
			}
			if q.len != len(model) {
				t.Fatalf("%d bytes instead of %d", q.len, len(model))
			}
		}
	})
}

// A peer that does not drain: what was not dropped arrives whole and in
// order, although the socket takes frames in parts.
func TestNeverHalfAFrame(t *testing.T) {
	c, s := pair(t)
	defer c.Close()
	tr, err := New(s, face.Info{}, 200_000)
	if err != nil {
		t.Fatal(err)
	}
	var sink facetest.Sink
	done := make(chan error)
	go func() { done <- tr.Serve(&sink) }()
	rng := rand.New(rand.NewPCG(1, 2))
	want := [][]byte{}
	var b face.Frames
	dropped := 0
	for i := 0; dropped < 500 || i < 3000; i++ {
		b.Reset()
		facetest.Frame(&b, uint64(i), 16+rng.IntN(8000))
		if d := tr.Send(&b); d > 0 {
			dropped += d
		} else {
			want = append(want, bytes.Clone(b.Buf))
		}
		if n := tr.queued.Load(); n > 200_000+ndn.MaxPacketSize {
			t.Fatalf("%d bytes are queued", n)
		}
	}
	r, err := New(c, face.Info{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := &facetest.Sink{Raw: true}
	rdone := make(chan error)
	go func() { rdone <- r.Serve(got) }()
	facetest.Eventually(t, "the frames", func() bool { return got.Count() == len(want) })
	for i, f := range got.Frames() {
		if !bytes.Equal(f, want[i]) {
			t.Fatalf("frame %d differs", i)
		}
	}
	r.Close()
	if err := <-rdone; !errors.Is(err, face.ErrClosed) {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, face.ErrPeerClosed) {
		t.Error(err)
	}
}

// Close wakes a writer that waits for the peer.
func TestCloseWithFullQueue(t *testing.T) {
	c, s := pair(t)
	defer c.Close()
	tr, err := New(s, face.Info{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- tr.Serve(new(facetest.Sink)) }()
	var b face.Frames
	for i := range 100 {
		facetest.Frame(&b, uint64(i), 8000)
	}
	for tr.Send(&b) == 0 {
	}
	if tr.QueueLen() < DefaultQueue/2 {
		t.Errorf("queue of %d bytes", tr.QueueLen())
	}
	tr.Close()
	if err := <-done; !errors.Is(err, face.ErrClosed) {
		t.Error(err)
	}
	if n := tr.QueueLen(); n != 0 {
		t.Errorf("queue of %d bytes after the end", n)
	}
}

// Peers that do not read share what their listener may hold, and another one
// still gets what it reads late.
func TestDeafPeersShareTheMemory(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(inner, "tcp4://test", func(c net.Conn) (*Transport, error) {
		return New(c.(Conn), face.Info{}, 0)
	})
	l.share = share.New(DefaultQueue)
	accepted := make(chan *Transport, 1)
	ended := make(chan error)
	go func() {
		ended <- l.Serve(func(tr face.Transport) (face.Receiver, error) {
			accepted <- tr.(*Transport)
			return new(facetest.Sink), nil
		})
	}()
	var b face.Frames
	for i := range 100 {
		facetest.Frame(&b, uint64(i), 8000)
	}
	var peers []*Transport
	for i := range 9 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		tr := <-accepted
		peers = append(peers, tr)
		for n := 0; n < 3*b.Len(); {
			n += tr.Send(&b)
		}
		// The kernel takes some of it later.
		if n := tr.queued.Load(); n < share.Least/2 {
			t.Errorf("peer %d may have only %d bytes waiting", i, n)
		}
	}
	sum := int64(0)
	for _, tr := range peers {
		sum += tr.queued.Load()
	}
	if used := l.share.Used(); used != sum || used > DefaultQueue+9*(share.Least+8000) {
		t.Errorf("%d bytes wait, %d are noted of at most %d", sum, used, DefaultQueue)
	}
	for _, tr := range peers {
		tr.Close()
	}
	l.Close()
	<-ended
	for end := time.Now().Add(10 * time.Second); l.share.Used() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are still noted", l.share.Used())
		}
	}
}

// tired is a listener that runs out of descriptors now and then.
type tired struct {
	net.Listener
	n int
}

func (l *tired) Accept() (net.Conn, error) {
	if l.n++; l.n%2 == 1 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestAcceptSurvivesWantOfDescriptors(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(&tired{Listener: inner}, "tcp4://test", func(c net.Conn) (*Transport, error) {
		return New(c.(Conn), face.Info{}, 0)
	})
	failed := 0
	l.Failed = func(err error) {
		if failed++; !errors.Is(err, syscall.EMFILE) {
			t.Error(err)
		}
	}
	accepted := make(chan face.Transport, 4)
	done := make(chan error)
	go func() {
		done <- l.Serve(func(tr face.Transport) (face.Receiver, error) {
			accepted <- tr
			return new(facetest.Sink), nil
		})
	}()
	for range 3 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		(<-accepted).Close()
		c.Close()
	}
	l.Close()
	l.Close()
	if err := <-done; !errors.Is(err, face.ErrClosed) {
		t.Error(err)
	}
	if failed < 3 {
		t.Errorf("told of %d failures", failed)
	}
}

func BenchmarkOneGoroutine(b *testing.B) {
	c, s := pair(b)
	defer c.Close()
	tr, err := New(s, face.Info{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer tr.Close()
	const batch = 14
	var f face.Frames
	for i := range batch {
		facetest.Frame(&f, uint64(i), ndn.MaxPacketSize)
	}
	buf := make([]byte, bufferSize)
	frames := make([][]byte, 0, batchFrames)
	b.SetBytes(ndn.MaxPacketSize)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n%batch != 0 {
			continue
		}
		tr.Send(&f)
		for have := 0; have < len(f.Buf); {
			n, err := c.Read(buf[have:])
			if err != nil {
				b.Fatal(err)
			}
			have += n
			if have == len(f.Buf) {
				if used, err := deliver(buf[:have], frames, nothing{}); err != nil || used != have {
					b.Fatal(used, err)
				}
			}
		}
	}
}

type nothing struct{}

func (nothing) Receive([][]byte) {}
func (nothing) Flush()           {}
func (nothing) Closed(error)     {}

// TestWaitBelow: whoever waits goes on when the peer has read enough, and when
// the transport ends.
func TestWaitBelow(t *testing.T) {
	for _, read := range []bool{true, false} {
		a, b := pair(t)
		tr, err := New(a, face.Info{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- tr.Serve(&collect{}) }()
		tr.WaitBelow(0) // nothing is queued
		var f face.Frames
		deadline := time.Now().Add(10 * time.Second)
		for sent := uint64(0); int(tr.queued.Load()) <= 2<<20; sent++ {
			if time.Now().After(deadline) {
				t.Fatal("the queue does not fill")
			}
			f.Reset()
			facetest.Frame(&f, sent, 8000)
			tr.Send(&f)
		}
		done := make(chan struct{})
		go func() { tr.WaitBelow(1 << 20); close(done) }()
		buf := make([]byte, 64<<10)
		for waiting := true; waiting; {
			if !read {
				tr.Close()
			}
			select {
			case <-done:
				waiting = false
			default:
				if time.Now().After(deadline) {
					t.Fatal("it still waits")
				}
				if read {
					if _, err := b.Read(buf); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if n := tr.queued.Load(); read && n > 1<<20 {
			t.Errorf("%d bytes are queued", n)
		}
		tr.Close()
		b.Close()
		<-served
	}
}
