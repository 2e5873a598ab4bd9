package cc

import (
	"math"
	"time"

	"ndnpop/ndn"
)

// Constants of BBR-GC. The published exponents are those of Yang et al.,
// Sensors 2023, 23(9), 4431.
const (
	gcPublishedUp   = 0.25
	gcPublishedDown = 4
	gcRobustUp      = 0.5
	gcRobustDown    = 2
	gcFloor         = 1.25
	gcHalfWindow    = 5 * time.Second
)

// BbrGc is BBR-GC (Pan, Li, Tan, Xu, Li, Sensors 2021, 21(12), 4128): BBR
// whose up and down gains follow gamma corrections of ω = RTT/RTTmax,
// 1.5−0.5·ω^γu and 1−0.5·ω^γd. A flow with a long RTT sits closer to ω = 1: it
// probes less and drains more.
//
// The closed form of 2021 was not at hand; this is that of the follow-up
// paper. Mode published has its exponents, 0.25 and 4, and RTTmax of the
// connection's life; there the overshoot of STARTUP in a deep buffer keeps ω
// small for ever. Mode robust, the default, is ours: exponents 0.5 and 2, and
// RTTmax the maximum of the last 10 s, begun anew with PROBE_BW, but at least
// 1.25·RTprop, without which a lone flow would not probe at all. It was chosen
// among variants on two flows of 10 and 50 ms. Options: mode (robust;
// published), and Bbr's.
type BbrGc struct {
	Bbr
	published          bool
	gammaUp, gammaDown float64
	rttMax             [2]time.Duration // of the present half window and the one before
	halfStamp          ndn.Time
}

// NewBbrGc makes a BbrGc.
func NewBbrGc(p Params) (Controller, error) {
	o := options{given: p.Options}
	g := &BbrGc{gammaUp: gcRobustUp, gammaDown: gcRobustDown}
	if o.choice("mode", "robust", "robust", "published") == "published" {
		g.published, g.gammaUp, g.gammaDown = true, gcPublishedUp, gcPublishedDown
	}
	g.Bbr = *newBbr(p, &o)
	return g, o.done()
}

// OnPathChange implements PathChanger.
func (g *BbrGc) OnPathChange(c *PathChange) {
	g.Bbr.OnPathChange(c)
	g.rttMax = [2]time.Duration{}
}

// OnData implements Controller.
func (g *BbrGc) OnData(s *Sample) {
	if s.RTT > 0 {
		g.track(s)
	}
	before := g.mode
	g.Bbr.OnData(s)
	if g.mode == bbrProbeBW && before != bbrProbeBW && !g.published {
		g.rttMax, g.halfStamp = [2]time.Duration{s.RTT, 0}, s.Now
	}
}

func (g *BbrGc) track(s *Sample) {
	if !g.published && s.Now.Sub(g.halfStamp) > gcHalfWindow {
		g.rttMax[1], g.rttMax[0], g.halfStamp = g.rttMax[0], 0, s.Now
	}
	g.rttMax[0] = max(g.rttMax[0], s.RTT)
	top := max(g.rttMax[0], g.rttMax[1]).Seconds()
	if !g.published {
		top = max(top, gcFloor*g.rtprop.Seconds())
	}
	w := min(1, s.RTT.Seconds()/top)
	g.up = 1.5 - 0.5*math.Pow(w, g.gammaUp)
	g.down = 1 - 0.5*math.Pow(w, g.gammaDown)
}
