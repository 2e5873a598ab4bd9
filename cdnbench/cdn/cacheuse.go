//go:build linux

package cdn

import (
	"context"
	"fmt"
	"time"

	"ndnpop/cdnbench"
)

// cacheUse are the sizes of the experiment: the object, and how much the edge
// has received, headers included, when it is steered to the other intermediate.
type cacheUse struct{ size, switchAt int64 }

func runCacheUse(ctx context.Context, o cdnbench.Options) (_ *cdnbench.Result, err error) {
	c := cacheUse{100_000_000, 10_000_000}
	if o.Quick {
		c = cacheUse{20_000_000, 2_000_000}
	}
	l, err := newLab("cdn-cache-use", o, Layout{Lossless: true, Sizes: []int64{c.size}}, 1)
	if err != nil {
		return nil, err
	}
	defer closing(l, &err)
	kinds := append([]Kind{ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic"})}, atsKinds(o.Quick, true)...)
	if err := l.each(ctx, jobs(kinds, c.measure)); err != nil {
		return nil, err
	}
	l.Summarise()
	return l.Result, nil
}

func (c cacheUse) measure(ctx context.Context, t *trial) error {
	base := map[Node]int64{}
	for _, n := range []Node{Edge, Mid1, Mid2} { // what came before the measurement
		held, err := t.arm.Held(ctx, n)
		if err != nil {
			return err
		}
		base[n] = held
	}
	for pull := 1; pull <= 2; pull++ {
		steer := make(chan error, 1)
		begun := false
		var countErr error
		f, err := t.fetch(ctx, 5*time.Minute, Fetch{Object: t.lab.object(c.size), Progress: func(Point) {
			if pull > 1 || begun || countErr != nil {
				return
			}
			sent, err := t.lab.t.fromMids()
			if err != nil {
				countErr = err
			} else if sent[0]+sent[1] >= c.switchAt {
				begun = true
				go func() { steer <- t.arm.Steer(ctx, Mid2) }()
			}
		}})
		if begun {
			if e := <-steer; err == nil {
				err = e
			}
		}
		if err == nil {
			err = countErr
		}
		if err == nil {
			err = f.Err // what is held after half a transfer says nothing
		}
		if err != nil {
			return err
		}
		mids := int64(0)
		for _, n := range []Node{Edge, Mid1, Mid2} {
			held, err := t.arm.Held(ctx, n)
			if err != nil {
				return err
			}
			held -= base[n]
			if n != Edge {
				mids += held
			}
			t.add(fmt.Sprintf("pull %d: %s holds, MB", pull, n), float64(held)/1e6)
		}
		t.add(fmt.Sprintf("pull %d: intermediates hold, MB", pull), float64(mids)/1e6)
		t.add(fmt.Sprintf("pull %d: completion, s", pull), f.Elapsed.Seconds())
		// The next pull comes through another edge, as it were.
		if err := t.arm.Forget(ctx, Edge); err != nil {
			return err
		}
		base[Edge] = 0
	}
	return nil
}
