package cc

import (
	"math"
	"testing"
	"time"

	"ndnpop/ndn"
)

// wire is an ideal path for a controller: rate packets of 1000 bytes per
// second, a round-trip time, and a queue without end.
type wire struct {
	c         Controller
	now       ndn.Time
	rtt       time.Duration
	rate      float64
	freeAt    ndn.Time
	next      ndn.Time // pacing
	tx        uint64
	pending   []wirePacket
	delivered uint64
	at, first ndn.Time
	roundEnd  uint64
	round     uint64
	losses    int
	lost      func(tx uint64) bool
	watch     func(*Sample) // after each Data
}

type wirePacket struct {
	tx            uint64
	sent, arrives ndn.Time
	delivered     uint64
	at, first     ndn.Time
	dropped       bool
}

func newWire(c Controller, rate float64, rtt time.Duration) *wire {
	return &wire{c: c, now: 1, rtt: rtt, rate: rate}
}

const wireSize = 1000

func (w *wire) run(d time.Duration) {
	end := w.now.Add(d)
	for w.now < end {
		for float64(len(w.pending)) <= w.c.Cwnd()-1 && (w.c.PacingRate() == 0 || w.next <= w.now) {
			w.send()
		}
		next := end
		if len(w.pending) > 0 {
			next = min(next, w.pending[0].arrives)
		}
		if float64(len(w.pending)) <= w.c.Cwnd()-1 {
			next = min(next, w.next)
		}
		w.now = max(w.now, next)
		for len(w.pending) > 0 && w.pending[0].arrives <= w.now {
			w.arrive()
		}
	}
}

func (w *wire) send() {
	if len(w.pending) == 0 {
		w.first, w.at = w.now, w.now
	}
	w.tx++
	p := wirePacket{tx: w.tx, sent: w.now, delivered: w.delivered, at: w.at, first: w.first}
	w.freeAt = max(w.freeAt, w.now.Add(w.rtt/2)).Add(time.Duration(1e9 / w.rate))
	p.arrives = w.freeAt.Add(w.rtt / 2)
	p.dropped = w.lost != nil && w.lost(w.tx)
	w.pending = append(w.pending, p)
	if r := w.c.PacingRate(); r > 0 {
		w.next = max(w.next, w.now).Add(time.Duration(wireSize / r * 1e9))
	}
	w.c.OnSend(&Send{Now: w.now, Tx: w.tx, Inflight: len(w.pending)})
}

func (w *wire) arrive() {
	p := w.pending[0]
	prior := len(w.pending)
	w.pending = w.pending[1:]
	rtt := w.now.Sub(p.sent)
	if p.dropped {
		w.losses++
		w.c.OnLoss(&Loss{Now: w.now, Tx: p.tx, HighTx: w.tx, Kind: LossReorder, Inflight: len(w.pending), NewEvent: true, RTTNow: rtt})
		return
	}
	w.delivered += wireSize
	w.at = w.now
	s := &Sample{
		Now: w.now, Tx: p.tx, HighTx: w.tx, RTT: rtt, SRTT: rtt, Size: wireSize, MeanSize: wireSize,
		Delivered: w.delivered, PriorInflight: prior, Inflight: len(w.pending), CwndLimited: true, Losses: w.losses,
	}
	w.losses = 0
	if p.delivered >= w.roundEnd {
		w.roundEnd = w.delivered
		w.round++
		s.RoundStart = true
	}
	s.Round = w.round
	interval := max(p.sent.Sub(p.first), w.now.Sub(p.at))
	w.first = p.sent
	if interval >= w.rtt {
		s.Rate = float64(w.delivered-p.delivered) / interval.Seconds()
	}
	w.c.OnData(s)
	if w.watch != nil {
		w.watch(s)
	}
}

func bbrWith(t *testing.T, opts map[string]string) *Bbr {
	t.Helper()
	c, err := NewBbr(Params{Seed: 1, Options: opts})
	if err != nil {
		t.Fatal(err)
	}
	return c.(*Bbr)
}

func TestBbrModes(t *testing.T) {
	b := bbrWith(t, nil)
	w := newWire(b, 10_000, 20*ms) // BDP 200 packets
	var modes []bbrMode
	var minFlight, probed = 1 << 30, time.Duration(0)
	var probeAt ndn.Time
	w.watch = func(s *Sample) {
		if len(modes) == 0 || modes[len(modes)-1] != b.mode {
			modes = append(modes, b.mode)
			if b.mode == bbrProbeRTT {
				probeAt = s.Now
			} else if probeAt > 0 && probed == 0 {
				probed = s.Now.Sub(probeAt)
			}
		}
		if b.mode == bbrProbeRTT {
			minFlight = min(minFlight, s.Inflight)
		}
	}
	w.run(5 * time.Second)
	if len(modes) != 3 || modes[0] != bbrStartup || modes[1] != bbrDrain || modes[2] != bbrProbeBW {
		t.Fatalf("modes %v", modes)
	}
	if bw := b.bw.max(); bw < 9.8e6 || bw > 10.3e6 {
		t.Errorf("bandwidth %.0f", bw)
	}
	if b.bdp() < 195 || b.bdp() > 215 || b.cwnd > 2*b.bdp()+10 {
		t.Errorf("BDP %.0f, window %.0f", b.bdp(), b.cwnd)
	}
	// The path is never as short again, so PROBE_RTT comes 10 s later.
	w.rtt = 21 * ms
	w.run(12 * time.Second)
	if len(modes) < 5 || modes[3] != bbrProbeRTT || modes[4] != bbrProbeBW {
		t.Fatalf("modes %v", modes)
	}
	if probed < 200*ms || probed > 300*ms || minFlight > 4 {
		t.Errorf("PROBE_RTT took %v with %d in flight", probed, minFlight)
	}
	if at := time.Duration(probeAt); at < 14*time.Second || at > 16*time.Second {
		t.Errorf("PROBE_RTT at %v", at)
	}
	if b.bw.max() < 9.8e6 || b.cwnd < 300 {
		t.Errorf("after PROBE_RTT: bandwidth %.0f, window %.0f", b.bw.max(), b.cwnd)
	}
}

func TestBbrLosses(t *testing.T) {
	b := bbrWith(t, nil)
	w := newWire(b, 10_000, 20*ms)
	w.run(2 * time.Second)
	before := b.cwnd
	b.OnLoss(&Loss{Now: w.now, Tx: w.tx, HighTx: w.tx, Kind: LossReorder, Inflight: 100, NewEvent: true})
	if b.cwnd != 101 {
		t.Errorf("conservation: window %v with 100 in flight", b.cwnd)
	}
	rate := b.PacingRate()
	w.run(100 * ms)
	if b.cwnd < before-1 || math.Abs(b.PacingRate()/rate-1) > 0.5 {
		t.Errorf("after repair: window %.0f of %.0f, rate %.0f of %.0f", b.cwnd, before, b.PacingRate(), rate)
	}
	b.OnLoss(&Loss{Now: w.now, Kind: LossTimeout, Inflight: 300, HighTx: w.tx, Silent: true})
	if b.cwnd != 4 || !b.full || b.fullBw != 0 || b.bw.max() == 0 {
		t.Errorf("after a timeout of everything: window %v, full %v", b.cwnd, b.full)
	}
}

func TestBbrUpPhaseEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  map[string]string
		event func(*Bbr)
		ends  bool
	}{
		{"loss", nil, func(b *Bbr) { b.OnLoss(&Loss{Kind: LossReorder, Inflight: 200}) }, true},
		{"mark", nil, func(b *Bbr) { b.OnMark(&Sample{}) }, false},
		{"mark as loss", map[string]string{"mark-as-loss": "true"}, func(b *Bbr) { b.OnMark(&Sample{}) }, true},
	} {
		b := bbrWith(t, c.opts)
		w := newWire(b, 10_000, 20*ms)
		w.run(time.Second)
		b.mode, b.phase, b.phaseStamp = bbrProbeBW, 0, w.now.Add(-21*ms)
		c.event(b)
		s := Sample{Now: w.now, Tx: w.tx, PriorInflight: 100, Inflight: 99, MeanSize: wireSize}
		b.OnData(&s)
		if ended := b.phase == 1; ended != c.ends {
			t.Errorf("%s: ended %v", c.name, ended)
		}
		b.phase, b.phaseStamp = 0, w.now.Add(-21*ms)
		s.PriorInflight = int(1.25*b.bdp()) + 4
		if b.OnData(&s); b.phase != 1 {
			t.Errorf("%s: a full pipe did not end the phase", c.name)
		}
	}
}

func TestBbrStaleGuard(t *testing.T) {
	for _, guard := range []string{"false", "true"} {
		b := bbrWith(t, map[string]string{"stale-guard": guard})
		w := newWire(b, 10_000, 20*ms)
		w.run(2 * time.Second)
		w.rtt = 60 * ms
		w.run(2 * time.Second)
		if fresh := b.rtprop >= 55*ms; fresh != (guard == "true") {
			t.Errorf("guard %s: RTprop %v on a path of 60 ms", guard, b.rtprop)
		}
	}
}

func TestBbrPathChange(t *testing.T) {
	b := bbrWith(t, nil)
	w := newWire(b, 10_000, 20*ms)
	w.run(2 * time.Second)
	b.OnPathChange(&PathChange{Now: w.now, Rate: 5e6, RTT: 40 * ms})
	if b.mode != bbrStartup || b.full || b.bw.max() != 0 || b.rtprop != 40*ms {
		t.Errorf("%+v", b)
	}
	if b.PacingRate() != 5e6 || b.Cwnd() != 200 {
		t.Errorf("history: rate %v, window %v", b.PacingRate(), b.Cwnd())
	}
	b.OnPathChange(&PathChange{Now: w.now})
	if b.PacingRate() != 0 || b.Cwnd() != 10 {
		t.Errorf("without history: rate %v, window %v", b.PacingRate(), b.Cwnd())
	}
}

func TestBbrLossCeiling(t *testing.T) {
	for _, ceiling := range []string{"0", "0.02"} {
		b := bbrWith(t, map[string]string{"loss-ceiling": ceiling})
		w := newWire(b, 10_000, 20*ms)
		// Beyond 250 packets in flight, one in eight is lost.
		w.lost = func(tx uint64) bool { return len(w.pending) > 250 && tx%8 == 0 }
		w.run(3 * time.Second)
		if bounded := !math.IsInf(b.inflightHigh, 1); bounded != (ceiling != "0") {
			t.Errorf("ceiling %s: bound %v", ceiling, b.inflightHigh)
		}
	}
}

func TestBbrProbeRTTGain(t *testing.T) {
	b := bbrWith(t, map[string]string{"probe-rtt-gain": "0.5", "probe-rtt-interval": "2"})
	w := newWire(b, 10_000, 20*ms)
	low := math.Inf(1)
	w.watch = func(*Sample) {
		if b.mode == bbrProbeRTT {
			low = min(low, b.Cwnd())
		}
	}
	w.run(time.Second)
	w.rtt = 21 * ms
	w.run(4 * time.Second)
	if low < 90 || low > 115 {
		t.Errorf("PROBE_RTT keeps %v of 200 packets", low)
	}
}

func TestBbqCapsTheUpPhase(t *testing.T) {
	c, _ := NewBbq(Params{Seed: 1})
	q := c.(*Bbq)
	w := newWire(q, 10_000, 20*ms)
	w.run(time.Second)
	for _, c := range []struct {
		srtt time.Duration
		want time.Duration
	}{{20 * ms, 0}, {25 * ms, 3 * ms}} {
		q.mode, q.phase, q.rtprop = bbrProbeBW, bbrPhases-1, 20*ms
		q.phaseStamp = w.now.Add(-time.Second)
		q.OnData(&Sample{Now: w.now, Tx: w.tx, SRTT: c.srtt, MeanSize: wireSize, Inflight: 100, PriorInflight: 101})
		if q.phase != 0 || q.upCap != c.want {
			t.Errorf("SRTT %v: phase %d, cap %v", c.srtt, q.phase, q.upCap)
		}
	}
	q.OnData(&Sample{Now: w.now.Add(4 * ms), Tx: w.tx, SRTT: 25 * ms, MeanSize: wireSize, Inflight: 100, PriorInflight: 101})
	if q.phase != 1 {
		t.Error("the capped phase did not end")
	}
}

func TestBbrGcGains(t *testing.T) {
	for _, c := range []struct {
		mode            string
		rtt, top        time.Duration
		wantUp, wantDwn float64
	}{
		{"published", 50 * ms, 100 * ms, 1.5 - 0.5*math.Pow(.5, .25), 1 - 0.5*math.Pow(.5, 4)},
		{"robust", 50 * ms, 100 * ms, 1.5 - 0.5*math.Sqrt(.5), 1 - 0.5*.25},
		{"robust", 20 * ms, 20 * ms, 1.5 - 0.5*math.Sqrt(.8), 1 - 0.5*.64}, // no queue: the floor of 1.25 RTprop
		{"published", 20 * ms, 20 * ms, 1, 0.5},
	} {
		x, _ := NewBbrGc(Params{Options: map[string]string{"mode": c.mode}})
		g := x.(*BbrGc)
		g.rtprop = 20 * ms
		g.track(&Sample{Now: 1, RTT: c.top})
		g.track(&Sample{Now: 2, RTT: c.rtt})
		if math.Abs(g.up-c.wantUp) > 1e-9 || math.Abs(g.down-c.wantDwn) > 1e-9 {
			t.Errorf("%s, %v of %v: gains %v, %v, want %v, %v", c.mode, c.rtt, c.top, g.up, g.down, c.wantUp, c.wantDwn)
		}
		// Only the robust maximum forgets.
		for s := range 12 {
			g.track(&Sample{Now: ndn.Time(time.Duration(s+1) * time.Second), RTT: c.rtt})
		}
		if forgot := max(g.rttMax[0], g.rttMax[1]) == c.rtt; forgot != (c.mode == "robust" || c.rtt == c.top) {
			t.Errorf("%s: maximum %v", c.mode, g.rttMax)
		}
	}
}

func TestBbrAcwGain(t *testing.T) {
	for _, c := range []struct {
		form string
		rate float64
		want float64
	}{
		{"a", 10e6, 1}, {"a", 2e6, 1 + 40./60}, {"a", 6e6, 1 + .5*40/60},
		{"b", 10e6, 2 * 40. / 60}, {"b", 2e6, 2.5},
	} {
		x, _ := NewBbrAcw(Params{Options: map[string]string{"form": c.form}})
		a := x.(*BbrAcw)
		a.mode, a.rtprop = bbrProbeBW, 20*ms
		a.drMin, a.drMax = 2e6, 10e6
		a.adapt(&Sample{Tx: 1, RTT: 40 * ms, Rate: c.rate})
		if math.Abs(a.gain-c.want) > 1e-9 {
			t.Errorf("form %s at %v: gain %v, want %v", c.form, c.rate, a.gain, c.want)
		}
	}
}

func TestVegas(t *testing.T) {
	c, _ := NewVegas(Params{})
	v := c.(*Vegas)
	w := newWire(v, 10_000, 20*ms)
	w.run(10 * time.Second)
	if q := v.cwnd - 200; q < 1 || q > 6 {
		t.Errorf("%.1f packets in the queue", q)
	}
	before := v.cwnd
	v.OnLoss(&Loss{Kind: LossReorder})
	v.OnLoss(&Loss{Kind: LossReorder, NewEvent: true})
	if v.cwnd != 0.75*before {
		t.Errorf("window %v after a loss, %v before", v.cwnd, before)
	}
	v.OnLoss(&Loss{Kind: LossTimeout, NewEvent: true})
	if v.cwnd != 0.375*before {
		t.Errorf("window %v after a timeout", v.cwnd)
	}
}

// The rate is the minimiser of the objective (found here by search).
func TestMpcMinimises(t *testing.T) {
	c, _ := NewMpc(Params{Options: map[string]string{"additive": "0"}})
	m := c.(*Mpc)
	for i := range 50 {
		f := func(k int) float64 { return 0.5 + math.Mod(float64(i*k)*0.618, 1) }
		m.starting = false
		m.size, m.low, m.mean = 1000, 0.020*f(3), 0
		m.mean = m.low * (1 + f(5)/2)
		m.high = m.mean * (1 + f(7)/4)
		m.rb, m.rate = 4e6*f(11), 4e6*f(13)
		m.began, m.period = 1, 10
		now := ndn.Time(time.Second)
		l := m.mean * (0.9 + 0.2*f(17))
		prev, target := m.rate, m.target(now)
		m.sum, m.n = l, 1
		m.decide(now)
		j := func(r float64) float64 {
			ahead := l + (r-m.rb)*m.mean/m.rb
			return m.c1*math.Pow(ahead-target, 2) + mpcWeight*m.c2*math.Pow(ahead-m.mean, 2) + m.c3*math.Pow(m.low*(r-prev)/m.rb, 2)
		}
		best, at := math.Inf(1), 0.0
		for r := m.size / m.mean; r < 40e6; r += 1000 {
			if x := j(r); x < best {
				best, at = x, r
			}
		}
		if math.Abs(m.rate-at) > 1001 {
			t.Fatalf("rate %.0f, the minimum is at %.0f", m.rate, at)
		}
	}
}

func TestMpcEvents(t *testing.T) {
	c, _ := NewMpc(Params{Seed: 1, MaxRate: 5e6})
	m := c.(*Mpc)
	w := newWire(m, 10_000, 20*ms)
	w.run(3 * time.Second)
	if m.starting || m.PacingRate() < 4.9e6 || m.PacingRate() > 5e6 {
		t.Fatalf("starting %v, rate %v of a cap of 5e6", m.starting, m.PacingRate())
	}
	m.high = 0.050
	m.OnMark(&Sample{Now: w.now})
	if m.high != m.mean || m.began != w.now || m.PacingRate() < 4.9e6 {
		t.Errorf("after a mark: high %v, mean %v", m.high, m.mean)
	}
	rate := m.rate
	m.OnLoss(&Loss{Now: w.now, Kind: LossReorder, RTTNow: 30 * ms, Inflight: 10})
	if m.rate != max(rate, m.rb)/2 || m.high != 0.030 {
		t.Errorf("after a loss: rate %v of %v, high %v", m.rate, rate, m.high)
	}
	rate = m.rate
	m.OnLoss(&Loss{Now: w.now + 1, Kind: LossReorder, Inflight: 10})
	if m.rate != rate {
		t.Error("two reactions within a round trip")
	}
	m.OnLoss(&Loss{Now: w.now + 2, Kind: LossTimeout})
	if !m.starting || m.rate > 5e6/60 {
		t.Errorf("after a timeout of everything: starting %v, rate %v", m.starting, m.rate)
	}
	m.OnPathChange(&PathChange{Now: w.now, Rate: 1e6})
	if m.mean != 0 || !m.starting || m.rate != 1e6 {
		t.Errorf("after a path change: %+v", m)
	}
}

func TestOptionValues(t *testing.T) {
	r := registry(t)
	for _, c := range []struct{ pipe, option, value string }{
		{"bbr", "startup-gain", "1"}, {"bbr", "probe-rtt-gain", "1.5"}, {"bbr", "host-delay", "1e9"},
		{"bbr", "stale-guard", "perhaps"}, {"bbr-gc", "mode", "gamma"}, {"bbr-acw", "form", "c"},
		{"mpc", "fill", "2"}, {"mpc", "c1", "0.5"}, {"mpc", "cycle", "0"}, {"vegas", "beta", "1"}, {"bbq", "loss-ceiling", "-1"},
	} {
		if _, err := r.New(c.pipe, Params{Options: map[string]string{c.option: c.value}}); err == nil {
			t.Errorf("%s takes %s=%s", c.pipe, c.option, c.value)
		}
	}
}

// No controller allocates per packet, and the same events give the same
// answers.
func TestSteadyState(t *testing.T) {
	r := registry(t)
	for _, name := range r.Names() {
		a, _ := r.New(name, Params{Seed: 5})
		b, _ := r.New(name, Params{Seed: 5})
		wa, wb := newWire(a, 10_000, 20*ms), newWire(b, 10_000, 20*ms)
		every := func(tx uint64) bool { return tx%701 == 0 }
		wa.lost, wb.lost = every, every
		wa.run(12 * time.Second)
		wb.run(12 * time.Second)
		if a.Cwnd() != b.Cwnd() || a.PacingRate() != b.PacingRate() || wa.delivered != wb.delivered {
			t.Errorf("%s: two runs differ", name)
		}
		s := Sample{Now: wa.now, Tx: wa.tx, HighTx: wa.tx + 10, RTT: 21 * ms, SRTT: 21 * ms, Size: wireSize,
			MeanSize: wireSize, Rate: 9e6, PriorInflight: 100, Inflight: 99, CwndLimited: true}
		l := Loss{Now: wa.now, Kind: LossReorder, Inflight: 98, RTTNow: 21 * ms}
		snd := Send{Now: wa.now, Inflight: 100}
		if n := testing.AllocsPerRun(1000, func() {
			s.Now += 100_000
			s.Tx++
			s.HighTx++
			s.RoundStart = s.Tx%100 == 0
			l.Now, l.Tx, l.HighTx, l.NewEvent = s.Now, s.Tx, s.HighTx, s.Tx%50 == 0
			a.OnSend(&snd)
			a.OnMark(&s)
			a.OnData(&s)
			if s.Tx%10 == 0 {
				a.OnLoss(&l)
			}
			_ = a.Cwnd() + a.PacingRate()
		}); n != 0 {
			t.Errorf("%s: %v allocations per packet", name, n)
		}
		if c := a.Cwnd(); !(c >= 1) || math.IsInf(c, 0) || math.IsNaN(a.PacingRate()) {
			t.Errorf("%s: window %v, rate %v", name, c, a.PacingRate())
		}
	}
}
