//go:build linux

package cdn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ndnpop/cdnbench"
)

// cacheUse are the sizes of the experiment: the object, and how much the edge
// has received, headers included, when it is steered to the other intermediate.
type cacheUse struct{ size, switchAt int64 }

// paperObject is the size of the paper's object.
const paperObject = 100_000_000

func runCacheUse(ctx context.Context, o cdnbench.Options) (_ *cdnbench.Result, err error) {
	c := cacheUse{paperObject, 10_000_000}
	if o.Quick {
		c = cacheUse{20_000_000, 2_000_000}
	}
	l, err := newLab("cdn-cache-use", o, Layout{Lossless: true, Sizes: []int64{c.size}}, 1)
	if err != nil {
		return nil, err
	}
	defer closing(l, &err)
	if err := l.each(ctx, jobs(cacheUseKinds(o), c.measure)); err != nil {
		return nil, err
	}
	l.Summarise()
	reportCacheUse(l, c)
	return l.finish(), nil
}

func cacheUseKinds(o cdnbench.Options) []Kind {
	return reduced(o, append([]Kind{ours("failover"), ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic"})}, atsKinds(o.Quick, true)...))
}

func reportCacheUse(l *lab, c cacheUse) {
	l.describe("How much do the intermediate caches hold when the path changes in the middle of an object?",
		fmt.Sprintf("%s are fetched twice. When the edge has received %s of the first pull, headers included, an operator steers it to the other intermediate, which stays for the second pull; in between the edge's cache is emptied, as if the second pull came through another edge. "+
			"A cache of HTTP finishes from the intermediate where it began.", megabytes(c.size), megabytes(c.switchAt)))
	mb, x := float64(c.size)/1e6, float64(c.switchAt)/1e6
	held := func(pull int) float64 {
		return l.median(l.ours(), fmt.Sprintf("pull %d: intermediates hold, MB", pull))
	}
	const slack = 1 // MB: 1 % of the paper's object
	l.expect("held by both intermediates after the first pull, MB", "each byte once, within 1 MB", held(1), mb-slack, mb+slack)
	if c.size == paperObject { // what is under way when the path changes is more than 1 % of a smaller one
		l.expect("held by both intermediates after the second pull, MB", "the object and what came before the switch, within 1 %; in the paper NDN holds x + 100 MB, HTTP 200 MB",
			held(2), 0.99*(mb+x), 1.01*(mb+x))
	}
	l.rough("held by both intermediates after the first pull, to the object", held(1)/mb, 0.9, 1.3)
	l.rough("held by both intermediates after the second pull, to the object", held(2)/mb, 0.9, 1.6)
	l.bars("held", "What both intermediates hold together; less is better.", "content held, MB", []string{"after pull 1", "after pull 2"},
		[]string{"pull 1: intermediates hold, MB", "pull 2: intermediates hold, MB"})
	l.find(l.verdict("Held after two pulls", "pull 2: intermediates hold, MB", "MB"), l.verdict("First pull", "pull 1: completion, s", "s"),
		l.verdict("Second pull", "pull 2: completion, s", "s"), l.failed("pull 2: completion, s"))
}

func (c cacheUse) measure(ctx context.Context, t *trial) error {
	base, err := t.held(ctx) // what came before the measurement
	if err != nil {
		return err
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
		now, err := t.held(ctx)
		if err != nil {
			return err
		}
		mids := int64(0)
		for _, n := range caches {
			held := now[n] - base[n]
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

// caches are the nodes with one.
var caches = []Node{Edge, Mid1, Mid2}

// held asks all caches what they hold, at the same time: some take seconds to
// know.
func (t *trial) held(ctx context.Context) (bytes [nodes]int64, err error) {
	var wg sync.WaitGroup
	var errs [nodes]error
	for _, n := range caches {
		wg.Go(func() { bytes[n], errs[n] = t.arm.Held(ctx, n) })
	}
	wg.Wait()
	return bytes, errors.Join(errs[:]...)
}
