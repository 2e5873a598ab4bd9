package consumer

import (
	"slices"
	"time"

	"ndnpop/consumer/replica"
	"ndnpop/ndn"
)

// laneSuspect is the number of timeouts in a row after which a lane of several
// has one Interest in flight at most, until something comes that way again.
const laneSuspect = 3

// nextOfAll appends the next Interest of any lane. They take turns, so that
// each takes as many segments as its controller lets it, which divides the
// object by the rates.
func (f *Fetch) nextOfAll(now ndn.Time, b []byte) ([]byte, bool) {
	limit := f.cfg.Pacing
	if limit <= 0 || f.cfg.MaxRate > 0 && f.cfg.MaxRate < limit {
		limit = f.cfg.MaxRate
	}
	if limit > 0 && now < f.nextAny {
		f.wake = f.nextAny
		for _, l := range f.lanes {
			l.limited = false
		}
		return b, false
	}
	for k := range f.lanes {
		at := (f.turn + k) % len(f.lanes)
		l := f.lanes[at]
		if l.retired || l.timeouts > laneSuspect && l.inflight > 0 {
			continue
		}
		out, ok := f.nextOn(now, l, b)
		if !ok {
			out, ok = f.race(now, l, b)
		}
		if ok {
			f.turn = at + 1
			if limit > 0 {
				f.nextAny = max(f.nextAny, now.Add(-time.Millisecond)).Add(time.Duration(f.size() / limit * float64(time.Second)))
			}
			return out, true
		}
	}
	return b, false
}

// maxRaces bounds how often a segment is raced: again only when it is overdue
// where it was raced to.
const maxRaces = 4

// race asks for a segment that is in flight on a slower lane on l, too, when
// there is nothing else to ask for and l will probably be answered first. At
// the end of an object any segment may be raced, once, and then when it is
// overdue, for nothing comes after it that would tell of its loss; before the
// end, one that is overdue, when the memory for reordering is full.
func (f *Fetch) race(now ndn.Time, l *lane, b []byte) ([]byte, bool) {
	srtt := l.paths.controlled().est.SRTT()
	tail := f.plan.ends && f.next > f.plan.last
	if srtt == 0 || !tail && f.next-f.base < f.maxSpan() || now < l.holdUntil || l.noRoutes > 0 ||
		float64(l.inflight) > l.ctrl.Cwnd()-1 && l.inflight > 0 {
		return b, false
	}
	rate := f.rate(l)
	if rate > 0 && now < l.nextSend {
		return b, false // nextOn has set wake
	}
	mine := now.Add(srtt + srtt/4)
	best, gain := none, time.Duration(0)
	for _, m := range f.lanes {
		if m == l {
			continue
		}
		list := &f.ring.lists[m.index]
		for _, i := range [...]int32{list.head, list.tail} {
			if i == none || f.ring.slots[i].raced >= maxRaces {
				continue
			}
			s := &f.ring.slots[i]
			theirs := s.sentAt.Add(m.paths.controlled().est.SRTT())
			if late := s.sentAt.Add(m.patience(f.cfg.Rho)); now > late {
				theirs = s.deadline
			} else if f.wake = min(f.wake, late+1); !tail || s.raced > 0 {
				continue
			}
			if g := theirs.Sub(mine); g > gain {
				best, gain = i, g
			}
		}
	}
	if best == none {
		return b, false
	}
	s := &f.ring.slots[best]
	f.ring.unlink(best)
	f.ring.disarm(best)
	f.lane(s).inflight--
	s.raced++
	f.stats.Races++
	l.pace(now, rate, f.size())
	return f.send(now, l, s.seg, b), true
}

// othersHaveRoute reports whether a lane other than l may still lead to the
// content.
func (f *Fetch) othersHaveRoute(l *lane) bool {
	for _, m := range f.lanes {
		if m != l && !m.retired && m.noRoutes == 0 {
			return true
		}
	}
	return false
}

// samePath retires a lane that turns out to lead to where another one leads:
// two controllers on one path would only compete. The lane without a hint stays,
// for only the network can say that the content does not exist, or find it
// somewhere else.
func (f *Fetch) samePath(l *lane) {
	c := l.paths.controlled()
	if c.tag == 0 || c.fromCache {
		return
	}
	for _, m := range f.lanes {
		if o := m.paths.controlled(); m != l && !m.retired && o.used && o.tag == c.tag {
			if l.replica == 0 {
				l = m
			}
			l.retired = true
			return
		}
	}
}

// mayLeave reports whether a lane can be done without.
func (f *Fetch) mayLeave(l *lane) bool {
	if l.replica > 0 {
		return f.multi || f.level != nil
	}
	for _, m := range f.lanes {
		if f.multi && m != l && !m.retired {
			return true
		}
	}
	return false
}

// leave ends the use of a replica that says it has not got the content, which it
// is only for the network to say that it does not exist, or that has another
// one. The last of several lanes that is left hands over to the network's, even
// if that was left before.
func (f *Fetch) leave(now ndn.Time, l *lane) {
	if l.retired {
		// It was left before.
	} else if f.multi {
		l.retired = true
		if !slices.ContainsFunc(f.lanes, func(m *lane) bool { return !m.retired }) {
			f.lanes[0].retired = false
		}
	} else {
		f.level.sw.Failed()
		to, ok := f.level.sw.Decide(now, replica.Interrupted, f.remaining())
		if !ok || to == replica.Network {
			to = 0
		}
		f.level.why, f.level.quiet = replica.Interrupted, now
		f.goOn(now, replica.ID{Number: to}, false)
	}
	f.abandon(now, l)
	for seg := f.base; seg < f.next; seg++ {
		s := f.ring.at(seg)
		s.doubt = s.doubt || s.lane == l.index || s.retx > 0
	}
}

// otherReplica lets the single request of the first stages go to the next
// replica, when there is more than one. It reports false when all have had
// their turn.
func (f *Fetch) otherReplica() bool {
	n := len(f.sources)
	if n == 1 {
		return false
	}
	to := (f.cur.replica + 1) % n
	if f.multi {
		f.cur = f.lanes[to]
	} else {
		refused := f.cur.noRoutes
		f.cur.use(f, to, f.cur.ctrl)
		f.cur.noRoutes = refused
		if f.level != nil {
			f.level.sw.Begin(to)
		}
	}
	return to != f.cfg.First
}
