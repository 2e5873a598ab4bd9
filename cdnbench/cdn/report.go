//go:build linux

package cdn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"ndnpop/cdnbench"
)

// describe says what was asked and how it was set up.
func (l *lab) describe(question, setup string) {
	l.Question = question
	queues := "625 kB of queue on the first link and 250 kB on the others"
	loss := "Nothing is lost by chance."
	if !l.t.Lossless {
		loss = "The first link loses 0.08 % of the packets in each direction, the others 0.01 %, at random, and each arm of a run meets the same dice."
	}
	untuned := "The other arms of ndnpop are as the program comes: neighbours repair what their link loses as well, up to 3 times, and mark Data while their frames queue, but the client knows nothing of the path. Links without repair: that is turned off."
	if l.Reduced {
		untuned = "This is a reduced run; a full one has more arms of both sides, among them more of ndnpop as it comes."
	}
	l.Setup = setup + "\n" + fmt.Sprintf(
		"Links: a client reaches an edge cache over %v ms of round trip; the edge reaches two intermediate caches over %v ms, and they two origins over %v and %v ms. "+
			"Every link carries 100 Mbit/s with %s. %s The caches hold %.3g GB each.\n",
		ms(l.t.Read(accessRTT)), ms(l.t.Read(midRTT)), ms(l.t.Read(originRTT)), ms(l.t.Read(origin2RTT)), queues, loss, float64(l.t.CacheBytes)/1e9) + fmt.Sprintf(
		"ndnpop: a forwarder at each node, UDP between them, a producer at each origin, segments of %d bytes with a digest that the client verifies. An arm's name gives the forwarding strategy and the client's congestion control. "+
			"The client starts with ten segments, %d kB; TCP with ten packets, 14.6 kB, which costs HTTP a few round trips at small sizes (in full runs of cdn-goodput and cdn-loss one arm of each side starts with what the other has). "+
			"Reliable links: set up by an operator who knows the path. Neighbours repair what their link loses (up to %d times), the client takes nothing for lost before a second has passed and has at most %d segments outstanding, a quarter more than the path holds. TCP is told nothing of the kind. %s\n",
		ndnSegment, 10*ndnSegment/1000, linkRetries, l.t.window(), untuned) +
		"ndnd: its forwarder and tools; its times include the start of the program, which says none itself.\n" +
		"HTTP: Apache Traffic Server at edge and intermediates, nginx (as in the paper: httpd) at the origins, curl at the client, over plain TCP with the named congestion control. As in the paper: the server's defaults. " +
		"Tuned: one fill serves all who ask meanwhile, large objects stay in memory, connections between servers are kept and do not slow down when idle, a dead or silent parent is left soon. Slices: objects are kept in blocks. " +
		"Fresh means a new connection of the client, kept one that is open; TCP Fast Open and QUIC, which would save a fresh one a round trip, are not used, and neither is TLS, which would cost one or two.\n" +
		"Both sides: caches may answer for an hour without asking the origin. Each arm is started with empty caches and fetches 20 kB twice before anything counts, so that servers know their neighbours. " +
		"All programs and the links run on one machine; a run for which the links' emulator was late is repeated, and then does not count."
}

// find adds lines to the findings.
func (l *lab) find(lines ...string) {
	for _, s := range lines {
		if s != "" {
			l.Findings = strings.TrimSpace(l.Findings + "\n" + s)
		}
	}
}

// side lists the arms of one side, whether or not they gave figures: ndnpop's,
// or HTTP's.
func (l *lab) side(http bool) (names []string) {
	for _, k := range l.kinds {
		if k.HTTP == http && !k.Peer {
			names = append(names, k.Name)
		}
	}
	return names
}

// ours is the arm that is held against what the project promises: the first.
func (l *lab) ours() string { return l.kinds[0].Name }

// ranking lists all arms by a metric of which less is better.
func (l *lab) ranking(what, metric, unit string) string {
	type entry struct {
		name  string
		value float64
	}
	var all []entry
	for _, k := range l.kinds {
		if s, ok := l.Arms[k.Name][metric]; ok {
			all = append(all, entry{k.Name, s.Median})
		}
	}
	if len(all) <= 2 { // the verdict has them
		return ""
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.value, b.value) })
	var out []string
	for _, e := range all {
		out = append(out, fmt.Sprintf("%s %s %s", e.name, cdnbench.Number(e.value, 3), unit))
	}
	return what + ", all arms: " + strings.Join(out, "; ") + "."
}

// theirs is the HTTP arm over a congestion control of TCP, tuned; empty if
// there is none.
func (l *lab) theirs(congestion string) string {
	for _, n := range l.side(true) {
		if n == ats(httpConfig{congestion: congestion}).Name {
			return n
		}
	}
	return ""
}

// best is the arm of one side with the smallest median of a metric.
func (l *lab) best(http bool, metric string) (name string, value float64) {
	value = math.Inf(1)
	for _, n := range l.side(http) {
		if s, ok := l.Arms[n][metric]; ok && s.Median < value {
			name, value = n, s.Median
		}
	}
	return name, value
}

// fastest is the smallest median of a metric that an HTTP arm has, and whether
// there are such arms: where none of them gave a figure it is no number, which
// fails a check.
func (l *lab) fastest(metric string) (value float64, any bool) {
	name, value := l.best(true, metric)
	if name == "" {
		value = math.NaN()
	}
	return value, len(l.side(true)) > 0
}

// verdict compares the best arms of both sides, where less is better.
func (l *lab) verdict(what, metric, unit string) string {
	a, ours := l.best(false, metric)
	b, theirs := l.best(true, metric)
	our, their := cdnbench.Number(ours, 3)+" "+unit, cdnbench.Number(theirs, 3)+" "+unit
	switch {
	case a == "" && b == "":
		return ""
	case a == "":
		return fmt.Sprintf("%s: no arm of ndnpop completed; %s needs %s.", what, b, their)
	case b == "":
		return fmt.Sprintf("%s: %s with %s; no HTTP arm completed.", what, a, our)
	case math.Abs(ours-theirs) <= 0.02*theirs:
		return fmt.Sprintf("%s: %s with %s and %s with %s are level.", what, a, our, b, their)
	case ours < theirs:
		return fmt.Sprintf("%s: ndnpop is ahead (%s %s, %s %s).", what, a, our, b, their)
	}
	return fmt.Sprintf("%s: ndnpop is behind by %.0f %% (%s %s, %s %s).", what, 100*(ours/theirs-1), a, our, b, their)
}

// failed says which arms did not complete everything.
func (l *lab) failed(metric string) string {
	var out []string
	for _, k := range l.kinds {
		if n := len(l.Values(k.Name, metric)); n < l.runs && !slices.Contains(out, k.Name) {
			out = append(out, fmt.Sprintf("%s (%d of %d)", k.Name, l.runs-n, l.runs))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "Without a figure for \"" + metric + "\": " + strings.Join(out, ", ") + "."
}

// bars draws the medians of metrics, a colour for each arm that has them.
func (l *lab) bars(name, caption, y string, labels, metrics []string) {
	p := cdnbench.Plot{Name: name, Caption: caption, YLabel: y, BarLabels: labels}
	for _, k := range l.kinds {
		set := cdnbench.BarSet{Name: k.Name}
		any := false
		for _, m := range metrics {
			s, ok := l.Arms[k.Name][m]
			any = any || ok
			set.Values = append(set.Values, s.Median)
		}
		if any {
			p.Bars = append(p.Bars, set)
		}
	}
	if len(p.Bars) > 0 {
		l.Plots = append(l.Plots, p)
	}
}

// lines draws content over time as the first run that kept it saw it.
func (l *lab) lines(name, caption string, which string) {
	p := cdnbench.Plot{Name: name, Caption: caption, XLabel: "time, s", YLabel: "arrived, MB"}
	for _, s := range l.series {
		if s.plot == which {
			p.Lines = append(p.Lines, s.line)
		}
	}
	if len(p.Lines) > 0 {
		l.Plots = append(l.Plots, p)
	}
}

// series is one line of a plot.
type series struct {
	plot string
	line cdnbench.Line
}

// maxPoints of a line: more cannot be seen.
const maxPoints = 400

// keep keeps the content over time of the first run for a plot.
func (t *trial) keep(plot string, f *Fetched) {
	if t.run > 1 || len(f.Points) == 0 {
		return
	}
	line := cdnbench.Line{Name: t.kind.Name}
	step := f.Points[len(f.Points)-1].At / maxPoints
	last := -step
	for i, p := range f.Points {
		if p.At-last >= step || i == len(f.Points)-1 {
			line.X, line.Y = append(line.X, p.At.Seconds()), append(line.Y, float64(p.Bytes)/1e6)
			last = p.At
		}
	}
	t.series = append(t.series, series{plot, line})
}
