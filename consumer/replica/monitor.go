package replica

import (
	"time"

	"ndnpop/ndn"
)

// meterSlot and meterSlots bound the window over which a rate is measured.
const (
	meterSlot  = 50 * time.Millisecond
	meterSlots = 256
)

// meter counts bytes in slots of time.
type meter struct {
	began ndn.Time
	slot  int64 // number of the latest one used
	bytes [meterSlots]uint64
	total uint64
}

func (m *meter) reset(now ndn.Time) { *m = meter{began: now, slot: int64(now) / int64(meterSlot)} }

func (m *meter) add(now ndn.Time, n int) {
	m.move(now)
	m.bytes[m.slot%meterSlots] += uint64(n)
	m.total += uint64(n)
}

// move empties the slots that have become due.
func (m *meter) move(now ndn.Time) {
	to := int64(now) / int64(meterSlot)
	if to-m.slot >= meterSlots {
		m.slot = to - meterSlots
	}
	for m.slot < to {
		m.slot++
		m.bytes[m.slot%meterSlots] = 0
	}
}

// rate in bytes per second over a window that ends now, or since the reset
// when that is shorter.
func (m *meter) rate(now ndn.Time, window time.Duration) float64 {
	m.move(now)
	slots := min(max(1, int64(window/meterSlot)), meterSlots-1)
	sum := uint64(0)
	for k := range slots + 1 {
		sum += m.bytes[(m.slot-k+meterSlots)%meterSlots]
	}
	from := max(ndn.Time((m.slot-slots)*int64(meterSlot)), m.began)
	over := now.Sub(from)
	if over <= 0 {
		return 0
	}
	return float64(sum) / over.Seconds()
}

// baseSlots is the resolution of RTTbase's memory.
const baseSlots = 10

// floor is the smallest RTT of a time window.
type floor struct {
	min  [baseSlots]time.Duration
	slot [baseSlots]int64
}

func (f *floor) add(now ndn.Time, window, rtt time.Duration) {
	n := int64(now) / int64(window/baseSlots)
	i := n % baseSlots
	if f.slot[i] != n || f.min[i] == 0 || rtt < f.min[i] {
		f.slot[i], f.min[i] = n, rtt
	}
}

// at is 0 when nothing is remembered.
func (f *floor) at(now ndn.Time, window time.Duration) time.Duration {
	n := int64(now) / int64(window/baseSlots)
	least := time.Duration(0)
	for i := range f.min {
		if f.min[i] > 0 && n-f.slot[i] < baseSlots && (least == 0 || f.min[i] < least) {
			least = f.min[i]
		}
	}
	return least
}

// crest is the highest rate of a time window.
type crest struct {
	max  [baseSlots]float64
	slot [baseSlots]int64
}

func (c *crest) add(now ndn.Time, window time.Duration, rate float64) {
	n := int64(now) / int64(window/baseSlots)
	i := n % baseSlots
	if c.slot[i] != n || rate > c.max[i] {
		c.slot[i], c.max[i] = n, rate
	}
}

func (c *crest) at(now ndn.Time, window time.Duration) (most float64) {
	n := int64(now) / int64(window/baseSlots)
	for i := range c.max {
		if n-c.slot[i] < baseSlots {
			most = max(most, c.max[i])
		}
	}
	return most
}

// hostDelay is what batches and wake-ups in hosts make of an RTT, in the ordinary
// run of things: an RTTbase below it counts as this.
const hostDelay = 2 * time.Millisecond

// Growth of the rate in start-up, as BBR judges it: three rounds without a
// quarter more are the end of it, and one more lets the queue drain.
const (
	growth     = 1.25
	flatRounds = 4
)

// monitor judges the path of the present replica.
type monitor struct {
	cfg   *Config
	meter meter
	base  floor
	known time.Duration // the latest RTTbase that was known
	rtt   time.Duration // smallest of the last full round

	roundMin   time.Duration
	roundAt    ndn.Time
	roundBytes uint64 // meter.total at its start
	peak       float64
	flat       int
	suspicious int
	rates      crest // of the last ten seconds
	// Highest rate of a suspicious round in the present and the last period.
	best, lastBest float64
	bestAt         ndn.Time // when the present one began

	heard    ndn.Time // latest Data, or since when one is waited for
	timeouts int      // without Data between
	firstOut ndn.Time // of them
}

func (m *monitor) reset(now ndn.Time) {
	*m = monitor{cfg: m.cfg, roundAt: now, heard: now}
	m.meter.reset(now)
}

// rate is CurrentRate: bytes per second over max(1 s, 10 RTTbase), but not less
// than the path gave in a round trip under congestion just now, for a
// controller may pause by itself, as BBR does to measure the RTT.
func (m *monitor) rate(now ndn.Time) float64 {
	return max(m.meter.rate(now, max(time.Second, 10*m.known)), m.best, m.lastBest)
}

// before is the rate before the congestion: the highest of the last ten
// seconds. A controller that fills the queue by itself has an RTT as under heavy
// congestion long before anything happens to its path.
func (m *monitor) before(now ndn.Time) float64 { return m.rates.at(now, m.cfg.BaseWindow) }

func (m *monitor) data(s *Sample) {
	m.heard, m.timeouts = s.Now, 0
	if s.RoundStart {
		m.round(s.Now)
	}
	m.meter.add(s.Now, s.Size)
	if s.RTT > 0 && (m.roundMin == 0 || s.RTT < m.roundMin) {
		m.roundMin = s.RTT
	}
}

// round ends a round trip.
func (m *monitor) round(now ndn.Time) {
	r := m.roundRate(now)
	if m.roundMin == 0 && m.suspicious == 0 {
		return // nothing but repetitions, which have no RTT
	}
	if !m.exceeds(now) {
		m.suspicious, m.best, m.lastBest = 0, 0, 0
		m.base.add(now, m.cfg.BaseWindow, m.rtt)
		m.known = m.base.at(now, m.cfg.BaseWindow)
	} else if m.suspicious++; m.suspicious > 1 { // the first one is a mixture
		m.bestRate(now, r)
	}
	m.note(now)
}

// roundRate is the rate of the round that ends, which it looks at for growth.
func (m *monitor) roundRate(now ndn.Time) (r float64) {
	if took := now.Sub(m.roundAt); took > 0 {
		if r = float64(m.meter.total-m.roundBytes) / took.Seconds(); r >= growth*m.peak {
			m.peak, m.flat = r, 0
		} else if m.flat < flatRounds {
			m.flat++
		}
	}
	m.roundAt, m.roundBytes = now, m.meter.total
	return r
}

// exceeds reports whether the RTT of the round that ends is beyond the bound of
// (2). A round of nothing but repetitions is no better than the one before.
func (m *monitor) exceeds(now ndn.Time) bool {
	if m.roundMin == 0 {
		return true
	}
	m.rtt, m.roundMin = m.roundMin, 0
	b := m.base.at(now, m.cfg.BaseWindow)
	if b == 0 {
		return false
	}
	m.known = b
	b = max(b, hostDelay)
	return float64(m.rtt-b) > m.cfg.Delta*float64(b)
}

// note takes the present rate for before, once it is one of some time.
func (m *monitor) note(now ndn.Time) {
	if now.Sub(m.meter.began) >= bestSpan {
		m.rates.add(now, m.cfg.BaseWindow, m.meter.rate(now, max(time.Second, 10*m.known)))
	}
}

// last is the rate to remember a replica by: under congestion, what it gave then
// and not the mean with the time before.
func (m *monitor) last(now ndn.Time) float64 {
	if b := max(m.best, m.lastBest); b > 0 {
		return b
	}
	return m.rate(now)
}

// bestSpan is the least time that the rate of a suspicious round counts: longer
// than BBR's pauses.
const bestSpan = 500 * time.Millisecond

// bestRate takes the rate of a suspicious round.
func (m *monitor) bestRate(now ndn.Time, r float64) {
	if now.Sub(m.bestAt) > max(bestSpan, 3*m.rtt) {
		m.bestAt, m.lastBest, m.best = now, m.best, 0
	}
	m.best = max(m.best, r)
}

// settled: the rate has stopped growing, so that a queue is not start-up's.
func (m *monitor) settled() bool { return m.flat >= flatRounds }

func (m *monitor) timeout(now ndn.Time, rto time.Duration) {
	if m.timeouts == 0 || now.Sub(m.firstOut) > 2*rto {
		m.timeouts, m.firstOut = 0, now
	}
	m.timeouts++
}

// lossFlag is equation (1), rttFlag equation (2).
func (m *monitor) lossFlag() bool { return m.timeouts > m.cfg.Timeouts }
func (m *monitor) rttFlag() bool  { return m.settled() && m.suspicious >= m.cfg.Rounds }
