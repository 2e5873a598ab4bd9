//go:build linux

package cdn

import (
	"context"
	"fmt"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/emunet"
)

const (
	failoverSize = 50_000_000
	// failAt is how much has arrived when the path fails.
	failAt = failoverSize * 2 / 5
	// What lies within this time of the failure is its doing.
	aroundBefore, aroundAfter = 250 * time.Millisecond, 2 * time.Second
)

// failure is what happens to the intermediate that serves.
type failure struct {
	name string
	do   func(t *trial) error
}

var failures = []failure{
	{"undisturbed", func(*trial) error { return nil }},
	{"kill -9", func(t *trial) error { return t.arm.Kill(Mid1) }},
	{"black hole", func(t *trial) error { return t.lab.t.Mids[0].BlackHole() }},
}

func runFailover(ctx context.Context, o cdnbench.Options) (_ *cdnbench.Result, err error) {
	l, err := newLab("cdn-failover", o, Layout{Lossless: true, Sizes: []int64{failoverSize}}, 1)
	if err != nil {
		return nil, err
	}
	defer closing(l, &err)
	kinds := []Kind{
		ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic"}),
		ndnpop(ndnConfig{strategy: "best-path", pipeline: "cubic"}),
	}
	var all []job
	for _, k := range kinds {
		for _, f := range failures {
			all = append(all, job{k, func(ctx context.Context, t *trial) error { return measureFailure(ctx, t, f) }})
		}
	}
	if err := l.each(ctx, all); err != nil {
		return nil, err
	}
	l.Summarise()
	return l.Result, nil
}

func measureFailure(ctx context.Context, t *trial, f failure) (err error) {
	defer func() {
		if e := t.lab.t.Mids[0].Up(); err == nil {
			err = e
		}
	}()
	failed := time.Duration(-1)
	var doErr error
	r, err := t.fetch(ctx, 2*time.Minute, Fetch{Object: t.lab.object(failoverSize), Resume: true, Progress: func(p Point) {
		if failed < 0 && p.Bytes >= failAt {
			failed, doErr = p.At, f.do(t)
		}
	}})
	if err == nil {
		err = doErr
	}
	if err != nil {
		return err
	}
	name := func(metric string) string { return fmt.Sprintf("%s: %s", f.name, metric) }
	from, to := failed-aroundBefore, failed+aroundAfter
	t.add(name("longest gap between packets, ms"), ms(r.Gap(from, to)))
	t.add(name("longest gap in the output, ms"), ms(r.OrderedGap(from, to)))
	t.add(name("requests sent again"), float64(r.Again))
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
	return nil
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
