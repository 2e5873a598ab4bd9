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

// router is one machine of an emulated network: our forwarder with ndnd's
// routing daemon.
type router struct {
	host *emunet.Host
	sock string
	dir  string
	fw   *spawned
	dv   *spawned
}

// spawned is a process in a host.
type spawned struct {
	*emunet.Cmd
	out, err testbin.Output
}

// spawn starts a program in a host. It dies with the network.
func spawn(t *testing.T, h *emunet.Host, dir string, env []string, path string, args ...string) *spawned {
	t.Helper()
	p := &spawned{Cmd: h.Command(path, args...)}
	p.Dir, p.Env = dir, append(os.Environ(), env...)
	p.Stdout, p.Stderr = &p.out, &p.err
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			out, msg := p.out.String(), p.err.String()
			t.Logf("%s %v in %s:\n%s\n%s", filepath.Base(path), args, h.Name(), out[max(0, len(out)-3000):], msg[max(0, len(msg)-3000):])
		}
	})
	return p
}

func (r *router) unix() string { return "unix://" + r.sock }

// start starts the forwarder and then the routing daemon, whose neighbours
// are at the given addresses.
func (r *router) start(t *testing.T, neighbours ...string) {
	t.Helper()
	conf := filepath.Join(r.dir, "ndnpop.toml")
	writeFile(t, conf, fmt.Sprintf(`[log]
level = "debug"
format = "json"
[faces.udp]
listen = ["0.0.0.0:6363"]
[faces.tcp]
listen = []
[faces.unix]
path = %q
[admin]
listen = ""
[cs]
capacity = "0"
`, r.sock))
	r.fw = spawn(t, r.host, r.dir, nil, testbin.Ndnpop(t), "run", "-c", conf)
	testbin.Eventually(t, patience, "the forwarder of "+r.host.Name(), func() bool { return r.fw.err.Contains(`"message":"ready"`) })
	yml := fmt.Sprintf(`dv:
  network: /net
  router: /net/%s
  keychain: insecure
  advertise_interval: 1000
  router_dead_interval: 2000
  neighbors:
`, r.host.Name())
	for _, n := range neighbours {
		yml += fmt.Sprintf("    - uri: udp4://%s:6363\n", n)
	}
	dv := filepath.Join(r.dir, "dv.yml")
	writeFile(t, dv, yml)
	r.dv = spawn(t, r.host, r.dir, appEnv(t, r.unix()), testbin.Ndnd(t), "dv", "run", dv)
}

// passed is how many Data a forwarder has received.
func (r *router) passed(t *testing.T) uint64 {
	t.Helper()
	p, code := run(t, r.unix(), "ctl", "status", "--json")
	var s struct{ In struct{ Data uint64 } }
	if code != 0 || json.Unmarshal(p.Stdout.Bytes(), &s) != nil {
		t.Fatalf("ctl status ended with %d: %s%s", code, p.Stdout, p.Stderr)
	}
	return s.In.Data
}

// TestRouting: three forwarders in a triangle, each with ndnd's routing daemon
// beside it. A file that is published at one end is fetched at another; the
// link between them goes down in the middle, and after the daemons have found
// the way around, the transfer goes on.
func TestRouting(t *testing.T) {
	t.Parallel()
	testbin.Need(t, emunet.Supported())
	net, err := emunet.New(emunet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := net.Close(); err != nil {
			t.Error(err)
		}
	})
	routers := map[string]*router{}
	for _, name := range []string{"a", "b", "c"} {
		h, err := net.AddHost(name)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.MkdirTemp("", "e2e-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		routers[name] = &router{host: h, dir: dir, sock: filepath.Join(dir, "s")}
	}
	a, b, c := routers["a"], routers["b"], routers["c"]
	link := func(x, y *router) *emunet.Link {
		p := emunet.Params{Delay: 5 * time.Millisecond, Rate: 200_000_000, Queue: 500_000}
		l, err := net.AddLink(x.host, y.host, emunet.LinkConfig{AB: p, BA: p})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	ab, bc, ac := link(a, b), link(b, c), link(a, c)
	to := func(l *emunet.Link, far *router) string {
		if l.A.Host == far.host {
			return l.A.Prefix.Addr().String()
		}
		return l.B.Prefix.Addr().String()
	}
	a.start(t, to(ab, b), to(ac, c))
	b.start(t, to(ab, a), to(bc, c))
	c.start(t, to(bc, b), to(ac, a))

	file := randomFile(t, 20*mb, 30)
	// A client's route is what the forwarder tells the routing daemon of.
	serve(t, c.unix(), "/movie", file, "--expose")
	testbin.Eventually(t, 2*patience, "the route at the other end", func() bool {
		p, _ := run(t, a.unix(), "ctl", "fib", "list", "--json")
		return p.Stdout.Contains(`"/movie"`)
	})
	out := filepath.Join(t.TempDir(), "out")
	stats := out + ".stats"
	before := b.passed(t)
	start := a.passed(t)
	cat := ndnpop(t, a.unix(), "cat", "/movie", "-o", out, "--max-rate", "32mbit", "--stats", stats)
	testbin.Eventually(t, patience, "a tenth of the file", func() bool {
		return a.passed(t)-start > 20*mb/8000/10
	}, cat)
	around := b.passed(t) - before
	if around > 300 {
		t.Errorf("%d Data went around although the link was there", around)
	}
	if err := ac.Down(); err != nil {
		t.Fatal(err)
	}
	if code := cat.Wait(t, 4*patience); code != 0 {
		t.Fatalf("cat ended with %d: %s", code, cat.Stderr)
	}
	sameFile(t, out, file)
	s := readStats(t, stats)
	if !s.Complete || s.SHA256 != sha(t, file) {
		t.Errorf("%+v", s)
	}
	if n := b.passed(t) - before; n < 20*mb/8000/2 {
		t.Errorf("only %d Data went around", n)
	}
	t.Logf("longest gap %.2f s, %d timeouts", s.MaxGap, s.Timeouts)
}
