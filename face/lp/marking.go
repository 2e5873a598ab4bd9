package lp

import (
	"math"
	"time"

	"ndnpop/ndn"
)

// marker decides which packets get a congestion mark (see Marking).
type marker struct {
	long bool     // the transport's queue is over the threshold
	slow bool     // frames take longer to be acknowledged than the path alone does
	next ndn.Time // of the next mark, if either
	n    int      // marks since then
}

// set notes what is known of the queues.
func (m *marker) set(now ndn.Time, long, slow bool, interval time.Duration) {
	if (long || slow) && !m.long && !m.slow {
		m.next, m.n = now.Add(interval), 0
	}
	m.long, m.slow = long, slow
}

// empty notes that no frame is on its way: what d knows is of the past.
func (m *marker) empty(d *queueDelay) { m.slow, d.slow = false, 0 }

func (m *marker) queue(now ndn.Time, length int, cfg *Marking) {
	m.set(now, length > cfg.Threshold, m.slow, cfg.Interval)
}

// delay takes the round-trip time of a frame and its acknowledgement, with
// flying bytes unacknowledged.
func (m *marker) delay(now ndn.Time, rtt time.Duration, flying int, d *queueDelay, cfg *Marking) {
	slow := d.sample(now, rtt, flying, cfg.Threshold)
	// A link that is longer than CoDel's interval is judged over a round trip.
	m.set(now, m.long, slow, max(cfg.Interval, d.base()))
}

// queueDelay tells a queue somewhere on the way of a reliable link by its
// round-trip times. What is beyond the smallest of the last while is the queue's
// if it is more than the peer may keep an acknowledgement and what CoDel lets
// stand (5 ms, RFC 8289; an eighth of a long path), and if the frames under way
// that it accounts for amount to a queue that would be marked here: others
// wait for a busy processor, and do not go away by sending less.
type queueDelay struct {
	least [2]time.Duration // of this period and of the one before
	ends  ndn.Time
	slow  int // samples in a row that showed a queue
}

const (
	delayPeriod = 10 * time.Second
	delayTarget = 5 * time.Millisecond
	peerHolds   = 5 * time.Millisecond // NFD's idle time, and ours
	slowSamples = 8
)

// base is the smallest round-trip time of one to two periods.
func (d *queueDelay) base() time.Duration {
	if d.least[1] == 0 {
		return d.least[0]
	}
	return min(d.least[0], d.least[1])
}

// sample reports whether a queue of more than threshold bytes stands.
func (d *queueDelay) sample(now ndn.Time, rtt time.Duration, flying, threshold int) bool {
	if now >= d.ends {
		if d.ends.IsSet() {
			d.least[1] = d.least[0]
		}
		d.least[0], d.ends = rtt, now.Add(delayPeriod)
	}
	d.least[0] = min(d.least[0], rtt)
	base := d.base()
	extra := rtt - base
	if extra <= peerHolds+max(delayTarget, base/8) || float64(flying)*extra.Seconds() <= float64(threshold)*rtt.Seconds() {
		d.slow = 0
		return false
	}
	d.slow++
	return d.slow >= slowSamples
}

func (m *marker) now(now ndn.Time, cfg *Marking) bool {
	if !m.long && !m.slow || cfg.Off || now < m.next {
		return false
	}
	m.n++
	m.next = m.next.Add(time.Duration(float64(cfg.Interval) / math.Sqrt(float64(m.n+1))))
	return true
}
