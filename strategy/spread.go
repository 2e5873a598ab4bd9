package strategy

import (
	"time"

	"ndnpop/ndn"
)

// Spread spaces out what fails together: all Interests that were outstanding
// at a next hop when it died. Sent again in one burst they would overflow the
// queue of the other path. A next hop's answers came as fast as its path bore,
// one round-trip time for all that was outstanding; spread over that time they
// go no faster than before, and none waits longer in all than the oldest did
// already. The zero Spread is ready.
//
// A handler that learns of the failure of one Interest calls Join and arms a
// timer that is due at once: when that fires, all others of the same moment
// have joined, and Wait tells when this one's turn is.
type Spread struct {
	at ndn.Time
	n  uint32
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

// Wait is the time until the turn of a place, of all that joined, when they
// are spread over some time.
func (s *Spread) Wait(place uint32, over time.Duration) time.Duration {
	if place >= s.n {
		return 0 // forgotten meanwhile
	}
	return time.Duration(float64(over) * float64(place) / float64(s.n))
}
