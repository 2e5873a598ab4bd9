package consumer

import (
	"slices"
	"time"
)

// Bounds of the guard.
const (
	guardWindow   = 256 // RTT samples
	guardFirst    = 32  // samples before the first look
	guardEvery    = 64  // samples between looks
	guardRatio    = 1.5 // between the far and the near samples
	guardGap      = 2 * time.Millisecond
	guardFar      = 0.4 // least share of far samples
	guardOvertook = 0.75
)

// bimodal tells Data of a near source, a cache on the way, from those of the
// far one when no path tags do: the RTTs of the last 256 samples fall into two
// groups with a gap between them, and the near ones overtook earlier
// transmissions, which on one path they cannot. The gap has to be wider than
// what batching and scheduling in hosts make.
//
// It takes the place of a test of the 20th percentile against the minimum,
// which a queue that grows and drains passes too.
type bimodal struct {
	ring   [guardWindow]int64 // RTT in ns, doubled, plus 1 if it overtook
	sorted [guardWindow]int64
	n, at  int
	passed int           // samples in ring that overtook
	look   int           // samples until the next look
	far    time.Duration // smallest RTT of the far source, 0: one source
}

// sample takes an RTT and whether earlier transmissions are still unanswered,
// and reports whether the sample is a near one and whether two sources are
// told apart from now on.
func (g *bimodal) sample(rtt time.Duration, overtook bool) (near, began bool) {
	v := 2 * int64(rtt)
	if overtook {
		v++
	}
	g.passed += int(v&1) - int(g.ring[g.at]&1)
	g.ring[g.at] = v
	g.at = (g.at + 1) % guardWindow
	g.n = min(g.n+1, guardWindow)
	if g.look--; g.look <= 0 && g.n >= guardFirst {
		g.look = guardEvery
		before := g.far
		g.far = g.split()
		began = before == 0 && g.far > 0
	}
	return g.far > 0 && float64(rtt)*guardRatio < float64(g.far), began
}

// split returns the smallest RTT of the far group, 0 when there is one group.
func (g *bimodal) split() time.Duration {
	if g.passed == 0 && g.far == 0 {
		return 0 // by far the most common case
	}
	s := g.sorted[:g.n]
	copy(s, g.ring[:g.n])
	slices.Sort(s)
	overtook := 0
	for i := 1; i <= int(float64(g.n)*(1-guardFar)); i++ {
		overtook += int(s[i-1] & 1)
		near, far := time.Duration(s[i-1]/2), time.Duration(s[i]/2)
		if far-near >= guardGap && float64(far) >= guardRatio*float64(near) &&
			float64(overtook) >= guardOvertook*float64(i) {
			return far
		}
	}
	// Two sources that were told apart stay so while the far one answers: the
	// near one may just have had nothing for a while.
	floor, _ := slices.BinarySearch(s, int64(2/guardRatio*float64(g.far)))
	if g.far > 0 && float64(g.n-floor) >= guardFar*float64(g.n) {
		return time.Duration(s[floor] / 2)
	}
	return 0
}
