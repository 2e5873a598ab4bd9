package cc

import (
	"math"
	"math/rand/v2"
	"time"

	"ndnpop/ndn"
)

// Constants of BBR v1 (Cardwell et al., ACM Queue 14(5), 2016, and the public
// implementation).
const (
	bbrHighGain     = 2.885 // 2/ln 2
	bbrCwndGain     = 2
	bbrUpGain       = 1.25
	bbrDownGain     = 0.75
	bbrPhases       = 8
	bbrMinCwnd      = 4
	bbrMargin       = 0.99 // pacing below the model's rate lets queues drain
	bbrGrowth       = 1.25
	bbrFlatRounds   = 3
	bbrProbeRTTTime = 200 * time.Millisecond
	bbrStaleFactor  = 2.2
	bbrStaleRounds  = 3
	bbrHeadroom     = 0.85
)

// defaultHostDelay is what batches and wake-ups in hosts make of an RTT at
// most, in the ordinary run of things.
const defaultHostDelay = 2 * time.Millisecond

type bbrMode uint8

const (
	bbrStartup bbrMode = iota
	bbrDrain
	bbrProbeBW
	bbrProbeRTT
)

// Bbr is BBR v1 driven by the receiver: Algorithm 2 of "Two-Level Congestion
// Control Mechanism (2LCCM) for Information-Centric Networking", with what
// that leaves open as in BBR v1. It keeps the largest delivery rate of 10
// rounds and the smallest RTT of 10 s, paces at gains of the one and bounds
// what is in flight by twice their product.
//
// Deviations from the paper: line 17 (cwnd = BDP·gain − inflight) is read as
// what may be sent now; in DRAIN only the pacing gain is below one, which
// drains as fast; PROBE_BW's cwnd gain, not given there, is 2. From BBR v1:
// no sampler for policers; the bandwidth filter stands still while samples are
// application-limited or from PROBE_RTT, so that neither makes it forget; a
// window of at least 4 packets everywhere; and the host allowance below.
//
// Options:
//   - startup-gain (2.885; 2.77 in BBR v3): pacing gain of STARTUP.
//   - probe-rtt-interval (10 s), probe-rtt-gain (0: 4 packets): PROBE_RTT keeps
//     this share of the BDP in flight. BBR v3 has 5 and 0.5, which suits
//     fetches that would starve at 4 packets.
//   - loss-ceiling (0: none; BBR v3 has 0.02): a round of STARTUP or of the up
//     phase with a larger share of losses ends it and bounds what is in flight
//     by what was in flight then, with 15 % headroom outside the up phase.
//   - mark-as-loss (false): a congestion mark ends the up phase as a loss does.
//   - stale-guard (Params.PathMayChange): when the smallest RTT of 3 rounds in a row exceeds
//     2.2·RTprop, which the flow's own queue cannot, RTprop is measured anew.
//     For a path that may change under the flow; harmful when flows with
//     different RTTs share a queue.
//   - host-delay (0.002 s): a smaller RTprop counts as this in the window, for
//     hosts handle packets in batches and wake up no faster.
type Bbr struct {
	startupGain   float64
	probeInterval time.Duration
	probeRTTGain  float64
	lossCeiling   float64
	markAsLoss    bool
	staleGuard    bool
	hostDelay     time.Duration
	iw            float64
	rng           *rand.Rand

	// What the variants set: gains of PROBE_BW, and a bound on the length of
	// the up phase, 0 for none.
	up, down, gain float64
	upCap          time.Duration

	mode        bbrMode
	bw          roundMax
	newRound    bool // the filter has not advanced to this round
	rtprop      time.Duration
	rtpropStamp ndn.Time
	size        float64 // of a Data in bytes
	cwnd        float64
	pacing      float64
	arrived     uint64 // Data

	full    bool
	fullBw  float64
	fullCnt int

	phase      int
	phaseStamp ndn.Time
	upLoss     bool // a loss or mark since the last Data

	recovering   bool
	conserving   bool
	repairTx     uint64 // the round of recovery ends with a Data of a later transmission
	priorCwnd    float64
	idleRestart  bool
	probeMinTx   uint64 // the round at the small window has passed after this one
	probeStart   ndn.Time
	probeEndTx   uint64 // samples up to here are of PROBE_RTT
	roundMinRTT  time.Duration
	staleCnt     int
	roundLost    int
	roundGot     int
	roundFlight  int
	inflightHigh float64 // of the loss ceiling; +Inf: none
}

// NewBbr makes a Bbr. Params: InitCwnd (10), Seed.
func NewBbr(p Params) (Controller, error) {
	o := options{given: p.Options}
	b := newBbr(p, &o)
	return b, o.done()
}

func newBbr(p Params, o *options) *Bbr {
	b := &Bbr{
		startupGain:   o.number("startup-gain", bbrHighGain),
		probeInterval: o.seconds("probe-rtt-interval", 10*time.Second),
		probeRTTGain:  o.number("probe-rtt-gain", 0),
		lossCeiling:   o.number("loss-ceiling", 0),
		markAsLoss:    o.flag("mark-as-loss", false),
		staleGuard:    o.flag("stale-guard", p.PathMayChange),
		hostDelay:     o.seconds("host-delay", defaultHostDelay),
		iw:            newWindow(p, defaultInitCwnd).cwnd,
		rng:           rand.New(rand.NewPCG(p.Seed, 0x626272)),
		up:            bbrUpGain, down: bbrDownGain, gain: bbrCwndGain,
		inflightHigh: math.Inf(1),
	}
	if b.startupGain <= 1 {
		o.fail(errRange("startup-gain", b.startupGain, "more than 1"))
	}
	if b.probeRTTGain > 1 {
		o.fail(errRange("probe-rtt-gain", b.probeRTTGain, "0 to 1"))
	}
	b.cwnd = max(bbrMinCwnd, b.iw)
	return b
}

// Cwnd implements Controller.
func (b *Bbr) Cwnd() float64 {
	if b.mode == bbrProbeRTT {
		return min(b.cwnd, b.probeCwnd())
	}
	return b.cwnd
}

// PacingRate implements Controller.
func (b *Bbr) PacingRate() float64 { return b.pacing }

// OnSend implements Controller.
func (b *Bbr) OnSend(s *Send) {
	if s.Inflight == 1 && b.arrived > 0 {
		b.idleRestart = true
	}
}

// OnPathChange implements PathChanger: all that was learnt belongs to the old
// path. A known rate is where STARTUP begins (2LCCM, history).
func (b *Bbr) OnPathChange(c *PathChange) {
	b.bw, b.newRound = roundMax{}, false
	b.rtprop, b.rtpropStamp = c.RTT, c.Now
	b.full, b.fullBw, b.fullCnt = false, 0, 0
	b.inflightHigh = math.Inf(1)
	b.recovering, b.conserving, b.staleCnt = false, false, 0
	b.mode = bbrStartup
	b.arrived = 0
	b.pacing = 0
	b.cwnd = max(bbrMinCwnd, b.iw)
	if c.Rate > 0 {
		b.pacing = c.Rate
		if c.RTT > 0 && b.size > 0 {
			b.cwnd = max(b.cwnd, c.Rate*c.RTT.Seconds()/b.size)
		}
	}
}

// OnMark implements Controller. BBR v1 ignores marks.
func (b *Bbr) OnMark(*Sample) { b.upLoss = b.upLoss || b.markAsLoss }

// OnLoss implements Controller. The model stays; the window is what keeps
// others from suffering.
func (b *Bbr) OnLoss(l *Loss) {
	b.upLoss = true
	b.roundLost++
	if l.Silent {
		// Everything is gone: STARTUP's growth is judged anew.
		b.saveCwnd()
		b.recovering, b.conserving, b.repairTx = true, false, l.HighTx
		b.cwnd, b.fullBw = bbrMinCwnd, 0
		return
	}
	if !b.recovering {
		b.saveCwnd()
		b.recovering, b.conserving, b.repairTx = true, true, l.HighTx
		b.cwnd = max(bbrMinCwnd, float64(l.Inflight+1))
	}
}

func (b *Bbr) saveCwnd() {
	if b.recovering || b.mode == bbrProbeRTT {
		b.priorCwnd = max(b.priorCwnd, b.cwnd)
		return
	}
	b.priorCwnd = b.cwnd
}

// OnData implements Controller.
func (b *Bbr) OnData(s *Sample) {
	b.size = s.MeanSize
	b.arrived++
	b.roundGot++
	b.roundFlight = max(b.roundFlight, s.PriorInflight)
	b.bandwidth(s)
	if s.RoundStart {
		b.round(s)
	}
	b.advancePhase(s)
	b.checkFull(s)
	b.updateRTprop(s)
	b.setPacing(s)
	b.setCwnd(s)
	b.upLoss, b.idleRestart = false, false
	if s.RoundStart {
		b.roundLost, b.roundGot, b.roundFlight, b.roundMinRTT = 0, 0, s.PriorInflight, 0
	}
}

// bdp is the bandwidth-delay product in packets, 0 when it is not known.
func (b *Bbr) bdp() float64 {
	if b.size == 0 {
		return 0
	}
	return b.bw.max() * max(b.rtprop, b.hostDelay).Seconds() / b.size
}

func (b *Bbr) bandwidth(s *Sample) {
	b.newRound = b.newRound || s.RoundStart
	limited := s.RateAppLimited || b.mode == bbrProbeRTT || s.Tx <= b.probeEndTx
	if s.Rate <= 0 || (limited && s.Rate < b.bw.max()) {
		return
	}
	if b.newRound {
		b.newRound = false
		b.bw.advance()
	}
	b.bw.add(s.Rate)
}

// round ends a round: the guard against a stale RTprop, and the ceiling on
// losses.
func (b *Bbr) round(s *Sample) {
	if b.staleGuard && b.mode == bbrProbeBW && b.roundMinRTT > 0 {
		if b.roundMinRTT > time.Duration(bbrStaleFactor*float64(b.rtprop)) {
			b.staleCnt++
		} else {
			b.staleCnt = 0
		}
		if b.staleCnt >= bbrStaleRounds {
			b.rtprop, b.rtpropStamp = b.roundMinRTT, s.Now
			b.enterProbeRTT()
		}
	}
	probing := b.mode == bbrStartup || (b.mode == bbrProbeBW && b.phase == 0)
	if b.lossCeiling > 0 && probing && float64(b.roundLost) > b.lossCeiling*float64(b.roundGot+b.roundLost) {
		b.inflightHigh = max(bbrMinCwnd, b.bdp(), float64(b.roundFlight))
		b.upLoss = true
		if b.mode == bbrStartup {
			b.full = true
		}
	}
}

// advancePhase moves through PROBE_BW's cycle: up, down, and six at 1.
func (b *Bbr) advancePhase(s *Sample) {
	if b.mode != bbrProbeBW {
		return
	}
	elapsed := s.Now.Sub(b.phaseStamp)
	lost := b.upLoss || s.Losses > 0
	var next bool
	switch b.phase {
	case 0:
		if b.upCap > 0 {
			next = elapsed > b.upCap
		} else {
			next = elapsed > b.rtprop && (lost || float64(s.PriorInflight) >= min(b.up*b.bdp()+bbrAllowance, b.inflightHigh))
		}
	case 1:
		next = elapsed > b.rtprop || float64(s.Inflight) <= b.bdp()
	default:
		next = elapsed > b.rtprop
	}
	if next {
		b.phase = (b.phase + 1) % bbrPhases
		b.phaseStamp = s.Now
		b.upCap = 0
	}
}

// bbrAllowance is what rounding and Interests not yet counted add to a window
// in packets.
const bbrAllowance = 3

// upBegan reports whether s began an up phase.
func (b *Bbr) upBegan(s *Sample) bool {
	return b.mode == bbrProbeBW && b.phase == 0 && b.phaseStamp == s.Now
}

func (b *Bbr) checkFull(s *Sample) {
	if !b.full && s.RoundStart && !s.RateAppLimited && b.mode != bbrProbeRTT && b.bw.max() > 0 {
		if b.bw.max() >= bbrGrowth*b.fullBw {
			b.fullBw, b.fullCnt = b.bw.max(), 0
		} else if b.fullCnt++; b.fullCnt >= bbrFlatRounds {
			b.full = true
		}
	}
	if b.mode == bbrStartup && b.full {
		b.mode = bbrDrain
	}
	if b.mode == bbrDrain && float64(s.Inflight) <= b.bdp() {
		b.enterProbeBW(s.Now)
	}
}

// enterProbeBW begins at a random phase, so that flows do not probe in step,
// but never by draining what was not filled.
func (b *Bbr) enterProbeBW(now ndn.Time) {
	b.mode = bbrProbeBW
	b.phaseStamp, b.upCap = now, 0
	if b.phase = b.rng.IntN(bbrPhases - 1); b.phase > 0 {
		b.phase++
	}
}

func (b *Bbr) enterProbeRTT() {
	b.saveCwnd()
	b.mode, b.probeStart, b.staleCnt = bbrProbeRTT, 0, 0
}

func (b *Bbr) probeCwnd() float64 { return max(bbrMinCwnd, b.probeRTTGain*b.bdp()) }

func (b *Bbr) updateRTprop(s *Sample) {
	expired := b.rtpropStamp.IsSet() && s.Now.Sub(b.rtpropStamp) > b.probeInterval
	if s.RTT > 0 {
		if b.roundMinRTT == 0 || s.RTT < b.roundMinRTT {
			b.roundMinRTT = s.RTT
		}
		if b.rtprop == 0 || s.RTT <= b.rtprop || expired {
			b.rtprop, b.rtpropStamp = s.RTT, s.Now
		}
	}
	if expired && !b.idleRestart && b.mode != bbrProbeRTT {
		b.enterProbeRTT()
	}
	if b.mode != bbrProbeRTT {
		return
	}
	b.probeEndTx = s.HighTx
	switch {
	case b.probeStart == 0:
		if float64(s.Inflight) <= b.probeCwnd() {
			b.probeStart, b.probeMinTx = s.Now, s.HighTx
		}
	case s.Now.Sub(b.probeStart) > bbrProbeRTTTime && s.Tx > b.probeMinTx:
		b.rtpropStamp = s.Now
		b.cwnd = max(b.cwnd, b.priorCwnd)
		if b.full {
			b.enterProbeBW(s.Now)
		} else {
			b.mode = bbrStartup
		}
	}
}

func (b *Bbr) pacingGain() float64 {
	switch b.mode {
	case bbrStartup:
		return b.startupGain
	case bbrDrain:
		return 1 / bbrHighGain
	case bbrProbeBW:
		switch b.phase {
		case 0:
			return b.up
		case 1:
			return b.down
		}
	}
	return 1
}

func (b *Bbr) setPacing(s *Sample) {
	bw := b.bw.max()
	if bw == 0 {
		if b.pacing == 0 && s.RTT > 0 {
			b.pacing = b.startupGain * b.iw * b.size / max(s.RTT, b.hostDelay).Seconds()
		}
		return
	}
	if r := bbrMargin * b.pacingGain() * bw; b.full || r > b.pacing {
		b.pacing = r
	}
}

func (b *Bbr) setCwnd(s *Sample) {
	gain := b.gain
	if b.mode != bbrProbeBW {
		gain = bbrCwndGain
		if b.mode != bbrProbeRTT {
			gain = bbrHighGain
		}
	}
	target := math.Ceil(gain*b.bdp()) + bbrAllowance
	if b.mode == bbrProbeBW && b.phase == 0 {
		target += 2
		if b.cwnd >= b.inflightHigh && s.Losses == 0 {
			b.inflightHigh++
		}
	} else if b.mode == bbrProbeBW {
		target = min(target, max(bbrMinCwnd, bbrHeadroom*b.inflightHigh))
	}
	target = min(target, b.inflightHigh)

	if s.Losses > 0 && b.recovering {
		b.cwnd = max(bbrMinCwnd, b.cwnd-float64(s.Losses))
	}
	if b.recovering && !b.conserving && (s.Unrepaired == 0 || s.Tx > b.repairTx) {
		b.recovering = false
		b.cwnd = max(b.cwnd, b.priorCwnd)
	}
	if b.conserving {
		if s.Tx <= b.repairTx {
			b.cwnd = max(b.cwnd, float64(s.Inflight+1))
			return
		}
		b.conserving, b.repairTx = false, s.HighTx
	}
	switch {
	case b.full:
		b.cwnd = min(b.cwnd+1, target)
	case b.cwnd < target || float64(b.arrived) < b.iw:
		b.cwnd++
	}
	b.cwnd = max(bbrMinCwnd, b.cwnd)
}
