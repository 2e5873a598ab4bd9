package papers

import (
	"context"
	"fmt"
	"time"

	"ndnpop/cdnbench"
)

// HopFairness is hop-fairness: flows that are repaired hop by hop beside flows
// that are not, and beside their own kind (Lien and Yu's experiment 2).
type HopFairness struct{ tiny bool }

// Name implements cdnbench.Scenario.
func (HopFairness) Name() string { return "hop-fairness" }

// About implements cdnbench.Scenario.
func (HopFairness) About() string {
	return "how flows repaired hop by hop share a lossy chain with Reno and with their own kind"
}

const hopLoss = 0.01

// company is one arm: flows that share the chain.
type company struct {
	name    string
	runners []runner
}

// pairs are the arms of two flows. The second one is Reno from end to end.
func pairs() []company {
	beside := func(r repair, bare bool) []runner {
		return []runner{{repair: r}, {repair: endToEnd, bare: bare, start: 100 * ms}}
	}
	return []company{
		{"hop by hop, Reno", beside(stopWait, true)},
		{"hop by hop (window 4), Reno", beside(windowed, true)},
		{"both repaired, one Reno", beside(stopWait, false)},
		{"Vegas, Reno", beside(vegasEnds, false)},
		{"Reno, Reno", beside(endToEnd, false)},
	}
}

// triples are the arms of three flows of one kind, started 20 s apart.
func triples() (all []company) {
	for _, r := range []repair{stopWait, windowed, endToEnd, vegasEnds} {
		c := company{name: "three: " + r.name}
		for i := range 3 {
			c.runners = append(c.runners, runner{repair: r, start: time.Duration(i) * 20 * time.Second})
		}
		all = append(all, c)
	}
	return all
}

func (c company) arm(hops int) string { return fmt.Sprintf("%s, %d hops", c.name, hops) }

// Run implements cdnbench.Scenario.
func (s HopFairness) Run(ctx context.Context, o cdnbench.Options) (*cdnbench.Result, error) {
	r, runs := begin(s.Name(), o, 5, 1)
	hops, scale := []int{4, 6, 8}, time.Duration(1)
	if s.tiny {
		scale = 20
	}
	var all []*values
	var jobs []job
	var kept [2]*trace // a pair, and three flows
	add := func(c company, h int, warm, length time.Duration, keep **trace, names ...string) {
		v := &values{c.arm(h), make([]map[string]float64, runs)}
		all = append(all, v)
		for run := range runs {
			jobs = append(jobs, job{v.arm, run, func(seed uint64) error {
				runners := make([]runner, len(c.runners))
				for i, x := range c.runners {
					x.start /= scale
					runners[i] = x
				}
				n := newChain(h, mbit, hopLoss, seed, warm/scale, runners...)
				if err := n.run(length / scale); err != nil {
					return err
				}
				rates := n.rates()
				m := map[string]float64{"jain": jain(rates)}
				for i, x := range rates {
					m["total_kbps"] += x
					m[fmt.Sprintf("flow%d_kbps", i)] = x
					m[fmt.Sprintf("flow%d_delivery_ms", i)] = 1e3 * mean(n.delays[i].secs)
				}
				v.metrics[run] = m
				if keep != nil && run == 0 {
					*keep = n.record("", names...)
				}
				return nil
			}})
		}
	}
	for _, h := range hops {
		for i, c := range pairs() {
			keep := &kept[0]
			if i > 0 || h != 8 {
				keep = nil
			}
			add(c, h, 20*time.Second, 120*time.Second, keep, "hop by hop", "Reno")
		}
		for i, c := range triples() {
			keep := &kept[1]
			if i > 0 || h != 8 {
				keep = nil
			}
			add(c, h, 60*time.Second, 100*time.Second, keep, "from 0 s", "from 20 s", "from 40 s")
		}
	}
	if err := runJobs(ctx, o, jobs); err != nil {
		return nil, err
	}
	collect(r, all, "jain", "total_kbps", "flow0_kbps", "flow1_kbps", "flow2_kbps", "flow0_delivery_ms", "flow1_delivery_ms", "flow2_delivery_ms")
	f := hopFairFigures{r, hops}
	f.text()
	f.plots()
	r.Plots = append(r.Plots, chainOverTime("one flow repaired hop by hop (stop and wait, bound 4) beside one of Reno that is not, over 8 hops.", kept[0])...)
	three := chainOverTime("three flows repaired hop by hop (stop and wait, bound 4) over 8 hops.", kept[1])[0]
	three.Name = "three-rate"
	three.Caption += " At 20 and 40 s all wait for the first Data of the flow that begins: it carries the start of the content, 8 kB at once, which is 65 ms on each link."
	r.Plots = append(r.Plots, three)
	f.expect()
	return r, nil
}

// hopFairFigures reads the results.
type hopFairFigures struct {
	r    *cdnbench.Result
	hops []int
}

func (f hopFairFigures) at(c company, hops int, metric string) float64 {
	return average(f.r, c.arm(hops), metric)
}

// least is the smallest value over the hops.
func (f hopFairFigures) least(value func(hops int) float64) float64 {
	v := inf
	for _, h := range f.hops {
		v = min(v, value(h))
	}
	return v
}

func (f hopFairFigures) text() {
	r, p, t := f.r, pairs(), triples()
	r.Question = "Do flows that are repaired hop by hop leave room for flows that are not, and do they share among themselves?"
	r.Setup = chainSetup + fmt.Sprintf("1 Mbit/s, %g %% loss on each link. Two flows: 120 s, of which the first 20 s do not count. The links repair the packets of the first flow and not those of the second, in one queue, as nodes do that run both protocols side by side; one arm has both repaired, which is what NDNLPv2 reliability does on a face. Three flows: started at 0, 20 and 40 s, measured from 60 to 100 s. Jain's index is 1 when all get the same, 0.5 (0.33) when one of two (three) has all.", 100*hopLoss)
	r.Calibrated = "The slides have a loss of 0.1 above the repetitions of 802.11; 1 % without them is the setting at which hop-by-hop lands on the paper's gain."
	r.Findings = fmt.Sprintf("Over 8 hops the index of a flow repaired hop by hop beside Reno is %.3f (%.0f and %.0f kbit/s); Vegas beside Reno, without repair, has %.3f. ",
		f.at(p[0], 8, "jain"), f.at(p[0], 8, "flow0_kbps"), f.at(p[0], 8, "flow1_kbps"), f.at(p[3], 8, "jain")) +
		fmt.Sprintf("Over 4 hops it is the other way around (%.3f and %.3f): a window of 4 does not take its half of a short chain. ", f.at(p[0], 4, "jain"), f.at(p[3], 4, "jain")) +
		fmt.Sprintf("With the link window of 4 and the larger bound it is %.3f (%.0f and %.0f kbit/s): who is repaired gets the most where the other one cannot use the link. ",
			f.at(p[1], 8, "jain"), f.at(p[1], 8, "flow0_kbps"), f.at(p[1], 8, "flow1_kbps")) +
		fmt.Sprintf("Where the links repair both, Reno without a bound fills the queues and takes %.0f of %.0f kbit/s from a flow that keeps to a window of 4 (index %.3f): a bound end to end is fair only if all have one. ",
			f.at(p[2], 8, "flow1_kbps"), f.at(p[2], 8, "total_kbps"), f.at(p[2], 8, "jain")) +
		fmt.Sprintf("Three flows of one kind over 8 hops: hop by hop %.3f, Reno %.3f, Vegas %.3f.", f.at(t[0], 8, "jain"), f.at(t[2], 8, "jain"), f.at(t[3], 8, "jain"))
}

func (f hopFairFigures) plots() {
	for _, g := range []struct {
		name, caption string
		arms          []company
		band          float64
	}{
		{"pairs", "Jain's index of two flows by hops; 0.8 is dashed. The slides show Vegas beside NewReno for comparison.", pairs(), 0.8},
		{"three", "Jain's index of three flows of one kind by hops; 0.95 is dashed.", triples(), 0.95},
	} {
		p := cdnbench.Plot{Name: g.name, YLabel: "Jain's index", Caption: g.caption, Band: []float64{g.band}}
		for _, h := range f.hops {
			p.BarLabels = append(p.BarLabels, fmt.Sprintf("%d hops", h))
		}
		for _, c := range g.arms {
			b := cdnbench.BarSet{Name: c.name}
			for _, h := range f.hops {
				b.Values = append(b.Values, f.at(c, h, "jain"))
			}
			p.Bars = append(p.Bars, b)
		}
		f.r.Plots = append(f.r.Plots, p)
	}
}

func (f hopFairFigures) expect() {
	p, t := pairs(), triples()
	jain := func(c company) float64 { return f.least(func(h int) float64 { return f.at(c, h, "jain") }) }
	f.r.Expect("hop by hop beside Reno: Jain's index, smallest", "fairer than Vegas beside NewReno", jain(p[0]), 0.8, inf)
	f.r.Expect("three flows hop by hop: Jain's index, smallest", "fairer than NewReno", jain(t[0]), 0.95, inf)
	f.r.Expect("three flows hop by hop: Jain's index to Reno's, smallest", "fairer than NewReno",
		f.least(func(h int) float64 { return f.at(t[0], h, "jain") / f.at(t[2], h, "jain") }), 1, inf)
	f.r.Expect("three flows hop by hop, window 4: Jain's index, smallest", "as the slides' form", jain(t[1]), 0.95, inf)
}
