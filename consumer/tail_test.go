package consumer

import (
	"testing"
	"time"

	"ndnpop/consumer/cc"
)

// lostAt is how long a fetch of 125 segments takes over a path of 20 ms when
// the Data of some segments are lost, each once; none: MaxUint64 in lost.
func lostAt(t *testing.T, cfg func(*Config), lost ...uint64) (time.Duration, Stats) {
	t.Helper()
	o := newOrigin(1_000_000, 8000)
	n := newNet(t, 50e6/8, 500e3)
	c := cfgFor(o)
	if cfg != nil {
		cfg(&c)
	}
	fl := n.add(o, 10*ms, c, controller(t, "cubic", cc.Params{}), nil)
	fl.loseData = func(seg uint64, nth int) bool {
		for _, s := range lost {
			if seg == s && nth == 1 {
				return true
			}
		}
		return false
	}
	n.run(time.Minute)
	fl.ok()
	return fl.elapsed(), fl.f.Stats()
}

// TestLostTail: the last segments are asked for again before the timeout, which
// is 200 ms at least: nothing that follows them can tell that they are lost.
func TestLostTail(t *testing.T) {
	whole, s := lostAt(t, nil)
	if s.Retransmissions != 0 {
		t.Fatalf("%d repeated without a loss", s.Retransmissions)
	}
	for _, lost := range [][]uint64{{124}, {123}, {122}, {123, 124}, {120, 121, 122, 123, 124}} {
		took, s := lostAt(t, nil, lost...)
		late, _ := lostAt(t, func(c *Config) { c.NoEarlyLoss = true }, lost...)
		t.Logf("%v lost: %v more, with timeouts %v", lost, took-whole, late-whole)
		if s.Timeouts != 0 || s.EarlyLosses != uint64(len(lost)) || s.Retransmissions != uint64(len(lost)) {
			t.Errorf("%v lost: %d timeouts, %d noticed, %d repeated", lost, s.Timeouts, s.EarlyLosses, s.Retransmissions)
		}
		if late-took < 80*ms {
			t.Errorf("%v lost: %v more, with timeouts %v", lost, took-whole, late-whole)
		}
	}
}

// TestSilentTail: when nobody answers any more, what is asked for again at once
// is not asked for again and again.
func TestSilentTail(t *testing.T) {
	o := newOrigin(1_000_000, 8000)
	n := newNet(t, 50e6/8, 500e3)
	fl := n.add(o, 10*ms, cfgFor(o), controller(t, "cubic", cc.Params{}), nil)
	fl.loseData = func(seg uint64, _ int) bool { return seg == 124 && n.now.Sub(0) < 3*time.Second }
	n.run(time.Minute)
	fl.ok()
	if s := fl.f.Stats(); s.Retransmissions > 8 {
		t.Errorf("%d repeated in 3 s", s.Retransmissions)
	}
}
