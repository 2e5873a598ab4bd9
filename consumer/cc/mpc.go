package cc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"ndnpop/ndn"
)

// Constants of MPC-H. The first three are those of the authors' controller.
const (
	mpcWeight  = 1.0 / 8     // of a sample in the smoothed RTT
	mpcPeak    = 1.135335283 // 1+e⁻²: the upward probe aims above the largest RTT
	mpcDivisor = 64          // of the cycle: half-width of the probes
	mpcHalfRTT = 3           // the least half-width in RTTs
	mpcStrides = 4           // time constant of the extremes in cycles
	mpcStands  = 1.02        // a smoothed RTT above this times the smallest is a queue
	mpcRateEWM = 0.02        // of a Data in the rate while a queue stands
	mpcSteps   = 4           // decisions per RTT
	mpcStartup = 2.885
)

// Mpc is the model predictive congestion control of Lynn, Ghosal and Hanford
// (arXiv 2002.09825), made robust for the packet rates of NDN (MPC-H). With l
// the RTT, r the rate, r_B the bottleneck's and Δt the time until a change
// shows, it predicts l+(r−r_B)Δt/r_B and takes the rate that minimises
//
//	c1(l̂−l_T)² + w·c2(l̂−l̄)² + c3(l_P(r−r_prev)/r_B)²
//
// where l_T is a target between the smallest RTT l_P and the largest l_B, with
// a dip at the start of each cycle and a peak at its end to measure both.
//
// The paper's objective was not at hand; this one was derived from the
// authors' published controller, whose update is its exact minimiser.
// Deviations, because that controller is a double integrator that drowns in
// the noise of the RTT: Δt is the smoothed RTT and decisions are taken four
// times in it; r_B is the delivery rate (the largest of 10 rounds, smoothed
// while a queue stands) in place of a gradient descent; 2 packets per RTT are
// added, which makes equal flows equal; l_P and l_B drift with four cycles, l_B
// follows the smoothed RTT and falls to the RTT at a loss; the target stays
// above the noise; start-up is BBR's; one reaction to losses per RTT; probes
// are at least 3 RTTs wide; and the window bounds only as a safety.
//
// Params.MaxRate is the flow's cap. Options: fill (0.5; 0.1 for little delay)
// is the place of the target between l_P and l_B; cycle (10 s); additive (2
// packets per RTT); c1, c2, c3 (0.1, 0.6, 0.3), which sum to 1; host-delay
// (0.002 s): smaller RTTs count as this, and the window has room for as much
// more, for hosts handle packets in batches.
type Mpc struct {
	c1, c2, c3 float64
	fill, add  float64
	cycle      time.Duration // T
	hostDelay  time.Duration
	cap        float64 // 0: none
	iw         float64
	rng        *rand.Rand

	starting bool
	blind    float64 // Data without a RTT, before there is any
	fullBw   float64
	flat     int
	bw       roundMax
	newRound bool

	// Times in seconds, rates in bytes per second.
	rate       float64
	rb         float64
	mean       float64 // l̄, 0 before the first sample
	low, high  float64 // l_P, l_B
	sum        float64 // of the RTTs since the last decision
	n          int
	size       float64
	period     float64 // of the present cycle
	began      ndn.Time
	decided    ndn.Time
	measured   ndn.Time // the latest RTT
	drifted    ndn.Time
	reacted    ndn.Time
	batchAt    ndn.Time // Data that arrive together are one rate sample
	batchRate  float64
	batchCount int
}

// NewMpc makes an Mpc. Params: InitCwnd (10), MaxRate, Seed.
func NewMpc(p Params) (Controller, error) {
	o := options{given: p.Options}
	m := &Mpc{
		c1: o.number("c1", 0.1), c2: o.number("c2", 0.6), c3: o.number("c3", 0.3),
		fill: o.number("fill", 0.5), add: o.number("additive", 2),
		cycle: o.seconds("cycle", 10*time.Second), hostDelay: o.seconds("host-delay", defaultHostDelay),
		cap: p.MaxRate, iw: max(bbrMinCwnd, newWindow(p, defaultInitCwnd).cwnd),
		rng:      rand.New(rand.NewPCG(p.Seed, 0x6d7063)),
		starting: true,
	}
	if sum := m.c1 + m.c2 + m.c3; math.Abs(sum-1) > 1e-6 {
		o.fail(fmt.Errorf("options c1, c2, c3: they sum to %v, not to 1", sum))
	}
	if m.fill > 1 {
		o.fail(errRange("fill", m.fill, "0 to 1"))
	}
	if m.cycle < 100*time.Millisecond {
		o.fail(errRange("cycle", m.cycle, "at least 0.1 s"))
	}
	m.period = m.cycle.Seconds()
	return m, o.done()
}

// Cwnd implements Controller.
func (m *Mpc) Cwnd() float64 {
	if m.mean == 0 || m.size == 0 || m.rate == 0 {
		return m.iw + m.blind
	}
	return max(bbrMinCwnd, 2*m.rate*(max(m.mean, m.high)+m.hostDelay.Seconds())/m.size)
}

// PacingRate implements Controller.
func (m *Mpc) PacingRate() float64 { return m.rate }

// OnSend implements Controller.
func (*Mpc) OnSend(*Send) {}

// OnPathChange implements PathChanger.
func (m *Mpc) OnPathChange(c *PathChange) {
	m.starting, m.fullBw, m.flat = true, 0, 0
	m.bw, m.newRound = roundMax{}, false
	m.mean, m.low, m.high, m.rb, m.blind = 0, 0, 0, 0, 0
	m.sum, m.n, m.batchCount = 0, 0, 0
	m.rate = c.Rate
	m.period = m.cycle.Seconds()
}

// OnMark implements Controller: the queue is as long as it may get.
func (m *Mpc) OnMark(s *Sample) {
	if m.mean > 0 && !m.starting {
		m.high = min(m.high, m.mean)
		m.restart(s.Now)
	}
}

// OnLoss implements Controller.
func (m *Mpc) OnLoss(l *Loss) {
	if m.mean == 0 {
		if l.NewEvent {
			m.blind /= 2
		}
		return
	}
	if l.Kind == LossTimeout && l.Inflight == 0 {
		m.starting, m.fullBw, m.flat = true, 0, 0
		m.bw = roundMax{}
		m.mean = m.low // the queue was lost with the flight
		m.rate = m.clamp(0)
		m.reacted = l.Now
		return
	}
	if m.reacted.IsSet() && l.Now.Sub(m.reacted).Seconds() < m.mean {
		return
	}
	if m.starting {
		if m.flat == 0 && m.mean < 1.25*m.low {
			return // not for want of room
		}
		m.settle(l.Now)
	}
	m.reacted = l.Now
	if l.RTTNow > 0 {
		m.high = max(m.low, l.RTTNow.Seconds())
	}
	m.rate = m.clamp(max(m.rate, m.rb) / 2)
	m.period = m.cycle.Seconds() * (1 + m.rng.Float64())
	m.restart(l.Now)
}

// restart begins a cycle, with its dip.
func (m *Mpc) restart(now ndn.Time) { m.began, m.decided = now, now }

// OnData implements Controller.
func (m *Mpc) OnData(s *Sample) {
	m.size = s.MeanSize
	m.bandwidth(s)
	if s.RTT > 0 {
		m.measure(s)
	}
	if m.mean == 0 {
		m.blind++
		return
	}
	if m.starting {
		m.start(s)
		return
	}
	if s.Now.Sub(m.decided).Seconds()*mpcSteps >= m.mean {
		m.decide(s.Now)
	}
}

// measure takes an RTT.
func (m *Mpc) measure(s *Sample) {
	l := max(s.RTT, m.hostDelay).Seconds()
	m.sum += l
	m.n++
	m.measured = s.Now
	if m.mean == 0 {
		m.mean, m.low, m.high = l, l, l
		m.drifted = s.Now
	}
	m.mean += (l - m.mean) * mpcWeight
	d := min(1, s.Now.Sub(m.drifted).Seconds()/(mpcStrides*m.cycle.Seconds()))
	m.drifted = s.Now
	m.low = min(l, m.low+(m.mean-m.low)*d)
	m.high = max(m.mean, m.high+(m.mean-m.high)*d)
}

// stale reports whether the smoothed RTT is that of an earlier round trip, since
// all that has come is repetitions: they say nothing of the queue.
func (m *Mpc) stale(now ndn.Time) bool { return now.Sub(m.measured).Seconds() > m.mean }

// bandwidth takes a delivery rate.
func (m *Mpc) bandwidth(s *Sample) {
	m.newRound = m.newRound || s.RoundStart
	if s.Now != m.batchAt {
		if m.batchCount > 0 && !m.starting && m.mean > mpcStands*m.low {
			m.rb += (m.batchRate - m.rb) * (1 - math.Pow(1-mpcRateEWM, float64(m.batchCount)))
		}
		m.batchAt, m.batchRate, m.batchCount = s.Now, 0, 0
	}
	if s.Rate <= 0 || (s.RateAppLimited && s.Rate < m.bw.max()) {
		return
	}
	if s.RTT > 0 || !m.stale(s.Now) {
		m.batchRate = max(m.batchRate, s.Rate)
		m.batchCount++
	}
	if m.newRound {
		m.newRound = false
		m.bw.advance()
	}
	m.bw.add(s.Rate)
	if m.mean <= mpcStands*m.low {
		m.rb = m.bw.max()
	}
}

// start is start-up: exponential growth as BBR's.
func (m *Mpc) start(s *Sample) {
	if s.RoundStart && !s.RateAppLimited && m.bw.max() > 0 {
		if m.bw.max() >= bbrGrowth*m.fullBw {
			m.fullBw, m.flat = m.bw.max(), 0
		} else {
			m.flat++
		}
	}
	if m.flat >= bbrFlatRounds || m.mean > 2*m.low {
		m.settle(s.Now)
		m.rate = m.clamp(m.rb)
		return
	}
	m.rate = m.clamp(max(m.rate, mpcStartup*m.bw.max(), mpcStartup*m.iw*m.size/max(m.mean, m.hostDelay.Seconds())))
}

// settle ends start-up, which has just measured the smallest RTT: the cycle is
// past its dip.
func (m *Mpc) settle(now ndn.Time) {
	m.starting = false
	m.rb = m.bw.max()
	m.restart(now)
	m.began = max(1, now.Add(-m.cycle/4))
}

// clamp keeps a rate within its bounds.
func (m *Mpc) clamp(r float64) float64 {
	r = max(r, m.size/m.mean, m.cap/64)
	if m.cap > 0 {
		r = min(r, m.cap)
	}
	return r
}

// target is l_T.
func (m *Mpc) target(now ndn.Time) float64 {
	mid := max(m.low+m.fill*(m.high-m.low), mpcStands*m.low+2*m.size/m.rb)
	width := max(m.cycle.Seconds()/mpcDivisor, mpcHalfRTT*m.mean)
	t := now.Sub(m.began).Seconds() / width
	left := m.period/width - t
	return mid + (mpcPeak*m.high-mid)/(left*left+1) - (mid-m.low)/(t*t+1)
}

// decide sets the rate.
func (m *Mpc) decide(now ndn.Time) {
	if now.Sub(m.began).Seconds() > m.period {
		m.period = m.cycle.Seconds()
		m.began = now
	}
	m.decided = now
	l := m.mean
	if m.n > 0 {
		l = m.sum / float64(m.n)
	} else if m.stale(now) {
		return
	}
	m.sum, m.n = 0, 0
	if m.rb <= 0 {
		return
	}
	dt := m.mean
	wc2 := mpcWeight * m.c2
	kappa := m.c1 + wc2
	lambda := kappa*(l-dt) - m.c1*m.target(now) - wc2*m.mean
	smooth := m.c3 * m.low * m.low
	gain := dt * dt * kappa
	r := (smooth*m.rate-dt*m.rb*lambda)/(smooth+gain) +
		m.add*m.size/m.mean*gain/(smooth+gain)
	m.rate = m.clamp(r)
}
