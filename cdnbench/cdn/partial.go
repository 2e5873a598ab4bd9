//go:build linux

package cdn

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/emunet"
)

const partialSize = 100_000_000

func runPartial(ctx context.Context, o cdnbench.Options) (_ *cdnbench.Result, err error) {
	ranges := []int64{1_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000}
	if o.Quick {
		ranges = []int64{1_000_000, 10_000_000}
	}
	l, err := newLab("cdn-partial", o, Layout{Lossless: true, Sizes: []int64{partialSize}}, 1)
	if err != nil {
		return nil, err
	}
	defer closing(l, &err)
	err = l.each(ctx, jobs(partialKinds(o), func(ctx context.Context, t *trial) error {
		for _, n := range ranges {
			if err := measureRange(ctx, t, n); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	l.Summarise()
	reportPartial(l, ranges)
	return l.finish(), nil
}

func partialKinds(o cdnbench.Options) []Kind {
	return reduced(o, append([]Kind{ours("failover"), ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic"})}, atsKinds(o.Quick, false)...))
}

func reportPartial(l *lab, ranges []int64) {
	l.describe("What does a range of bytes cost, in time and in bytes from the origin, when caches have nothing, all, or half of it?",
		fmt.Sprintf("Ranges of an object of %s: from empty caches (cold); the same range again; then one of the same length whose first half is the second half of that (half of it new).", megabytes(partialSize)))
	var labels, fetched, times []string
	for _, n := range ranges {
		cold := l.median(l.ours(), megabytes(n)+" cold, MB from the origins")
		l.expect(megabytes(n)+" again: MB from the origins", "none: the caches have it", l.median(l.ours(), megabytes(n)+" again, MB from the origins"), math.Inf(-1), 0.001)
		l.expect(megabytes(n)+", half of it new: share of the cold range's bytes from the origins", "only what is missing: half, and a segment at its edge",
			l.median(l.ours(), megabytes(n)+" half of it new, MB from the origins")/cold, math.Inf(-1), 0.55)
		if n == slices.Max(ranges) { // beside it, what is still under way from the fetch before is little
			l.rough(megabytes(n)+" again: share of the cold range's bytes from the origins", l.median(l.ours(), megabytes(n)+" again, MB from the origins")/cold, 0, 0.25)
			l.rough(megabytes(n)+", half of it new: share of the cold range's bytes from the origins", l.median(l.ours(), megabytes(n)+" half of it new, MB from the origins")/cold, 0.25, 0.8)
		}
		for _, state := range []string{"cold", "again", "half of it new"} {
			what := megabytes(n) + " " + state
			fetched, times = append(fetched, what+", MB from the origins"), append(times, what+", s")
			labels = append(labels, fmt.Sprintf("%d %s", n/1_000_000, map[string]string{"cold": "cold", "again": "again", "half of it new": "half"}[state]))
			l.find(l.verdict(what, what+", s", "s"))
		}
	}
	l.find("In the paper NDN is faster up to 20 MB.")
	l.bars("origins", "Bytes from the origins for a range, by its length in MB; less is better.", "from the origins, MB", labels, fetched)
	l.bars("times", "Time for a range, by its length in MB; less is better.", "completion, s", labels, times)
}

// measureRange asks for a range of n bytes from empty caches, for the same one
// again, and for one whose first half is the second half of it.
func measureRange(ctx context.Context, t *trial, n int64) error {
	for _, c := range caches {
		if err := t.arm.Forget(ctx, c); err != nil {
			return err
		}
	}
	const from = 10_000_000
	for _, q := range []struct {
		name   string
		offset int64
	}{{"cold", from}, {"again", from}, {"half of it new", from + n/2}} {
		if err := t.lab.reset(t.run); err != nil {
			return err
		}
		f, err := t.fetch(ctx, time.Minute, Fetch{Object: t.lab.object(partialSize), Offset: q.offset, Length: n})
		if err != nil {
			return err
		}
		name := megabytes(n) + " " + q.name
		if f.Err == nil {
			t.add(name+", s", f.Elapsed.Seconds())
		}
		upstream := int64(0)
		for _, l := range t.lab.t.Mids {
			c, err := l.Counters(emunet.BA)
			if err != nil {
				return err
			}
			upstream += c.OutBytes
		}
		t.add(name+", MB to the edge", float64(upstream)/1e6)
		_, origins, err := t.lab.t.carried()
		if err != nil {
			return err
		}
		t.add(name+", MB from the origins", float64(origins)/1e6)
	}
	return nil
}
