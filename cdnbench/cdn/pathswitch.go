//go:build linux

package cdn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/emunet"
)

const (
	// changeEvery is how often both paths get new parameters.
	changeEvery = time.Second
	switchLimit = 3 * time.Minute
)

func runPathSwitch(ctx context.Context, o cdnbench.Options) (_ *cdnbench.Result, err error) {
	sizes, size := []int64{5_000_000, 20_000_000, 50_000_000}, int64(20_000_000)
	if o.Quick {
		sizes, size = []int64{5_000_000}, 5_000_000
	}
	l, err := newLab("cdn-path-switch", o, Layout{Lossless: true, Sizes: sizes}, 1)
	if err != nil {
		return nil, err
	}
	defer closing(l, &err)
	kinds := pathSwitchKinds(o)
	all := jobs(kinds, func(ctx context.Context, t *trial) error { return measureDegraded(ctx, t, size, false) })
	all = append(all, jobs(kinds, func(ctx context.Context, t *trial) error { return measureDegraded(ctx, t, size, true) })...)
	for _, size := range sizes {
		all = append(all, jobs(kinds, func(ctx context.Context, t *trial) error { return measureChanging(ctx, t, size) })...)
	}
	if err := l.each(ctx, all); err != nil {
		return nil, err
	}
	l.Summarise()
	reportPathSwitch(l, size, sizes)
	return l.finish(), nil
}

func pathSwitchKinds(o cdnbench.Options) []Kind {
	kinds := []Kind{
		ours("best-path"),
		ndnpop(ndnConfig{strategy: "best-path", pipeline: "cubic"}),
		ndnpop(ndnConfig{strategy: "best-path", pipeline: "bbr"}),
		ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic"}),
	}
	return reduced(o, append(kinds, atsKinds(o.Quick, false)...))
}

func reportPathSwitch(l *lab, size int64, sizes []int64) {
	l.describe("How long do objects take when the path in use becomes worse in the middle of a transfer?",
		fmt.Sprintf("First, when 30 %% of %s have arrived, the link between the edge and the intermediate that serves gets 100 to 150 ms more round trip and loses 1 %%, for good. "+
			"Second, every second both such links get a round trip of 50 to 200 ms and a loss of 0.001 to 1 %%, at random from a seed that is the same for all arms of a run. A transfer that takes longer than %v is given up.", megabytes(size), switchLimit))
	whole, worse := "undisturbed: "+megabytes(size)+", s", "one path degrades at 30 %: "+megabytes(size)+", s"
	l.expectTime("one path degrades: time for "+megabytes(size)+" to undisturbed", "at most 1.3 times; in the paper NDN follows the better path, and ATS stays",
		l.median(l.ours(), worse)/l.median(l.ours(), whole), math.Inf(-1), 1.3)
	labels, metrics := []string{"undisturbed", "one degrades"}, []string{whole, worse}
	for _, size := range sizes { // changing paths
		labels = append(labels, megabytes(size)+" changing")
		metrics = append(metrics, "paths change at random: "+megabytes(size)+", s")
	}
	for _, m := range metrics {
		l.find(l.verdict(strings.TrimSuffix(m, ", s"), m, "s"), l.failed(m))
	}
	l.find(l.ranking("One path degrades", worse, "s"))
	l.bars("times", "Time to completion; less is better.", "completion, s", labels, metrics)
	l.lines("progress", "Content that has arrived, in order, in the first run; one path degrades at 30 %.", "degrades")
}

// measureDegraded worsens the path that serves when 30 % have arrived, and
// leaves it so.
func measureDegraded(ctx context.Context, t *trial, size int64, degrade bool) (err error) {
	top := t.lab.t
	defer t.restore(&err)
	rng := t.dice()
	extra := 100*time.Millisecond + time.Duration(rng.Int64N(int64(50*time.Millisecond)))
	done := !degrade
	var watch serving
	var doErr error
	f, err := t.fetch(ctx, t.patience(switchLimit), Fetch{Object: t.lab.object(size), Progress: func(p Point) {
		if done {
			return
		}
		mid, due, err := watch.at(top, p.Bytes, size*3/10)
		if err == nil && due {
			done = true
			l := top.Mids[mid]
			q := l.Params(emunet.AB)
			q.Delay, q.Loss = q.Delay+extra/2, 0.01
			err = l.SetBoth(q)
		}
		if doErr == nil {
			doErr = err
		}
	}})
	if err == nil {
		err = doErr
	}
	if err != nil {
		return err
	}
	name := "one path degrades at 30 %"
	if degrade {
		t.keep("degrades", &f)
	} else {
		name = "undisturbed"
	}
	if f.Err == nil {
		t.add(name+": "+megabytes(size)+", s", f.Elapsed.Seconds())
	}
	return nil
}

// measureChanging gives both paths between the edge and the intermediates new
// delays and losses all the time.
func measureChanging(ctx context.Context, t *trial, size int64) (err error) {
	defer t.restore(&err)
	rng := t.dice()
	if err := t.change(rng); err != nil {
		return err
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var changeErr error
	wg.Go(func() {
		tick := time.NewTicker(changeEvery)
		defer tick.Stop()
		for changeErr == nil {
			select {
			case <-tick.C:
				changeErr = t.change(rng)
			case <-stop:
				return
			}
		}
	})
	f, err := t.fetch(ctx, t.patience(switchLimit), Fetch{Object: t.lab.object(size)})
	close(stop)
	wg.Wait()
	if err == nil {
		err = changeErr
	}
	if err == nil && f.Err == nil {
		t.add("paths change at random: "+megabytes(size)+", s", f.Elapsed.Seconds())
	}
	return err
}

// dice are the same for all arms of a run.
func (t *trial) dice() *rand.Rand { return rand.New(rand.NewPCG(t.lab.Seed, uint64(t.run))) }

// change gives each path a round trip of 50 to 200 ms and a loss of 0.001 to
// 1 %, each decade of which is as likely as another.
func (t *trial) change(rng *rand.Rand) error {
	for _, l := range t.lab.t.Mids {
		p := l.Params(emunet.AB)
		rtt := 50*time.Millisecond + time.Duration(rng.Int64N(int64(150*time.Millisecond)))
		p.Delay = t.lab.t.Read(rtt) / 2
		p.Loss = math.Pow(10, -5+3*rng.Float64())
		if err := l.SetBoth(p); err != nil {
			return err
		}
	}
	return nil
}

// restore undoes what was done to the paths.
func (t *trial) restore(err *error) {
	for _, l := range t.lab.t.Mids {
		p := l.Params(emunet.AB)
		p.Delay, p.Loss = t.lab.t.Read(midRTT)/2, coreLoss
		if t.lab.t.Lossless {
			p.Loss = 0
		}
		if e := l.SetBoth(p); *err == nil {
			*err = e
		}
	}
}
