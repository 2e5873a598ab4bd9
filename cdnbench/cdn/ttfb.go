//go:build linux

package cdn

import (
	"context"
	"math"
	"time"

	"ndnpop/cdnbench"
)

// The requests whose time to the first byte is measured.
var ttfbRequests = []struct {
	metric, label string
	size          int64
	kept          bool
}{
	{"cold, ms", "cold", 100_001, false},
	{"cached, ms", "cached", 100_001, false},
	{"cold on a kept connection, ms", "cold, kept", 100_002, true},
	{"cached on a kept connection, ms", "cached, kept", 100_002, true},
}

func runTTFB(ctx context.Context, o cdnbench.Options) (_ *cdnbench.Result, err error) {
	l, err := newLab("cdn-ttfb", o, Layout{Lossless: true, Sizes: []int64{100_001, 100_002}}, 3)
	if err != nil {
		return nil, err
	}
	defer closing(l, &err)
	err = l.each(ctx, jobs(ttfbKinds(o), func(ctx context.Context, t *trial) error {
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
	reportTTFB(l)
	return l.finish(), nil
}

func ttfbKinds(o cdnbench.Options) []Kind {
	kinds := []Kind{
		ours("failover"),
		ndnpop(ndnConfig{strategy: "failover", pipeline: "cubic"}),
		ndnpop(ndnConfig{strategy: "best-path", pipeline: "bbr"}),
		ndnpop(ndnConfig{strategy: "best-route", pipeline: "cubic", initCwnd: tcpInitial}),
		ndnd(),
	}
	return reduced(o, append(kinds, atsKinds(o.Quick, false)...))
}

func reportTTFB(l *lab) {
	l.describe("How long does the first byte take, from empty caches and from the edge's cache?",
		"The time counts from the first packet of the request to the first byte of content: a new connection is part of it, and so is the discovery of the newest version, "+
			"whose answer brings the beginning of the content along. For HTTP the first byte is that of the reply's header.")
	access := l.rtt(l.t.Access)
	cold := l.rtt(l.t.Access, l.t.Mids[0], l.t.Origins[0][0])
	for _, n := range l.side(false) {
		l.expectTime(n+": first byte, cold, over the round trip to the origin", "at most 1.1 of it, discovery of the version included; the paper has 50 to 135 ms for NDN and 100 to 230 ms for HTTP",
			l.median(n, "cold, ms")/ms(cold), math.Inf(-1), 1.1)
		l.expectTime(n+": first byte, cached, over the round trip to the edge", "at most 1.1 of it, discovery included",
			l.median(n, "cached, ms")/ms(access), math.Inf(-1), 1.1)
	}
	if fresh, any := l.fastest("cold, ms"); any {
		l.expectTime("first byte, cold, to that of HTTP over a fresh connection", "at most 1.1 P / (P + client-edge RTT), where P is the round trip to the origin",
			l.median(l.ours(), "cold, ms")/fresh, math.Inf(-1), 1.1*ms(cold)/ms(cold+access))
	}
	if fresh, any := l.fastest("cached, ms"); any {
		l.expectTime("first byte, cached, to that of HTTP over a fresh connection", "at most 1.1 P / (P + client-edge RTT), where P is the round trip to the edge",
			l.median(l.ours(), "cached, ms")/fresh, math.Inf(-1), 1.1*ms(access)/ms(2*access))
	}
	var labels, metrics []string
	for _, q := range ttfbRequests {
		labels, metrics = append(labels, q.label), append(metrics, q.metric)
		l.find(l.verdict(q.metric, q.metric, "ms"))
	}
	l.find("On a connection that is open HTTP has no handshake to wait for.", l.failed("cold, ms"))
	l.bars("ttfb", "Time to the first byte of content; less is better. ndnpop has no connections, so kept ones make no difference to it.", "time to the first byte, ms", labels, metrics)
}

// closing closes the lab when a scenario ends.
func closing(l *lab, err *error) {
	if e := l.close(); *err == nil {
		*err = e
	}
}
