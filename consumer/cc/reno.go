package cc

import (
	"math"

	"ndnpop/ndn"
)

// minSsthresh is the smallest slow-start threshold and window after a
// reaction, in packets (ndn-tools).
const minSsthresh = 2

// defaultInitCwnd is the first window of the TCP-like algorithms in packets
// (RFC 6928).
const defaultInitCwnd = 10

// window is what the loss-based algorithms share.
type window struct {
	iw, cwnd, ssthresh float64
	// calm: slow start has ended by itself, and nothing was lost or marked since.
	calm bool
}

func newWindow(p Params, initCwnd float64) window {
	w := window{cwnd: initCwnd, ssthresh: math.Inf(1)}
	if p.InitCwnd >= 1 {
		w.cwnd = p.InitCwnd
	}
	if p.InitSsthresh > 0 {
		w.ssthresh = max(minSsthresh, p.InitSsthresh)
	}
	w.iw = w.cwnd
	return w
}

// undone is what the window is to become when the answer to a loss, given while
// it was w, is taken back: it grows as in slow start to where it was, so that
// nothing leaves in a burst (RFC 4015, section 3.3). now is the window as it is.
func (w window) undone(now float64) window {
	w.cwnd, w.ssthresh = now, max(w.ssthresh, w.cwnd)
	return w
}

// Cwnd implements Controller.
func (w *window) Cwnd() float64 { return w.cwnd }

// PacingRate implements Controller.
func (*window) PacingRate() float64 { return 0 }

// OnSend implements Controller.
func (*window) OnSend(*Send) {}

// restart begins on another replica's path: with the window that is known of
// it, or as at first.
func (w *window) restart(known float64) {
	w.cwnd, w.ssthresh, w.calm = w.iw, math.Inf(1), false
	if known > w.iw {
		w.cwnd, w.ssthresh = known, known
	}
}

// another begins on the path of another tag. If its RTT is at least twice as long as
// that which slow start saw, slow start goes on, whatever had ended it: a window for
// a cache nearby says nothing of the path behind it. It reports whether it does.
func (w *window) another(p *PathChange, ss *hystart) (longer bool) {
	longer = ss.least > 0 && p.RTT >= 2*ss.least
	if longer {
		w.ssthresh = math.Inf(1)
	}
	return longer
}

// Reno is TCP Reno driven by the receiver (RFC 5681, RFC 6582 without its
// recovery, because a Data always tells which segment arrived). Deviations:
// the window grows by 1/⌊cwnd⌋ per Data in avoidance, a timeout halves it and
// does not restart from one packet unless the option reset-to-iw is set, and
// losses and marks of one window count once, all as ndn-tools does. Options:
// beta (0.5), mark-beta (beta; RFC 8511 suggests 0.8), reset-to-iw (false),
// hystart (false; RFC 9406).
type Reno struct {
	window
	beta, markBeta float64
	resetToIW      bool
	hystart        bool
	ss             hystart
	before         window // the latest loss
}

// NewReno makes a Reno with a first window of 10.
func NewReno(p Params) (Controller, error) { return newReno(p, defaultInitCwnd) }

func newReno(p Params, iw float64) (*Reno, error) {
	o := options{given: p.Options}
	r := &Reno{window: newWindow(p, iw)}
	r.beta = o.number("beta", 0.5)
	r.markBeta = o.number("mark-beta", r.beta)
	r.resetToIW = o.flag("reset-to-iw", false)
	r.hystart = o.flag("hystart", false)
	return r, o.done()
}

// OnData implements Controller.
func (r *Reno) OnData(s *Sample) {
	if s.Marked || !s.CwndLimited {
		return
	}
	if r.calm && r.cwnd >= r.ssthresh && r.ss.observe(s) {
		r.ssthresh = math.Inf(1)
	}
	switch {
	case r.cwnd >= r.ssthresh:
		r.cwnd += 1 / math.Floor(r.cwnd)
	case r.hystart:
		inc, exit := r.ss.onData(s)
		r.cwnd += inc
		if exit {
			r.ssthresh, r.calm = r.cwnd, true
		}
	default:
		r.cwnd++
	}
}

// OnPathChange implements PathChanger.
func (r *Reno) OnPathChange(c *PathChange) {
	if c.Replica {
		r.restart(c.Window)
	} else {
		r.another(c, &r.ss)
	}
	r.ss = hystart{}
}

// OnLoss implements Controller.
func (r *Reno) OnLoss(l *Loss) {
	if !l.NewEvent {
		return
	}
	r.before = r.window
	r.decrease(r.beta)
	if l.Kind == LossTimeout && r.resetToIW {
		r.cwnd = min(r.cwnd, r.iw)
		r.ss = hystart{}
	}
}

// OnUndo implements Undoer.
func (r *Reno) OnUndo(ndn.Time) { r.window = r.before.undone(r.cwnd) }

// OnMark implements Controller.
func (r *Reno) OnMark(*Sample) { r.decrease(r.markBeta) }

func (r *Reno) decrease(beta float64) {
	r.ssthresh = max(minSsthresh, beta*r.cwnd)
	r.cwnd, r.calm = r.ssthresh, false
}
