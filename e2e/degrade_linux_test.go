package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ndnpop/cdnbench/emunet"
	"ndnpop/internal/testbin"
)

// TestReplicaDegrades: in the middle of a transfer the path to one of two
// replicas becomes slow and long, as in the paper of 2LCCM, between processes
// over emulated links. The rest comes from the other replica: by the network's
// choice, by hint, or because both are used anyway.
func TestReplicaDegrades(t *testing.T) {
	testbin.Need(t, emunet.Supported())
	file := randomFile(t, 12*mb, 4)
	for name, c := range map[string]struct {
		strategy string
		flags    []string
		switches int
	}{
		"network, cubic": {"nst", []string{"--two-level"}, 1},
		"network, bbr":   {"nst", []string{"--two-level", "-p", "bbr"}, 1},
		"hint, cubic":    {"best-route", []string{"--replicas", "/s2"}, 1},
		"both, bbr":      {"best-route", []string{"--replicas", "/s2", "--multi-source", "-p", "bbr"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			// A machine that is short of processors degrades paths too, and nst
			// leaves a replica that it makes silent before cat asks for that.
			again(t, fmt.Sprintf("%d to %d switches and 5 MB from the second replica", c.switches, 2*c.switches),
				func(t *testing.T) degraded { return degrade(t, file, c.strategy, c.flags) },
				func(d degraded) bool {
					return d.Switches >= c.switches && d.Switches <= 2*c.switches && d.second >= 5*mb
				})
		})
	}
}

// degraded is how a transfer went, and how many bytes came over the second
// replica's link.
type degraded struct {
	replicaSummary
	second int64
}

func degrade(t *testing.T, file, strategy string, flags []string) (d degraded) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	n, err := emunet.New(emunet.Options{Seed: 1})
	must(err)
	t.Cleanup(func() { must(n.Close()) })
	hosts := map[string]*emunet.Host{}
	for _, h := range []string{"edge", "s1", "s2"} {
		hosts[h], err = n.AddHost(h)
		must(err)
	}
	path := func(mbit int64, rtt time.Duration) emunet.Params {
		return emunet.Params{Rate: mbit * 1e6, Delay: rtt / 2, Queue: 300_000}
	}
	link := func(to string, p emunet.Params) *emunet.Link {
		l, err := n.AddLink(hosts["edge"], hosts[to], emunet.LinkConfig{AB: p, BA: p})
		must(err)
		return l
	}
	l1, l2 := link("s1", path(50, 20*time.Millisecond)), link("s2", path(40, 30*time.Millisecond))
	must(n.RouteAll())
	dir, err := os.MkdirTemp("", "e2e-")
	must(err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	conf := fmt.Sprintf("[[strategy]]\nprefix = \"/content\"\nstrategy = %q\n", strategy)
	route := func(prefix, face string, cost int) {
		conf += fmt.Sprintf("[[route]]\nprefix = %q\nface = %q\ncost = %d\n", prefix, face, cost)
	}
	for name, l := range map[string]*emunet.Link{"s1": l1, "s2": l2} {
		conf += fmt.Sprintf("[[face]]\nname = %q\nuri = \"udp4://%s:6363\"\n", name, l.B.Prefix.Addr())
	}
	route("/content", "s1", 1)
	route("/s2", "s2", 1)
	if strategy == "nst" {
		route("/content", "s2", 2)
	}
	edge := startIn(t, dir, hosts["edge"], conf)
	for _, h := range []string{"s1", "s2"} {
		node := startIn(t, dir, hosts[h], fmt.Sprintf("[network]\nproducer_regions = [\"/%s\"]\n", h))
		_, said := start(t, hosts[h], node.sock, "put", "/content/file", file, "--version", "1")
		testbin.Eventually(t, patience, "put to serve", func() bool { return said.Contains("fetch it with") })
	}
	out, stats := filepath.Join(dir, "out"), filepath.Join(dir, "stats.json")
	cat, _ := start(t, hosts["edge"], edge.sock, append([]string{"cat", "/content/file", "-o", out, "--stats", stats, "--progress", "never"}, flags...)...)
	testbin.Eventually(t, patience, "a third to be through", func() bool {
		c, err := l1.Counters(emunet.BA)
		must(err)
		return c.OutBytes > 4*mb
	})
	must(l1.SetBoth(path(8, 80*time.Millisecond)))
	if err := cat.Wait(); err != nil {
		t.Fatalf("cat: %v", err)
	}
	sameFile(t, out, file)
	b, err := os.ReadFile(stats)
	must(err)
	must(json.Unmarshal(b, &d))
	c, err := l2.Counters(emunet.BA)
	must(err)
	d.second = c.OutBytes
	t.Logf("%.2f s, %+v", d.Elapsed, d.Log)
	return d
}
