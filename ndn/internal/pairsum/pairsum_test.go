package pairsum

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestSum256: the digests are those of crypto/sha256, whatever the lengths are
// and wherever the messages lie.
func TestSum256(t *testing.T) {
	buf := make([]byte, 2*10_000+128)
	rand.NewChaCha8([32]byte{1}).Read(buf)
	check := func(t interface{ Fatalf(string, ...any) }, a, b []byte) {
		if x, y := Sum256(a, b); x != sha256.Sum256(a) || y != sha256.Sum256(b) {
			t.Fatalf("a digest of %d and %d bytes is wrong", len(a), len(b))
		}
	}
	for n := range 200 {
		for m := range 200 {
			check(t, buf[:n], buf[300:][:m])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 10_000).Draw(t, "n")
		m := max(0, n+rapid.IntRange(-70, 70).Draw(t, "difference"))
		check(t, buf[rapid.IntRange(0, 63).Draw(t, "a"):][:n], buf[n+rapid.IntRange(0, 63).Draw(t, "b"):][:min(m, 10_000)])
	})
}

// TestSum256Allocates: nothing.
func TestSum256Allocates(t *testing.T) {
	buf := make([]byte, 2000)
	if n := testing.AllocsPerRun(100, func() { Sum256(buf[:1000], buf[1000:]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSum256(b *testing.B) {
	x, y := make([]byte, 8060), make([]byte, 8060)
	for _, c := range []struct {
		name string
		sum  func()
	}{
		{"pair", func() { Sum256(x, y) }},
		{"one by one", func() { sha256.Sum256(x); sha256.Sum256(y) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(2 * 8060)
			for b.Loop() {
				c.sum()
			}
		})
	}
}
