package consumer

import (
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

// TestPauseShorterThanTimeout: the network pauses for less than a timeout, as it
// does when it goes to another path, and all that was in flight is older than a
// timeout when it comes. Nothing was lost, and nothing is repeated. A path that
// falls silent for good is noticed a timeout after the last Data, and what it has
// swallowed is repeated at the rate at which it was asked for, not in one burst.
func TestPauseShorterThanTimeout(t *testing.T) {
	o := newOrigin(30_000_000, 8000)
	for _, hopByHop := range []bool{false, true} {
		cfg := cfgFor(o)
		cfg.NoEarlyLoss = hopByHop
		n := newNet(t, 12.5e6, 4e6)
		fl := n.add(o, 40*ms, cfg, controller(t, "fixed", cc.Params{Window: 150}), nil)
		n.at(ndn.Time(time.Second), func(now ndn.Time) { n.freeAt = max(n.freeAt, now).Add(150 * ms) })
		n.run(time.Minute)
		fl.ok()
		if s := fl.f.Stats(); s.MaxGap < 150*ms || s.RTTMax < 230*ms || s.Retransmissions != 0 || s.Timeouts != 0 {
			t.Errorf("a pause of %v, RTT up to %v: %d timeouts, %d Interests repeated", s.MaxGap, s.RTTMax, s.Timeouts, s.Retransmissions)
		}

		n = newNet(t, 12.5e6, 4e6)
		fl = n.add(o, 40*ms, cfg, controller(t, "fixed", cc.Params{Window: 150}), nil)
		dead := ndn.Time(time.Second)
		fl.loseData = func(uint64, int) bool { return n.now >= dead }
		n.run(2 * time.Second)
		s := fl.f.Stats()
		if since := fl.f.silent.Sub(fl.f.lastData); s.Timeouts == 0 || since < 0 || since > ms {
			t.Errorf("%d timeouts; silence is counted from %v after the last Data", s.Timeouts, since)
		}
		again := fl.sent
		for again[0].at <= dead.Add(100*ms) { // nothing but repetitions follows the last Data
			again = again[1:]
		}
		if wait := again[0].at.Sub(fl.f.lastData); wait < 200*ms || wait > 201*ms {
			t.Errorf("the first repetition leaves %v after the last Data", wait)
		}
		if tenth := again[9].at.Sub(again[0].at); tenth < 5*ms {
			t.Errorf("the tenth repetition leaves %v after the first", tenth)
		}
	}
}
