package facetest

import (
	"testing"
)

// Benchmark measures a frame's way from one end to the other, two goroutines
// included, in batches that wait for each other.
func Benchmark(b *testing.B, c Case, size int) {
	const batch = 32
	l, dial := c.Listen(b)
	next, stop := c.Loop(b, l, dial, batch, size)
	defer stop()
	b.SetBytes(int64(size))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		// One turn of the loop is one frame.
		if n++; n%batch == 0 {
			next()
		}
	}
}
