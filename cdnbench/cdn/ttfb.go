//go:build linux

package cdn

import (
	"context"
	"fmt"
	"math"
	"time"

	"ndnpop/cdnbench"
)

// The requests whose time to the first byte is measured.
var ttfbRequests = []struct {
	metric string
	size   int64
	kept   bool
}{
	{"cold, ms", 100_001, false},
	{"cached, ms", 100_001, false},
	{"cold on a kept connection, ms", 100_002, true},
	{"cached on a kept connection, ms", 100_002, true},
}

func runTTFB(ctx context.Context, o cdnbench.Options) (_ *cdnbench.Result, err error) {
	l, err := newLab("cdn-ttfb", o, Layout{Lossless: true, Sizes: []int64{100_001, 100_002}}, 3)
	if err != nil {
		return nil, err
	}
	defer closing(l, &err)
	kinds := []Kind{
		ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic"}),
		ndnpop(ndnConfig{strategy: "best-path", pipeline: "bbr"}),
		ndnpop(ndnConfig{strategy: "best-route", pipeline: "cubic", initCwnd: tcpInitial}),
	}
	kinds = append(kinds, atsKinds(o.Quick, false)...)
	err = l.each(ctx, jobs(kinds, func(ctx context.Context, t *trial) error {
		for _, q := range ttfbRequests {
			f, err := t.fetch(ctx, 10*time.Second, Fetch{Object: l.object(q.size), Kept: q.kept})
			if err != nil {
				return err
			}
			if f.Err == nil {
				t.add(q.metric, ms(f.First))
			}
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	l.Summarise()
	access := l.rtt(l.t.Access)
	path := map[string]time.Duration{
		"cold, ms":   l.rtt(l.t.Access, l.t.Mids[0], l.t.Origins[0][0]),
		"cached, ms": access,
	}
	for _, k := range kinds {
		for _, metric := range []string{"cold, ms", "cached, ms"} {
			p := ms(path[metric])
			if k.HTTP {
				continue
			}
			what := fmt.Sprintf("%s: %s, as a multiple of the round trip to the Data", k.Name, metric)
			l.Expect(what, "at most 1.1, discovery of the version included", l.median(k.Name, metric)/p, math.Inf(-1), 1.1)
		}
	}
	return l.Result, nil
}

// closing closes the lab when a scenario ends.
func closing(l *lab, err *error) {
	if e := l.close(); *err == nil {
		*err = e
	}
}
