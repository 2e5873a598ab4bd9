package bestpath

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"ndnpop/ndn"
)

func TestWilson(t *testing.T) {
	for _, c := range []struct{ l, n, low, high float64 }{
		{0, 0, 0, 1}, {0, 10, 0, .213}, {10, 10, .787, 1}, {5, 100, .0247, .0986}, {50, 1000, .0398, .0625},
	} {
		low, high := wilson(c.l, c.n, false), wilson(c.l, c.n, true)
		if math.Abs(low-c.low) > .001 || math.Abs(high-c.high) > .001 {
			t.Errorf("%v of %v: %.4f…%.4f", c.l, c.n, low, high)
		}
	}
}

// TestWindowAgainstModel compares the sums with those of a list of everything.
func TestWindowAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type outcome struct {
			bucket int64
			lost   bool
		}
		var w window
		var all []outcome
		now := ndn.Time(1 << 40)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += ndn.Time(rapid.Int64Range(0, int64(bucket)*3).Draw(t, "pause") / 4)
			if rapid.IntRange(0, 9).Draw(t, "idle") == 0 {
				now += ndn.Time(bucket) * ndn.Time(rapid.IntRange(0, 20).Draw(t, "buckets"))
			}
			at := int64(now) / int64(bucket)
			switch op := rapid.IntRange(0, 5).Draw(t, "op"); op {
			case 0:
				w.forgive(now)
				for i := len(all) - 1; i >= 0; i-- {
					if all[i].lost && all[i].bucket > at-buckets {
						all = append(all[:i], all[i+1:]...)
						break
					}
				}
			default:
				w.add(now, op < 3)
				all = append(all, outcome{at, op < 3})
			}
			var n, l uint32
			for _, o := range all {
				if o.bucket > at-buckets {
					n++
					if o.lost {
						l++
					}
				}
			}
			if w.n != n || w.l != l {
				t.Fatalf("%d of %d, want %d of %d", w.l, w.n, l, n)
			}
			if lo, hi := w.limit(false), w.limit(true); !(0 <= lo && lo <= hi+1e-9 && hi <= 1) {
				t.Fatalf("limits %v…%v", lo, hi)
			}
		}
	})
}
