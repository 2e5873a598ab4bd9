package cc

import (
	"math"

	"ndnpop/ndn"
)

// Constants of CUBIC (RFC 9438), and what a mark leaves of the window: marks come
// early, while queues are short, so that a smaller step suffices (RFC 8511).
const (
	cubicC        = 0.4
	cubicBeta     = 0.7
	cubicMarkBeta = 0.85
)

// Cubic is CUBIC (RFC 9438) driven by the receiver, with fast convergence, the
// Reno-friendly region, and HyStart++ (RFC 9406) in slow start. Deviation: a
// timeout decreases the window as any loss does, without a restart from one
// packet (ndn-tools). Options: beta (0.7), mark-beta (0.85, RFC
// 8511), fast-convergence (true), hystart (true).
type Cubic struct {
	window
	beta, markBeta float64
	fastConv       bool
	hystart        bool
	ss             hystart
	growth
	idle ndn.Time // since when the window is not used up, 0: it is

	before       window // the latest loss
	beforeGrowth growth
}

// growth is how the window grows outside slow start.
type growth struct {
	avoiding     bool // t0, k and wmax are those of this avoidance
	wmax, lastWm float64
	k            float64 // seconds
	t0           ndn.Time
	west         float64
}

// NewCubic makes a Cubic with a first window of 10.
func NewCubic(p Params) (Controller, error) {
	o := options{given: p.Options}
	c := &Cubic{window: newWindow(p, defaultInitCwnd)}
	c.beta = o.number("beta", cubicBeta)
	c.markBeta = o.number("mark-beta", cubicMarkBeta)
	c.fastConv = o.flag("fast-convergence", true)
	c.hystart = o.flag("hystart", true)
	return c, o.done()
}

// OnData implements Controller.
func (c *Cubic) OnData(s *Sample) {
	if !s.CwndLimited {
		if !c.idle.IsSet() {
			c.idle = s.Now
		}
		return
	}
	if c.idle.IsSet() {
		// Time in which the window was not used is none in which it grew (RFC
		// 9438, section 5.8).
		c.t0 += s.Now - max(c.idle, c.t0)
		c.idle = 0
	}
	if s.Marked {
		return
	}
	if c.calm && c.cwnd >= c.ssthresh && c.ss.observe(s) {
		c.ssthresh, c.growth = math.Inf(1), growth{}
	}
	if c.cwnd < c.ssthresh {
		if !c.hystart {
			c.cwnd++
			return
		}
		inc, exit := c.ss.onData(s)
		c.cwnd += inc
		if !exit {
			return
		}
		c.ssthresh, c.calm = c.cwnd, true
	}
	if !c.avoiding {
		// Slow start ended without a loss.
		c.avoiding = true
		c.wmax, c.k, c.t0, c.west = c.cwnd, 0, s.Now, c.cwnd
	}
	t := s.Now.Sub(c.t0).Seconds()
	alpha := 3 * (1 - c.beta) / (1 + c.beta)
	if c.west >= c.wmax {
		alpha = 1
	}
	c.west += alpha / c.cwnd
	if c.curve(t) < c.west {
		c.cwnd = max(c.cwnd, c.west)
		return
	}
	target := max(c.cwnd, min(c.curve(t+s.SRTT.Seconds()), 1.5*c.cwnd))
	c.cwnd += (target - c.cwnd) / c.cwnd
}

// curve is W_cubic(t) for t in seconds since the last decrease.
func (c *Cubic) curve(t float64) float64 {
	d := t - c.k
	return cubicC*d*d*d + c.wmax
}

// OnPathChange implements PathChanger.
func (c *Cubic) OnPathChange(p *PathChange) {
	if p.Replica {
		c.restart(p.Window)
		c.growth, c.idle = growth{}, 0
	} else if c.another(p, &c.ss) {
		c.growth = growth{}
	}
	c.ss = hystart{}
}

// OnLoss implements Controller.
func (c *Cubic) OnLoss(l *Loss) {
	if l.NewEvent {
		c.before, c.beforeGrowth = c.window, c.growth
		c.decrease(l.Now, c.beta)
	}
}

// OnUndo implements Undoer, as RFC 9438 has it (section 4.9) but for the window,
// which grows to where it was.
func (c *Cubic) OnUndo(ndn.Time) {
	c.window, c.growth = c.before.undone(c.cwnd), c.beforeGrowth
}

// OnMark implements Controller.
func (c *Cubic) OnMark(s *Sample) { c.decrease(s.Now, c.markBeta) }

func (c *Cubic) decrease(now ndn.Time, beta float64) {
	c.calm = false
	c.wmax = c.cwnd
	if c.fastConv && c.cwnd < c.lastWm {
		c.wmax = c.cwnd * (1 + beta) / 2
	}
	c.lastWm = c.cwnd
	c.cwnd = max(minSsthresh, beta*c.cwnd)
	c.ssthresh = c.cwnd
	c.k = math.Cbrt((c.wmax - c.cwnd) / cubicC)
	if c.wmax < c.cwnd {
		c.k = 0
	}
	c.avoiding, c.t0, c.west = true, now, c.cwnd
}
