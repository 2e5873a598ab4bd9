package bestpath

import (
	"math"
	"time"

	"ndnpop/ndn"
)

const (
	buckets = 8
	bucket  = 250 * time.Millisecond
	// fade is what a bucket's time leaves of the older counts: they halve in
	// 8 s, so that about the last 16 s count.
	fade = 0.9786
	// certainty is the square of the standard score: 1.645 for a chance of 5 %
	// on either side.
	certainty = 2.706
	// changed is how many losses are missing when the older loss is no longer
	// believed: a chance of e^-5.
	changed = 5
	// deadLoss of at least deadSamples is a dead path.
	deadLoss, deadSamples = 0.9, 4
)

// window counts Interests and those of them that were lost, over the last 2 s
// and, fading, over a longer time.
type window struct {
	now   int64 // number of the current bucket
	sent  [buckets]uint32
	lost  [buckets]uint32
	n, l  uint32  // sums of the above
	oldN  float64 // fading counts, including the window
	oldL  float64
	inRow uint32 // lost in a row, up to now
	good  uint32 // not lost in a row, up to now
}

// advance drops what has become too old.
func (w *window) advance(now ndn.Time) {
	at := int64(now) / int64(bucket)
	steps := at - w.now
	if steps <= 0 {
		return
	}
	w.now = at
	for k := range min(steps, buckets) {
		i := (at - k) % buckets
		w.n, w.l = w.n-w.sent[i], w.l-w.lost[i]
		w.sent[i], w.lost[i] = 0, 0
	}
	f := fade
	if steps > 1 {
		f = math.Pow(fade, float64(steps))
	}
	w.oldN, w.oldL = w.oldN*f, w.oldL*f
}

// add counts an Interest.
func (w *window) add(now ndn.Time, lost bool) {
	w.advance(now)
	i := w.now % buckets
	w.sent[i]++
	w.n++
	w.oldN++
	if lost {
		w.lost[i]++
		w.l++
		w.oldL++
		w.inRow, w.good = w.inRow+1, 0
		return
	}
	w.inRow, w.good = 0, w.good+1
	if w.oldL > 0 && float64(w.good)*w.oldL > changed*w.oldN {
		// So many in a row do not fit to the loss so far: the path healed.
		w.oldN, w.oldL = float64(w.good), 0
	}
}

// forgive takes back the latest loss that is still counted.
func (w *window) forgive(now ndn.Time) {
	w.advance(now)
	for k := range int64(buckets) {
		i := (w.now - k + buckets) % buckets
		if w.lost[i] > 0 {
			w.lost[i]--
			w.sent[i]--
			w.n, w.l = w.n-1, w.l-1
			w.oldN, w.oldL = max(0, w.oldN-1), max(0, w.oldL-1)
			return
		}
	}
}

// rate is the loss over the last 2 s.
func (w *window) rate() float64 {
	if w.n == 0 {
		return 0
	}
	return float64(w.l) / float64(w.n)
}

// dead reports whether nearly nothing comes back.
func (w *window) dead() bool {
	return w.n >= deadSamples && w.rate() >= deadLoss || w.inRow >= 2*deadSamples
}

// limit is the upper or lower limit of the loss. The longer memory narrows it
// as long as the last 2 s do not contradict.
func (w *window) limit(upper bool) float64 {
	short := wilson(float64(w.l), float64(w.n), upper)
	long := wilson(min(w.oldL, w.oldN), w.oldN, upper)
	rate := w.rate()
	switch {
	case upper && long < short && rate <= long, !upper && long > short && rate >= long && w.n > 0:
		return long
	}
	return short
}

// wilson is a limit of Wilson's score interval for l of n (E. B. Wilson,
// Probable inference, 1927).
func wilson(l, n float64, upper bool) float64 {
	if l == 0 || n < 1e-6 { // nothing was lost, or that is forgotten
		if upper {
			return certainty / (n + certainty)
		}
		return 0
	}
	p := l / n
	spread := math.Sqrt(certainty*p*(1-p)/n + certainty*certainty/(4*n*n))
	if !upper {
		spread = -spread
	}
	return max(0, (p+certainty/(2*n)+spread)/(1+certainty/n))
}
