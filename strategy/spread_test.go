package strategy

import (
	"testing"
	"time"

	"ndnpop/ndn"
)

const ms = time.Millisecond

// outstanding is an Interest at a next hop that had just answered.
var outstanding = Failure{RTT: 40 * ms, Heard: 900, Sent: 800}

// join has n Interests join and returns their places.
func join(s *Spread, now ndn.Time, n int) (places []Place) {
	for range n {
		places = append(places, s.Join(now, outstanding))
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
		if w := s.Turn(1000, p, outstanding); w != time.Duration(i)*10*ms {
			t.Errorf("turn %d after %v", i, w)
		}
	}
	// Timers that are late among themselves.
	if w := s.Turn(1000+5e6, places[1], outstanding) + s.Turn(1000+5e6, places[0], outstanding); w != 5*ms {
		t.Errorf("5 ms later, %v", w)
	}
	// Who comes next goes behind the last one, up to the time that all take.
	for _, want := range []time.Duration{37500, 45000, 0} {
		if w := s.Follow(1000); w != want*time.Microsecond {
			t.Errorf("a new one waits %v, want %v µs", w, int(want))
		}
	}
	if w := s.Follow(1000 + 20*1e6); w != 32500*time.Microsecond {
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
		if w := s.Turn(now, p, outstanding); w != time.Duration(i)*10*ms {
			t.Errorf("turn %d after %v", i, w)
		}
	}
	third := join(&s, now, 2)
	if !third[0].First() {
		t.Error("joined a group whose turns are given out")
	}
	if w := s.Turn(now, third[1], outstanding); w != 20*ms {
		t.Errorf("turn in a group of two after %v", w)
	}
	if w := s.Turn(now, second[1], outstanding); w != 30*ms {
		t.Errorf("turn in the group before after %v", w)
	}
	// A single one is out already when the next one fails.
	a, b := s.Join(now+1e6, outstanding), s.Join(now+2e6, outstanding)
	if !a.First() || !b.First() {
		t.Error("single ones wait for one another")
	}
	// Who was forgotten goes behind the last one.
	if w := s.Turn(now, third[1], outstanding); w != 30*ms+20*ms {
		t.Errorf("a forgotten one after %v", w)
	}
	if w := s.Turn(now, Place{}, outstanding); w != 70*ms {
		t.Errorf("another one after %v", w)
	}
	// Members that never asked for their turn hold nobody up for ever.
	join(&s, now+1e9, 5)
	if p := s.Join(now+2e9, outstanding); !p.First() {
		t.Error("joined a group of long ago")
	}
}

// TestSpreadOfSilence: what was sent while nothing came adds the time that it
// took.
func TestSpreadOfSilence(t *testing.T) {
	const heard, now = ndn.Time(1e9), ndn.Time(1e9 + 60e6) // silent for 60 ms
	for _, x := range []struct {
		before, since int
		gap           time.Duration
	}{
		{4, 5, 80 * ms / 9},
		{40, 0, ms},
		{0, 1, 40 * ms},
		{0, 9, 120 * ms / 9},
	} {
		var s Spread
		var places []Place
		f := Failure{RTT: 40 * ms, Heard: heard}
		for i := range x.before + x.since {
			f.Sent = heard - 10e6
			if i >= x.before {
				f.Sent = heard.Add(time.Duration(1+(i-x.before)*2%x.since) * 10 * ms)
			}
			places = append(places, s.Join(now, f))
		}
		for i, p := range places {
			if w := s.Turn(now, p, f); w != time.Duration(i)*x.gap {
				t.Errorf("%+v: turn %d after %v", x, i, w)
			}
		}
	}
}

// TestSpreadEnds: a line that new Interests keep up is given up.
func TestSpreadEnds(t *testing.T) {
	var s Spread
	for _, p := range join(&s, 1000, 4) {
		s.Turn(1000, p, outstanding)
	}
	now, n := ndn.Time(1000), 0
	for ; n < 1000 && now < s.until; n++ { // as by a window of four, with answers at once
		wait := s.Follow(now)
		if wait == 0 {
			break
		}
		now = now.Add(s.gap * 3 / 4)
	}
	if n < 8 || n > 12 {
		t.Errorf("the line ends after %d more", n)
	}
}
