//go:build linux

package cdn

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/emunet"
)

const (
	failoverSize, failoverQuick = 50_000_000, 20_000_000
	// What lies within this time of the failure is its doing.
	aroundBefore, aroundAfter = 250 * time.Millisecond, 2 * time.Second
)

// failure is what happens to the intermediate that serves.
type failure struct {
	name string
	do   func(t *trial, mid int) error
	ends bool // it ends the node's processes
}

var failures = []failure{
	{name: "undisturbed", do: func(*trial, int) error { return nil }},
	{name: "kill -9", ends: true, do: func(t *trial, mid int) error { return t.arm.Kill(Mid1 + Node(mid)) }},
	{name: "black hole", do: func(t *trial, mid int) error { return t.lab.t.Mids[mid].BlackHole() }},
}

// untilEnded is the part of a gap in which nobody can know: the kernel refuses in
// the name of a killed node when it has taken back the memory of its processes.
const (
	untilEnded  = "until the node's processes had ended, ms"
	gapOnceTold = "longest gap between packets, less the time to end the processes, ms"
)

// failAt is how much has arrived when the path fails.
func failAt(size int64) int64 { return size * 2 / 5 }

func runFailover(ctx context.Context, o cdnbench.Options) (_ *cdnbench.Result, err error) {
	size := int64(failoverSize)
	if o.Quick {
		size = failoverQuick
	}
	l, err := newLab("cdn-failover", o, Layout{Lossless: true, Sizes: []int64{size}}, 1)
	if err != nil {
		return nil, err
	}
	defer closing(l, &err)
	var all []job
	for _, k := range failoverKinds(o) {
		for _, f := range failures {
			all = append(all, job{k, func(ctx context.Context, t *trial) error { return measureFailure(ctx, t, f, size) }})
		}
	}
	if err := l.each(ctx, all); err != nil {
		return nil, err
	}
	l.Summarise()
	reportFailover(l, size)
	return l.finish(), nil
}

func failoverKinds(o cdnbench.Options) []Kind {
	kinds := []Kind{
		ours("failover"),
		ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic"}),
		ndnpop(ndnConfig{strategy: "failover", pipeline: "bbr"}),
		ours("best-path"),
	}
	return reduced(o, append(kinds, atsKinds(o.Quick, false)...))
}

func reportFailover(l *lab, size int64) {
	l.describe("What does a consumer notice when the intermediate that serves is killed, or silently stops to answer, in the middle of a transfer?",
		fmt.Sprintf("%s are fetched from empty caches; when %s have arrived, the intermediate that sent most of the last %s is killed (kill -9), or everything on its link to the edge is lost without notice (black hole). After the kill the node's kernel still answers, so that its neighbours are told as soon as it has ended the process. "+
			"curl resumes where a transfer breaks, and after three seconds of silence. Gaps are those between arriving packets for ndnpop, and in the output for curl.",
			megabytes(size), megabytes(failAt(size)), megabytes(servingBytes)))
	l.find(fmt.Sprintf("%s: when it was killed the kernel took %.2g ms (median) to end the intermediate, and refused in its name only then. That is part of the gap, and grows with the memory that a cache uses.",
		l.ours(), l.median(l.ours(), "kill -9: "+untilEnded)))
	other := ms(l.rtt(l.t.Mids[1], l.t.Origins[1][0]))
	n := l.ours()
	get := func(f, metric string) float64 { return l.median(n, f+": "+metric) }
	l.expectTime("kill -9: longest gap between packets, ms", "at most the round trip from the edge to the Data by the other path and 5 ms; the paper has 5.72 ± 3.15 ms, where all machines were in one region",
		get("kill -9", "longest gap between packets, ms"), math.Inf(-1), other+5)
	l.expectTime("kill -9: "+gapOnceTold, "the same",
		get("kill -9", gapOnceTold), math.Inf(-1), other+5)
	l.expectTime("black hole: longest gap between packets, ms", "at most four such round trips and 20 ms",
		get("black hole", "longest gap between packets, ms"), math.Inf(-1), 4*other+20)
	// What the consumer may have outstanding: what fits on the path and into its queues.
	flight := (linkRate/8*l.rtt(l.t.Access, l.t.Mids[0], l.t.Origins[0][0]).Seconds() + accessQueue + 2*coreQueue) / 1e6
	for _, f := range []string{"kill -9", "black hole"} {
		l.expect(f+": requests sent again by the consumer around the failure", "none", get(f, "requests sent again around the failure"), math.Inf(-1), 0)
		l.expect(f+": arrived twice, MB", "nothing", get(f, "arrived twice, MB"), math.Inf(-1), 0)
		l.expect(f+": more from the origins than undisturbed, MB", "at most what was under way at the failure",
			get(f, "from the origins, MB")-get("undisturbed", "from the origins, MB"), math.Inf(-1), flight)
		l.rough(f+": requests sent again by the consumer around the failure, to its window", get(f, "requests sent again around the failure")/float64(l.t.window()), 0, 0.5)
		l.expectTime(f+": longer than undisturbed, s", "at most 0.5 s", get(f, "completion, s")-get("undisturbed", "completion, s"), math.Inf(-1), 0.5)
	}
	var labels, gaps, times []string
	for _, f := range failures {
		labels = append(labels, f.name)
		gaps, times = append(gaps, f.name+": longest gap in the output, ms"), append(times, f.name+": completion, s")
		l.find(l.verdict(f.name+", completion", f.name+": completion, s", "s"), l.failed(f.name+": completion, s"))
	}
	for _, f := range failures[1:] {
		l.find(l.verdict(f.name+", longest gap as the reader of the output sees it", f.name+": longest gap in the output, ms", "ms"))
	}
	for _, f := range failures[1:] {
		l.find(l.ranking(f.name+", completion", f.name+": completion, s", "s"))
	}
	l.bars("completion", fmt.Sprintf("Time to fetch %s; less is better.", megabytes(size)), "completion, s", labels, times)
	l.bars("gaps", "Longest time without output around the failure; less is better. Output is in order, so that one packet that comes late holds up all behind it.", "longest gap, ms", labels[1:], gaps[1:])
	for _, f := range failures[1:] {
		l.lines("progress-"+strings.ReplaceAll(f.name, " ", "-"), f.name+": content that has arrived, in order, in the first run.", f.name)
	}
}

func measureFailure(ctx context.Context, t *trial, f failure, size int64) (err error) {
	defer func() {
		for _, l := range t.lab.t.Mids {
			if e := l.Up(); err == nil {
				err = e
			}
		}
	}()
	var ended [2]<-chan time.Time // when those of an intermediate have
	for i := range ended {
		if f.ends {
			if ended[i], err = t.lab.t.Hosts[Mid1+Node(i)].Ended(); err != nil {
				return err
			}
		}
	}
	failed := time.Duration(-1)
	var hit int // which intermediate
	var began time.Time
	var watch serving
	var doErr error
	r, err := t.fetch(ctx, t.patience(2*time.Minute), Fetch{Object: t.lab.object(size), Resume: true, Progress: func(p Point) {
		if failed >= 0 || doErr != nil {
			return
		}
		mid, due, err := watch.at(t.lab.t, p.Bytes, failAt(size))
		if err == nil && due {
			failed, hit, began = p.At, mid, time.Now()
			err = f.do(t, mid)
		}
		doErr = err
	}})
	if err == nil {
		err = doErr
	}
	if err != nil {
		return err
	}
	if failed < 0 {
		t.log = append(t.log, f.name+": the transfer ended before it")
		return nil
	}
	t.keep(f.name, &r)
	name := func(metric string) string { return fmt.Sprintf("%s: %s", f.name, metric) }
	from, to := failed-aroundBefore, failed+aroundAfter
	gap := r.Gap(from, to)
	t.add(name("longest gap between packets, ms"), ms(gap))
	t.add(name("longest gap in the output, ms"), ms(r.OrderedGap(from, to)))
	if f.ends {
		took := (<-ended[hit]).Sub(began)
		t.add(name(untilEnded), ms(took))
		t.add(name(gapOnceTold), ms(gap-took))
	}
	t.add(name("requests sent again"), float64(r.Again))
	if r.Packets != nil {
		n := 0
		for _, at := range r.AgainAt {
			if at >= from && at <= to {
				n++
			}
		}
		t.add(name("requests sent again around the failure"), float64(n))
	}
	t.add(name("arrived twice, MB"), float64(r.Twice)/1e6)
	if r.Err == nil {
		t.add(name("completion, s"), r.Elapsed.Seconds())
	}
	all, origin, err := t.lab.t.carried()
	if err != nil {
		return err
	}
	t.add(name("from the origins, MB"), float64(origin)/1e6)
	t.add(name("over all links, MB"), float64(all)/1e6)
	dropped, err := t.lab.t.queueDrops()
	t.add(name("packets dropped by full queues"), float64(dropped))
	return err
}

// serving finds out which intermediate serves: the one that sent most of the
// last bytes before a moment.
type serving struct{ before [2]int64 }

// servingBytes are how many.
const servingBytes = 2_000_000

// at reports whether the moment has come when so much has arrived, and then
// which intermediate serves.
func (s *serving) at(t *Topology, arrived, moment int64) (mid int, due bool, err error) {
	if arrived >= moment-servingBytes && arrived < moment {
		return 0, false, nil
	}
	now, err := t.fromMids()
	if err != nil || arrived < moment {
		s.before = now
		return 0, false, err
	}
	if now[1]-s.before[1] > now[0]-s.before[0] {
		mid = 1
	}
	return mid, true, nil
}

// fromMids is how much each intermediate has sent to the edge.
func (t *Topology) fromMids() (bytes [2]int64, err error) {
	for i, l := range t.Mids {
		c, err := l.Counters(emunet.BA)
		if err != nil {
			return bytes, err
		}
		bytes[i] = c.OutBytes
	}
	return bytes, nil
}

// queueDrops is how many packets found a queue full.
func (t *Topology) queueDrops() (n int64, err error) {
	for _, l := range t.Net.Links() {
		for _, d := range []emunet.Direction{emunet.AB, emunet.BA} {
			c, err := l.Counters(d)
			if err != nil {
				return n, err
			}
			n += c.QueueDrops
		}
	}
	return n, nil
}

// carried is how many bytes all links delivered, and those from the origins.
func (t *Topology) carried() (all, fromOrigins int64, err error) {
	for _, l := range t.Net.Links() {
		n, err := Carried(l)
		if err != nil {
			return 0, 0, err
		}
		all += n
	}
	for _, mid := range t.Origins {
		for _, l := range mid {
			c, err := l.Counters(emunet.BA)
			if err != nil {
				return 0, 0, err
			}
			fromOrigins += c.OutBytes
		}
	}
	return all, fromOrigins, nil
}
