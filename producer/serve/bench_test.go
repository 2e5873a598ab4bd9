//go:build unix

package serve

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
	"ndnpop/producer"
	"ndnpop/producer/store"
)

// sink is a stream that takes everything.
type sink struct {
	sent chan int
	n    int
}

func (s *sink) Info() face.Info { return face.Info{Scope: face.ScopeLocal, Stream: true} }
func (s *sink) MTU() int        { return ndn.MaxPacketSize }
func (s *sink) Send(b *face.Frames) int {
	if s.n += b.Len(); s.n >= benchSegments {
		s.n -= benchSegments
		s.sent <- benchSegments
	}
	return 0
}
func (s *sink) QueueLen() int             { return 0 }
func (s *sink) Close() error              { return nil }
func (s *sink) Serve(face.Receiver) error { return face.ErrClosed }

const benchSegments = 1024

// newServed returns a connection whose Receive answers with segments of a
// file.
func newServed(tb testing.TB, writing bool) (*connection, *sink, [][]byte) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, benchSegments*8000), 0o600); err != nil {
		tb.Fatal(err)
	}
	st, err := store.NewFile(path, store.Options{SegmentSize: 8000, Room: 8500, Version: 1})
	if err != nil {
		tb.Fatal(err)
	}
	app, to := New(Config{}), &sink{sent: make(chan int, 1)}
	if app.handler, err = producer.New(producer.Config{Prefix: ndn.MustName("/cdn/x")}, st, app); err != nil {
		tb.Fatal(err)
	}
	c := app.connect(to)
	tb.Cleanup(func() { c.end(); st.Close() })
	if !writing && app.writer != nil {
		app.writer.close()
		app.writer = nil
	}
	frames := make([][]byte, benchSegments)
	for i := range frames {
		frames[i] = ndn.AppendInterest(nil, &ndn.InterestFields{
			Name: ndn.MustName("/cdn/x/v=1").AppendNumber(ndn.TypeSegment, uint64(i)), Nonce: uint32(i),
		})
	}
	return c, to, frames
}

func (c *connection) serveAll(s *sink, frames [][]byte) {
	for i := 0; i < len(frames); i += 256 {
		c.Receive(frames[i:min(i+256, len(frames))])
	}
	c.Flush()
	<-s.sent
}

// TestServingAllocates: nothing, with the writer and without.
func TestServingAllocates(t *testing.T) {
	for _, writing := range []bool{false, true} {
		c, s, frames := newServed(t, writing)
		c.serveAll(s, frames)
		// A goroutine that has to wait may take a record for it from the runtime.
		if n := testing.AllocsPerRun(10, func() { c.serveAll(s, frames) }); n > benchSegments/100 {
			t.Errorf("writer %t: %v allocations for %d segments", writing, n, benchSegments)
		}
	}
}

// processor is the processor time that the process has taken.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Skip("no processor times here:", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkServe compares, in turns, what put does for a segment of a file
// between the arrival of the Interest and the write to the socket with
// its digest alone, of two at a time: cpu-over-ns is the processor time that it
// takes beyond that, ratio the time until all is done over that of hashing.
func BenchmarkServe(b *testing.B) {
	for _, w := range []struct {
		name    string
		writing bool
	}{{"one goroutine", false}, {"beside", true}} {
		b.Run(w.name, func(b *testing.B) {
			c, s, frames := newServed(b, w.writing)
			x, err := ndn.AppendData(nil, &ndn.DataFields{Name: ndn.MustName("/cdn/x/v=1/seg=0"), Content: make([]byte, 8000)}, ndn.DigestLater{})
			if err != nil {
				b.Fatal(err)
			}
			y := bytes.Clone(x)
			c.serveAll(s, frames)
			var serving, hashing, servingCPU, hashingCPU time.Duration
			n := 0
			for b.Loop() {
				begin, beginCPU := time.Now(), processor(b)
				c.serveAll(s, frames)
				between, betweenCPU := time.Now(), processor(b)
				for range len(frames) / 2 {
					ndn.FillDigests(x, y)
				}
				serving, hashing = serving+between.Sub(begin), hashing+time.Since(between)
				servingCPU, hashingCPU = servingCPU+betweenCPU-beginCPU, hashingCPU+processor(b)-betweenCPU
				n += len(frames)
			}
			b.ReportMetric(float64(hashingCPU.Nanoseconds())/float64(n), "cpu-hash-ns")
			b.ReportMetric(float64((servingCPU-hashingCPU).Nanoseconds())/float64(n), "cpu-over-ns")
			b.ReportMetric(float64(serving)/float64(hashing), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
