//go:build unix

package output

import (
	"os"
	"syscall"
	"testing"
	"time"

	"ndnpop/consumer"
	"ndnpop/ndn"
)

// processor is the processor time that the process has taken.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Skip("no processor times here:", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDigest compares, in turns, what becomes of a segment in cat after
// its arrival, from Deliver to the write, with its digest alone, of two at a time:
// cpu-over-ns is the processor time that it takes beyond that.
func BenchmarkDigest(b *testing.B) {
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	p := NewPipe(Config{Verify: VerifyDigest}, NewStream(out, "null"), nil)
	w, err := ndn.AppendData(nil, &ndn.DataFields{Name: ndn.MustName("/a/v=1/seg=0"), Content: make([]byte, 8000)}, ndn.DigestSigner{})
	if err != nil {
		b.Fatal(err)
	}
	var d ndn.Data
	if err := d.Parse(w); err != nil {
		b.Fatal(err)
	}
	pc := consumer.Piece{Wire: d.Wire, Content: d.Content}
	const many, each = 32, 16 // a read of a socket brings about 16
	var piping, hashing time.Duration
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		begin := processor(b)
		for range many {
			for range each {
				p.Deliver(&pc)
			}
			p.Kick()
		}
		p.Settle()
		between := processor(b)
		for range many * each / 2 {
			ndn.VerifyDigests(&d, &d)
		}
		piping, hashing = piping+between-begin, hashing+processor(b)-between
		n += many * each
	}
	b.ReportMetric(float64(hashing.Nanoseconds())/float64(n), "cpu-hash-ns")
	b.ReportMetric(float64((piping-hashing).Nanoseconds())/float64(n), "cpu-over-ns")
	b.ReportMetric(0, "ns/op")
	if _, err := p.Close(nil, false); err != nil {
		b.Fatal(err)
	}
}
