//go:build linux

package cdn

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ndnpop/cdnbench"
)

// The sizes of the paper's files.
var (
	fullSizes  = []int64{1_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000}
	quickSizes = []int64{1_000_000, 5_000_000, 20_000_000}
)

const (
	// ownSize is that whose time with loss is held against its own without.
	ownSize      = 20_000_000
	goodputLimit = 5 * time.Minute
)

func sizesOf(o cdnbench.Options) []int64 {
	if o.Quick {
		return quickSizes
	}
	return fullSizes
}

func megabytes(size int64) string { return fmt.Sprintf("%d MB", size/1_000_000) }

func runGoodput(ctx context.Context, o cdnbench.Options) (_ *cdnbench.Result, err error) {
	l, err := newLab("cdn-goodput", o, Layout{Lossless: true, Sizes: sizesOf(o)}, 1)
	if err != nil {
		return nil, err
	}
	defer closing(l, &err)
	err = l.each(ctx, jobs(goodputKinds(o), func(ctx context.Context, t *trial) error { return measureSizes(ctx, t, math.MaxInt64) }))
	if err != nil {
		return nil, err
	}
	l.Summarise()
	reportGoodput(l)
	return l.finish(), nil
}

func runLoss(ctx context.Context, o cdnbench.Options) (_ *cdnbench.Result, err error) {
	l, err := newLab("cdn-loss", o, Layout{Sizes: sizesOf(o)}, 1)
	if err != nil {
		return nil, err
	}
	defer closing(l, &err)
	err = l.each(ctx, jobs(lossKinds(o), func(ctx context.Context, t *trial) error {
		if o.Quick && slowWithLoss(t.kind) {
			return measureSizes(ctx, t, slowSize)
		}
		if err := measureSizes(ctx, t, math.MaxInt64); err != nil {
			return err
		}
		// The same without loss, from empty caches.
		for _, n := range caches {
			if err := t.arm.Forget(ctx, n); err != nil {
				return err
			}
		}
		if err := t.lab.t.setLoss(false); err != nil {
			return err
		}
		f, err := t.fetch(ctx, t.patience(goodputLimit), Fetch{Object: t.lab.object(ownSize)})
		if err == nil && f.Err == nil {
			t.add(megabytes(ownSize)+" cold without loss, s", f.Elapsed.Seconds())
		}
		if e := t.lab.t.setLoss(true); err == nil {
			err = e
		}
		return err
	}))
	if err != nil {
		return nil, err
	}
	l.Summarise()
	reportLoss(l)
	return l.finish(), nil
}

// slowSize is the largest that a reduced run fetches with losses by an arm that
// needs long for it.
const slowSize = 5_000_000

// slowWithLoss are arms whose congestion control gives way at every loss.
func slowWithLoss(k Kind) bool { return k.Name == ats(httpConfig{congestion: "cubic"}).Name }

// sizes are those that were measured.
func (l *lab) sizes() (out []int64) {
	for _, o := range l.t.Objects {
		if o.Size != warmSize {
			out = append(out, o.Size)
		}
	}
	return out
}

// transfers draws goodput over size, and compares the sides at each size.
func (l *lab) transfers() {
	for _, state := range []string{"cold", "cached"} {
		p := cdnbench.Plot{Name: state, Caption: "Goodput of whole objects, " + state + "; more is better.", XLabel: "size of the object, MB", YLabel: "goodput, Mbit/s", XLog: true}
		for _, k := range l.kinds {
			line := cdnbench.Line{Name: k.Name}
			for _, size := range l.sizes() {
				if s, ok := l.Arms[k.Name][megabytes(size)+" "+state+", s"]; ok {
					line.X, line.Y = append(line.X, float64(size)/1e6), append(line.Y, float64(size)*8/1e6/s.Median)
				}
			}
			if len(line.X) > 0 {
				p.Lines = append(p.Lines, line)
			}
		}
		if len(p.Lines) > 0 {
			l.Plots = append(l.Plots, p)
		}
		for _, size := range l.sizes() {
			what := megabytes(size) + " " + state
			l.find(l.verdict(what, what+", s", "s"))
		}
	}
}

func reportGoodput(l *lab) {
	l.describe("How long do whole objects take where nothing is lost, from empty caches and from the edge's cache?",
		"Time counts from the first packet of the request, over a fresh connection with HTTP, to the last byte.")
	l.transfers()
	size := slices.Max(l.sizes())
	what := megabytes(size) + " cold, s"
	l.find(l.ranking(megabytes(size)+" cold", what, "s"))
	if theirs, any := l.fastest(what); any {
		l.expectTime("time for "+megabytes(size)+", cold, to that of the fastest HTTP arm", "within 25 %; in the paper HTTP is ahead where nothing is lost (20 MB: 0.1 s, NDN 0.4 s, over faster links)",
			l.median(l.ours(), what)/theirs, math.Inf(-1), 1.25)
	}
}

func reportLoss(l *lab) {
	l.describe("How long do whole objects take where links lose packets, from empty caches and from the edge's cache?",
		fmt.Sprintf("Time counts from the first packet of the request, over a fresh connection with HTTP, to the last byte. At the end %s are fetched once more, from empty caches and without losses.", megabytes(ownSize)))
	l.transfers()
	cubic, bbr := l.theirs("cubic"), l.theirs("bbr")
	for _, size := range l.sizes() {
		what := megabytes(size) + " cold, s"
		if cubic != "" && (!l.Reduced || size <= slowSize) {
			l.expectTime("time for "+megabytes(size)+", cold, to ATS over cubic", "less; in the paper NDN is ahead from 0.1 % of loss",
				l.median(l.ours(), what)/l.median(cubic, what), math.Inf(-1), 1)
		}
		if bbr != "" {
			l.expectTime("time for "+megabytes(size)+", cold, to ATS over bbr", "not behind by more than 10 %",
				l.median(l.ours(), what)/l.median(bbr, what), math.Inf(-1), 1.1)
		}
	}
	own := megabytes(ownSize)
	l.find(l.ranking(own+" cold", own+" cold, s", "s"))
	l.expectTime("time for "+own+" with the paper's losses, to the same arm's without", "at most 1.1 times",
		l.median(l.ours(), own+" cold, s")/l.median(l.ours(), own+" cold without loss, s"), math.Inf(-1), 1.1)
}

// transferKinds are the arms that transfer whole objects.
func transferKinds(o cdnbench.Options) []Kind {
	kinds := append([]Kind{
		ours("failover"),
		ndnpop(ndnConfig{strategy: "failover", pipeline: "bbr", reliable: true}),
		ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic"}),
		ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic", initCwnd: tcpInitial}),
		ndnpop(ndnConfig{strategy: "failover", pipeline: "bbr"}),
	}, atsKinds(o.Quick, false)...)
	return reduced(o, append(kinds, ats(httpConfig{congestion: "bbr", window: ndnInitial})))
}

func goodputKinds(o cdnbench.Options) []Kind {
	kinds := transferKinds(o)
	if !o.Quick {
		kinds = append(kinds, ndnd())
	}
	return kinds
}

func lossKinds(o cdnbench.Options) []Kind {
	kinds := transferKinds(o)
	if o.Quick { // what does best beside ours, and ours as it comes
		return append(kinds, ats(httpConfig{congestion: "bbr"}), ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic"}))
	}
	return append(kinds, ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic", unrepaired: true}))
}

// measureSizes fetches each object that is no larger than largest, cold and from
// the edge's cache.
func measureSizes(ctx context.Context, t *trial, largest int64) error {
	for _, o := range t.lab.t.Objects {
		if o.Size == warmSize || o.Size > largest {
			continue
		}
		for _, state := range []string{"cold", "cached"} {
			f, err := t.fetch(ctx, t.patience(goodputLimit), Fetch{Object: o})
			if err != nil {
				return err
			}
			if f.Err == nil {
				t.add(megabytes(o.Size)+" "+state+", s", f.Elapsed.Seconds())
				t.add(megabytes(o.Size)+" "+state+", requests sent again", float64(f.Again))
			}
		}
	}
	return nil
}

// setLoss turns the losses of all links off, and on again.
func (t *Topology) setLoss(on bool) error {
	for _, l := range t.Net.Links() {
		p := l.Params(0)
		p.Loss = 0
		if on && !t.Lossless {
			p.Loss = coreLoss
			if l == t.Access {
				p.Loss = accessLoss
			}
		}
		if err := l.SetBoth(p); err != nil {
			return err
		}
	}
	return nil
}
