package cc

import "time"

// Constants of HyStart++ (RFC 9406, section 4.3).
const (
	hystartMinThresh = 4 * time.Millisecond
	hystartMaxThresh = 16 * time.Millisecond
	hystartDivisor   = 8
	hystartSamples   = 8
	cssGrowthDivisor = 4
	cssRounds        = 5
)

// hystart is the modified slow start of RFC 9406: it watches the smallest RTT
// of each round, grows four times slower once it has risen (conservative slow
// start), and ends slow start when it stays risen for five rounds. Deviation:
// it ends at once when the RTT rises by a second threshold; on a short fast
// path, five rounds are enough to overflow the queues. The zero value begins
// in slow start.
type hystart struct {
	roundEnd         uint64 // transmission number that ends the round
	curMin, lastMin  time.Duration
	samples          int
	css              bool
	cssBase          time.Duration
	cssRoundsElapsed int
}

// onData returns by how much the window grows, and whether slow start ends.
func (h *hystart) onData(s *Sample) (inc float64, exit bool) {
	if s.Tx > h.roundEnd {
		h.roundEnd = s.HighTx
		if h.css && h.samples > 0 {
			if h.cssRoundsElapsed++; h.cssRoundsElapsed >= cssRounds {
				return 0, true
			}
		}
		h.lastMin, h.curMin, h.samples = h.curMin, 0, 0
	}
	if s.RTT > 0 {
		if h.samples == 0 || s.RTT < h.curMin {
			h.curMin = s.RTT
		}
		h.samples++
	}
	if h.samples >= hystartSamples {
		thresh := max(hystartMinThresh, min(h.lastMin/hystartDivisor, hystartMaxThresh))
		switch {
		case h.css && h.curMin < h.cssBase:
			// The rise was a passing one.
			h.css = false
		case h.css && h.curMin >= h.cssBase+thresh:
			return 0, true
		case !h.css && h.lastMin > 0 && h.curMin >= h.lastMin+thresh:
			h.css, h.cssBase, h.cssRoundsElapsed = true, h.curMin, 0
		}
	}
	if h.css {
		return 1.0 / cssGrowthDivisor, false
	}
	return 1, false
}
