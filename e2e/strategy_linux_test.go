package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ndnpop/cdnbench/emunet"
	"ndnpop/internal/testbin"
)

// realtime gives processes a real-time priority. Who may not measures the
// machine's other work as well, and has several attempts. Together they should
// leave the processors some time: the kernel stops real-time processes for 50 ms
// in a second that they would fill.
func realtime(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := setPolicy(pid, unix.SchedAttr{Policy: unix.SCHED_RR, Priority: 10}); err != nil {
			t.Logf("no real-time priority: %v", err)
			return
		}
	}
}

// setPolicy sets the scheduling policy of all threads of a process; those that
// come later have their creator's.
func setPolicy(pid int, a unix.SchedAttr) error {
	a.Size = unix.SizeofSchedAttr
	seen := map[int]bool{}
	for again := true; again; {
		again = false
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		for _, e := range tasks {
			tid, err := strconv.Atoi(e.Name())
			if err != nil || seen[tid] {
				continue
			}
			seen[tid], again = true, true
			if err := unix.SchedSetAttr(tid, &a, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// hostNode is a forwarder in a host of an emulated network.
type hostNode struct {
	t    *testing.T
	h    *emunet.Host
	sock string
	cmd  *emunet.Cmd
	log  *testbin.Output
}

// startIn starts a forwarder that listens on UDP port 6363 of all the host's
// addresses.
func startIn(t *testing.T, dir string, h *emunet.Host, conf string) *hostNode {
	t.Helper()
	return startAt(t, dir, h, "0.0.0.0:6363", conf)
}

// startAt starts a forwarder that listens on UDP at an address.
func startAt(t *testing.T, dir string, h *emunet.Host, listen, conf string) *hostNode {
	t.Helper()
	n := &hostNode{t: t, h: h, sock: filepath.Join(dir, h.Name()+".s")}
	file := filepath.Join(dir, h.Name()+".toml")
	writeFile(t, file, fmt.Sprintf("[log]\nformat = \"json\"\n[faces.udp]\nlisten = [%q]\n[faces.tcp]\nlisten = []\n[faces.unix]\npath = %q\n[admin]\nlisten = \"\"\n[cs]\ncapacity = \"1MB\"\n%s", listen, n.sock, conf))
	n.cmd, n.log = start(t, h, "", "run", "-c", file)
	testbin.Eventually(t, patience, "the forwarder in "+h.Name(), func() bool { return n.log.Contains(`"message":"ready"`) })
	return n
}

// start starts one of our commands in a host.
func start(t *testing.T, h *emunet.Host, sock string, args ...string) (*emunet.Cmd, *testbin.Output) {
	t.Helper()
	c, out := h.Command(testbin.Ndnpop(t), args...), new(testbin.Output)
	c.Env = append(os.Environ(), appEnv(t, "unix://"+sock)...)
	c.Stderr = out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s in %s: %s", strings.Join(args, " "), h.Name(), out)
		}
	})
	return c, out
}

// TestBlackHoleIsTransparent: the link to the intermediate that serves a file
// swallows everything from now on and tells nobody. The edge notices the
// silence; the consumer repeats nothing and waits at most 60 ms, four RTTs and
// 20 ms, longer than ever.
func TestBlackHoleIsTransparent(t *testing.T) {
	testbin.Need(t, emunet.Supported())
	file := randomFile(t, survivor, 8)
	transparent(t, 60*time.Millisecond, func(t *testing.T, swallow bool) failoverStats { return blackHoleOnce(t, file, swallow) })
}

func blackHoleOnce(t *testing.T, file string, swallow bool) failoverStats {
	const name = "/hole/f"
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
	for _, h := range []string{"edge", "mid0", "mid1", "origin"} {
		hosts[h], err = n.AddHost(h)
		must(err)
	}
	// 2.5 ms each way on each of two links: 10 ms from the edge to the origin
	// and back.
	p := emunet.Params{Delay: 2500 * time.Microsecond}
	link := func(a, b string) *emunet.Link {
		l, err := n.AddLink(hosts[a], hosts[b], emunet.LinkConfig{AB: p, BA: p})
		must(err)
		return l
	}
	first, second := link("edge", "mid0"), link("edge", "mid1")
	up := []*emunet.Link{link("mid0", "origin"), link("mid1", "origin")}
	must(n.RouteAll())
	dir, err := os.MkdirTemp("", "e2e-")
	must(err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	via := func(name string, l *emunet.Link, cost int) string {
		return fmt.Sprintf("[[face]]\nname = %q\nuri = \"udp4://%s:6363\"\n[[route]]\nprefix = \"/hole\"\nface = %q\ncost = %d\n", name, l.B.Prefix.Addr(), name, cost)
	}
	origin := startIn(t, dir, hosts["origin"], "")
	mids := []*hostNode{startIn(t, dir, hosts["mid0"], via("origin", up[0], 10)), startIn(t, dir, hosts["mid1"], via("origin", up[1], 10))}
	edge := startIn(t, dir, hosts["edge"], via("mid0", first, 10)+via("mid1", second, 20)+"[[strategy]]\nprefix = \"/hole\"\nstrategy = \"failover\"\n")
	put, said := start(t, hosts["origin"], origin.sock, "put", name, file)
	testbin.Eventually(t, patience, "put to serve", func() bool { return said.Contains("fetch it with") })

	out, stats := filepath.Join(dir, "out"), filepath.Join(dir, "stats.json")
	cat, _ := start(t, hosts["edge"], edge.sock, "cat", name, "-o", out, "--stats", stats, "--pacing", "100mbit", "--progress", "never")
	realtime(t, os.Getpid(), origin.cmd.Process.Pid, mids[0].cmd.Process.Pid, mids[1].cmd.Process.Pid, edge.cmd.Process.Pid, put.Process.Pid, cat.Process.Pid)
	t.Cleanup(func() { must(setPolicy(os.Getpid(), unix.SchedAttr{Policy: unix.SCHED_NORMAL})) })
	testbin.Eventually(t, patience, "a third to be through", func() bool {
		c, err := first.Counters(emunet.BA)
		must(err)
		return c.OutBytes > survivor/3
	})
	if swallow {
		must(first.BlackHole())
	}
	if err := cat.Wait(); err != nil {
		t.Fatalf("cat: %v", err)
	}
	if err := n.Verify(); err != nil {
		t.Log(err)
	}
	sameFile(t, out, file)
	return readFailoverStats(t, stats)
}
