package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndnpop/internal/testbin"
)

const mb = 1 << 20

// TestOneForwarder: put and cat meet at one forwarder, over each transport.
func TestOneForwarder(t *testing.T) {
	n := startNode(t, nodeConf{})
	file := randomFile(t, 5*mb+123, 1)
	for name, uri := range map[string]string{"unix": n.unix(), "tcp": n.tcpURI()} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, uri, "/one/"+name, file)
			out, s := fetch(t, uri, "/one/"+name)
			sameFile(t, out, file)
			if s.SHA256 != sha(t, file) || !s.Complete || !s.Verified || s.Bytes != 5*mb+123 {
				t.Errorf("%+v", s)
			}
			// Without -o the same bytes come out in order.
			c, code := run(t, uri, "cat", "/one/"+name)
			if code != 0 {
				t.Fatal(c.Stderr)
			}
			sameBytes(t, c.Stdout.Bytes(), file)
			if code := p.Stop(t, patience); code != 0 {
				t.Errorf("put ended with %d on SIGTERM", code)
			}
		})
	}
	// Over UDP a consumer is a remote host and may not register; it fetches.
	t.Run("udp", func(t *testing.T) {
		serve(t, n.unix(), "/one/udp", file)
		out, _ := fetch(t, n.udpURI(), "/one/udp")
		sameFile(t, out, file)
	})
	if code := n.Stop(t, patience); code != 0 {
		t.Errorf("the forwarder ended with %d on SIGTERM", code)
	}
	if _, err := os.Stat(n.sock); !os.IsNotExist(err) {
		t.Errorf("the socket file is still there: %v", err)
	}
}

// TestChain: two forwarders, the route between them from the configuration,
// 50 MB.
func TestChain(t *testing.T) {
	for _, scheme := range []string{"udp4", "tcp4"} {
		t.Run(scheme, func(t *testing.T) {
			origin := startNode(t, nodeConf{capacity: "1MB"})
			uri := origin.udpURI()
			if scheme == "tcp4" {
				uri = origin.tcpURI()
			}
			edge := startNode(t, nodeConf{
				capacity: "1MB",
				faces:    []faceConf{{"origin", uri}},
				routes:   []routeConf{{"/chain", "origin", 10}},
			})
			file := randomFile(t, 50*mb, 2)
			serve(t, origin.unix(), "/chain/f", file)
			out, s := fetch(t, edge.unix(), "/chain/f")
			sameFile(t, out, file)
			t.Logf("%d Interests, %d retransmissions, %d timeouts", s.Interests, s.Retransmissions, s.Timeouts)
			// Nothing was lost in a queue or a socket buffer on the way.
			for _, n := range []*node{origin, edge} {
				if v := n.metric(t, `ndnpop_packets_dropped_total{reason="face_queue"}`); v != 0 {
					t.Errorf("%v packets dropped from a full queue", v)
				}
			}
		})
	}
}

// TestStdin: standard input is served while it comes.
func TestStdin(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	file := randomFile(t, 3*mb, 3)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	c := appCmd(t, n.unix(), "put", "/stdin/f", "-")
	c.Stdin = r
	p := testbin.Start(t, c)
	if _, err := w.Write(b[:mb]); err != nil {
		t.Fatal(err)
	}
	awaitServed(t, p)
	// The consumer starts while two thirds are still to come.
	cat := ndnpop(t, n.unix(), "cat", "/stdin/f")
	testbin.Eventually(t, patience, "the first bytes", func() bool { return len(cat.Stdout.Bytes()) > 500_000 }, cat, p)
	if _, err := w.Write(b[mb:]); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if code := cat.Wait(t, patience); code != 0 {
		t.Fatal(cat.Stderr)
	}
	sameBytes(t, cat.Stdout.Bytes(), file)
}

// TestRanges: bytes as in HTTP, and whole segments, fetching only what holds
// them.
func TestRanges(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{capacity: "0"})
	file := randomFile(t, 100_000, 4)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, n.unix(), "/range/f", file, "-s", "1000")
	for _, c := range []struct {
		flag, value string
		want        []byte
		interests   float64 // at most, with one or two for the metadata
	}{
		{"--range", "0-999", b[:1000], 3},
		{"--range", "500-1500", b[500:1501], 4},
		{"--range", "99999-", b[99999:], 3},
		{"--range", "-1", b[99999:], 3},
		{"--range", "0-", b, 110},
		{"--range", "99000-200000", b[99000:], 3},
		{"--segments", "0-0", b[:1000], 3},
		{"--segments", "10-12", b[10_000:13_000], 5},
		{"--segments", "99-99", b[99_000:], 3},
	} {
		t.Run(strings.TrimLeft(c.flag, "-")+c.value, func(t *testing.T) {
			before := n.metric(t, `ndnpop_packets_total{direction="in",kind="interest"}`)
			p, code := run(t, n.unix(), "cat", "/range/f", c.flag, c.value)
			if code != 0 || !bytes.Equal(p.Stdout.Bytes(), c.want) {
				t.Fatalf("exit %d, %d bytes, want %d: %s", code, len(p.Stdout.Bytes()), len(c.want), p.Stderr)
			}
			if got := n.metric(t, `ndnpop_packets_total{direction="in",kind="interest"}`) - before; got > c.interests {
				t.Errorf("%v Interests, at most %v were needed", got, c.interests)
			}
		})
	}
	p, code := run(t, n.unix(), "cat", "/range/f", "--range", "200000-")
	if code == 0 || len(p.Stdout.Bytes()) != 0 {
		t.Errorf("a range beyond the end: exit %d, %d bytes", code, len(p.Stdout.Bytes()))
	}
}

// TestResume: cat is killed in mid-transfer and goes on from its part file.
func TestResume(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{capacity: "0"})
	file := randomFile(t, 20*mb, 5)
	serve(t, n.unix(), "/resume/f", file)
	out := filepath.Join(t.TempDir(), "out")
	slow := ndnpop(t, n.unix(), "cat", "/resume/f", "-o", out, "--max-rate", "40mbit")
	testbin.Eventually(t, patience, "a quarter of the file", func() bool {
		return n.metric(t, `ndnpop_packets_total{direction="out",kind="data"}`) > 20*mb/8000/4
	}, slow)
	slow.Kill()
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Fatalf("an incomplete file has the final name: %v", err)
	}
	if _, err := os.Stat(out + ".part"); err != nil {
		t.Fatal(err)
	}
	before := n.metric(t, `ndnpop_packets_total{direction="out",kind="data"}`)
	stats := filepath.Join(t.TempDir(), "stats")
	p, code := run(t, n.unix(), "cat", "/resume/f", "-o", out, "--resume", "--stats", stats)
	if code != 0 {
		t.Fatal(p.Stderr)
	}
	sameFile(t, out, file)
	if s := readStats(t, stats); !s.Complete || s.SHA256 != sha(t, file) {
		t.Errorf("%+v", s)
	}
	again := n.metric(t, `ndnpop_packets_total{direction="out",kind="data"}`) - before
	if all := float64(20 * mb / 8000); again > all*9/10 {
		t.Errorf("the second run fetched %v of %v segments: it did not go on", again, all)
	}
	if rest, _ := filepath.Glob(out + ".*"); len(rest) != 0 {
		t.Errorf("left behind: %v", rest)
	}
}

// TestResumeRefusesAnotherVersion: what was begun from one version is not
// completed from another.
func TestResumeRefusesAnotherVersion(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{capacity: "0"})
	p := serve(t, n.unix(), "/v/f", randomFile(t, 10*mb, 6), "--version", "1")
	out := filepath.Join(t.TempDir(), "out")
	slow := ndnpop(t, n.unix(), "cat", "/v/f", "-o", out, "--max-rate", "20mbit")
	testbin.Eventually(t, patience, "a part", func() bool {
		i, err := os.Stat(out + ".part")
		return err == nil && i.Size() > 0 && n.metric(t, `ndnpop_packets_total{direction="out",kind="data"}`) > 100
	}, slow)
	slow.Kill()
	p.Stop(t, patience)
	serve(t, n.unix(), "/v/f", randomFile(t, 10*mb, 7), "--version", "2")
	c, code := run(t, n.unix(), "cat", "/v/f", "-o", out, "--resume")
	if code == 0 || !c.Stderr.Contains("v=1") || !c.Stderr.Contains("v=2") {
		t.Errorf("exit %d, and the message must name both versions: %s", code, c.Stderr)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Error("a file made of two versions")
	}
}

// TestForwarderRestart: a forwarder between consumer and producer dies and
// comes back; the transfer goes on (INTEROP 15).
func TestForwarderRestart(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"udp4", "tcp4"} {
		t.Run(scheme, func(t *testing.T) {
			origin := startNode(t, nodeConf{capacity: "0"})
			file := randomFile(t, 20*mb, 8)
			serve(t, origin.unix(), "/restart/f", file)
			uri := origin.udpURI()
			if scheme == "tcp4" {
				uri = origin.tcpURI()
			}
			middle := startNode(t, nodeConf{capacity: "0", faces: []faceConf{{"up", uri}}, routes: []routeConf{{"/restart", "up", 0}}})
			uri = middle.udpURI()
			if scheme == "tcp4" {
				uri = middle.tcpURI()
			}
			edge := startNode(t, nodeConf{capacity: "0", faces: []faceConf{{"up", uri}}, routes: []routeConf{{"/restart", "up", 0}}})

			dir := t.TempDir()
			out, stats := filepath.Join(dir, "out"), filepath.Join(dir, "stats")
			cat := ndnpop(t, edge.unix(), "cat", "/restart/f", "-o", out, "--max-rate", "80mbit", "--stats", stats)
			testbin.Eventually(t, patience, "some Data", func() bool {
				return edge.metric(t, `ndnpop_packets_total{direction="in",kind="data"}`) > 500
			}, cat)
			middle.Kill()
			middle.restart(t)
			if code := cat.Wait(t, 2*patience); code != 0 {
				t.Fatalf("cat ended with %d: %s", code, cat.Stderr)
			}
			sameFile(t, out, file)
			if s := readStats(t, stats); !s.Complete {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestStaleSocket: the socket file of a dead forwarder is replaced, that of a
// live one refused.
func TestStaleSocket(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	n.Kill()
	if _, err := os.Stat(n.sock); err != nil {
		t.Fatalf("SIGKILL leaves the socket file, or this test shows nothing: %v", err)
	}
	n.restart(t)
	other := filepath.Join(t.TempDir(), "other.toml")
	writeFile(t, other, fmt.Sprintf("[faces.udp]\nlisten = []\n[faces.tcp]\nlisten = []\n[admin]\nlisten = \"\"\n[faces.unix]\npath = %q\n", n.sock))
	p, code := testbin.Run(t, testbin.Cmd{Path: testbin.Ndnpop(t), Args: []string{"run", "-c", other}}, patience)
	if code != 1 || !p.Stderr.Contains(n.sock) {
		t.Errorf("exit %d: %s", code, p.Stderr)
	}
	if !p.Stderr.Contains(fmt.Sprint(n.Pid())) {
		t.Errorf("the message does not name the owner, process %d: %s", n.Pid(), p.Stderr)
	}
	// The live one is unharmed.
	serve(t, n.unix(), "/stale/f", randomFile(t, 1000, 9))
	fetch(t, n.unix(), "/stale/f")
}

// TestPing: our ping and our ping server.
func TestPing(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	s := ndnpop(t, n.unix(), "pingserver", "/pp")
	awaitRoute(t, n, "/pp/ping", s)
	p, code := run(t, n.unix(), "ping", "/pp", "-c", "3", "-i", "10")
	if code != 0 || strings.Count(p.Stdout.String(), "content from") != 3 {
		t.Errorf("exit %d: %s%s", code, p.Stdout, p.Stderr)
	}
	p, code = run(t, n.unix(), "ping", "/none", "-c", "2", "-i", "10", "-o", "200")
	if code != 5 {
		t.Errorf("exit %d, not 5, when nobody answers: %s%s", code, p.Stdout, p.Stderr)
	}
}

// awaitRoute waits until the forwarder has a route for a prefix, by its log.
func awaitRoute(t *testing.T, n *node, prefix string, procs ...*testbin.Proc) {
	t.Helper()
	testbin.Eventually(t, patience, "a route for "+prefix, func() bool {
		for line := range strings.Lines(n.Stderr.String()) {
			if strings.Contains(line, "route added") && strings.Contains(line, fmt.Sprintf("%q", prefix)) {
				return true
			}
		}
		return false
	}, procs...)
}
