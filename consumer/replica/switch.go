package replica

import (
	"math"
	"time"

	"ndnpop/ndn"
)

// Network is the candidate that stands for whichever other replica the network
// chooses, when it is asked to.
const Network = -1

// Max bounds the replicas of one fetch that are told apart by a number.
const Max = 8

// ID is one replica: its number, 0 for the one that the network chooses by
// itself and others in the fetch's order, and the path tag, which tells apart
// those that the network chooses; 0 when unknown.
type ID struct {
	Number int
	Tag    uint64
}

// Sample is the arrival of one Data from the present replica.
type Sample struct {
	Now ndn.Time
	// RTT is 0 when the segment was asked for more than once.
	RTT  time.Duration
	Size int // bytes on the wire
	// RoundStart is set on the first Data of a round trip.
	RoundStart bool
}

// Level of congestion.
type Level uint8

// Levels of congestion.
const (
	Light Level = iota
	Heavy
	Interrupted // nothing arrives
)

// String names the level.
func (l Level) String() string {
	switch l {
	case Heavy:
		return "heavy congestion"
	case Interrupted:
		return "interruption"
	}
	return "light congestion"
}

// row is what is remembered of a replica.
type row struct {
	id   ID
	rate float64 // bytes per second
	base time.Duration
	at   ndn.Time // when the rate was measured; 0: the row is free
	left ndn.Time // when it was left, 0: never
}

// maxRows bounds the memory; the row that was measured first gives way.
const maxRows = 2 * Max

// Switch is the decision of one fetch. It is not safe for concurrent use.
type Switch struct {
	cfg        Config
	mon        monitor
	numbers    int // replicas with a number
	rows       [maxRows]row
	present    ID
	switched   ndn.Time // latest switch, 0: none
	returned   ndn.Time // latest return to one that was left lately
	deafUntil  ndn.Time // the network does not choose before
	failed     bool     // the network says that it has no way to the present one
	cost       float64  // SwitchTime in seconds, 0: none measured
	costKnown  bool
	costPeriod time.Duration
}

// New makes a Switch for a fetch that begins at the time now with replica 0 of
// as many as have a number, at least 1 and at most Max.
func New(cfg Config, numbers int, now ndn.Time) *Switch {
	s := &Switch{cfg: cfg.withDefaults(), numbers: min(max(1, numbers), Max), costKnown: true}
	s.mon.cfg = &s.cfg
	s.mon.reset(now)
	if s.cfg.Elsewhere > 0 {
		s.Know(now, ID{Number: Network}, s.cfg.Elsewhere, 0)
	}
	return s
}

// Begin tells that it is another number that the fetch begins with.
func (s *Switch) Begin(number int) { s.present = ID{Number: number} }

// Know tells what is known of a replica beforehand; the Number may be Network.
func (s *Switch) Know(now ndn.Time, id ID, rate float64, rtt time.Duration) {
	r := s.row(id)
	r.rate, r.base, r.at = rate, rtt, now
}

// row finds or makes the row of a replica.
func (s *Switch) row(id ID) *row {
	oldest := &s.rows[0]
	for i := range s.rows {
		r := &s.rows[i]
		if r.at != 0 && r.id == id {
			return r
		}
		if r.at < oldest.at {
			oldest = r
		}
	}
	*oldest = row{id: id}
	return oldest
}

// Sent tells that an Interest left when nothing was in flight.
func (s *Switch) Sent(now ndn.Time) { s.mon.heard = now }

// Data tells of a Data from the present replica. The path tag belongs to the
// path that the controller runs on.
func (s *Switch) Data(d *Sample, tag uint64) {
	s.failed = false
	if s.present.Tag == 0 {
		s.present.Tag = tag
	}
	s.mon.data(d)
	if !s.costKnown && d.Now.Sub(s.switched) >= s.costPeriod {
		s.measureCost(d.Now)
	}
}

// Timeout tells of a timeout of an Interest to the present replica.
func (s *Switch) Timeout(now ndn.Time, rto time.Duration) { s.mon.timeout(now, rto) }

// Failed tells that the network has no way to the present replica.
func (s *Switch) Failed() { s.failed = true }

// InterruptAt is when the silence of the present replica becomes an
// interruption, for a retransmission timeout without back-off. lead is how much
// earlier that is to be, so that the network can be asked in vain before.
func (s *Switch) InterruptAt(rto, lead time.Duration) ndn.Time {
	d := max(2*rto, s.cfg.Interrupt)
	return s.mon.heard.Add(d - min(lead, d/2))
}

// AsksFirst reports whether the network would be asked before a numbered replica
// is taken.
func (s *Switch) AsksFirst(now ndn.Time) bool {
	return s.numbers > 1 && now >= s.deafUntil && s.mayReturn(now)
}

// mayReturn: no return to a replica that was left lately was too recent.
func (s *Switch) mayReturn(now ndn.Time) bool {
	return !s.returned.IsSet() || now.Sub(s.returned) >= s.cfg.Avoid
}

// Level is the congestion of the present replica. waiting says that Interests
// are in flight, or that nothing may leave although something is wanted; rto and
// lead are those of InterruptAt.
func (s *Switch) Level(now ndn.Time, rto, lead time.Duration, waiting bool) Level {
	switch {
	case s.failed, waiting && now >= s.InterruptAt(rto, lead):
		return Interrupted
	case s.mon.lossFlag() || s.mon.rttFlag():
		return Heavy
	}
	return Light
}

// Decide says whether to leave the present replica at a level of congestion,
// with so many bytes still to come, and for which number, or Network.
func (s *Switch) Decide(now ndn.Time, level Level, remaining uint64) (to int, ok bool) {
	if level == Light || level == Heavy && s.switched.IsSet() && now.Sub(s.switched) < s.cfg.HoldDown {
		return 0, false
	}
	to, rate, rtt, ok := s.candidate(now)
	if !ok || level == Interrupted {
		return to, ok
	}
	rem, current := float64(remaining), s.mon.rate(now)
	if rate <= 0 || rem <= 0 {
		return 0, false
	}
	saved := math.Inf(1)
	if current > 0 {
		saved = rem/current - rem/rate
	}
	return to, s.switchTime(rtt) < saved
}

// switchTime is SwitchTime in seconds for a candidate's RTT.
func (s *Switch) switchTime(rtt time.Duration) float64 {
	if s.cost > 0 {
		return s.cost
	}
	return s.cfg.CostRTTs * rtt.Seconds()
}

// candidate chooses the best replica to go to, with its rate and RTT: what the
// network chooses, if it does, and otherwise the numbered one with the highest
// rate, the first one of equals.
func (s *Switch) candidate(now ndn.Time) (to int, rate float64, rtt time.Duration, ok bool) {
	mayReturn := s.mayReturn(now)
	if now >= s.deafUntil && mayReturn {
		rate, rtt = s.future(now, s.elsewhere(now))
		return Network, rate, rtt, true
	}
	best, bestLeft := -1, false
	for i := range s.numbers {
		if i == s.present.Number {
			continue
		}
		r := s.latest(i)
		left := r != nil && s.lately(now, r)
		if left && !mayReturn {
			continue
		}
		v, d := s.future(now, r)
		// One that was left lately comes after all others.
		if best < 0 || bestLeft && !left || left == bestLeft && v > rate {
			best, bestLeft, rate, rtt = i, left, v, d
		}
	}
	return best, rate, rtt, best >= 0
}

func (s *Switch) lately(now ndn.Time, r *row) bool {
	return r.left.IsSet() && now.Sub(r.left) < s.cfg.Avoid
}

// future is FutureRate and the RTT of a replica, r being nil if nothing is
// known of it.
func (s *Switch) future(now ndn.Time, r *row) (rate float64, rtt time.Duration) {
	rtt = s.mon.known
	if r != nil {
		rtt = or(r.base, rtt)
		if now.Sub(r.at) < s.cfg.Memory {
			return r.rate, rtt
		}
	}
	return s.cfg.Unknown * s.mon.before(now), rtt
}

// latest is the row of a number that was measured last.
func (s *Switch) latest(number int) *row {
	var found *row
	for i := range s.rows {
		if r := &s.rows[i]; r.at != 0 && r.id.Number == number && (found == nil || r.at > found.at) {
			found = r
		}
	}
	return found
}

// elsewhere is the row of what the network would choose: the best one that was
// met under the present number, or what was told beforehand.
func (s *Switch) elsewhere(now ndn.Time) *row {
	var found *row
	for i := range s.rows {
		r := &s.rows[i]
		switch {
		case r.at == 0 || now.Sub(r.at) >= s.cfg.Memory:
		case r.id.Number == Network,
			r.id.Number == s.present.Number && r.id.Tag != s.present.Tag && !s.lately(now, r):
			if found == nil || r.rate > found.rate {
				found = r
			}
		}
	}
	return found
}

// Refused tells that the network was asked for another replica in vain. deaf
// says that it is sure that nobody listens; otherwise there was none to choose,
// or nothing was answered at all.
func (s *Switch) Refused(now ndn.Time, deaf bool) {
	s.deafUntil = now.Add(s.cfg.HoldDown)
	if deaf {
		s.deafUntil = now.Add(s.cfg.Memory)
	}
}

// Moved tells that the network chose another replica, with this path tag,
// unasked. It returns what Switched does.
func (s *Switch) Moved(now ndn.Time, tag uint64) (rate float64, rtt time.Duration) {
	if tag == s.present.Tag {
		return 0, 0
	}
	to := ID{s.present.Number, tag}
	s.leave(now)
	rate, rtt = s.history(now, to)
	s.present, s.failed, s.costKnown = to, false, true
	s.mon.reset(now)
	s.mon.known = rtt
	return rate, rtt
}

// leave remembers the present replica and returns its row.
func (s *Switch) leave(now ndn.Time) *row {
	r := s.row(s.present)
	r.rate, r.base, r.at = s.mon.last(now), s.mon.known, now
	return r
}

// history is what is known of a replica, 0 if nothing is or it is old.
func (s *Switch) history(now ndn.Time, id ID) (rate float64, rtt time.Duration) {
	for i := range s.rows {
		if r := &s.rows[i]; r.at != 0 && r.id == id && now.Sub(r.at) < s.cfg.Memory {
			return r.rate, r.base
		}
	}
	if r := s.latest(id.Number); id.Tag == 0 && r != nil && now.Sub(r.at) < s.cfg.Memory {
		return r.rate, r.base
	}
	return 0, 0
}

// Switched tells that the fetch has gone on to another replica. It returns
// what is known of its rate and RTT from earlier, for the start there; 0 if
// nothing.
func (s *Switch) Switched(now ndn.Time, to ID) (rate float64, rtt time.Duration) {
	if !s.costKnown {
		s.measureCost(now)
	}
	s.leave(now).left = now
	for i := range s.rows {
		r := &s.rows[i]
		if r.at != 0 && r.id.Number == to.Number && (r.id.Tag == to.Tag || to.Tag == 0) && r.id != s.present && s.lately(now, r) {
			s.returned = now
		}
	}
	rate, rtt = s.history(now, to)
	base := or(rtt, s.mon.known)
	s.present, s.switched, s.failed = to, now, false
	s.costKnown, s.costPeriod = false, max(time.Second, 20*base)
	s.mon.reset(now)
	s.mon.known = base
	return rate, rtt
}

// measureCost compares what came since the latest switch with what would have
// come at the highest rate of a round trip: the difference, as time, is what
// the switch cost.
func (s *Switch) measureCost(now ndn.Time) {
	s.costKnown = true
	took := now.Sub(s.switched).Seconds()
	if s.mon.peak <= 0 || took <= 0 {
		return
	}
	x := min(max(0, took-float64(s.mon.meter.total)/s.mon.peak), took)
	if s.cost > 0 {
		x = (s.cost + x) / 2
	}
	s.cost = max(x, 1e-3)
}
