package line

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets an eighth of an octave wide.
type histogram struct {
	count [496]int64
	n     int64
	max   time.Duration
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.max = max(h.max, d)
	h.n++
	i := int(d)
	if e := bits.Len64(uint64(d)); e > 3 {
		i = (e-3)*8 + int(d>>(e-4)) - 8
	}
	h.count[i]++
}

// quantile is the upper end of the bucket that holds quantile q, 0 when empty.
func (h *histogram) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	left := int64(q * float64(h.n))
	for i, c := range h.count {
		if left -= c; left < 0 {
			if i < 8 {
				return time.Duration(i)
			}
			return min(h.max, time.Duration(i%8+9)<<(i/8-1)-1)
		}
	}
	return h.max
}
