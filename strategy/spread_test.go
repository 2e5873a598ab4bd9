package strategy

import (
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	const ms = time.Millisecond
	var s Spread
	if s.Follow(5) != 0 {
		t.Error("somebody waits")
	}
	for i := range uint32(4) {
		if p := s.Join(1000); p != i {
			t.Errorf("place %d, want %d", p, i)
		}
	}
	for i := range uint32(4) {
		if w := s.Turn(1000, 1000, i, 40*ms); w != time.Duration(i)*10*ms {
			t.Errorf("turn %d after %v", i, w)
		}
	}
	// A timer that is late takes nothing off the turns.
	if w := s.Turn(1000+5e6, 1000, 1, 40*ms) + s.Turn(1000+5e6, 1000, 0, 40*ms); w != 5*ms {
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
	if p := s.Join(2000); p != 0 {
		t.Errorf("place %d at another time", p)
	}
	if w := s.Turn(3000, 3000, 0, 40*ms) + s.Turn(2000, 2000, 7, 40*ms); w != 0 {
		t.Errorf("unknown places wait %v", w)
	}
}
