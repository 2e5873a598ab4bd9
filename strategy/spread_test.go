package strategy

import (
	"testing"
	"time"

	"ndnpop/ndn"
)

const ms = time.Millisecond

// join has n Interests join and returns their places.
func join(s *Spread, now ndn.Time, n int) (places []Place) {
	for range n {
		places = append(places, s.Join(now))
	}
	return places
}

func TestSpread(t *testing.T) {
	var s Spread
	if s.Follow(5) != 0 {
		t.Error("somebody waits")
	}
	places := join(&s, 1000, 4)
	for i, p := range places {
		if p.First() != (i == 0) {
			t.Errorf("place %d is the first: %v", i, p.First())
		}
		if w := s.Turn(1000, p, 40*ms); w != time.Duration(i)*10*ms {
			t.Errorf("turn %d after %v", i, w)
		}
	}
	// Timers that are late among themselves.
	if w := s.Turn(1000+5e6, places[1], 40*ms) + s.Turn(1000+5e6, places[0], 40*ms); w != 5*ms {
		t.Errorf("5 ms later, %v", w)
	}
	// Who comes next goes behind the last one, up to the time that all take.
	for _, want := range []time.Duration{35, 40, 45, 0} {
		if w := s.Follow(1000); w != want*ms {
			t.Errorf("a new one waits %v, want %v ms", w, int(want))
		}
	}
	if w := s.Follow(1000 + 20*1e6); w != 30*ms {
		t.Errorf("later %v", w)
	}
	if w := s.Follow(1000 + 1e9); w != 0 {
		t.Errorf("when all are out %v", w)
	}
}

// TestSpreadGroups: whatever fails before the first turns are given out is one
// group; what comes later is another, beside it.
func TestSpreadGroups(t *testing.T) {
	var s Spread
	first := join(&s, 1000, 2)
	second := join(&s, 1000+1e6, 2)
	if second[0].First() {
		t.Error("the second failure did not join the first")
	}
	now := ndn.Time(1000 + 2e6)
	for i, p := range append(first, second...) {
		if w := s.Turn(now, p, 40*ms); w != time.Duration(i)*10*ms {
			t.Errorf("turn %d after %v", i, w)
		}
	}
	third := join(&s, now, 2)
	if !third[0].First() {
		t.Error("joined a group whose turns are given out")
	}
	if w := s.Turn(now, third[1], 40*ms); w != 20*ms {
		t.Errorf("turn in a group of two after %v", w)
	}
	if w := s.Turn(now, second[1], 40*ms); w != 30*ms {
		t.Errorf("turn in the group before after %v", w)
	}
	// A single one is out already when the next one fails.
	a, b := s.Join(now+1e6), s.Join(now+2e6)
	if !a.First() || !b.First() {
		t.Error("single ones wait for one another")
	}
	// Who was forgotten goes behind the last one.
	if w := s.Turn(now, third[1], 40*ms); w != 30*ms+20*ms {
		t.Errorf("a forgotten one after %v", w)
	}
	if w := s.Turn(now, Place{}, 40*ms); w != 70*ms {
		t.Errorf("another one after %v", w)
	}
	// Members that never asked for their turn hold nobody up for ever.
	join(&s, now+1e9, 5)
	if p := s.Join(now + 2e9); !p.First() {
		t.Error("joined a group of long ago")
	}
}

func TestRefused(t *testing.T) {
	var r Refused
	sum, n := time.Duration(0), 0
	for {
		d, ok := r.Retry()
		if !ok {
			break
		}
		sum, n = sum+d, n+1
	}
	if n != 6 || sum != 315*ms {
		t.Errorf("%d times in %v", n, sum)
	}
}
