package consumer

import (
	"math"
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

// mpcFlow says how one flow of an MPC experiment is configured.
type mpcFlow struct {
	pipe string
	cap  float64 // share of the link
	rtt  time.Duration
	fill string
}

// mpcRun runs flows over 40 Mbit/s with Data of 1000 bytes and 1 % of noise
// on the RTT (experiment E4), and marks after warm.
func mpcRun(t testing.TB, buffer float64, warm, length time.Duration, seed uint64, flows ...mpcFlow) *bell {
	const link = 40 * mbit
	n := newBell(t, link, buffer*link*0.025, seed)
	for i, c := range flows {
		p := cc.Params{Seed: 10*seed + uint64(i), MaxRate: c.cap * link}
		if c.fill != "" {
			p.Options = map[string]string{"fill": c.fill}
		}
		fl := n.add(c.pipe, p, c.rtt, 1000, Config{})
		fl.noise = 0.01
		fl.start = ndn.Time(1 + i*int(100*ms))
		fl.rec.from = ndn.Time(warm)
		// At least 100 packets per bin, so that counting them adds no variation.
		share := 1 / float64(len(flows))
		if c.cap > 0 {
			share = c.cap
		}
		fl.rec.slot = max(c.rtt, time.Duration(100*1000/(share*link)*float64(time.Second)))
	}
	n.run(warm)
	n.mark()
	n.run(length)
	return n
}

// seconds are the warm-up and the length of the MPC runs.
func mpcSeconds() (warm, length time.Duration) {
	if *papers {
		return 40 * time.Second, 120 * time.Second
	}
	return 8 * time.Second, 20 * time.Second
}

// One flow fills the link smoothly (E4 a).
func TestMpcSingle(t *testing.T) {
	t.Parallel()
	warm, length := mpcSeconds()
	const rtt = 25 * ms
	var rttCov, rateCov [2]float64
	for i, pipe := range []string{"mpc", "reno"} {
		n := mpcRun(t, 1, warm, length, 1, mpcFlow{pipe: pipe, rtt: rtt})
		r := n.flows[0].rec
		_, util := n.jain()
		rateCov[i], rttCov[i] = r.cov(), cov(r.rtts)
		t.Logf("%s: util %.3f, CoV of the rate %.3f, of the RTT %.3f, median RTT %.1f ms, retx %.4f",
			pipe, util, rateCov[i], cov(r.rtts), median(r.rtts), n.retx())
		if i == 0 && (util < 0.95 || rateCov[0] > 0.06 || cov(r.rtts) > 0.10) {
			t.Errorf("mpc: outside the bands")
		}
	}
	// Known miss: CoV(rate) ≤ 1/4 of Reno's. Behind a buffer of one BDP the
	// link never runs dry, so Reno's rate is the link's and only its window and
	// its RTT show the saw-tooth.
	if rateCov[0] > rateCov[1] || rttCov[0] > rttCov[1]/3 {
		t.Errorf("the rate varies by %.3f, with reno by %.3f; the RTT by %.3f and %.3f",
			rateCov[0], rateCov[1], rttCov[0], rttCov[1])
	}
	if !*papers {
		return
	}
	n := mpcRun(t, 1, warm, length, 1, mpcFlow{pipe: "mpc", rtt: rtt, fill: "0.1"})
	_, util := n.jain()
	t.Logf("fill 0.1: util %.3f, median RTT %.1f ms", util, median(n.flows[0].rec.rtts))
}

// Equal flows share equally, capped ones keep to their caps (E4 b, c).
func TestMpcFlows(t *testing.T) {
	t.Parallel()
	warm, length := mpcSeconds()
	same := mpcFlow{pipe: "mpc", rtt: 25 * ms}
	n := mpcRun(t, 1, warm, length, 1, same, same, same, same)
	jain, util := n.jain()
	t.Logf("four flows: Jain %.4f, util %.3f, retx %.4f", jain, util, n.retx())
	for i, fl := range n.flows {
		share := fl.got(n.now) / n.rate * 4
		t.Logf("  flow %d: %.3f of a fair share, CoV %.3f", i, share, fl.rec.cov())
		if math.Abs(share-1) > 0.15 {
			t.Errorf("flow %d has %.3f of its fair share", i, share)
		}
	}
	if jain < 0.98 {
		t.Errorf("Jain %.3f", jain)
	}

	var capped []mpcFlow
	for _, forty := range []float64{3, 7, 10, 20} {
		capped = append(capped, mpcFlow{pipe: "mpc", rtt: 25 * ms, cap: forty / 40})
	}
	check := func(what string, n *bell, caps ...float64) {
		for i, fl := range n.flows {
			got := fl.got(n.now) / n.rate
			t.Logf("%s: cap %.3f, has %.4f of the link, CoV %.3f, RTT CoV %.3f", what, caps[i], got, fl.rec.cov(), cov(fl.rec.rtts))
			if math.Abs(got/caps[i]-1) > 0.02 {
				t.Errorf("%s: flow %d has %.4f of the link, its cap is %.4f", what, i, got, caps[i])
			}
			if fl.rec.cov() > 0.02 && what == "capped" {
				t.Errorf("%s: flow %d varies by %.3f", what, i, fl.rec.cov())
			}
		}
	}
	check("capped", mpcRun(t, 1, warm, length, 1, capped...), 3./40, 7./40, .25, .5)
	if !*papers {
		return
	}
	check("20/60 ms capped", mpcRun(t, 1, warm, length, 1,
		mpcFlow{pipe: "mpc", rtt: 20 * ms, cap: .32}, mpcFlow{pipe: "mpc", rtt: 60 * ms, cap: .64}), .32, .64)
	for _, fill := range []string{"0.9", "0.1"} {
		n := mpcRun(t, 1, warm, length, 1, mpcFlow{"mpc", 0, 20 * ms, fill}, mpcFlow{"mpc", 0, 60 * ms, fill})
		a, b := n.flows[0].got(n.now), n.flows[1].got(n.now)
		t.Logf("20/60 ms, fill %s: the short flow has %.3f", fill, a/(a+b))
		if fill == "0.9" && a/(a+b) < 0.55 {
			t.Errorf("the short flow has %.3f", a/(a+b))
		}
	}
}

// Small buffers cost rate and losses, large ones delay (E4 d).
func TestMpcBuffers(t *testing.T) {
	t.Parallel()
	warm, length := mpcSeconds()
	flow := mpcFlow{pipe: "mpc", rtt: 25 * ms}
	buffers := []float64{1. / 16, 1. / 4, 1. / 2}
	if *papers {
		buffers = []float64{1. / 16, 1. / 8, 1. / 4, 1. / 2, 1, 2, 4, 8, 16}
	}
	var lastRTT, loss16 float64
	for _, b := range buffers {
		n := mpcRun(t, b, warm, length, 1, flow, flow)
		jain, util := n.jain()
		med := median(append(n.flows[0].rec.rtts, n.flows[1].rec.rtts...))
		loss := float64(n.dropped) / float64(n.dropped+n.passed)
		t.Logf("buffer %6.4f BDP: util %.3f, Jain %.3f, median RTT %.1f ms, loss %.5f", b, util, jain, med, loss)
		switch {
		case b == buffers[0]:
			loss16 = loss
			if util >= 0.97 {
				t.Errorf("utilisation %.3f", util)
			}
		case b >= 0.5 && util < 0.98:
			t.Errorf("utilisation %.3f with a buffer of %v BDP", util, b)
		case b == 0.25 && loss > loss16/5:
			t.Errorf("loss %.5f at 1/4 BDP, %.5f at 1/16", loss, loss16)
		}
		if med < lastRTT {
			t.Errorf("median RTT %.1f ms with a buffer of %v BDP, %.1f with the smaller one", med, b, lastRTT)
		}
		lastRTT = med
	}
	if *papers {
		for _, b := range []float64{.5, 1} {
			for _, k := range []int{1, 2, 4, 8} {
				fs := make([]mpcFlow, k)
				for i := range fs {
					fs[i] = flow
				}
				n := mpcRun(t, b, 20*time.Second, 60*time.Second, 1, fs...)
				jain, util := n.jain()
				t.Logf("N = %d, %.1f BDP: loss %.5f, util %.3f, Jain %.3f", k, b, float64(n.dropped)/float64(n.dropped+n.passed), util, jain)
			}
		}
	}
}

// A single loss halves the rate, which is back within a second (E4 e).
func TestMpcLoss(t *testing.T) {
	t.Parallel()
	const link = 40 * mbit
	n := newBell(t, link, link*0.025, 1)
	fl := n.add("mpc", cc.Params{Seed: 1}, 25*ms, 1000, Config{})
	fl.noise = 0.01
	n.run(23 * time.Second)
	done := false
	at := ndn.Time(0)
	fl.lose = func(seg uint64) bool {
		if done {
			return false
		}
		done = true
		return true
	}
	losses := fl.f.stats.EarlyLosses
	for fl.f.stats.EarlyLosses == losses {
		n.run(time.Duration(n.now) + ms)
		if n.now > ndn.Time(24*time.Second) {
			t.Fatal("the loss was not noticed")
		}
	}
	at = n.now
	low := math.Inf(1)
	for n.now < at.Add(30*ms) {
		low = min(low, fl.ctrl.PacingRate())
		n.run(time.Duration(n.now) + ms)
	}
	back := time.Duration(0)
	for back == 0 && n.now < at.Add(2*time.Second) {
		n.run(time.Duration(n.now) + ms)
		if fl.ctrl.PacingRate() >= 0.9*link {
			back = n.now.Sub(at)
		}
	}
	t.Logf("rate down to %.2f of the link, 0.9 again after %v", low/link, back)
	if low > link*0.51 || back == 0 || back > time.Second {
		t.Errorf("rate down to %.2f, 0.9 after %v", low/link, back)
	}
}

// What an outage swallows is repeated at the rate that the path has, although
// repetitions say nothing of the RTT, and the queue before was long.
func TestMpcOutage(t *testing.T) {
	t.Parallel()
	const link = 40 * mbit
	for _, out := range []time.Duration{100 * ms, 300 * ms, time.Second} {
		n := newBell(t, link, 4*link*0.025, 1)
		fl := n.add("mpc", cc.Params{Seed: 1}, 25*ms, 1000, Config{})
		fl.noise = 0.01
		n.run(10 * time.Second)
		end := n.now.Add(out)
		fl.lose = func(uint64) bool { return n.now < end }
		n.run(time.Duration(end) + 750*ms)
		n.mark()
		n.run(time.Duration(n.now) + 750*ms)
		if got := fl.got(n.now) / link; got < 0.6 {
			t.Errorf("an outage of %v: %.3f of the link afterwards", out, got)
		}
	}
}
