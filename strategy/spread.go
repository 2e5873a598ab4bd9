package strategy

import (
	"time"

	"ndnpop/ndn"
)

// Spread spaces out what is sent again: all Interests that were outstanding at a
// next hop when it died, of one prefix or of many. In one burst they would overflow the
// queue of the other path. A next hop's answers came as fast as its path bore:
// what was outstanding when the last one came, in one round-trip time. What was
// sent since then took as long as it took. Sent again over both times they go no
// faster than before. The zero Spread is ready.
//
// A handler that learns of the failure of one Interest calls Join and arms a
// timer that is due at once: when that fires, all others of the same moment
// have joined, and Turn tells when this one's is. What joins before the first of
// these timers has fired is one group, even if several next hops fail one after
// the other. New Interests meanwhile line up behind (Follow): Data that overtake
// others look like losses to a consumer.
type Spread struct {
	groups [2]group // the latest one and the one before
	latest uint32
	until  ndn.Time // the last turn
	gap    time.Duration
	span   time.Duration
	end    ndn.Time // of the line
}

// group is what joined until the first turn was asked for.
type group struct {
	number uint32
	n      uint32
	joined ndn.Time
	// The first and the last of those sent since the last answer, if any.
	first, last ndn.Time

	began ndn.Time      // when the first turn was asked for, zero before
	gap   time.Duration // from turn to turn
}

// Place is a place in the line. The zero Place is behind all others.
type Place struct{ group, at uint32 }

// stale is after which time a group that has not begun gets no more members:
// its timers have been disarmed.
const stale = 10 * time.Millisecond

// First reports whether it is the first of its group, whose turn is at once: it
// needs no timer.
func (p Place) First() bool { return p.at == 0 && p.group != 0 }

// Failure says what is known of a next hop at which an Interest was outstanding.
type Failure struct {
	RTT   time.Duration
	Heard ndn.Time // when its last answer came, zero if none
	Sent  ndn.Time // when the Interest was sent there, zero if it was not
}

// Join returns the place of one more Interest that failed now.
func (s *Spread) Join(now ndn.Time, f Failure) Place {
	g := &s.groups[s.latest%2]
	// A single one of another moment has been sent already, or has its own turn.
	open := g.joined == now || g.n > 1 && now.Sub(g.joined) <= stale
	if g.n == 0 || g.began != 0 || !open {
		s.latest = max(1, s.latest+1)
		g = &s.groups[s.latest%2]
		*g = group{number: s.latest, joined: now}
	}
	if g.n++; f.Sent > f.Heard {
		if g.first == 0 || f.Sent < g.first {
			g.first = f.Sent
		}
		g.last = max(g.last, f.Sent)
	}
	return Place{g.number, g.n - 1}
}

// Turn is the time from now until the turn of a place.
func (s *Spread) Turn(now ndn.Time, p Place, f Failure) time.Duration {
	turn := max(now, s.until.Add(s.gap)) // of who is forgotten
	if g := &s.groups[p.group%2]; p.group != 0 && g.number == p.group && p.at < g.n {
		if g.began == 0 {
			s.span = f.RTT + g.last.Sub(g.first)
			s.gap = s.span / time.Duration(g.n)
			s.end = max(s.end, now.Add(2*s.span))
			g.began, g.gap = now, s.gap
		}
		turn = g.began.Add(g.gap * time.Duration(p.at))
	}
	s.until = max(s.until, turn)
	return max(0, turn.Sub(now))
}

// Over reports whether nobody waits.
func (s *Spread) Over(now ndn.Time) bool { return now >= min(s.until, s.end) }

// Follow is the time until the turn of an Interest that is new, zero when none
// are waiting. New ones come no faster than Data do, and their turns a third
// faster, so that the line gets shorter. When it does not, and when it has lasted
// twice as long as what was sent again took, it is left alone: by a shorter path
// a fixed window of Interests would keep it up for ever.
func (s *Spread) Follow(now ndn.Time) time.Duration {
	if s.Over(now) || s.until.Sub(now) > s.span {
		return 0
	}
	s.until = s.until.Add(s.gap * 3 / 4)
	return s.until.Sub(now)
}
