package lp

import (
	"math"
	"time"

	"ndnpop/ndn"
)

// marker decides which packets get a congestion mark (see Marking).
type marker struct {
	over bool     // the queue is over the threshold
	next ndn.Time // of the next mark, if over
	n    int      // marks since it is over
}

func (m *marker) queue(now ndn.Time, length int, cfg *Marking) {
	switch over := length > cfg.Threshold; {
	case over && !m.over:
		*m = marker{over: true, next: now.Add(cfg.Interval)}
	case !over:
		m.over = false
	}
}

func (m *marker) now(now ndn.Time, cfg *Marking) bool {
	if !m.over || cfg.Off || now < m.next {
		return false
	}
	m.n++
	m.next = m.next.Add(time.Duration(float64(cfg.Interval) / math.Sqrt(float64(m.n+1))))
	return true
}
