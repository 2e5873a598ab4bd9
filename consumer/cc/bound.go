package cc

import "ndnpop/ndn"

// bound is a controller whose window has an upper bound. Hop-by-Hop TCP (Lien
// and Yu, APSCC 2008) bounds the window end to end, because links that repair
// their own losses give no other sign that the path is full.
type bound struct {
	Controller
	paths  PathChanger // the Controller, when it is one
	undo   Undoer      // likewise
	max    float64
	sample Sample
}

func newBound(c Controller, most float64) *bound {
	b := &bound{Controller: c, max: max(1, most)}
	b.paths, _ = c.(PathChanger)
	b.undo, _ = c.(Undoer)
	return b
}

// OnData implements Controller. Where it is the bound that stops the
// Interests, the algorithm's own window is not used up and must not grow: its
// answer to a loss would be lost in what it never used.
func (b *bound) OnData(s *Sample) {
	if s.CwndLimited && b.Controller.Cwnd() > b.max {
		b.sample = *s
		b.sample.CwndLimited = false
		s = &b.sample
	}
	b.Controller.OnData(s)
}

// Cwnd implements Controller.
func (b *bound) Cwnd() float64 { return min(b.Controller.Cwnd(), b.max) }

// OnPathChange implements PathChanger.
func (b *bound) OnPathChange(p *PathChange) {
	if b.paths != nil {
		b.paths.OnPathChange(p)
	}
}

// OnUndo implements Undoer.
func (b *bound) OnUndo(now ndn.Time) {
	if b.undo != nil {
		b.undo.OnUndo(now)
	}
}
