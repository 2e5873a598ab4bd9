package cc

// Bounds and pace of BBR-ACW's gain.
const (
	acwMaxGain = 2.5
	acwPull    = 1.0 / 64
)

// BbrAcw is BBR-ACW (Pan, Li, Tan, Xu, Li, Electronics 2021, 10(5), 615): BBR
// that leaves pacing alone and adapts the window's gain in PROBE_BW to how far
// its rate is from its best and to how much of the RTT is queue. A flow that
// gets its best rate is held to one BDP; a squeezed one with a short RTprop
// gets up to two.
//
// The paper's final expression was not at hand. With α the distance of the
// delivery rate from its maximum, 0 to 1, and β = RTT/(RTT+RTprop), form A is
// 1+αβ and form B, looser, 2β(1+α), both within 1 to 2.5. α is 1 while the
// extrema coincide; both are pulled 1/64 towards their middle each round.
// Options: form (a; b), and Bbr's.
type BbrAcw struct {
	Bbr
	loose        bool
	drMin, drMax float64
}

// NewBbrAcw makes a BbrAcw.
func NewBbrAcw(p Params) (Controller, error) {
	o := options{given: p.Options}
	loose := o.choice("form", "a", "a", "b") == "b"
	b := newBbr(p, &o)
	return &BbrAcw{Bbr: *b, loose: loose}, o.done()
}

// OnPathChange implements PathChanger.
func (a *BbrAcw) OnPathChange(c *PathChange) {
	a.Bbr.OnPathChange(c)
	a.drMin, a.drMax, a.gain = 0, 0, bbrCwndGain
}

// OnData implements Controller.
func (a *BbrAcw) OnData(s *Sample) {
	if a.mode == bbrProbeBW {
		a.adapt(s)
	}
	a.Bbr.OnData(s)
}

func (a *BbrAcw) adapt(s *Sample) {
	if s.RoundStart && a.drMax > 0 {
		mid := (a.drMax + a.drMin) / 2
		a.drMax += (mid - a.drMax) * acwPull
		a.drMin += (mid - a.drMin) * acwPull
	}
	if s.Rate <= 0 || s.RateAppLimited || s.Tx <= a.probeEndTx || s.RTT <= 0 || a.rtprop <= 0 {
		return
	}
	if a.drMax == 0 {
		a.drMin, a.drMax = s.Rate, s.Rate
	}
	a.drMin, a.drMax = min(a.drMin, s.Rate), max(a.drMax, s.Rate)
	alpha := 1.0
	if a.drMax > a.drMin {
		alpha = (a.drMax - s.Rate) / (a.drMax - a.drMin)
	}
	beta := s.RTT.Seconds() / (s.RTT + a.rtprop).Seconds()
	if a.loose {
		a.gain = max(1, min(2*beta*(1+alpha), acwMaxGain))
		return
	}
	a.gain = max(1, min(1+alpha*beta, acwMaxGain))
}
