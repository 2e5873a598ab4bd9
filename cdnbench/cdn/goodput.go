//go:build linux

package cdn

import (
	"context"
	"fmt"
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
	if err := l.each(ctx, jobs(transferKinds(o), measureSizes)); err != nil {
		return nil, err
	}
	l.Summarise()
	return l.Result, nil
}

func runLoss(ctx context.Context, o cdnbench.Options) (_ *cdnbench.Result, err error) {
	l, err := newLab("cdn-loss", o, Layout{Sizes: sizesOf(o)}, 1)
	if err != nil {
		return nil, err
	}
	defer closing(l, &err)
	err = l.each(ctx, jobs(transferKinds(o), func(ctx context.Context, t *trial) error {
		if err := measureSizes(ctx, t); err != nil {
			return err
		}
		// The same without loss, from empty caches.
		for _, n := range []Node{Edge, Mid1, Mid2} {
			if err := t.arm.Forget(ctx, n); err != nil {
				return err
			}
		}
		if err := t.lab.t.setLoss(false); err != nil {
			return err
		}
		f, err := t.fetch(ctx, goodputLimit, Fetch{Object: t.lab.object(ownSize)})
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
	return l.Result, nil
}

// transferKinds are the arms that transfer whole objects.
func transferKinds(o cdnbench.Options) []Kind {
	return append([]Kind{
		ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic"}),
		ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic", initCwnd: tcpInitial}),
		ndnpop(ndnConfig{strategy: "failover", pipeline: "bbr"}),
	}, atsKinds(o.Quick, false)...)
}

// measureSizes fetches each object cold and from the edge's cache.
func measureSizes(ctx context.Context, t *trial) error {
	for _, o := range t.lab.t.Objects {
		if o.Size == warmSize {
			continue
		}
		for _, state := range []string{"cold", "cached"} {
			f, err := t.fetch(ctx, goodputLimit, Fetch{Object: o})
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
