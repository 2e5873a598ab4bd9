package cc

import "time"

// Constants of BBQ (α and β of the paper).
const (
	bbqMaxProbe = 3 * time.Millisecond
	bbqQueue    = 1.01
)

// Bbq is BBQ (Ma, Jiang, Wang, Li, arXiv 1706.09115): BBR whose up phase lasts
// min(3 ms, RTprop) when the RTT shows a queue, so that a flow with a long RTT
// does not put more into the queue per cycle than one with a short RTT.
//
// The paper itself was not at hand: the rule is that of later papers'
// descriptions, with β = 1 %, the smoothed RTT, and only the up phase capped.
// Capping the down phase too is fairer and triples the queue. Options as
// Bbr's.
type Bbq struct{ Bbr }

// NewBbq makes a Bbq.
func NewBbq(p Params) (Controller, error) {
	o := options{given: p.Options}
	b := newBbr(p, &o)
	return &Bbq{*b}, o.done()
}

// OnData implements Controller.
func (q *Bbq) OnData(s *Sample) {
	q.Bbr.OnData(s)
	if q.upBegan(s) && s.SRTT.Seconds() > bbqQueue*q.rtprop.Seconds() {
		q.upCap = min(bbqMaxProbe, q.rtprop)
	}
}
