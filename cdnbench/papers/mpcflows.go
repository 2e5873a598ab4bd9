package papers

import (
	"context"
	"fmt"
	"math"
	"time"

	"ndnpop/cdnbench"
)

// MpcFlows is mpc-flows: several flows of the predictive controller.
type MpcFlows struct{ tiny bool }

// Name implements cdnbench.Scenario.
func (MpcFlows) Name() string { return "mpc-flows" }

// About implements cdnbench.Scenario.
func (MpcFlows) About() string {
	return "how flows of the predictive controller share a link, with and without caps, and with different RTTs"
}

// mpcCase is one arm: flows, and what each should have of the link.
type mpcCase struct {
	name  string
	want  []float64 // shares of the link
	flows func() []flow
}

func mpcCases() []mpcCase {
	caps := []float64{3. / 40, 7. / 40, 10. / 40, 20. / 40}
	pair := func(fill string, caps ...float64) func() []flow {
		return func() []flow {
			var fs []flow
			for i, rtt := range []time.Duration{20 * ms, 60 * ms} {
				cap, share := 0.0, 0.5
				if caps != nil {
					cap, share = caps[i], caps[i]
				}
				fs = append(fs, steady("mpc", rtt, cap, share, map[string]string{"fill": fill}))
			}
			return fs
		}
	}
	return []mpcCase{
		{"four equal flows", []float64{.25, .25, .25, .25}, func() (fs []flow) {
			for range 4 {
				fs = append(fs, steady("mpc", mpcRTT, 0, 0.25, nil))
			}
			return fs
		}},
		{"four capped flows", caps, func() (fs []flow) {
			for _, c := range caps {
				fs = append(fs, steady("mpc", mpcRTT, c, c, nil))
			}
			return fs
		}},
		{"20/60 ms, fill 0.9", []float64{.5, .5}, pair("0.9")},
		{"20/60 ms, fill 0.1", []float64{.5, .5}, pair("0.1")},
		{"20/60 ms, capped", []float64{.32, .64}, pair("0.5", .32, .64)},
	}
}

// Run implements cdnbench.Scenario.
func (s MpcFlows) Run(ctx context.Context, o cdnbench.Options) (*cdnbench.Result, error) {
	r, runs := begin(s.Name(), o, 5, 1)
	warm, length, cases := 40*time.Second, 120*time.Second, mpcCases()
	if o.Quick {
		warm, length, cases = 10*time.Second, 30*time.Second, cases[:2]
	}
	if s.tiny {
		warm, length = 300*ms, 900*ms
	}
	var all []*values
	var jobs []job
	kept := make([]*trace, len(cases))
	for i, c := range cases {
		v := &values{c.name, make([]map[string]float64, runs)}
		all = append(all, v)
		for run := range runs {
			jobs = append(jobs, job{v.arm, run, func(seed uint64) error {
				l := mpcLab(1, seed, warm, c.flows())
				if err := l.run(length); err != nil {
					return err
				}
				rates, wire := l.rates(), l.wireShare()
				m := map[string]float64{"jain": jain(rates), "utilisation": l.utilisation(), "repeated_interests": l.resent()}
				names := make([]string, len(rates))
				for k, x := range rates {
					has := x * wire * mbit / mpcRate
					m[fmt.Sprintf("flow%d_share", k)] = has
					m["worst_miss"] = max(m["worst_miss"], math.Abs(has/c.want[k]-1))
					m["worst_rate_variation"] = max(m["worst_rate_variation"], l.sending(k))
					names[k] = fmt.Sprintf("flow %d", k)
				}
				m["short_rtt_share"] = rates[0] / (rates[0] + rates[1])
				if len(rates) > 2 {
					delete(m, "short_rtt_share")
				}
				v.metrics[run] = m
				if run == 0 {
					kept[i] = l.record(c.name, names...)
				}
				return nil
			}})
		}
	}
	if err := runJobs(ctx, o, jobs); err != nil {
		return nil, err
	}
	collect(r, all, "flow0_share", "flow1_share", "flow2_share", "flow3_share", "jain", "utilisation", "worst_miss", "worst_rate_variation", "short_rtt_share", "repeated_interests")
	at := func(i int, metric string) float64 { return average(r, mpcCases()[i].name, metric) }

	r.Question = "Do several flows of the predictive controller share a link, do they keep to configured caps, and what do different RTTs do?"
	r.Setup = fmt.Sprintf("%sA buffer of one bandwidth-delay product of 25 ms, %.3g s of which the first %.3g s do not count. Four flows of 25 ms, without caps and with caps of 3, 7, 10 and 20 fortieths of the link (the cap that is set is 3 %% less, for controllers do not count the link header); two flows of 20 and 60 ms. Fill is where between the smallest and the largest RTT the controller aims.", mpcSetup, length.Seconds(), warm.Seconds())
	r.Calibrated = mpcModel + "Nothing here was fitted to the paper."
	r.Findings = fmt.Sprintf("Four equal flows get within %.1f %% of a quarter of the link (Jain's index %.4f); capped ones are within %.2f %% of their caps. ",
		100*at(0, "worst_miss"), at(0, "jain"), 100*at(1, "worst_miss"))
	if !o.Quick {
		r.Findings += fmt.Sprintf("With RTTs of 20 and 60 ms and no caps the short flow has %.2f of what both get at fill 0.9 and %.2f at fill 0.1. The paper also reports that the flow with the long RTT dominates when the target is near the smallest RTT; ours does not show that, and it is not claimed.",
			at(2, "short_rtt_share"), at(3, "short_rtt_share"))
	}
	r.Plots = append(r.Plots, overTime("equal", "four equal flows.", renamed(kept[0]))...)
	r.Plots = append(r.Plots, overTime("capped", "caps of 3, 7, 10 and 20 of the link's 40 Mbit/s.", renamed(kept[1]))...)

	r.Expect("four equal flows: largest distance from a quarter", "fairly close", at(0, "worst_miss"), -inf, 0.15)
	r.Expect("four equal flows: Jain's index", "fair", at(0, "jain"), 0.98, inf)
	r.Expect("four capped flows: largest distance from a cap", "exact", at(1, "worst_miss"), -inf, 0.02)
	r.Expect("four capped flows: largest variation of a rate", "steady", at(1, "worst_rate_variation"), -inf, 0.02)
	if !o.Quick {
		r.Expect("20/60 ms capped: largest distance from a cap", "exact", at(4, "worst_miss"), -inf, 0.02)
		r.Expect("20/60 ms, fill 0.9: share of the short flow", "it dominates", at(2, "short_rtt_share"), 0.55, inf)
	}
	return r, nil
}

// renamed is a trace whose lines are named by the flow alone.
func renamed(t *trace) *trace {
	c := *t
	c.name = ""
	return &c
}
