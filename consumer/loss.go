package consumer

import (
	"fmt"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

// detect declares outstanding transmissions lost when at least three later
// ones were answered on the controlled path and they are older than 1+ρ round
// trips, or sets the time for the next look (after RACK, RFC 8985).
//
// At the end of the object nothing follows that could be answered. There one
// later answer is enough, and what has none is asked for again, once, after two
// round trips (after TLP, RFC 8985, section 7), instead of the timeout.
func (f *Fetch) detect(now ndn.Time, l *lane) {
	l.early = ndn.Never
	p := l.paths.controlled()
	tail := p.hi > 0 && f.tail(l)
	if f.cfg.NoEarlyLoss || p.hi < 3 && !tail {
		return
	}
	limit := max(p.hi, 3) - 3
	if tail {
		limit = p.hi - 1
	}
	patience := l.patience(f.cfg.Rho)
	probe := max(patience, tailRTTs*p.est.SRTT())
	for i := f.ring.lists[l.index].head; i != none; {
		s := &f.ring.slots[i]
		usual := patience
		if s.tx > limit {
			if !tail {
				break
			}
			if s.retx > 0 {
				i = s.next
				continue
			}
			usual = probe
		}
		wait := max(usual, l.suppressed(s))
		next := s.next
		if at := s.sentAt.Add(wait); now > at {
			f.lose(now, i, cc.LossReorder)
			if f.Done() {
				return
			}
		} else {
			l.early = min(l.early, at+1)
			if wait == usual {
				break // later ones are younger, and wait no less
			}
		}
		i = next
	}
}

// tailRTTs is how many round trips the last segments are waited for (TLP's
// probe timeout, without the delayed acknowledgements that there are not here).
const tailRTTs = 2

// tailLength is how many segments in flight are the end of an object: an
// initial window. Asked for again at once, more would be a burst that is lost
// again where a queue has lost it before.
const tailLength = 10

// tail reports whether all segments have been asked for and few have not come.
func (f *Fetch) tail(l *lane) bool {
	return f.plan.ends && f.next > f.plan.last && l.inflight <= tailLength
}

// patience is the age at which an unanswered transmission is suspicious.
func (l *lane) patience(rho float64) time.Duration {
	e := &l.paths.controlled().est
	if l.reorder > 0 {
		rho = min(1, rho*float64(1+l.reorder))
	}
	return time.Duration((1 + rho) * float64(max(e.SRTT(), e.Last())))
}

// suppressed is how long after its last transmission a repetition may still be
// swallowed. The forwarder counts from when it got that one, which a queue on
// the way may have held for as long as round trips are longer than the least.
func (l *lane) suppressed(s *slot) time.Duration {
	e := &l.paths.controlled().est
	return suppression(s.retx) + max(0, e.SRTT()-e.Min())
}

// reorderEvents is the number of loss events for which a widened tolerance of
// reordering lasts (RFC 8985, section 6.2).
const reorderEvents = 16

// duplicate takes a Data that was there already: a repetition was needless.
// Once per round trip it widens the tolerance of reordering, as RACK does.
func (f *Fetch) duplicate(now ndn.Time, l *lane) {
	f.stats.Duplicates++
	l.reorderLeft = reorderEvents
	if srtt := l.paths.controlled().est.SRTT(); now.Sub(l.reorderAt) > srtt && l.reorder < 16 {
		l.reorder++
		l.reorderAt = now
	}
}

// lose declares the outstanding transmission of slot i lost.
func (f *Fetch) lose(now ndn.Time, i int32, kind cc.LossKind) {
	s := &f.ring.slots[i]
	f.ring.unlink(i)
	f.ring.disarm(i)
	s.state = slotQueued
	l := f.lane(s)
	l.inflight--
	l.lossNew++
	fresh := s.tx > l.recPoint
	l.lossEvent.count(s, fresh)
	if !s.lost {
		s.lost = true
		f.unrep++
	}
	c := l.paths.controlled()
	c.losses++
	tk := TraceLoss
	switch kind {
	case cc.LossTimeout:
		s.timeouts++
		l.timeouts++
		if !f.silent.IsSet() {
			// For the length of a timeout; a host that was stopped would count more.
			f.silent = max(s.sentAt, now.Add(-c.est.RTO()))
		}
		f.stats.Timeouts++
		tk = TraceTimeout
	case cc.LossReorder:
		f.stats.EarlyLosses++
	}
	e := &f.lossEv
	*e = cc.Loss{
		Now: now, Tx: s.tx, HighTx: l.tx, Segment: s.seg, Kind: kind,
		Inflight: l.inflight, NewEvent: fresh, RTTNow: c.est.Last(),
		Silent: kind == cc.LossTimeout && now.Sub(c.lastSeen) >= c.est.Base(),
	}
	if e.NewEvent {
		l.recPoint = l.tx
		if l.reorder > 0 {
			if l.reorderLeft--; l.reorderLeft <= 0 {
				l.reorder = 0
			}
		}
		if kind == cc.LossTimeout {
			l.paths.backoff()
		}
	}
	before := l.ctrl.Cwnd()
	if !l.retired {
		l.ctrl.OnLoss(e)
	}
	if f.trace != nil {
		f.emit(now, l, tk, s.seg, s.tx, 0, 0)
	}
	f.decreased(now, l, before)
	if f.level != nil && kind == cc.LossTimeout && l == f.cur {
		f.level.sw.Timeout(now, c.est.Base())
	}
	if f.exhausted(now, s.retx, s.firstAt) {
		f.failSegment(now, i, fmt.Errorf("%w: segment %d of %s was asked for %d times in %v",
			ErrUnreachable, s.seg, f.obj.Name, s.retx+1, now.Sub(s.firstAt).Round(100*time.Millisecond)))
		return
	}
	f.requeue(now, i, kind)
}

// requeue puts a lost segment into the retransmission queue, at once or when
// the forwarder will not swallow the repetition.
func (f *Fetch) requeue(now ndn.Time, i int32, kind cc.LossKind) {
	s := &f.ring.slots[i]
	if at := s.sentAt.Add(f.lane(s).suppressed(s)); kind != cc.LossTimeout && at > now {
		s.state = slotWaiting
		f.ring.arm(i, at)
		return
	}
	f.retx.push(s.seg)
}

// exhausted reports whether something that was asked for 1+retx times, first
// at the time first, is to be given up: it has had its retries, or all that
// was asked for since then has remained without an answer.
func (f *Fetch) exhausted(now ndn.Time, retx uint16, first ndn.Time) bool {
	if f.cfg.Retries < 0 {
		return false
	}
	patience := f.cfg.giveUpAfter()
	if f.silent.IsSet() && f.cfg.Retries > 0 && now.Sub(f.silent) >= patience {
		return true
	}
	return int(retx) >= f.cfg.Retries && now.Sub(first) >= patience
}

// Nack takes a network Nack. p is a view that is valid during the call.
func (f *Fetch) Nack(now ndn.Time, p *ndn.Packet) {
	if f.Done() {
		return
	}
	f.stats.Now = now
	in := &p.Interest
	if f.stage < stageFetch {
		f.oneNack(now, in, p.NackReason)
		return
	}
	i := f.outstanding(in.Name)
	if i == none || f.ring.slots[i].nonce != in.Nonce {
		f.stats.Unsolicited++
		return
	}
	f.stats.Nacks++
	s := &f.ring.slots[i]
	if f.trace != nil {
		f.emit(now, f.lane(s), TraceNack, s.seg, s.tx, 0, 0)
	}
	switch p.NackReason {
	case ndn.NackDuplicate:
		// Another copy of the Interest is on its way; the timeout decides.
	case ndn.NackCongestion:
		f.lose(now, i, cc.LossNack)
	default:
		// The path is gone: no sign of congestion.
		f.ring.unlink(i)
		f.ring.disarm(i)
		f.lane(s).inflight--
		if !s.lost {
			s.lost = true
			f.unrep++
		}
		s.state = slotQueued
		f.retx.push(s.seg)
		f.noRoute(now, f.lane(s))
	}
}

// LinkGaveUp takes the news that the one-hop reliability of the own face ran
// out of retries for an Interest.
func (f *Fetch) LinkGaveUp(now ndn.Time, interest *ndn.Interest) {
	if f.stage != stageFetch {
		return
	}
	i := f.outstanding(interest.Name)
	if i != none && f.ring.slots[i].nonce == interest.Nonce {
		f.lose(now, i, cc.LossLinkGiveUp)
	}
}

// outstanding returns the slot of the segment that an Interest asks for, if
// it is in flight.
func (f *Fetch) outstanding(n ndn.Name) int32 {
	seg, ok := f.segmentOf(n)
	if !ok || seg < f.base || seg >= f.next || f.ring.at(seg).state != slotOutstanding {
		return none
	}
	return f.ring.index(seg)
}

// noRoute pauses, longer each time in a row, and gives up: soon if nothing was
// ever answered, after all retries otherwise, since routes come back. Where
// there are other replicas, none of them must have a route.
func (f *Fetch) noRoute(now ndn.Time, l *lane) {
	if now < l.holdUntil {
		return // of the same pause
	}
	l.noRoutes++
	if !f.noRouteAt.IsSet() {
		f.noRouteAt = now
	}
	if f.cfg.Retries >= 0 && !f.othersHaveRoute(l) {
		soon := !f.anyData && l.noRoutes > min(fastNoRoutes, f.cfg.Retries)
		if soon || now.Sub(f.noRouteAt) > f.cfg.giveUpAfter() {
			f.Fail(now, fmt.Errorf("%w to %s", ErrNoRoute, f.cfg.Name))
			return
		}
	}
	l.holdUntil = now.Add(min(noRoutePause<<min(l.noRoutes-1, 10), f.cfg.Lifetime))
	if f.level != nil && l == f.cur {
		f.level.sw.Failed()
		f.judge(now)
	}
}
