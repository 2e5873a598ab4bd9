package ndn

import (
	"encoding/binary"
	"math/bits"
)

// Hasher computes the hashes of all prefixes of a name in one pass. Each
// prefix's hash continues that of the one before it (a multiply-and-fold hash
// in the manner of wyhash), keyed by a secret so that peers cannot choose
// names that collide. The zero Hasher is not usable.
type Hasher struct{ root, k0, k1 uint64 }

// NewHasher returns a hasher keyed by seed: random in production, fixed where
// runs must repeat exactly.
func NewHasher(seed uint64) Hasher {
	next := func() uint64 { // splitmix64
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	return Hasher{next(), next() | 1, next() | 1}
}

// Root is the hash of the empty name.
func (h Hasher) Root() uint64 { return h.root }

// Prefixes appends to dst the hashes of the prefixes of n: dst[0] belongs to
// the empty name, dst[i] to the first i components, up to MaxComponents and an
// implicit digest.
func (h Hasher) Prefixes(n Name, dst []uint64) []uint64 {
	x := h.root
	dst = append(dst, x)
	for c := 0; len(n) > 0 && c <= MaxComponents; c++ {
		_, l, short := shortTL(n)
		size := 2 + l
		if !short {
			_, l, hl, err := ReadTL(n)
			if err != nil {
				break
			}
			size = hl + l
		}
		x = h.step(x, n[:size])
		dst = append(dst, x)
		n = n[size:]
	}
	return dst
}

// Name returns the hash of the whole name.
func (h Hasher) Name(n Name) uint64 {
	x := h.root
	for len(n) > 0 {
		_, l, hl, err := ReadTL(n)
		if err != nil {
			break
		}
		x = h.step(x, n[:hl+l])
		n = n[hl+l:]
	}
	return x
}

// Extend returns the hash of a name whose hash is x followed by the
// components in more.
func (h Hasher) Extend(x uint64, more Name) uint64 {
	for len(more) > 0 {
		_, l, hl, err := ReadTL(more)
		if err != nil {
			break
		}
		x = h.step(x, more[:hl+l])
		more = more[hl+l:]
	}
	return x
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func (h Hasher) step(x uint64, b []byte) uint64 {
	n := uint64(len(b))
	for len(b) > 16 {
		x = fold(binary.LittleEndian.Uint64(b)^h.k0, binary.LittleEndian.Uint64(b[8:])^x)
		b = b[16:]
	}
	var lo, hi uint64
	switch {
	case len(b) >= 8:
		lo = binary.LittleEndian.Uint64(b)
		hi = binary.LittleEndian.Uint64(b[len(b)-8:])
	case len(b) >= 4:
		lo = uint64(binary.LittleEndian.Uint32(b))
		hi = uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	case len(b) > 0:
		lo = uint64(b[0])<<16 | uint64(b[len(b)/2])<<8 | uint64(b[len(b)-1])
	}
	return fold(fold(lo^h.k0, hi^x)^n, h.k1)
}
