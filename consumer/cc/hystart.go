package cc

import (
	"time"

	"ndnpop/ndn"
)

// Constants of HyStart++ (RFC 9406, section 4.3), and the share of the smallest
// RTT that a pause ends a train of Data after.
const (
	hystartMinThresh = 4 * time.Millisecond
	hystartMaxThresh = 16 * time.Millisecond
	hystartDivisor   = 8
	hystartSamples   = 8
	cssGrowthDivisor = 4
	cssRounds        = 5
	trainGapDivisor  = 8
)

// hystart is the modified slow start of RFC 9406: it watches the smallest RTT
// of each round, grows four times slower once it has risen (conservative slow
// start), and ends slow start when it stays risen for five rounds. Deviations:
//
//   - It ends at once when the RTT rises by a second threshold; on a short fast
//     path, five rounds are enough to overflow the queues.
//   - The smallest RTT of a round is that of its first Data, and rises a round
//     after the window has filled the path, when it has doubled once more. Data
//     that come without a pause for half of that RTT tell so in time: by then the
//     window is what the path holds (the train of the first HyStart, Ha and Rhee
//     2011). They slow the growth. An RTT that rises ends slow start if a train was
//     half of it.
//   - Jitter makes trains of few Data, too. What fills a path comes in a train of a
//     whole round trip in the next round, or late. Where it does neither, trains say
//     nothing.
//   - What a cache nearby sends may be a train as well. An RTT at least twice as long,
//     from one round to the next and after a train of less than half of it, is no
//     queue of one's own but the path behind the cache, of which nothing is known. A
//     path tag tells it, too (PathChanger); Data that have one are not judged so.
//
// The zero value begins in slow start, on a path that nothing is known of.
type hystart struct {
	roundEnd         uint64 // transmission number that ends the round
	curMin, lastMin  time.Duration
	samples          int
	css              bool
	cssBase          time.Duration
	cssRoundsElapsed int

	least            time.Duration // smallest RTT of all
	trainAt, trainTo ndn.Time      // of the Data without a pause from the round's first on
	lastTrain        time.Duration // of the round before
	full             bool          // a train was as long as half of its round's smallest RTT
	began            bool          // full when the round began
	smeared          bool          // trains say nothing on this path
}

// onData returns by how much the window grows, and whether slow start ends.
func (h *hystart) onData(s *Sample) (inc float64, exit bool) {
	if s.Tx > h.roundEnd {
		if h.css && h.samples > 0 {
			h.cssRoundsElapsed++
			exit = h.cssRoundsElapsed >= cssRounds
		}
		if h.began && h.train() < h.curMin*7/8 && h.curMin < h.least+h.least/16 {
			h.full, h.smeared = false, true
		}
		h.began = h.full
	}
	h.observe(s)
	if exit {
		return 0, true
	}
	h.full = h.full || !h.smeared && h.trainTo == s.Now && h.samples > 0 && h.train() >= h.curMin/2
	if h.samples >= hystartSamples {
		thresh := max(hystartMinThresh, min(h.lastMin/hystartDivisor, hystartMaxThresh))
		switch {
		case h.full && h.curMin >= h.least+thresh && max(h.lastTrain, h.train()) >= h.curMin/2:
			return 0, true
		case h.css && h.curMin < h.cssBase:
			// The rise was a passing one.
			h.css = false
		case h.css && h.curMin >= h.cssBase+thresh:
			return 0, true
		case !h.css && h.lastMin > 0 && h.curMin >= h.lastMin+thresh:
			h.css, h.cssBase, h.cssRoundsElapsed = true, h.curMin, 0
		}
	}
	if h.css || h.full {
		return 1.0 / cssGrowthDivisor, false
	}
	return 1, false
}

// observe measures a round and its train. It reports whether Data without tags
// come by a much longer path, and begins anew on it. In slow start onData calls it.
func (h *hystart) observe(s *Sample) (longer bool) {
	if s.Tx > h.roundEnd {
		h.roundEnd = s.HighTx
		h.lastTrain = h.train()
		h.lastMin, h.curMin, h.samples = h.curMin, 0, 0
		h.trainAt, h.trainTo = s.Now, s.Now
	}
	if s.RTT > 0 {
		if h.samples == 0 || s.RTT < h.curMin {
			h.curMin = s.RTT
		}
		h.samples++
		if h.least == 0 || s.RTT < h.least {
			h.least = s.RTT
		}
	}
	if s.Now.Sub(h.trainTo) <= h.least/trainGapDivisor {
		h.trainTo = s.Now
	}
	longer = s.Tag == 0 && h.samples == hystartSamples && h.lastMin > 0 && h.lastTrain < h.curMin/2 &&
		h.curMin >= max(2*h.least, h.lastMin+max(h.lastMin/2, hystartMinThresh))
	if longer {
		// A round of the new path ends with what leaves from now on.
		*h = hystart{
			roundEnd: s.HighTx, curMin: h.curMin, samples: h.samples, least: h.curMin,
			trainAt: s.Now, trainTo: s.Now,
		}
	}
	return longer
}

// train is for how long Data have come without a pause in this round.
func (h *hystart) train() time.Duration { return h.trainTo.Sub(h.trainAt) }
