package consumer

import "ndnpop/ndn"

// lossEvent is the latest event of a lane that its controller answered to as a
// loss, for as long as it may turn out to have been none.
type lossEvent struct {
	n    uint32 // number of the event
	late int    // segments that are taken for lost in it and have not come
	real bool   // one of them was lost indeed
}

// count notes that a segment is taken for lost.
func (e *lossEvent) count(s *slot, fresh bool) {
	if fresh {
		*e = lossEvent{n: e.n + 1}
	}
	if s.lost && s.event == e.n {
		e.real = true // its repetition is taken for lost as well
		return
	}
	s.event = e.n
	e.late++
}

// came judges the arrival, on path pi, of a segment that was taken for lost.
// When it was only late (a link repaired it, or it was overtaken) the
// tolerance of lateness grows to what this one needed, as RACK's does (RFC
// 8985, section 6.2), and once all segments of an event turn out so the
// controller takes its answer back (RFC 3522, RFC 4015).
func (f *Fetch) came(now ndn.Time, l *lane, s *slot, pi int8, tagged bool) {
	if s.event == 0 || s.state == slotFailed || s.raced > 0 || l.retired {
		return // it was no loss, or nobody can tell
	}
	e := &l.lossEvent
	if !f.wasLate(now, l, s, pi, tagged) {
		e.real = e.real || s.event == e.n
		return
	}
	f.stats.Late++
	l.reorderLeft, l.reorderAt = reorderEvents, now
	took := now.Sub(s.firstAt)
	for most := false; !most && l.patience(f.cfg.Rho) < took; l.reorder++ {
		most = f.cfg.Rho*float64(1+l.reorder) >= 1
	}
	if s.event != e.n {
		return
	}
	if e.late--; e.late > 0 || e.real || l.undo == nil {
		return
	}
	e.real = true // once
	l.undo.OnUndo(now)
	if f.trace != nil {
		f.emit(now, l, TraceWindow, 0, 0, 0, 0)
	}
}

// wasLate reports whether a Data answers the Interest that was taken for lost,
// and not its repetition: that has not left yet, or the Data came by the same
// path sooner after it than the path allows. Only a tag tells that path from a
// cache nearby.
func (f *Fetch) wasLate(now ndn.Time, l *lane, s *slot, pi int8, tagged bool) bool {
	if s.state != slotOutstanding {
		return true
	}
	least := l.paths.controlled().est.Min()
	return s.retx == 1 && tagged && pi == l.paths.ctl && now.Sub(s.sentAt) < least-least/lateMargin
}

// lateMargin keeps what comes a little sooner than the smallest round trip so
// far, by jitter or a queue that has gone, from counting: it is the share of
// that round trip that a Data must be too soon by.
const lateMargin = 8
