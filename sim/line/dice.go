package line

import "math"

// dice are random numbers by index: what the i-th packet gets does not depend
// on what was asked about others. It is splitmix64 (Steele, Lea and Flood,
// OOPSLA 2014), whose i-th output can be computed directly, keyed by a hash of
// seed and stream.
type dice struct{ key, n uint64 }

func newDice(seed, stream uint64) dice {
	return dice{key: finish(finish(seed) + golden*(stream+1))}
}

const golden = 0x9e3779b97f4a7c15

func finish(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// next turns to the next packet and returns its index.
func (d *dice) next() uint64 {
	d.n++
	return d.n - 1
}

// unit is the k-th variate (0 or 1) of packet i, uniform in [0, 1).
func (d *dice) unit(i, k uint64) float64 {
	return float64(finish(d.key+golden*(2*i+k+1))>>11) * 0x1p-53
}

// exp is the k-th variate of packet i, exponential with mean 1.
func (d *dice) exp(i, k uint64) float64 { return -math.Log(1 - d.unit(i, k)) }
