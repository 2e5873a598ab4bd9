package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ndnpop/internal/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.Main(m)) }

// patience is how long anything may take before a test gives up. It is not
// what anything should take.
const patience = 30 * time.Second

// nodeConf is what differs between forwarders.
type nodeConf struct {
	faces    []faceConf
	routes   []routeConf
	capacity string // of the content store; empty: the default
	udp6     bool   // also listen on [::1]
	extra    string // further TOML
}

type faceConf struct{ name, uri string }

type routeConf struct {
	prefix, face string
	cost         int
}

// node is a running forwarder of ours.
type node struct {
	*testbin.Proc
	dir      string
	conf     nodeConf
	sock     string // path of its Unix socket
	udp, tcp string // host:port of its listeners
	udp6     string // the same, if asked for
	admin    string // URL of its HTTP server
	bin      string // the program; empty: this module's
}

// startNode starts a forwarder on ports that the system chooses and waits
// until it is ready.
func startNode(t *testing.T, c nodeConf) *node {
	t.Helper()
	// A Unix socket's path may have about 100 bytes; the directory of a test
	// is often longer.
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := &node{dir: dir, conf: c, sock: filepath.Join(dir, "s"), udp: "127.0.0.1:0", tcp: "127.0.0.1:0"}
	n.start(t)
	return n
}

// restart starts a node again that has ended, with the same addresses.
func (n *node) restart(t *testing.T) {
	t.Helper()
	if n.Running() {
		t.Fatal("the node still runs")
	}
	n.start(t)
}

func (n *node) start(t *testing.T) {
	t.Helper()
	file := filepath.Join(n.dir, "ndnpop.toml")
	writeFile(t, file, n.toml())
	bin := n.bin
	if bin == "" {
		bin = testbin.Ndnpop(t)
	}
	n.Proc = testbin.Start(t, testbin.Cmd{Path: bin, Args: []string{"run", "-c", file}, Dir: n.dir})
	testbin.Eventually(t, patience, "the forwarder to be ready", func() bool {
		return n.Stderr.Contains(`"message":"ready"`)
	}, n.Proc)
	for line := range strings.Lines(n.Stderr.String()) {
		var l struct{ Message, URI, URL string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		switch {
		case l.Message == "listening" && strings.HasPrefix(l.URI, "udp4://"):
			n.udp = strings.TrimPrefix(l.URI, "udp4://")
		case l.Message == "listening" && strings.HasPrefix(l.URI, "udp6://"):
			n.udp6 = strings.TrimPrefix(l.URI, "udp6://")
		case l.Message == "listening" && strings.HasPrefix(l.URI, "tcp4://"):
			n.tcp = strings.TrimPrefix(l.URI, "tcp4://")
		case l.Message == "admin":
			n.admin = l.URL
		}
	}
	if strings.HasSuffix(n.udp, ":0") || strings.HasSuffix(n.tcp, ":0") || n.admin == "" {
		t.Fatalf("the log does not tell the addresses: %s", n.Stderr)
	}
}

func (n *node) toml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[log]\nlevel = \"debug\"\nformat = \"json\"\n")
	udp := fmt.Sprintf("%q", n.udp)
	if n.conf.udp6 {
		udp += ", \"[::1]:0\""
	}
	fmt.Fprintf(&b, "[faces.udp]\nlisten = [%s]\n[faces.tcp]\nlisten = [%q]\n[faces.unix]\npath = %q\n", udp, n.tcp, n.sock)
	fmt.Fprintf(&b, "[admin]\nlisten = \"127.0.0.1:0\"\n")
	if n.conf.capacity != "" {
		fmt.Fprintf(&b, "[cs]\ncapacity = %q\n", n.conf.capacity)
	}
	for _, f := range n.conf.faces {
		fmt.Fprintf(&b, "[[face]]\nname = %q\nuri = %q\n", f.name, f.uri)
	}
	for _, r := range n.conf.routes {
		fmt.Fprintf(&b, "[[route]]\nprefix = %q\nface = %q\ncost = %d\n", r.prefix, r.face, r.cost)
	}
	b.WriteString(n.conf.extra)
	return b.String()
}

// unix, udpURI and tcpURI are the URIs by which an application reaches the
// node.
func (n *node) unix() string   { return "unix://" + n.sock }
func (n *node) udpURI() string { return "udp4://" + n.udp }
func (n *node) tcpURI() string { return "tcp4://" + n.tcp }

// metrics reads the node's numbers, by name with labels.
func (n *node) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	resp, err := http.Get(n.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("metrics: %s, %v", resp.Status, err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		at := strings.LastIndexByte(line, ' ')
		if line[0] == '#' || at < 0 {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			t.Fatalf("metric %q: %v", line, err)
		}
		out[line[:at]] = v
	}
	return out
}

// metric reads one number; a name that does not exist fails the test.
func (n *node) metric(t *testing.T, name string) float64 {
	t.Helper()
	m := n.metrics(t)
	v, ok := m[name]
	if !ok {
		t.Fatalf("there is no metric %s", name)
	}
	return v
}

// ndnpop starts one of our commands that talks to a forwarder.
func ndnpop(t *testing.T, transport string, args ...string) *testbin.Proc {
	t.Helper()
	return testbin.Start(t, appCmd(t, transport, args...))
}

// appCmd is the command line of one of our applications. It finds neither a
// configuration nor keys of the person who runs the tests.
func appCmd(t *testing.T, transport string, args ...string) testbin.Cmd {
	t.Helper()
	return testbin.Cmd{Path: testbin.Ndnpop(t), Args: args, Env: appEnv(t, transport)}
}

func appEnv(t *testing.T, transport string) []string {
	return []string{"NDN_CLIENT_TRANSPORT=" + transport, "HOME=" + t.TempDir()}
}

// run runs one of our commands to its end.
func run(t *testing.T, transport string, args ...string) (*testbin.Proc, int) {
	t.Helper()
	return testbin.Run(t, appCmd(t, transport, args...), patience)
}

// serve publishes a file and waits until it can be fetched.
func serve(t *testing.T, transport, name, file string, flags ...string) *testbin.Proc {
	t.Helper()
	p := ndnpop(t, transport, append([]string{"put", name, file}, flags...)...)
	awaitServed(t, p)
	return p
}

// awaitServed waits until put has registered its prefix.
func awaitServed(t *testing.T, p *testbin.Proc) {
	t.Helper()
	testbin.Eventually(t, patience, "put to serve", func() bool { return p.Stderr.Contains("fetch it with") }, p)
}

// catStats are the fields of the summary that tests look at.
type catStats struct {
	Version         uint64
	Bytes           int64
	Segments        int64
	Interests       int64
	Retransmissions int64
	Timeouts        int64
	MaxGap          float64 `json:"max_gap_s"`
	SHA256          string
	Verified        bool
	Complete        bool
}

// fetch fetches an object into a file and returns the file and the summary.
func fetch(t *testing.T, transport, name string, flags ...string) (string, catStats) {
	t.Helper()
	dir := t.TempDir()
	out, stats := filepath.Join(dir, "out"), filepath.Join(dir, "stats.json")
	p, code := run(t, transport, append([]string{"cat", name, "-o", out, "--stats", stats}, flags...)...)
	if code != 0 {
		t.Fatalf("cat %s ended with %d: %s", name, code, p.Stderr)
	}
	return out, readStats(t, stats)
}

func readStats(t *testing.T, file string) (s catStats) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// randomFile makes a file of n bytes, always the same ones for a seed.
func randomFile(t *testing.T, n int64, seed byte) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.CopyN(f, rand.NewChaCha8([32]byte{seed}), n); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func sha(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sameFile fails the test unless two files have the same bytes.
func sameFile(t *testing.T, got, want string) {
	t.Helper()
	if sha(t, got) != sha(t, want) {
		gi, _ := os.Stat(got)
		wi, _ := os.Stat(want)
		t.Fatalf("%s (%d bytes) differs from %s (%d bytes)", got, gi.Size(), want, wi.Size())
	}
}

// sameBytes fails the test unless b is the content of the file.
func sameBytes(t *testing.T, b []byte, file string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, want) {
		t.Fatalf("%d bytes differ from the %d of %s", len(b), len(want), file)
	}
}

// long reports whether tests that take minutes were asked for.
func long() bool { return os.Getenv("NDNPOP_LONG") != "" }
