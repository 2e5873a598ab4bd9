package cc

import (
	"math"
	"testing"
	"time"

	"ndnpop/ndn"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// The smoothed RTT takes an eighth of each sample. The smallest RTT falls to a
// sample and the largest to the smoothed RTT, never to a sample alone; both drift to
// the smoothed RTT within four cycles of 10 s.
func TestMpcExtremes(t *testing.T) {
	m := mpcOn(t, 0.020, 0.040, 0.060)
	m.drifted = ndn.Time(time.Second)
	m.measure(&Sample{Now: m.drifted.Add(4 * time.Second), RTT: 48 * ms})
	near(t, "the smoothed RTT", m.mean, 0.041)
	near(t, "the smallest RTT", m.low, 0.020+0.021/10)
	near(t, "the largest RTT", m.high, 0.060-0.019/10)

	m = mpcOn(t, 0.020, 0.040, 0.060)
	m.drifted = ndn.Time(time.Second)
	m.measure(&Sample{Now: m.drifted, RTT: 100 * ms})
	near(t, "the largest RTT after one sample beyond it", m.high, 0.060)
	m.measure(&Sample{Now: m.drifted, RTT: 10 * ms})
	near(t, "the smallest RTT after one below it", m.low, 0.010)
	m.measure(&Sample{Now: m.drifted.Add(time.Hour), RTT: 50 * ms})
	near(t, "the smallest RTT after an hour", m.low, m.mean)
	near(t, "the largest RTT after an hour", m.high, m.mean)

	// RTTs of hosts that handle packets in batches count as 2 ms.
	m = mpcOn(t, 0.002, 0.002, 0.002)
	m.measure(&Sample{Now: 5, RTT: 100 * time.Microsecond})
	near(t, "the smallest RTT of a host", m.low, 0.002)
}

// Without a queue, up to 1.02 of the smallest RTT, the bottleneck's rate is the
// largest of 10 rounds; with one it is a running mean of all Data, those of a batch
// counted each. What is low because there was nothing to ask for counts for neither.
func TestMpcBottleneck(t *testing.T) {
	for _, c := range []struct {
		mean    float64
		limited bool
		want    float64
	}{
		{0.0250, false, 4e6},
		{0.0254, false, 4e6},
		{0.0256, false, 5e6 - 1e6*(1-math.Pow(0.98, 3))},
		{0.0256, true, 5e6},
	} {
		m := mpcOn(t, 0.025, c.mean, 0.030)
		m.measured, m.decided = ndn.Time(time.Hour), ndn.Time(time.Hour)
		if c.limited {
			m.bw.add(6e6)
		}
		for _, at := range []ndn.Time{1, 1, 1, 2} {
			m.OnData(&Sample{Now: at, Rate: 4e6, RateAppLimited: c.limited, MeanSize: 1000})
		}
		near(t, "the bottleneck's rate", m.rb, c.want)
	}
}

// Start-up asks at 2.885 times the largest rate, and at least for 2.885 first
// windows per RTT; ends after three rounds that are not a quarter faster; and begins
// past the dip that it has just measured.
func TestMpcStartup(t *testing.T) {
	m := mpcOn(t, 0.025, 0.025, 0.025)
	m.starting, m.rate = true, 0
	now := ndn.Time(time.Minute)
	m.OnData(&Sample{Now: now, MeanSize: 1000})
	near(t, "the first rate", m.rate, 2.885*10*1000/0.025)
	for i, rate := range []float64{1e6, 2e6, 2.4e6, 2.4e6, 3e6, 3e6, 3e6} {
		m.OnData(&Sample{Now: now, Rate: rate, RoundStart: true, MeanSize: 1000})
		if !m.starting {
			t.Fatalf("start-up ended in round %d", i)
		}
		near(t, "the rate", m.rate, 2.885*max(rate, 10*1000/0.025))
		// Rounds with nothing to ask for say nothing of the path.
		m.OnData(&Sample{Now: now, Rate: rate, RateAppLimited: true, RoundStart: true, MeanSize: 1000})
	}
	m.OnData(&Sample{Now: now, Rate: 3e6, RoundStart: true, MeanSize: 1000})
	if m.starting || m.rb != 3e6 || m.rate != 3e6 || now.Sub(m.began) != 2500*ms {
		t.Errorf("starting %v, bottleneck %v, rate %v, %v into the cycle", m.starting, m.rb, m.rate, now.Sub(m.began))
	}
}

// A loss on a path that is neither full nor queued does not end start-up; one on a
// queue does, and halves the rate.
func TestMpcLossInStartup(t *testing.T) {
	for _, c := range []struct {
		mean float64
		flat int
		ends bool
	}{{0.030, 0, false}, {0.032, 0, true}, {0.025, 1, true}} {
		m := mpcOn(t, 0.025, c.mean, 0.040)
		m.starting, m.flat, m.rate = true, c.flat, 6e6
		m.bw.add(4e6)
		m.OnLoss(&Loss{Now: ndn.Time(time.Second), Kind: LossReorder, Inflight: 10})
		if m.starting == c.ends || c.ends && m.rate != 3e6 || !c.ends && m.rate != 6e6 {
			t.Errorf("mean %v, %d flat rounds: starting %v at %v", c.mean, c.flat, m.starting, m.rate)
		}
	}
}

// A loss halves what is larger, the rate or the bottleneck's, and begins a longer
// cycle with its dip; another counts a smoothed RTT later. A cycle without losses is
// the configured one again.
func TestMpcLossAndCycle(t *testing.T) {
	m := mpcOn(t, 0.025, 0.040, 0.060)
	m.rate = 1e6
	now := ndn.Time(time.Minute)
	m.OnLoss(&Loss{Now: now, Kind: LossReorder, Inflight: 10, RTTNow: 10 * ms})
	if m.rate != 2.5e6 || m.began != now || m.high != m.low || m.period <= 10 {
		t.Errorf("rate %v, %v into a cycle of %v s, largest RTT %v", m.rate, now.Sub(m.began), m.period, m.high)
	}
	m.OnLoss(&Loss{Now: now.Add(39 * ms), Kind: LossReorder, Inflight: 10})
	if m.began != now {
		t.Error("a second reaction within a round trip")
	}
	now = now.Add(41 * ms)
	m.OnLoss(&Loss{Now: now, Kind: LossReorder, Inflight: 10})
	if m.began != now {
		t.Error("no reaction to a loss of the next round trip")
	}
	end := now.Add(time.Duration(m.period*1e9) + 1)
	m.measured = end
	m.decide(end)
	if m.began != end || m.period != 10 {
		t.Errorf("%v into a cycle of %v s", end.Sub(m.began), m.period)
	}
}

// Whatever happens the rate is a packet per RTT and a 64th of the cap at least, and
// the cap at most.
func TestMpcBounds(t *testing.T) {
	for _, c := range []struct{ cap, mean, rate, want float64 }{
		{0, 0.025, 0, 40_000},
		{0, 0.025, 1e9, 1e9},
		{6.4e6, 0.025, 0, 100_000},
		{6.4e6, 0.005, 0, 200_000},
		{6.4e6, 0.025, 1e9, 6.4e6},
	} {
		m := mpcOn(t, c.mean, c.mean, c.mean)
		m.cap = c.cap
		near(t, "the rate", m.clamp(c.rate), c.want)
	}
}

// The window is a safety: twice what the rate has in flight with the longest queue
// and a host's delay, four packets at least.
func TestMpcWindow(t *testing.T) {
	m := mpcOn(t, 0.025, 0.040, 0.060)
	near(t, "the window", m.Cwnd(), 2*5e6*0.062/1000)
	m.mean = 0.080
	near(t, "the window", m.Cwnd(), 2*5e6*0.082/1000)
	m.rate = 1000
	near(t, "the window", m.Cwnd(), 4)
}

// Two packets per RTT are added as far as a decision follows the queue; the RTT that
// it goes by is the mean since the last one, and without any nothing is decided.
func TestMpcDecision(t *testing.T) {
	decide := func(add float64, rtts ...float64) float64 {
		m := mpcOn(t, 0.025, 0.040, 0.060)
		m.add = add
		for _, l := range rtts {
			m.sum += l
			m.n++
		}
		m.decide(ndn.Time(time.Minute))
		return m.rate
	}
	dt, kappa, smooth := 0.040, 0.1+0.6/8, 0.3*0.025*0.025
	gain := dt * dt * kappa
	near(t, "what is added", decide(2, 0.040)-decide(0, 0.040), 2*1000/0.040*gain/(smooth+gain))
	near(t, "what a longer queue takes", decide(0, 0.040)-decide(0, 0.040, 0.060), 0.040*5e6*kappa*0.010/(smooth+gain))
	if got := decide(2); got != 5e6 {
		t.Errorf("rate %v without a sample", got)
	}
}

// On another path nothing of the old one is left, and its rate is what is known.
func TestMpcForgets(t *testing.T) {
	m := mpcOn(t, 0.025, 0.040, 0.060)
	m.bw.add(9e6)
	m.period, m.sum, m.n, m.newRound, m.flat, m.fullBw = 17, 1, 7, true, 2, 9e6
	m.OnPathChange(&PathChange{Now: ndn.Time(time.Minute), Rate: 1e6})
	fresh := mpcOn(t, 0, 0, 0)
	fresh.starting, fresh.rb, fresh.rate = true, 0, 1e6
	m.rng, fresh.rng = nil, nil
	if *m != *fresh {
		t.Errorf("%+v is left, want %+v", *m, *fresh)
	}
}

// A mark shortens the largest RTT to the smoothed one and begins a dip, and says
// nothing in start-up.
func TestMpcMark(t *testing.T) {
	for _, starting := range []bool{false, true} {
		m := mpcOn(t, 0.025, 0.040, 0.060)
		m.starting = starting
		m.OnMark(&Sample{Now: 7})
		if moved := m.high == m.mean && m.began == 7; moved == starting || m.rate != 5e6 {
			t.Errorf("starting %v: largest RTT %v, began %v, rate %v", starting, m.high, m.began, m.rate)
		}
	}
}

// A decision is due a quarter of the smoothed RTT after the last one.
func TestMpcDecidesFourTimes(t *testing.T) {
	for after, due := range map[time.Duration]bool{9 * ms: false, 11 * ms: true} {
		m := mpcOn(t, 0.025, 0.040, 0.060)
		m.decided = ndn.Time(time.Minute)
		now := m.decided.Add(after)
		m.OnData(&Sample{Now: now, RTT: 40 * ms, MeanSize: 1000})
		if (m.decided == now) != due {
			t.Errorf("a decision after %v: %v", after, !due)
		}
	}
}

// When all has timed out the rates of before are forgotten, and what else times out
// in that round trip changes nothing.
func TestMpcTimeout(t *testing.T) {
	m := mpcOn(t, 0.025, 0.040, 0.060)
	m.bw.add(9e6)
	now := ndn.Time(time.Minute)
	m.OnLoss(&Loss{Now: now, Kind: LossTimeout})
	if !m.starting || m.bw.max() != 0 || m.mean != m.low || m.rate != 40_000 {
		t.Errorf("starting %v, largest rate %v, RTT %v, rate %v", m.starting, m.bw.max(), m.mean, m.rate)
	}
	m.flat = 1
	m.OnLoss(&Loss{Now: now.Add(24 * ms), Kind: LossTimeout, Inflight: 1})
	if !m.starting {
		t.Error("start-up ended")
	}
}

func TestMpcDefaults(t *testing.T) {
	c, _ := NewMpc(Params{})
	m := c.(*Mpc)
	if m.c1 != 0.1 || m.c2 != 0.6 || m.c3 != 0.3 || m.fill != 0.5 || m.add != 2 || m.cycle != 10*time.Second || m.iw != 10 || m.cap != 0 {
		t.Errorf("%+v", *m)
	}
}
