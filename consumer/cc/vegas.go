package cc

import "time"

// Constants of Vegas, in packets of queue.
const (
	vegasAlpha = 2
	vegasBeta  = 4
	vegasGamma = 1
	// Share of the window that stays after a loss that the order of arrival
	// showed, and after a timeout.
	vegasEarly   = 0.75
	vegasTimeout = 0.5
)

// Vegas is TCP Vegas (Brakmo, O'Malley, Peterson, SIGCOMM 1994) driven by the
// receiver: once per round trip it compares the window with what the smallest
// RTT would need, and aims at 2 to 4 packets of its own in the queue. Slow
// start doubles every other round trip.
//
// Deviation: the RTT compared is the smallest of the round, as in Linux, so
// that jitter does not count as a queue; a mark halves the window as a timeout
// does; and RTTs below host-delay (0.002 s) count as that, since hosts handle
// packets in batches. Options: alpha (2), beta (4), gamma (1), in packets, and
// host-delay.
type Vegas struct {
	window
	alpha, beta, gamma float64
	hostDelay          time.Duration

	base     time.Duration
	roundMin time.Duration
	roundEnd uint64
	grow     bool // this round trip of slow start doubles
}

// NewVegas makes a Vegas with a first window of 10.
func NewVegas(p Params) (Controller, error) {
	o := options{given: p.Options}
	v := &Vegas{window: newWindow(p, defaultInitCwnd)}
	v.alpha = o.number("alpha", vegasAlpha)
	v.beta = o.number("beta", vegasBeta)
	v.gamma = o.number("gamma", vegasGamma)
	v.hostDelay = o.seconds("host-delay", defaultHostDelay)
	if v.beta < v.alpha {
		o.fail(errRange("beta", v.beta, "at least alpha"))
	}
	return v, o.done()
}

// OnPathChange implements PathChanger.
func (v *Vegas) OnPathChange(c *PathChange) {
	v.base, v.roundMin = 0, 0
	if c.Replica {
		v.restart(c.Window)
		v.grow = false
	}
}

// OnData implements Controller.
func (v *Vegas) OnData(s *Sample) {
	if s.RTT > 0 {
		if v.base == 0 || s.RTT < v.base {
			v.base = s.RTT
		}
		if v.roundMin == 0 || s.RTT < v.roundMin {
			v.roundMin = s.RTT
		}
	}
	slow := v.cwnd < v.ssthresh
	if slow && v.grow && s.CwndLimited && !s.Marked {
		v.cwnd++
	}
	if s.Tx <= v.roundEnd || v.roundMin == 0 {
		return
	}
	base, now := max(v.base, v.hostDelay), max(v.roundMin, v.hostDelay)
	queued := v.cwnd * (1 - base.Seconds()/now.Seconds())
	v.roundEnd, v.roundMin = s.HighTx, 0
	v.grow = !v.grow
	switch {
	case slow && queued > v.gamma:
		// What the doubling left in the queue is taken back.
		v.cwnd = max(minSsthresh, v.cwnd-queued)
		v.ssthresh = v.cwnd
	case slow:
	case queued < v.alpha && s.CwndLimited:
		v.cwnd++
	case queued > v.beta:
		v.cwnd = max(minSsthresh, v.cwnd-1)
	}
}

// OnLoss implements Controller.
func (v *Vegas) OnLoss(l *Loss) {
	switch {
	case !l.NewEvent:
	case l.Kind == LossTimeout:
		v.decrease(vegasTimeout)
	default:
		v.decrease(vegasEarly)
	}
}

// OnMark implements Controller.
func (v *Vegas) OnMark(*Sample) { v.decrease(vegasTimeout) }

func (v *Vegas) decrease(share float64) {
	v.cwnd = max(minSsthresh, share*v.cwnd)
	v.ssthresh = v.cwnd
}
