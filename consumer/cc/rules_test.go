package cc

import (
	"math"
	"testing"
	"time"

	"ndnpop/ndn"
)

// settled is a Bbr in PROBE_BW on a path of 200 packets.
func settled(t *testing.T) (*Bbr, *wire) {
	t.Helper()
	b := bbrWith(t, nil)
	w := newWire(b, 10_000, 20*ms)
	w.run(2 * time.Second)
	if b.mode != bbrProbeBW {
		t.Fatalf("mode %v", b.mode)
	}
	return b, w
}

// An RTprop that became old while there was nothing to ask for is measured by
// the Data that come next, without a pause for it.
func TestBbrIdleRestart(t *testing.T) {
	for _, idle := range []bool{true, false} {
		b, w := settled(t)
		later := w.now.Add(11 * time.Second)
		if idle {
			b.OnSend(&Send{Now: later, Tx: w.tx + 1, Inflight: 1})
		}
		b.OnData(&Sample{Now: later, Tx: w.tx, RTT: 25 * ms, MeanSize: wireSize, Inflight: 100, PriorInflight: 101})
		if b.rtprop != 25*ms || (b.mode == bbrProbeRTT) == idle {
			t.Errorf("idle %v: mode %v, RTprop %v", idle, b.mode, b.rtprop)
		}
	}
}

// The down phase ends with what the up phase put into the queue, or after a
// round trip.
func TestBbrDownPhaseEnds(t *testing.T) {
	for _, c := range []struct {
		elapsed  time.Duration
		inflight int
		want     int
	}{{ms, 250, 1}, {ms, 190, 2}, {21 * ms, 250, 2}} {
		b, w := settled(t)
		b.phase, b.phaseStamp = 1, w.now.Add(-c.elapsed)
		b.OnData(&Sample{Now: w.now, Tx: w.tx, MeanSize: wireSize, Inflight: c.inflight, PriorInflight: c.inflight + 1})
		if b.phase != c.want {
			t.Errorf("%v, %d in flight: phase %d", c.elapsed, c.inflight, b.phase)
		}
	}
}

// What was sent at the small window of PROBE_RTT does not lower the bandwidth.
func TestBbrForgetsTheProbe(t *testing.T) {
	b, w := settled(t)
	before := b.bw.max()
	b.probeEndTx = w.tx
	for range 2 * bwRounds {
		b.bandwidth(&Sample{Tx: w.tx, Rate: 1e6, RoundStart: true})
	}
	if b.bw.max() != before {
		t.Errorf("bandwidth %.0f, %.0f before", b.bw.max(), before)
	}
	for range 2 * bwRounds {
		b.bandwidth(&Sample{Tx: w.tx + 1, Rate: 1e6, RoundStart: true})
	}
	if b.bw.max() != 1e6 {
		t.Errorf("bandwidth %.0f of a path that became slow", b.bw.max())
	}
}

// The window comes back when all losses of the episode are repaired.
func TestBbrRecoveryEnds(t *testing.T) {
	for _, unrepaired := range []int{0, 1} {
		b, w := settled(t)
		before := b.cwnd
		b.OnLoss(&Loss{Now: w.now, Tx: w.tx, HighTx: w.tx, Kind: LossReorder, Inflight: 50, NewEvent: true})
		s := Sample{Now: w.now, Tx: w.tx + 1, HighTx: w.tx + 50, MeanSize: wireSize, Inflight: 50, PriorInflight: 51, Losses: 1, Unrepaired: 1}
		b.OnData(&s)
		if b.conserving || !b.recovering || b.cwnd >= before {
			t.Fatalf("after a round: window %v of %v", b.cwnd, before)
		}
		s.Tx, s.Losses, s.Unrepaired = w.tx+2, 0, unrepaired
		b.OnData(&s)
		if back := b.cwnd >= before-1; back != (unrepaired == 0) {
			t.Errorf("%d not repaired: window %v of %v", unrepaired, b.cwnd, before)
		}
	}
}

// β of BBQ: a queue is what raises the smoothed RTT by more than 1 %.
func TestBbqQueue(t *testing.T) {
	c, _ := NewBbq(Params{Seed: 1})
	q := c.(*Bbq)
	w := newWire(q, 10_000, 20*ms)
	w.run(time.Second)
	for srtt, want := range map[time.Duration]time.Duration{20_100_000: 0, 20_300_000: 3 * ms} {
		q.mode, q.phase, q.rtprop, q.phaseStamp = bbrProbeBW, bbrPhases-1, 20*ms, w.now.Add(-time.Second)
		q.OnData(&Sample{Now: w.now, Tx: w.tx, SRTT: srtt, MeanSize: wireSize, Inflight: 100, PriorInflight: 101})
		if q.upCap != want {
			t.Errorf("SRTT %v: cap %v", srtt, q.upCap)
		}
	}
}

// The extrema of the rate come closer by a 64th each round.
func TestBbrAcwExtremaAge(t *testing.T) {
	x, _ := NewBbrAcw(Params{})
	a := x.(*BbrAcw)
	a.drMin, a.drMax = 2e6, 10e6
	a.adapt(&Sample{RoundStart: true})
	if a.drMin != 2_062_500 || a.drMax != 9_937_500 {
		t.Errorf("%v to %v", a.drMin, a.drMax)
	}
}

// RFC 9438, sections 4.3 and 4.2: the Reno-friendly estimate grows by a packet
// per window once it has reached Wmax, and the target is at most half a window
// more.
func TestCubicBounds(t *testing.T) {
	made, _ := NewCubic(Params{})
	c := made.(*Cubic)
	c.cwnd, c.ssthresh, c.avoiding, c.t0 = 100, 2, true, 1
	c.wmax, c.k, c.west = 90, 10, 100
	c.OnData(&Sample{Now: 1, CwndLimited: true})
	if math.Abs(c.cwnd-100.01) > 1e-9 {
		t.Errorf("window %v beyond Wmax", c.cwnd)
	}
	c.cwnd, c.wmax, c.k, c.west = 100, 100, 0, 0
	c.OnData(&Sample{Now: ndn.Time(100 * time.Second), CwndLimited: true})
	if math.Abs(c.cwnd-100.5) > 1e-9 {
		t.Errorf("window %v long after a decrease", c.cwnd)
	}
}

// RFC 9438, section 5.8: a pause of the application is not time in which the
// window grew.
func TestCubicPause(t *testing.T) {
	grown := func(pause time.Duration) float64 {
		c, _ := NewCubic(Params{InitCwnd: 1000, InitSsthresh: 1})
		now := ndn.Time(time.Second)
		c.OnLoss(&Loss{Now: now, NewEvent: true})
		feed(c, now.Add(ms), 100, 100*ms)
		for at := 2 * ms; at < pause; at += 100 * ms {
			c.OnData(&Sample{Now: now.Add(at), SRTT: 100 * ms, RTT: 100 * ms})
		}
		feed(c, now.Add(2*ms+pause), 700, 100*ms)
		return c.Cwnd()
	}
	if with, without := grown(time.Minute), grown(0); math.Abs(with-without) > 1 {
		t.Errorf("window %.1f after a pause, %.1f without it", with, without)
	}
}

func mpcOn(t *testing.T, low, mean, high float64) *Mpc {
	t.Helper()
	c, err := NewMpc(Params{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := c.(*Mpc)
	m.starting = false
	m.size, m.low, m.mean, m.high = 1000, low, mean, high
	m.rb, m.rate, m.began = 5e6, 5e6, 1
	return m
}

// The target over a cycle: a dip, the place between the extremes, a peak, each
// at least three round trips wide; and never within the noise of an empty
// queue.
func TestMpcTarget(t *testing.T) {
	for _, mean := range []float64{0.025, 0.2} {
		low, high := mean, 1.5*mean
		m := mpcOn(t, low, mean, high)
		width := max(10./64, 3*mean)
		mid := (low + high) / 2
		for _, at := range []float64{0, 0.1, 1, 5, 9.9, 10} {
			up, down := (10-at)/width, at/width
			want := mid + (1.135335283*high-mid)/(up*up+1) - (mid-low)/(down*down+1)
			if got := m.target(1 + ndn.Time(at*1e9)); math.Abs(got-want) > 1e-6 {
				t.Errorf("RTT %v s, after %v s: target %v, want %v", mean, at, got, want)
			}
		}
	}
	m := mpcOn(t, 0.025, 0.025, 0.025)
	if got, least := m.target(ndn.Time(5*time.Second)), 1.02*0.025+2*1000/5e6; got < least {
		t.Errorf("target %v without a queue, want at least %v", got, least)
	}
}

// While a queue stands, the rate follows each Data by 2 %.
func TestMpcShare(t *testing.T) {
	m := mpcOn(t, 0.025, 0.030, 0.030)
	m.decided = ndn.Time(time.Hour)
	for i := range 2 {
		m.OnData(&Sample{Now: ndn.Time(i + 1), Rate: 10e6, MeanSize: 1000})
	}
	if math.Abs(m.rb-5.1e6) > 1 {
		t.Errorf("share %v after one Data at twice the rate", m.rb)
	}
}

// Start-up ends with a queue as long as the path, and cycles after losses
// differ in length, so that flows do not probe in step.
func TestMpcStartupAndCycles(t *testing.T) {
	for mean, want := range map[float64]bool{0.045: true, 0.055: false} {
		m := mpcOn(t, 0.025, mean, 0.060)
		m.starting = true
		m.OnData(&Sample{Now: 1, Rate: 5e6, MeanSize: 1000, RoundStart: true})
		if m.starting != want {
			t.Errorf("mean %v of 0.025: starting %v", mean, m.starting)
		}
	}
	m := mpcOn(t, 0.025, 0.030, 0.030)
	seen := map[float64]bool{}
	for i := range 20 {
		m.OnLoss(&Loss{Now: ndn.Time(i+1) * ndn.Time(time.Second), Kind: LossReorder, Inflight: 10})
		if m.period < 10 || m.period > 20 {
			t.Errorf("cycle of %v s", m.period)
		}
		seen[m.period] = true
	}
	if len(seen) < 20 {
		t.Errorf("%d lengths of 20", len(seen))
	}
}

// Repetitions do not say how long the queue is. While nothing else is answered,
// the queue of before is neither waited for nor taken for the reason why no more
// comes than is asked for.
func TestMpcRepetitions(t *testing.T) {
	m := mpcOn(t, 0.025, 0.070, 0.070)
	now := ndn.Time(time.Second)
	m.OnLoss(&Loss{Now: now, Kind: LossTimeout, Inflight: 500, NewEvent: true})
	half := m.rate
	for range 400 {
		now = now.Add(400 * time.Microsecond)
		m.OnData(&Sample{Now: now, Rate: m.rate, MeanSize: 1000})
	}
	if m.rate != half || m.rb != 5e6 {
		t.Errorf("rate %v of %v, bottleneck %v", m.rate, half, m.rb)
	}

	// The same after all that was in flight has timed out, behind a long queue.
	m = mpcOn(t, 0.025, 0.070, 0.070)
	for left := 299; left >= 0; left-- {
		m.OnLoss(&Loss{Now: now, Kind: LossTimeout, Inflight: left, NewEvent: left == 299})
	}
	if !m.starting || m.Cwnd() > 20 {
		t.Fatalf("starting %v, window %v", m.starting, m.Cwnd())
	}
	for round := range 4 {
		now = now.Add(25 * ms)
		for i := range 10 {
			m.OnData(&Sample{Now: now, Rate: m.rate, RoundStart: i == 0, MeanSize: 1000})
		}
		if !m.starting {
			t.Fatalf("no longer starting after %d rounds at %v", round+1, m.rate)
		}
	}
	if m.rate < 5e6 {
		t.Errorf("rate %v after four rounds", m.rate)
	}
}

// The window grows from its first value also where the first Data are of
// repetitions, as they are when another path takes over what one has lost.
func TestMpcBeginsWithRepetitions(t *testing.T) {
	m := mpcOn(t, 0.025, 0.070, 0.070)
	m.OnPathChange(&PathChange{Now: 1, Replica: true})
	first := m.Cwnd()
	for i := range 40 {
		m.OnData(&Sample{Now: ndn.Time(i + 2), MeanSize: 1000})
	}
	if m.Cwnd() != first+40 || m.PacingRate() != 0 {
		t.Errorf("window %v after 40 Data, %v at first; rate %v", m.Cwnd(), first, m.PacingRate())
	}
	m.OnLoss(&Loss{Now: 50, Kind: LossTimeout, Inflight: 10, NewEvent: true})
	m.OnLoss(&Loss{Now: 51, Kind: LossTimeout, Inflight: 9})
	if m.Cwnd() != first+20 {
		t.Errorf("window %v after losses of one round trip", m.Cwnd())
	}
}
