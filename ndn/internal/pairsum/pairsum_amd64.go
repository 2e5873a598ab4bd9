package pairsum

import (
	"crypto/fips140"
	"crypto/sha256"
	"encoding/binary"
)

const blockSize = sha256.BlockSize

// able is whether the processor has the instructions that blocks uses, and may: in
// FIPS 140-3 mode only the validated module of crypto is to make digests.
var able = supported() && !fips140.Enabled()

// supported asks the processor (CPUID) for SHA, SSE4.1 and SSSE3.
func supported() bool

// blocks puts n blocks of each message, at least one, into its hash value: those
// at p into x, and those at q into y.
//
//go:noescape
func blocks(x, y *[8]uint32, p, q *byte, n int, constants *[64]uint32)

// both makes the digests of two messages of which, padded, the first whole blocks
// are as many, and the last ones too.
func both(a, b []byte) (x, y [sha256.Size]byte, ok bool) {
	n := len(a) / blockSize
	if !able || n == 0 || n != len(b)/blockSize {
		return x, y, false
	}
	var s, t [2 * blockSize]byte
	last := pad(&s, a[n*blockSize:], len(a))
	if last != pad(&t, b[n*blockSize:], len(b)) {
		return x, y, false
	}
	h, g := initial, initial
	blocks(&h, &g, &a[0], &b[0], n, &constants)
	blocks(&h, &g, &s[0], &t[0], last, &constants)
	return digest(&h), digest(&g), true
}

// pad makes the last blocks of a message of size bytes: what is left of it and
// the padding. It returns how many they are.
func pad(to *[2 * blockSize]byte, left []byte, size int) int {
	n := 1
	if len(left) >= blockSize-8 {
		n = 2
	}
	to[copy(to[:], left)] = 0x80
	binary.BigEndian.PutUint64(to[n*blockSize-8:], uint64(size)*8)
	return n
}

func digest(h *[8]uint32) (d [sha256.Size]byte) {
	for i, w := range h {
		binary.BigEndian.PutUint32(d[4*i:], w)
	}
	return d
}

// The initial hash value and the constants of FIPS 180-4, 5.3.3 and 4.2.2.
var (
	initial = [8]uint32{
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	}
	constants = [64]uint32{
		0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
		0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
		0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
		0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
		0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
		0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
		0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
		0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
	}
)
