package lp

import "time"

// estimator is the RTT estimator of RFC 6298.
type estimator struct {
	srtt, rttvar time.Duration
	ok           bool
}

func (e *estimator) sample(d time.Duration) {
	if !e.ok {
		e.srtt, e.rttvar, e.ok = d, d/2, true
		return
	}
	e.rttvar += ((e.srtt - d).Abs() - e.rttvar) / 4
	e.srtt += (d - e.srtt) / 8
}

// rto is the retransmission time-out, at least max(10 ms, 2 srtt)
// and at most mostRTO.
func (e *estimator) rto() time.Duration {
	if !e.ok {
		return firstRTO
	}
	return min(max(e.srtt+4*e.rttvar, 2*e.srtt, leastRTO), mostRTO)
}
