package strategy

import (
	"time"

	"ndnpop/ndn"
)

// Spread spaces out what is sent again: all Interests of a prefix that were
// outstanding at a next hop when it died. In one burst they would overflow the
// queue of the other path. A next hop's answers came as fast as its path bore,
// one round-trip time for all that was outstanding; spread over that time they
// go no faster than before, and none waits longer in all than the oldest did
// already. The zero Spread is ready.
//
// A handler that learns of the failure of one Interest calls Join and arms a
// timer that is due at once: when that fires, all others of the same moment
// have joined, and Turn tells when this one's is. New Interests meanwhile line
// up behind (Follow): Data that overtake others look like losses to a consumer.
//
// Timers may fire later than they are due. When somebody joined is therefore
// what Timer.At says, not the time at which the timer is handled.
type Spread struct {
	at    ndn.Time
	n     uint32
	until ndn.Time // the last turn
	gap   time.Duration
	span  time.Duration
}

// Join returns the place of one more Interest that failed now. The first has
// place 0, and its turn is at once.
func (s *Spread) Join(now ndn.Time) uint32 {
	if s.at != now {
		s.at, s.n = now, 0
	}
	s.n++
	return s.n - 1
}

// Turn is the time from now until the turn of a place among all that joined at
// a time, of which the round-trip time was as given.
func (s *Spread) Turn(now, joined ndn.Time, place uint32, rtt time.Duration) time.Duration {
	if s.at != joined || place >= s.n {
		return 0 // forgotten meanwhile
	}
	s.span = rtt
	s.gap = rtt / time.Duration(s.n)
	turn := joined.Add(s.gap * time.Duration(place))
	s.until = max(s.until, turn)
	return max(0, turn.Sub(now))
}

// Follow is the time until the turn of an Interest that is new, zero when none
// are waiting. New ones come no faster than Data do, and their turns twice as
// fast, so that the line gets shorter; when it does not, it is left alone.
func (s *Spread) Follow(now ndn.Time) time.Duration {
	if now >= s.until || s.until.Sub(now) > s.span {
		return 0
	}
	s.until = s.until.Add(s.gap / 2)
	return s.until.Sub(now)
}
