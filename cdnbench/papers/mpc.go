package papers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/consumer"
	"ndnpop/sim"
)

// What the MPC scenarios have in common (Lynn, Ghosal, Hanford, arXiv
// 2002.09825): 5,000 Data per second of 1,000 bytes, an RTT of 25 ms with noise.
const (
	mpcRate    = 40 * mbit
	mpcPayload = 917  // 1,000 bytes on the wire
	mpcData    = 0.97 // share of these that the controllers count: all but the link header
	mpcRTT     = 25 * ms
	mpcSetup   = "40 Mbit/s, Data of 1,000 bytes on the wire (5,000 per second), a random delay with an exponential distribution and a mean of 1 % of the RTT, cut off at 10 %, half of it each way. "
	mpcModel   = "The controller is MPC-H: the model and the objective of the paper's published controller, made robust for these packet rates. It was designed once and not tuned to these bands; the literal controller was tried first in a prototype and did worse. "
)

// steady is a flow with a cap as a share of the link, 0 for none, whose rate is counted in bins of at least 100 packets, so
// that counting adds no variation.
func steady(controller string, rtt time.Duration, cap, share float64, options map[string]string) flow {
	return flow{
		controller: controller, rtt: rtt, cap: cap * mpcRate * mpcData, options: options, noise: true,
		bin: max(rtt, time.Duration(100*1000*8/(share*mpcRate)*float64(time.Second))),
	}
}

func mpcLab(bdp float64, seed uint64, warm time.Duration, flows []flow) *lab {
	for i := range flows {
		flows[i].start = time.Duration(i) * 100 * ms
	}
	return newLab(bottleneck{
		rate: mpcRate, payload: mpcPayload, buffer: int64(bdp * float64(sim.BDP(mpcRate, mpcRTT))),
	}, seed, warm, flows)
}

// values are what the runs of one arm gave, by metric.
type values struct {
	arm     string
	metrics []map[string]float64
}

// collect adds them to a result, metrics in the order given.
func collect(r *cdnbench.Result, all []*values, metrics ...string) {
	for _, v := range all {
		for run, m := range v.metrics {
			for _, k := range metrics {
				if x, ok := m[k]; ok {
					r.Add(run, v.arm, k, x)
				}
			}
		}
	}
	r.Summarise()
}

// median of values; NaN of none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// MpcSingle is mpc-single: one flow, and its reaction to a loss.
type MpcSingle struct{ tiny bool }

// Name implements cdnbench.Scenario.
func (MpcSingle) Name() string { return "mpc-single" }

// About implements cdnbench.Scenario.
func (MpcSingle) About() string {
	return "how steady one flow of the predictive controller is, beside Reno"
}

// Run implements cdnbench.Scenario.
func (s MpcSingle) Run(ctx context.Context, o cdnbench.Options) (*cdnbench.Result, error) {
	r, runs := begin(s.Name(), o, 5, 1)
	warm, length, lossAt := 40*time.Second, 120*time.Second, 23*time.Second
	arms := []contender{{"mpc", "mpc", nil}, {"reno", "reno", nil}, {"mpc, fill 0.1", "mpc", map[string]string{"fill": "0.1"}}, {"cubic", "cubic", nil}, {"bbr", "bbr", nil}}
	if o.Quick {
		warm, length, arms = 8*time.Second, 28*time.Second, arms[:2]
	}
	if s.tiny {
		warm, length, lossAt = 300*ms, 900*ms, time.Second
	}
	var all []*values
	var jobs []job
	kept := make([]*trace, len(arms))
	for i, c := range arms {
		v := &values{c.name, make([]map[string]float64, runs)}
		all = append(all, v)
		for run := range runs {
			jobs = append(jobs, job{v.arm, run, func(seed uint64) error {
				l := mpcLab(1, seed, warm, []flow{steady(c.controller, mpcRTT, 0, 1, c.options)})
				if err := l.run(length); err != nil {
					return err
				}
				v.metrics[run] = map[string]float64{
					"utilisation": l.utilisation(), "rate_variation": l.sending(0), "rtt_variation": variation(l.rtts[0].ms),
					"rtt_median_ms": median(l.rtts[0].ms), "repeated_interests": l.resent(),
				}
				if run == 0 {
					kept[i] = l.record(c.name)
				}
				return nil
			}})
		}
	}
	reaction := &values{"mpc, one loss", make([]map[string]float64, runs)}
	all = append(all, reaction)
	for run := range runs {
		jobs = append(jobs, job{reaction.arm, run, func(seed uint64) error {
			m, err := lossReaction(seed, lossAt)
			reaction.metrics[run] = m
			return err
		}})
	}
	if err := runJobs(ctx, o, jobs); err != nil {
		return nil, err
	}
	collect(r, all, "utilisation", "rate_variation", "rtt_variation", "rtt_median_ms", "repeated_interests", "rate_after_loss", "recovery_s")
	at := func(arm, metric string) float64 { return average(r, arm, metric) }

	r.Question = "Does a controller that predicts the RTT fill a link, and is its rate steadier than Reno's?"
	r.Setup = fmt.Sprintf("One flow. %sRTT 25 ms, a buffer of one bandwidth-delay product, %.3g s of which the first %.3g s do not count. The variation is the coefficient of variation; rates are those of the Interests, counted over bins of 25 ms. In the last arm a single Data is dropped after 23 s.",
		mpcSetup, length.Seconds(), warm.Seconds())
	r.Calibrated = mpcModel + "Nothing here was fitted to the paper, whose tables were not at hand: 9.4 of 10 Gbit/s is the figure of its testbed."
	ratio := at("mpc", "rate_variation") / at("reno", "rate_variation")
	r.Findings = fmt.Sprintf("MPC uses %.3f of the link; its rate varies by %.3f and its RTT by %.3f, Reno's by %.3f and %.3f. MPC's rate varies %.2f times as much as Reno's, where a quarter was wanted: behind a buffer of one bandwidth-delay product the link never runs dry, so an ACK-clocked rate is the link's, and Reno's saw-tooth shows in its window and its RTT instead. "+
		"After a single loss MPC's rate falls to %.2f of the link and is back at 0.9 after %.2f s.",
		at("mpc", "utilisation"), at("mpc", "rate_variation"), at("mpc", "rtt_variation"), at("reno", "rate_variation"), at("reno", "rtt_variation"), ratio,
		at(reaction.arm, "rate_after_loss"), at(reaction.arm, "recovery_s"))
	r.Plots = overTime("over-time", "one run each; MPC's regular peaks and dips are the probes of the buffer's both ends.", kept[:2]...)

	r.Expect("utilisation", "0.94 on the testbed, the rest being overhead", at("mpc", "utilisation"), 0.95, inf)
	r.Expect("variation of the rate", "steady", at("mpc", "rate_variation"), -inf, 0.06)
	r.Expect("variation of the RTT", "steady", at("mpc", "rtt_variation"), -inf, 0.10)
	r.Expect("variation of the rate to Reno's", "far steadier than TCP", ratio, -inf, 0.25)
	r.Expect("rate within an RTT of a single loss, share of the link", "halved", at(reaction.arm, "rate_after_loss"), -inf, 0.5)
	r.Expect("time from the loss until 0.9 of the link again, s", "ours", at(reaction.arm, "recovery_s"), -inf, 1)
	return r, nil
}

// lossReaction drops one Data of a flow in its steady state and watches the
// pacing rate.
func lossReaction(seed uint64, at time.Duration) (map[string]float64, error) {
	l := mpcLab(1, seed, at, []flow{steady("mpc", mpcRTT, 0, 1, nil)})
	n, f := l.net, l.fetches[0]
	if err := n.Run(l.warm); err != nil {
		return nil, err
	}
	before := f.Stats()
	back := l.link.BA.Params()
	drop := back
	drop.Loss = 1
	if err := l.link.BA.Set(drop); err != nil {
		return nil, err
	}
	lost := l.link.BA.Counters().LossDrops
	if err := n.RunUntil(l.warm+time.Second, func() bool { return l.link.BA.Counters().LossDrops > lost }); err != nil {
		return nil, err
	}
	if err := l.link.BA.Set(back); err != nil {
		return nil, err
	}
	noticed := func(s consumer.Stats) bool { return s.EarlyLosses+s.Timeouts > before.EarlyLosses+before.Timeouts }
	if err := n.RunUntil(l.warm+2*time.Second, func() bool { return noticed(f.Stats()) }); err != nil {
		return nil, err
	}
	if !noticed(f.Stats()) {
		return nil, fmt.Errorf("the loss was not noticed")
	}
	seen := n.Now()
	share := func() float64 { return f.Controller().PacingRate() * 8 / mpcRate }
	const limit = 3 // seconds
	low, recovered := inf, 0.0
	for n.Now() < seen+limit*time.Second && recovered == 0 {
		if n.Now() <= seen+f.Stats().SRTT {
			low = min(low, share())
		} else if share() >= 0.9 {
			recovered = (n.Now() - seen).Seconds()
		}
		if err := n.Run(n.Now() + ms); err != nil {
			return nil, err
		}
	}
	if recovered == 0 {
		recovered = limit
	}
	return map[string]float64{"rate_after_loss": low, "recovery_s": recovered}, nil
}
