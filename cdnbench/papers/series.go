package papers

import (
	"time"

	"ndnpop/cdnbench"
	"ndnpop/sim"
)

// trace is what the flows of one run did over time.
type trace struct {
	name  string // of the run, before the flows' own names
	names []string
	flows [][]sim.FlowSample
	queue []sim.LinkSample
}

// record keeps the samples of a run for plots.
func (l *lab) record(name string, names ...string) *trace {
	t := &trace{name: name, names: names, queue: l.queue.Samples()}
	for _, f := range l.fetches {
		t.flows = append(t.flows, f.Samples())
	}
	return t
}

// points bounds the points of a line in a plot.
const points = 400

// thin averages values so that a plot stays readable.
func thin(x, y []float64) (tx, ty []float64) {
	k := max(1, (len(x)+points-1)/points)
	for i := 0; i+k <= len(x); i += k {
		tx, ty = append(tx, mean(x[i:i+k])), append(ty, mean(y[i:i+k]))
	}
	return tx, ty
}

// lines draws one quantity of all flows of the runs.
func lines(ts []*trace, value func(sim.FlowSample) float64) (ls []cdnbench.Line) {
	for _, t := range ts {
		if t == nil {
			continue
		}
		for i, flow := range t.flows {
			var x, y []float64
			for _, s := range flow {
				v := value(s)
				if v == 0 && len(y) > 0 {
					v = y[len(y)-1] // no sample in this interval
				}
				x, y = append(x, s.At.Seconds()), append(y, v)
			}
			x, y = thin(x, y)
			name := t.name
			if i < len(t.names) && t.names[i] != "" {
				if name != "" {
					name += ", "
				}
				name += t.names[i]
			}
			ls = append(ls, cdnbench.Line{Name: name, X: x, Y: y})
		}
	}
	return ls
}

// overTime makes the four plots of runs over time: rate, RTT, window, queue.
func overTime(prefix, caption string, ts ...*trace) []cdnbench.Plot {
	plot := func(name, what, label string, ls []cdnbench.Line) cdnbench.Plot {
		return cdnbench.Plot{Name: prefix + "-" + name, Caption: what + " over time, " + caption, XLabel: "time, s", YLabel: label, Lines: ls}
	}
	var queues []cdnbench.Line
	for _, t := range ts {
		if t == nil {
			continue
		}
		var x, y []float64
		for _, s := range t.queue {
			x, y = append(x, s.At.Seconds()), append(y, float64(s.Queue)/1e3)
		}
		x, y = thin(x, y)
		queues = append(queues, cdnbench.Line{Name: t.name, X: x, Y: y})
	}
	return []cdnbench.Plot{
		plot("rate", "Arriving payload", "payload, Mbit/s", lines(ts, func(s sim.FlowSample) float64 { return s.Rate / mbit })),
		plot("rtt", "RTT", "RTT, ms", lines(ts, func(s sim.FlowSample) float64 { return float64(s.RTT) / float64(time.Millisecond) })),
		plot("window", "Window of Interests", "window, packets", lines(ts, func(s sim.FlowSample) float64 { return s.Window })),
		plot("queue", "Queue of the bottleneck", "queue, kB", queues),
	}
}
