package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndnpop/internal/testbin"
)

// ndndFw is a running forwarder of ndnd.
type ndndFw struct {
	*testbin.Proc
	sock string
	udp  string // host:port
}

func (f *ndndFw) unix() string { return "unix://" + f.sock }

// startNdndFw starts ndnd's forwarder with a Unix socket and a UDP port.
func startNdndFw(t *testing.T) *ndndFw {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	// ndnd cannot be told to choose a port, so one is looked for.
	probe, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	f := &ndndFw{sock: filepath.Join(dir, "s"), udp: probe.LocalAddr().String()}
	probe.Close()
	_, port, err := net.SplitHostPort(f.udp)
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "ndnd.yml")
	writeFile(t, conf, fmt.Sprintf(`core:
  log_level: INFO
faces:
  udp: {enabled_unicast: true, enabled_multicast: false, port_unicast: %s}
  tcp: {enabled: false}
  unix: {enabled: true, socket_path: %s}
  websocket: {enabled: false}
fw: {threads: 1}
`, port, f.sock))
	f.Proc = testbin.Start(t, testbin.Cmd{Path: testbin.Ndnd(t), Args: []string{"fw", "run", conf}})
	testbin.Eventually(t, patience, "ndnd's forwarder", func() bool {
		c, err := net.Dial("unix", f.sock)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, f.Proc)
	return f
}

// ndnd starts one of ndnd's tools.
func ndnd(t *testing.T, transport string, args ...string) *testbin.Proc {
	t.Helper()
	return testbin.Start(t, testbin.Cmd{Path: testbin.Ndnd(t), Args: args, Env: appEnv(t, transport)})
}

// ndndPut publishes a file with ndnd's put.
func ndndPut(t *testing.T, transport, name, file string) *testbin.Proc {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	p := testbin.Start(t, testbin.Cmd{Path: testbin.Ndnd(t), Args: []string{"put", name}, Env: appEnv(t, transport), Stdin: in})
	awaitNdndRegistered(t, p)
	return p
}

func awaitNdndRegistered(t *testing.T, p *testbin.Proc) {
	t.Helper()
	testbin.Eventually(t, patience, "ndnd to register its prefix", func() bool {
		return p.Stderr.Contains("Registered route") || p.Stdout.Contains("Registered route")
	}, p)
}

// fetchWithNdnd fetches with ndnd's cat and compares with a file.
func fetchWithNdnd(t *testing.T, transport, name, file string) {
	t.Helper()
	p := ndnd(t, transport, "cat", name)
	if code := p.Wait(t, patience); code != 0 {
		t.Fatalf("ndnd cat ended with %d: %s", code, p.Stderr)
	}
	sameBytes(t, p.Stdout.Bytes(), file)
}

// TestNdndForwarder: our applications at ndnd's forwarder, also together with
// ndnd's.
func TestNdndForwarder(t *testing.T) {
	t.Parallel()
	fw := startNdndFw(t)
	file := randomFile(t, 5*mb+7, 20)
	t.Run("our put and cat", func(t *testing.T) {
		serve(t, fw.unix(), "/ours", file)
		out, s := fetch(t, fw.unix(), "/ours")
		sameFile(t, out, file)
		if !s.Complete {
			t.Errorf("%+v", s)
		}
		t.Logf("%+v", s)
	})
	t.Run("our put, ndnd's cat", func(t *testing.T) {
		serve(t, fw.unix(), "/mixed1", file)
		fetchWithNdnd(t, fw.unix(), "/mixed1", file)
	})
	t.Run("ndnd's put, our cat", func(t *testing.T) {
		ndndPut(t, fw.unix(), "/mixed2", file)
		out, _ := fetch(t, fw.unix(), "/mixed2")
		sameFile(t, out, file)
	})
	t.Run("our standard input", func(t *testing.T) {
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		c := appCmd(t, fw.unix(), "put", "/stdin", "-")
		c.Stdin = in
		awaitServed(t, testbin.Start(t, c))
		fetchWithNdnd(t, fw.unix(), "/stdin", file)
	})
}

// TestNdndTools: ndnd's applications at our forwarder. Over TCP they take
// themselves for remote hosts and register at /localhop, which is off.
func TestNdndTools(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	file := randomFile(t, 5*mb+7, 21)
	ndndPut(t, n.unix(), "/theirs", file)
	serve(t, n.unix(), "/ours", file)
	for name, uri := range map[string]string{"unix": n.unix(), "tcp": n.tcpURI()} {
		t.Run(name, func(t *testing.T) {
			fetchWithNdnd(t, uri, "/theirs", file)
			fetchWithNdnd(t, uri, "/ours", file)
			out, _ := fetch(t, uri, "/theirs")
			sameFile(t, out, file)
		})
	}
}

// TestNdndLink: a UDP link from our forwarder to ndnd's, which fragments to
// 1420 bytes and echoes PIT tokens of six bytes only.
func TestNdndLink(t *testing.T) {
	t.Parallel()
	fw := startNdndFw(t)
	n := startNode(t, nodeConf{
		capacity: "1MB",
		faces:    []faceConf{{"ndnd", "udp4://" + fw.udp}},
		routes:   []routeConf{{"/at-ndnd", "ndnd", 0}},
	})
	file := randomFile(t, 2*mb, 22)
	ndndPut(t, fw.unix(), "/at-ndnd", file)
	out, _ := fetch(t, n.unix(), "/at-ndnd")
	sameFile(t, out, file)
	fetchWithNdnd(t, n.unix(), "/at-ndnd", file)
	if !fw.Running() {
		t.Errorf("ndnd's forwarder has died: %s", fw.Stderr)
	}
}

// TestNdndPing: both pings with both servers, at both forwarders.
func TestNdndPing(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{"ours": startNode(t, nodeConf{}).unix(), "ndnd's": startNdndFw(t).unix()} {
		t.Run(name+" forwarder", func(t *testing.T) {
			awaitNdndRegistered(t, ndnd(t, at, "pingserver", "/theirs"))
			ours := ndnpop(t, at, "pingserver", "/ours")
			testbin.Eventually(t, patience, "our server to be registered", func() bool {
				p := ndnpop(t, at, "ping", "/ours", "-c", "1", "-o", "300")
				return p.Wait(t, patience) == 0
			}, ours)
			for _, server := range []string{"/ours", "/theirs"} {
				p, code := run(t, at, "ping", server, "-c", "3", "-i", "10")
				if code != 0 || strings.Count(p.Stdout.String(), "content from") != 3 {
					t.Errorf("our ping of %s ended with %d: %s%s", server, code, p.Stdout, p.Stderr)
				}
				q := ndnd(t, at, "ping", server, "-c", "3", "-i", "10", "-t", "500")
				if code := q.Wait(t, patience); code != 0 || strings.Count(q.Stdout.String(), "content from") != 3 {
					t.Errorf("ndnd's ping of %s ended with %d: %s%s", server, code, q.Stdout, q.Stderr)
				}
			}
		})
	}
}
