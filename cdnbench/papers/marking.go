package papers

import (
	"context"
	"fmt"
	"time"

	"ndnpop/cdnbench"
)

// Marking is marking: congestion marks by the link service, as NFD gives them,
// and what Reno and CUBIC make of them; and shaping of Interests.
type Marking struct{ tiny bool }

// Name implements cdnbench.Scenario.
func (Marking) Name() string { return "marking" }

// About implements cdnbench.Scenario.
func (Marking) About() string {
	return "whether congestion marks keep a queue short and the link full, with Reno and CUBIC"
}

const (
	markingBuffer    = 200_000
	markingThreshold = 64 << 10
)

// Run implements cdnbench.Scenario.
func (s Marking) Run(ctx context.Context, o cdnbench.Options) (*cdnbench.Result, error) {
	r, runs := begin(s.Name(), o, 5, 1)
	warm, length := 10*time.Second, 70*time.Second
	counts := []int{1, 2, 4, 8}
	if o.Quick {
		warm, length, counts = 5*time.Second, 25*time.Second, []int{4}
	}
	if s.tiny {
		warm, length = 100*ms, 300*ms
	}
	arm := func(c string, flows int, marks bool) string {
		if marks {
			return fmt.Sprintf("%s, %d flows, marks", c, flows)
		}
		return fmt.Sprintf("%s, %d flows, no marks", c, flows)
	}
	var all []*values
	var jobs []job
	shown := []string{arm("cubic", 4, true), arm("cubic", 4, false)}
	kept := make([]*trace, len(shown))
	add := func(name, c string, k int, marks bool, options map[string]string) {
		v := &values{name, make([]map[string]float64, runs)}
		all = append(all, v)
		for run := range runs {
			jobs = append(jobs, job{v.arm, run, func(seed uint64) error {
				var fs []flow
				for i := range k {
					fs = append(fs, flow{controller: c, options: options, rtt: 40 * ms, start: time.Duration(i) * 70 * ms})
				}
				l := newLab(bottleneck{rate: 100 * mbit, buffer: markingBuffer, payload: 1400, marking: marks}, seed, warm, fs)
				if err := l.run(length); err != nil {
					return err
				}
				var seen uint64
				for _, f := range l.fetches {
					seen += f.Stats().Marks
				}
				v.metrics[run] = map[string]float64{
					"utilisation": l.utilisation(), "mean_queue_kb": l.queueBytes() / 1e3, "queue_delay_ms": l.queueDelay(),
					"drops": float64(l.drops(warm)), "jain": jain(l.rates()), "marks": float64(seen), "repeated_interests": l.resent(),
				}
				for i, shown := range shown {
					if shown == v.arm && run == 0 {
						kept[i] = l.record(shown)
					}
				}
				return nil
			}})
		}
	}
	for _, c := range []string{"reno", "cubic"} {
		for _, k := range counts {
			for _, marks := range []bool{true, false} {
				add(arm(c, k, marks), c, k, marks, nil)
			}
		}
	}
	const gentle = "reno that answers marks with 0.8, 1 flow, marks"
	if !o.Quick {
		add(gentle, "reno", 1, true, map[string]string{"mark-beta": "0.8"})
	}
	var shaped [2]*trace
	for _, c := range []string{"reno", "cubic"} {
		for i, on := range []bool{true, false} {
			v := &values{shapeArm(c, on), make([]map[string]float64, runs)}
			all = append(all, v)
			for run := range runs {
				jobs = append(jobs, job{v.arm, run, func(seed uint64) error {
					m, t, err := shapeRun(c, on, seed, warm, length)
					v.metrics[run] = m
					if run == 0 && c == "reno" {
						shaped[i] = t
					}
					return err
				}})
			}
		}
	}
	if err := runJobs(ctx, o, jobs); err != nil {
		return nil, err
	}
	collect(r, all, "utilisation", "worst_to_optimum", "nacks", "mean_queue_kb", "queue_delay_ms", "drops", "jain", "marks", "repeated_interests")
	at := func(c string, k int, metric string) float64 { return average(r, arm(c, k, true), metric) }

	r.Question = "Do congestion marks, given by the link service as NFD does, spare losses and keep the queue short without leaving the link idle?"
	r.Setup = fmt.Sprintf("100 Mbit/s, RTT 40 ms, a queue of 200 kB, which is 0.4 of the bandwidth-delay product; marks when it has been longer than 64 KiB for 100 ms. Payload 1400 bytes, %.3g s of which the first %.3g s do not count. Each set-up also without marks. Interest shaping (Wang et al. 2013): a flow each way over 10 Mbit/s, RTT 40 ms, a queue of 50 kB; the optimum is what is left of each direction for Data beside the Interests for the other one.", length.Seconds(), warm.Seconds())
	r.Calibrated = "Nothing: thresholds and intervals are NFD's, the shaper's rule is its authors'."
	r.Findings = fmt.Sprintf("Four CUBIC flows use %.3f of the link with marks, the queue holds %.0f kB on average and drops %.0f packets; without marks they use %.3f, hold %.0f kB and drop %.0f. ",
		at("cubic", 4, "utilisation"), at("cubic", 4, "mean_queue_kb"), at("cubic", 4, "drops"),
		average(r, arm("cubic", 4, false), "utilisation"), average(r, arm("cubic", 4, false), "mean_queue_kb"), average(r, arm("cubic", 4, false), "drops"))
	if !o.Quick {
		r.Findings += fmt.Sprintf("One flow alone leaves a part of the link idle: %.3f of it is used by Reno and %.3f by CUBIC. A flow that halves its window when the queue holds 64 KiB falls to well below the bandwidth-delay product of 500 kB, and climbs back by a packet per RTT. Answering a mark with 0.8 of the window, as RFC 8511 allows, gives Reno %.3f. Marks with this threshold suit several flows, or a shorter path. "+
			"With eight flows the queue stands at %.0f kB with Reno and %.0f kB with CUBIC, over the threshold: one packet is marked at a time, so one flow gives way while the others grow. ",
			at("reno", 1, "utilisation"), at("cubic", 1, "utilisation"), average(r, gentle, "utilisation"),
			at("reno", 8, "mean_queue_kb"), at("cubic", 8, "mean_queue_kb"))
	}
	r.Findings += shapeText(r, "reno") + shapeText(r, "cubic")
	util := cdnbench.Plot{Name: "utilisation", YLabel: "share of the link", Caption: "Utilisation by number of flows, medians; 0.95 is dashed.", Band: []float64{0.95}}
	queue := cdnbench.Plot{Name: "queue", YLabel: "mean queue, kB", Caption: "Mean queue by number of flows, medians; the threshold is dashed.", Band: []float64{markingThreshold / 1e3}}
	for _, k := range counts {
		util.BarLabels = append(util.BarLabels, fmt.Sprintf("%d flows", k))
	}
	queue.BarLabels = util.BarLabels
	for _, c := range []string{"reno", "cubic"} {
		for _, marks := range []bool{true, false} {
			name := c + ", marks"
			if !marks {
				name = c + ", no marks"
			}
			u, q := cdnbench.BarSet{Name: name}, cdnbench.BarSet{Name: name}
			for _, k := range counts {
				u.Values = append(u.Values, r.Arms[arm(c, k, marks)]["utilisation"].Median)
				q.Values = append(q.Values, r.Arms[arm(c, k, marks)]["mean_queue_kb"].Median)
			}
			util.Bars, queue.Bars = append(util.Bars, u), append(queue.Bars, q)
		}
	}
	r.Plots = append(r.Plots, util, queue)
	r.Plots = append(r.Plots, overTime("over-time", "four CUBIC flows.", named(kept[0], "marks"), named(kept[1], "no marks"))[3])

	two := overTime("two-way", "a Reno flow each way, with Interest shaping and without.", shaped[:]...)[3]
	r.Plots = append(r.Plots, two)
	for _, c := range []string{"reno", "cubic"} {
		a := r.Arms[shapeArm(c, true)]
		r.Expect(c+", Interests shaped: drops after the start, largest", "none", a["drops"].Max, -inf, 0)
		r.Expect(c+", Interests shaped: slower direction to the optimum", "full both ways", average(r, shapeArm(c, true), "worst_to_optimum"), 0.95, inf)
	}
	for _, c := range []string{"reno", "cubic"} {
		drops, low, most := 0.0, inf, 0.0
		for _, k := range counts {
			drops = max(drops, r.Arms[arm(c, k, true)]["drops"].Max)
			most = max(most, at(c, k, "mean_queue_kb"))
			if k > 1 {
				low = min(low, at(c, k, "utilisation"))
			}
		}
		r.Expect(c+": drops after the start, largest", "none", drops, -inf, 0)
		r.Expect(c+": mean queue, largest, kB", "at most the threshold", most, -inf, markingThreshold/1e3)
		r.Expect(c+": utilisation of several flows, smallest", "full", low, 0.95, inf)
		if !o.Quick {
			r.Expect(c+": utilisation of one flow", "full", at(c, 1, "utilisation"), 0.95, inf)
		}
	}
	return r, nil
}

// named is a trace under another name.
func named(t *trace, name string) *trace {
	c := *t
	c.name = name
	return &c
}
