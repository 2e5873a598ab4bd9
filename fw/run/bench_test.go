package run

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/face/mem"
	"ndnpop/fw"
	"ndnpop/ndn"
)

// numbered are an Interest and its Data of fixed size whose name ends in a
// number, so that the far ends cost as little as possible.
type numbered struct {
	interest, data     []byte
	interestAt, dataAt int // of the number
}

func newNumbered(t testing.TB, size int) *numbered {
	const mark = 0x5a5a5a5a5a5a5a5a
	name := ndn.MustName("/bench").AppendNumber(ndn.TypeSegment, mark)
	n := &numbered{
		interest: ndn.AppendInterest(nil, &ndn.InterestFields{Name: name, Nonce: 1}),
		data:     dataWire(t, name, size),
	}
	at := func(b []byte) int {
		for i := range b {
			if binary.BigEndian.Uint64(b[i:]) == mark {
				return i
			}
		}
		return -1
	}
	n.interestAt, n.dataAt = at(n.interest), at(n.data)
	return n
}

// responder answers Interests of numbered.
type responder struct {
	n   *numbered
	tr  face.Transport
	out face.Frames
}

func (r *responder) Receive(frames [][]byte) {
	var p ndn.LpPacket
	for _, f := range frames {
		if p.Parse(f) != nil || p.Fragment == nil {
			continue
		}
		i := len(p.Fragment) - len(r.n.interest) + r.n.interestAt
		h := ndn.LpHeader{LpFields: &ndn.LpFields{PitToken: p.PitToken}}
		copy(r.n.data[r.n.dataAt:], p.Fragment[i:i+8])
		r.out.Buf = ndn.AppendLpPacket(r.out.Buf, &h, r.n.data)
		r.out.End()
	}
}

func (r *responder) Flush() {
	if r.out.Len() > 0 {
		r.tr.Send(&r.out)
		r.out.Reset()
	}
}
func (r *responder) Closed(error) {}

// fetcher keeps a window of Interests open.
type fetcher struct {
	n      *numbered
	tr     face.Transport
	out    face.Frames
	next   uint64
	got    uint64
	done   chan struct{}
	target atomic.Uint64
}

func (c *fetcher) ask() {
	binary.BigEndian.PutUint64(c.n.interest[c.n.interestAt:], 1<<63|c.next)
	c.next++
	c.out.Buf = append(c.out.Buf, c.n.interest...)
	c.out.End()
}

func (c *fetcher) Receive(frames [][]byte) {
	for range frames {
		if c.got++; c.next < c.target.Load() {
			c.ask()
		}
	}
}

func (c *fetcher) Flush() {
	if c.out.Len() > 0 {
		c.tr.Send(&c.out)
		c.out.Reset()
	}
	if c.got == c.target.Load() {
		c.done <- struct{}{}
	}
}
func (c *fetcher) Closed(error) {}

// pump sets up a consumer and a producer of numbered on two transports.
type pump struct {
	tb testing.TB
	f  *Forwarder
	c  *fetcher
}

func newPump(tb testing.TB, f *Forwarder, consumer, producer face.Server, size int) *pump {
	r := &responder{n: newNumbered(tb, size), tr: producer}
	c := &fetcher{n: newNumbered(tb, size), tr: consumer, done: make(chan struct{}, 1)}
	var ends [2]chan struct{}
	for i, s := range []struct {
		t face.Server
		r face.Receiver
	}{{consumer, c}, {producer, r}} {
		ends[i] = make(chan struct{})
		go func() { _ = s.t.Serve(s.r); close(ends[i]) }()
		tb.Cleanup(func() { _ = s.t.Close(); <-ends[i] })
	}
	return &pump{tb, f, c}
}

// fetch gets n Data with a window.
func (p *pump) fetch(n, window uint64) {
	c := p.c
	c.target.Store(c.next + n)
	// The receive goroutine is idle: nothing is outstanding.
	for range min(n, window) {
		c.ask()
	}
	// Answers come before Send returns.
	first := c.out
	c.out = face.Frames{}
	c.tr.Send(&first)
	select {
	case <-c.done:
	case <-time.After(patience + time.Duration(n)*100*time.Microsecond):
		for _, i := range p.f.Faces() {
			p.tb.Logf("%d %s %+v", i.ID, i.RemoteURI, i.Counters)
		}
		p.tb.Fatalf("stalled with %d of %d", c.got, c.target.Load())
	}
}

func benchForward(b *testing.B, f *Forwarder, size int, consumer, producer face.Server) {
	p := newPump(b, f, consumer, producer, size)
	p.fetch(2000, 256)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	p.fetch(uint64(b.N), 256)
}

func BenchmarkUnix8000(b *testing.B) {
	f := start(b, Options{})
	path := listenUnix(b, f)
	producer := dialUnix(b, path)
	eventuallyFace(b, f, "fd")
	i, _ := byScheme(f, "fd")
	addRoute(b, f, "/bench", i.ID)
	benchForward(b, f, 8000, dialUnix(b, path), producer)
}

func BenchmarkUDP8000(b *testing.B) {
	f := start(b, Options{})
	// The far ends do not prove their addresses.
	addr := listenUDP(b, f, "127.0.0.1:0", ListenOptions{Allowance: Allowance{Rate: -1}})
	producer := dialUDP(b, addr)
	producer.Send(&face.Frames{Buf: []byte{0x64, 0}, Ends: []int{2}})
	eventuallyFace(b, f, "udp4")
	i, _ := byScheme(f, "udp4")
	addRoute(b, f, "/bench", i.ID)
	benchForward(b, f, 8000, dialUDP(b, addr), producer)
}

func BenchmarkMem8000(b *testing.B) {
	f := start(b, Options{})
	near, producer := mem.Pair()
	i, err := f.AttachFace(near, "")
	if err != nil {
		b.Fatal(err)
	}
	near, consumer := mem.Pair()
	if _, err := f.AttachFace(near, ""); err != nil {
		b.Fatal(err)
	}
	addRoute(b, f, "/bench", i.ID)
	benchForward(b, f, 8000, consumer, producer)
}

func eventuallyFace(t testing.TB, f *Forwarder, scheme string) {
	t.Helper()
	eventually(t, "a face", func() bool { _, ok := byScheme(f, scheme); return ok })
}

// nullTransport takes what is sent and keeps nothing.
type nullTransport struct{ frames int }

func (t *nullTransport) Info() face.Info         { return face.Info{RemoteURI: "null://", Stream: true} }
func (t *nullTransport) MTU() int                { return ndn.MaxPacketSize }
func (t *nullTransport) Send(b *face.Frames) int { t.frames += b.Len(); return 0 }
func (t *nullTransport) QueueLen() int           { return 0 }
func (t *nullTransport) Close() error            { return nil }

// TestPacketPathAllocatesNothing drives batches of Interests and their Data
// through two faces.
func TestPacketPathAllocatesNothing(t *testing.T) {
	for _, size := range []int{1000, 8000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { packetPathAllocatesNothing(t, size) })
	}
}

func packetPathAllocatesNothing(t *testing.T, size int) {
	f := start(t, Options{Shard: fw.Config{Seed: 1}})
	var rx [2]*ingress
	var tx [2]*nullTransport
	var ids [2]ndn.FaceID
	for i := range rx {
		tx[i] = &nullTransport{}
		fc, err := f.addFace(newFace{tr: tx[i], persistency: face.PersistencyPersistent})
		if err != nil {
			t.Fatal(err)
		}
		rx[i], ids[i] = &ingress{fc: fc, tr: tx[i]}, fc.id
	}
	addRoute(t, f, "/bench", ids[1])
	const batch = 200 // more than is flushed at once
	n := newNumbered(t, size)
	var interests, datas [batch][]byte
	for i := range batch {
		interests[i] = append([]byte(nil), n.interest...)
		datas[i] = append([]byte(nil), n.data...)
	}
	seq := uint64(0)
	round := func() {
		for i := range batch {
			seq++
			binary.BigEndian.PutUint64(interests[i][n.interestAt:], 1<<63|seq)
			binary.BigEndian.PutUint64(datas[i][n.dataAt:], 1<<63|seq)
		}
		rx[0].Receive(interests[:])
		rx[0].Flush()
		rx[1].Receive(datas[:])
		rx[1].Flush()
	}
	// Tables and pools reach their size.
	for range 200 {
		round()
	}
	before := tx[0].frames
	// Collections are no part of the path.
	runtime.GC()
	if a := testing.AllocsPerRun(50, round); a != 0 {
		t.Errorf("%.1f allocations for %d Interests and Data", a, batch)
	}
	if got := tx[0].frames - before; got != 51*batch {
		t.Errorf("%d Data came back, want %d", got, 51*batch)
	}
}
