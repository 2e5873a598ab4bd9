package papers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ndnpop/cdnbench"
)

// MpcBuffers is mpc-buffers: the predictive controller over buffer sizes.
type MpcBuffers struct{ tiny bool }

// Name implements cdnbench.Scenario.
func (MpcBuffers) Name() string { return "mpc-buffers" }

// About implements cdnbench.Scenario.
func (MpcBuffers) About() string {
	return "what small and large buffers do to flows of the predictive controller"
}

func bufferArm(bdp float64) string { return fmt.Sprintf("2 flows, %g BDP", bdp) }

// Run implements cdnbench.Scenario.
func (s MpcBuffers) Run(ctx context.Context, o cdnbench.Options) (*cdnbench.Result, error) {
	r, runs := begin(s.Name(), o, 5, 1)
	warm, length := 40*time.Second, 120*time.Second
	buffers := []float64{1. / 16, 1. / 8, 1. / 4, 1. / 2, 1, 2, 4, 8, 16}
	counts := []int{1, 2, 4, 8}
	if o.Quick {
		warm, length, buffers, counts = 8*time.Second, 28*time.Second, []float64{1. / 16, 1. / 4, 1. / 2, 2}, nil
	}
	if s.tiny {
		warm, length = 300*ms, 900*ms
	}
	var all []*values
	var jobs []job
	rtts := map[float64][]float64{} // of the first run
	kept := map[float64]*trace{}
	slots := make([]struct {
		rtts []float64
		t    *trace
	}, len(buffers))
	add := func(arm string, bdp float64, flows int, warm, length time.Duration, keep func(*lab)) {
		v := &values{arm, make([]map[string]float64, runs)}
		all = append(all, v)
		for run := range runs {
			jobs = append(jobs, job{arm, run, func(seed uint64) error {
				var fs []flow
				for range flows {
					fs = append(fs, steady("mpc", mpcRTT, 0, 1/float64(flows), nil))
				}
				l := mpcLab(bdp, seed, warm, fs)
				if err := l.net.Run(warm); err != nil {
					return err
				}
				before := l.link.BA.Counters()
				if err := l.run(length); err != nil {
					return err
				}
				c := l.link.BA.Counters()
				drops := float64(c.QueueDrops - before.QueueDrops)
				var samples []float64
				for _, x := range l.rtts {
					samples = append(samples, x.ms...)
				}
				v.metrics[run] = map[string]float64{
					"utilisation": l.utilisation(), "jain": jain(l.rates()), "rtt_median_ms": median(samples),
					"loss": drops / (drops + float64(c.OutPackets-before.OutPackets)),
				}
				if keep != nil && run == 0 {
					keep(l)
				}
				return nil
			}})
		}
	}
	for i, b := range buffers {
		add(bufferArm(b), b, 2, warm, length, func(l *lab) {
			slots[i].rtts = append(l.rtts[0].ms, l.rtts[1].ms...)
			slots[i].t = l.record(fmt.Sprintf("%g BDP", b))
		})
	}
	for _, k := range counts {
		for _, b := range []float64{0.5, 1} {
			add(fmt.Sprintf("N = %d, %g BDP", k, b), b, k, 20*time.Second, 60*time.Second, nil)
		}
	}
	if err := runJobs(ctx, o, jobs); err != nil {
		return nil, err
	}
	for i, b := range buffers {
		rtts[b], kept[b] = slots[i].rtts, slots[i].t
	}
	collect(r, all, "utilisation", "jain", "rtt_median_ms", "loss")
	at := func(b float64, metric string) float64 { return average(r, bufferArm(b), metric) }

	r.Question = "How does the predictive controller cope with buffers far smaller and far larger than the bandwidth-delay product?"
	r.Setup = fmt.Sprintf("Two flows. %sRTT 25 ms, fill 0.5, %.3g s of which the first %.3g s do not count. The paper has 40 Gbit/s and packets of 1 to 8 kB; the rate is scaled down and the size is fixed.", mpcSetup, length.Seconds(), warm.Seconds())
	r.Calibrated = mpcModel + "Nothing here was fitted to the paper, whose tables were not at hand."
	r.Findings = fmt.Sprintf("With 1/16 of a bandwidth-delay product the flows use %.3f of the link and lose %.2f %%; with 1/2 they use %.3f and lose %.3f %%. The median RTT grows from %.1f ms at 1/16 to %.1f ms at %g. ",
		at(1./16, "utilisation"), 100*at(1./16, "loss"), at(0.5, "utilisation"), 100*at(0.5, "loss"), at(1./16, "rtt_median_ms"), at(buffers[len(buffers)-1], "rtt_median_ms"), buffers[len(buffers)-1])
	if counts != nil {
		r.Findings += "The paper says that losses grow with the number of flows. Ours, after 20 s:"
		for _, k := range counts {
			r.Findings += fmt.Sprintf(" %.4f %% and %.4f %% for %d at 1/2 and 1 BDP;", 100*average(r, fmt.Sprintf("N = %d, 0.5 BDP", k), "loss"), 100*average(r, fmt.Sprintf("N = %d, 1 BDP", k), "loss"), k)
		}
		r.Findings += " this is reported and not held against a band."
	}

	box := cdnbench.Plot{Name: "rtt-boxes", XLabel: "buffer, BDP", YLabel: "RTT, ms", Caption: "RTT of the Data of one run against the buffer: the 101 percentiles. The points far off are the probes of the buffer's both ends."}
	util := cdnbench.Plot{Name: "utilisation", XLabel: "buffer, BDP", YLabel: "share of the link", XLog: true, Caption: "Utilisation against the buffer, medians of the runs; 0.97 and 0.98 are dashed.", Band: []float64{0.97, 0.98}}
	loss := cdnbench.Plot{Name: "loss", XLabel: "buffer, BDP", YLabel: "loss, % of Data", XLog: true, Caption: "Loss by the full queue against the buffer, medians of the runs."}
	fair := cdnbench.Plot{Name: "jain", XLabel: "buffer, BDP", YLabel: "Jain's index", XLog: true, Caption: "Jain's index of the two flows against the buffer, medians of the runs."}
	for _, p := range []struct {
		plot   *cdnbench.Plot
		metric string
		factor float64
	}{{&util, "utilisation", 1}, {&loss, "loss", 100}, {&fair, "jain", 1}} {
		ln := cdnbench.Line{Name: "2 flows"}
		for _, b := range buffers {
			ln.X, ln.Y = append(ln.X, b), append(ln.Y, p.factor*r.Arms[bufferArm(b)][p.metric].Median)
		}
		p.plot.Lines = []cdnbench.Line{ln}
	}
	for _, b := range buffers {
		name := fmt.Sprintf("%g", b)
		if b < 1 {
			name = fmt.Sprintf("1/%.0f", 1/b)
		}
		box.Boxes = append(box.Boxes, cdnbench.Box{Name: name, Values: percentiles(rtts[b])})
	}
	r.Plots = append(r.Plots, box, util, loss, fair)
	queue := overTime("over-time", "small and large buffers.", kept[1./16], kept[0.5], kept[2])
	r.Plots = append(r.Plots, queue[3])

	r.Expect("utilisation at 1/16 BDP", "a small buffer costs rate", at(1./16, "utilisation"), -inf, 0.97)
	low, steps := inf, inf
	for i, b := range buffers {
		if b >= 0.5 {
			low = min(low, at(b, "utilisation"))
		}
		if i > 0 {
			steps = min(steps, at(b, "rtt_median_ms")-at(buffers[i-1], "rtt_median_ms"))
		}
	}
	r.Expect("utilisation, smallest from 1/2 BDP on", "full", low, 0.98, inf)
	r.Expect("growth of the median RTT from one buffer to the next, smallest, ms", "grows with the buffer", steps, 0, inf)
	r.Expect("loss at 1/16 to that at 1/4 BDP", "small buffers lose", at(1./16, "loss")/at(1./4, "loss"), 5, inf)
	return r, nil
}

// percentiles stand for many values in a box plot.
func percentiles(v []float64) (p []float64) {
	if len(v) == 0 {
		return nil
	}
	v = slices.Clone(v)
	slices.Sort(v)
	for i := range 101 {
		p = append(p, v[i*(len(v)-1)/100])
	}
	return p
}
