package e2e

import (
	"encoding/json"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ndnpop/internal/testbin"
)

// deaf is a UDP address at which somebody is there but never answers.
func deaf(t *testing.T) string {
	t.Helper()
	sock, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sock.Close() })
	return "udp4://" + sock.LocalAddr().String()
}

// session runs management commands one after the other. Each has to end with
// its code and print what matches its patterns; $FACE in a command stands for
// what the last (\d+) of a pattern matched, and so does FACE in a pattern.
type session struct {
	*testing.T
	run  func(args ...string) (*testbin.Proc, int)
	face string
}

func (s *session) do(line string, code int, patterns ...string) {
	s.Helper()
	p, got := s.run(strings.Fields(strings.ReplaceAll(line, "$FACE", s.face))...)
	out := p.Stdout.String() + p.Stderr.String()
	if got != code {
		s.Fatalf("%s ended with %d, not %d: %s", line, got, code, out)
	}
	for _, want := range patterns {
		re := regexp.MustCompile(strings.ReplaceAll(want, "FACE", s.face))
		m := re.FindStringSubmatch(out)
		if m == nil {
			s.Errorf("%s: nothing matches %s in\n%s", line, re, out)
		} else if len(m) > 1 {
			s.face = m[1]
		}
	}
}

// TestNdndManages: every sub-command of "ndnd fw" that manages, at our
// forwarder.
func TestNdndManages(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	far, other := deaf(t), deaf(t)
	s := &session{T: t, run: func(args ...string) (*testbin.Proc, int) {
		p := ndnd(t, n.unix(), append([]string{"fw"}, args...)...)
		return p, p.Wait(t, patience)
	}}
	s.do("status", 0, "General NFD status", `nFibEntries=[1-9]`, `version=\S*\d`)
	s.do("face-list", 0, `faceid=\d+ remote=(?:fd|unix)://`, `(?:persistency|flags)`)
	s.do("face-create remote="+far, 0, "Status=200", `FaceId=(\d+)`, `FacePersistency=persistent`, "Uri="+far, "LocalUri=udp4://127.0.0.1:")
	// The same again is 409, with the face that is there.
	s.do("face-create remote="+far, 1, "Status=409", `FaceId=FACE`)
	s.do("face-create remote="+far+" persistency=permanent mtu=1400", 1, "Status=409", `FaceId=FACE`)
	s.do("face-create remote=ftp://x", 1, "Status=4")
	s.do("face-list", 0, "faceid=FACE remote="+far)
	s.do("route-add prefix=/by/id face=$FACE cost=7", 0, "Status=200", "Cost=7", "FaceId=FACE", "Name=/by/id", "Origin=static")
	s.do("route-add prefix=/by/uri face="+far+" origin=65 expires=600000", 0, "Status=200", "FaceId=FACE", "Name=/by/uri")
	s.do("route-add prefix=/own", 0, "Status=200", "Name=/own")
	s.do("route-add prefix=/none face=999999", 1, "Status=41?0?")
	s.do("route-list", 0, `prefix=/by/id nexthop=FACE origin=static cost=7 .*expires=never`, `prefix=/by/uri nexthop=FACE origin=client cost=0 .*expires=\d+`)
	s.do("fib-list", 0, `/by/id nexthops=\{faceid=FACE \(cost=7\)\}`, `/by/uri nexthops`)
	s.do("route-remove prefix=/by/id face="+far, 0, "Status=200")
	s.do("route-remove prefix=/by/id face=$FACE", 0, "Status=200") // what is not there is gone
	if p, _ := s.run("route-list"); p.Stdout.Contains("/by/id") {
		t.Errorf("the route is still there: %s", p.Stdout)
	}
	s.do("cs-info", 0, `capacity=\d+`, "admit=true", "serve=true", `nEntries=\d+`)
	s.do("strategy-list", 0, `prefix=/ strategy=/localhost/nfd/strategy/best-route/v=5`)
	s.do("strategy-set prefix=/by strategy=/localhost/nfd/strategy/multicast", 0, "Status=200", `Strategy=.*multicast/v=\d`)
	s.do("strategy-list", 0, `prefix=/by strategy=/localhost/nfd/strategy/multicast/v=\d`)
	s.do("strategy-set prefix=/by strategy=/localhost/nfd/strategy/nonsense", 1, "Status=404")
	s.do("strategy-unset prefix=/by", 0, "Status=200")
	if p, _ := s.run("strategy-list"); p.Stdout.Contains("prefix=/by ") {
		t.Errorf("the strategy is still set: %s", p.Stdout)
	}
	s.do("face-destroy face="+far, 0, "Status=200", "FaceId=FACE")
	if p, _ := s.run("face-list"); p.Stdout.Contains(far) {
		t.Errorf("the face is still there: %s", p.Stdout)
	}
	if p, _ := s.run("route-list"); p.Stdout.Contains("/by/uri") {
		t.Errorf("a route to a face that is gone: %s", p.Stdout)
	}
	s.do("face-create remote="+other+" persistency=permanent", 0, `FaceId=(\d+)`, "FacePersistency=permanent")
	s.do("face-destroy face=$FACE", 0, "Status=200")
	s.do("face-destroy face=$FACE", 0, "Status=200")
}

// TestManageNdnd: our ctl at ndnd's forwarder.
func TestManageNdnd(t *testing.T) {
	t.Parallel()
	fw := startNdndFw(t)
	far := deaf(t)
	s := &session{T: t, run: func(args ...string) (*testbin.Proc, int) {
		return run(t, fw.unix(), append([]string{"ctl"}, args...)...)
	}}
	s.do("status", 0, `(?i)fib`)
	s.do("status --json", 0, `"fib_entries": ?\d`)
	s.do("face list", 0, `unix://|fd://`)
	s.do("face create "+far+" --persistency permanent", 0, `(\d+)`)
	s.do("face list --json", 0, `"remote": ?"`+far)
	s.do("face update "+far+" --reliability on", 1, "did not turn reliability on")
	s.do("face update "+far+" --congestion-marking off", 0)
	s.do("route add /ctl "+far+" --cost 10", 0)
	s.do("route list", 0, `/ctl\s`)
	s.do("fib list", 0, `/ctl\s`)
	s.do("route add /ctl 99999", 1, "face 99999 does not exist")
	s.do("strategy list", 0, "best-route")
	s.do("strategy set /ctl multicast", 0)
	s.do("strategy list", 0, `/ctl\s+\S*multicast`)
	s.do("strategy unset /ctl", 0)
	s.do("cs info", 0, `(?i)capacity`)
	s.do("route remove /ctl "+far, 0)
	s.do("face destroy "+far, 0)
	s.do("face destroy "+far, 1, "does not exist")
	// What ndnd lacks is told, and soon.
	s.do("cs erase /ctl", 5, "no answer")
	for _, args := range []string{"events", "strategy trace /ctl", "strategy list --available", "nst /ctl"} {
		s.do(args, 1, "501", "this forwarder does not have it")
	}
}

// TestFaceEvents: ctl events tells of everything that happens to a face, in
// order: it comes, its peer goes and comes back, it is destroyed.
func TestFaceEvents(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conns := make(chan net.Conn, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(conns)
				return
			}
			conns <- c
		}
	}()
	events := ndnpop(t, n.unix(), "ctl", "events", "--json")
	ctl := func(args ...string) {
		t.Helper()
		if p, code := run(t, n.unix(), append([]string{"ctl", "face"}, args...)...); code != 0 {
			t.Fatalf("%v ended with %d: %s", args, code, p.Stderr)
		}
	}
	// Whether the command listens already cannot be seen from outside.
	other := deaf(t)
	testbin.Eventually(t, patience, "the first event", func() bool {
		ctl("create", other)
		ctl("destroy", other)
		return events.Stdout.Contains("destroyed")
	}, events)
	uri := "tcp4://" + l.Addr().String()
	told := func() (list []string) {
		for line := range strings.Lines(events.Stdout.String()) {
			var e struct{ Event, Remote, Persistency string }
			if err := json.Unmarshal([]byte(line), &e); err != nil && strings.HasSuffix(line, "\n") {
				t.Fatalf("%q: %v", line, err)
			}
			if e.Remote == uri && e.Persistency == "permanent" {
				list = append(list, e.Event)
			}
		}
		return list
	}
	expect := func(want ...string) {
		t.Helper()
		testbin.Eventually(t, patience, "the events "+strings.Join(want, ", "), func() bool { return len(told()) >= len(want) }, events)
		if got := told(); !slices.Equal(got, want) {
			t.Fatalf("told %v, want %v", got, want)
		}
	}
	ctl("create", uri, "--persistency", "permanent")
	c := <-conns
	expect("created")
	c.Close()
	c = <-conns
	defer c.Close()
	expect("created", "down", "up")
	ctl("destroy", uri)
	expect("created", "down", "up", "destroyed")
	if code := events.Stop(t, patience); code != 0 {
		t.Errorf("events ended with %d", code)
	}
}
