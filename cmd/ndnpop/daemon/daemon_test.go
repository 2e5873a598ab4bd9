package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ndnpop/cmd/ndnpop/config"
	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/face/udp"
	"ndnpop/fw/run"
	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/strategies"
)

const patience = 10 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// buffer is a log that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func builtin(t testing.TB) *strategy.Set {
	t.Helper()
	set, err := strategy.NewSet(strategies.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func parse(t testing.TB, text string) *config.Config {
	t.Helper()
	c, err := config.Parse([]byte(text), config.Default(""), Known(builtin(t)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func startDaemon(t testing.TB, text string) (*Daemon, *buffer) {
	t.Helper()
	log := &buffer{}
	d, err := Start(parse(t, text), Options{Strategies: builtin(t), Log: NewLog(log, "json"), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return d, log
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestAdminOfIPv4: 0.0.0.0 opens nothing to IPv6.
func TestAdminOfIPv4(t *testing.T) {
	_, port, err := net.SplitHostPort(free(t))
	if err != nil {
		t.Fatal(err)
	}
	_, log := startDaemon(t, fmt.Sprintf("faces.unix.path = \"\"\nfaces.udp.listen = []\nfaces.tcp.listen = []\nadmin.listen = \"0.0.0.0:%s\"\n", port))
	if !strings.Contains(log.String(), "http://0.0.0.0:"+port) {
		t.Error(log.String())
	}
}

// quiet is a configuration without listeners.
const quiet = "faces.udp.listen = []\nfaces.tcp.listen = []\nadmin.listen = \"\"\n"

func TestListenersAndMetrics(t *testing.T) {
	sock, admin := filepath.Join(t.TempDir(), "dir", "nfd.sock"), free(t)
	udpAddr, tcpAddr := free(t), free(t)
	d, log := startDaemon(t, fmt.Sprintf(`
faces.unix.path = %q
faces.udp.listen = [%q]
faces.tcp.listen = [%q]
admin.listen = %q
[[face]]
uri = "udp4://127.0.0.1:9"
name = "peer"
[[route]]
prefix = "/cdn"
face = "peer"
cost = 7
`, sock, udpAddr, tcpAddr, admin))
	for _, uri := range []string{"udp4://" + udpAddr, "tcp4://" + tcpAddr, "unix://" + sock, "http://" + admin, `"ready"`} {
		if !strings.Contains(log.String(), uri) {
			t.Errorf("the log does not say %s:\n%s", uri, log)
		}
	}
	get := func(path string) (int, string) {
		r, err := http.Get("http://" + admin + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(b)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := get(path); code != 200 || body != "ok\n" {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	if code, _ := get("/debug/pprof/"); code != 404 {
		t.Errorf("profiles are served: %d", code)
	}
	_, m := get("/metrics")
	for _, want := range []string{
		`ndnpop_face_packets_total{direction="in",face="256",kind="data",name="peer",remote="udp4://127.0.0.1:9"} 0`,
		`ndnpop_faces{persistency="permanent",scheme="udp4"} 1`,
		"ndnpop_rib_routes 1",
		"ndnpop_cs_capacity_bytes 2.68435456e+08",
		"go_goroutines",
	} {
		if !strings.Contains(m, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	d.Stop()
	if _, err := os.Lstat(sock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket file left: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestEverythingInTheWayIsNamed(t *testing.T) {
	udpSock, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udpSock.Close()
	tcpSock, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcpSock.Close()
	sock := filepath.Join(t.TempDir(), "s")
	startDaemon(t, quiet+fmt.Sprintf("faces.unix.path = %q", sock))

	c := parse(t, fmt.Sprintf("faces.unix.path = %q\nfaces.udp.listen = [%q]\nfaces.tcp.listen = [%q, \"192.0.2.1:6363\"]\nadmin.listen = \"\"\n",
		sock, udpSock.LocalAddr(), tcpSock.Addr()))
	_, err = Start(c, Options{Strategies: builtin(t), Log: NewLog(io.Discard, "json")})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{
		"UDP " + udpSock.LocalAddr().String() + " is in use", "faces.udp.listen",
		"TCP " + tcpSock.Addr().String() + " is in use", "faces.tcp.listen",
		"192.0.2.1:6363 is no address of this machine",
		fmt.Sprintf("process %d already listens on %s", os.Getpid(), sock), "faces.unix.path",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if _, err := os.Lstat(sock); err != nil {
		t.Errorf("the socket of the running forwarder is gone: %v", err)
	}
}

func TestUnixSocketNotAllowed(t *testing.T) {
	err := unixError("/run/nfd/nfd.sock")(fmt.Errorf("mkdir: %w", syscall.EACCES))
	for _, want := range []string{"/run/nfd/nfd.sock", "permission denied", "[faces.unix]", "NDN_CLIENT_TRANSPORT"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

// state is what a reload changes, in words.
func state(d *Daemon) string {
	var b strings.Builder
	names := map[ndn.FaceID]string{}
	for _, i := range d.fwd.Faces() {
		if i.ID >= run.FirstFaceID {
			names[i.ID] = i.RemoteURI
			fmt.Fprintf(&b, "face %s %s mtu=%d\n", i.RemoteURI, i.Name, i.MTU)
		}
	}
	for _, r := range d.fwd.Routes() {
		fmt.Fprintf(&b, "route %s %s %d\n", r.Prefix, names[r.Face], r.Cost)
	}
	for _, s := range d.fwd.Strategies() {
		fmt.Fprintf(&b, "strategy %s %s\n", s.Prefix, s.Strategy)
	}
	cs := d.fwd.CS()
	fmt.Fprintf(&b, "cs %v %v %v\n", config.Size(cs.CapacityBytes), cs.Admit, cs.Serve)
	return b.String()
}

func TestReload(t *testing.T) {
	first := quiet + `
log.level = "warn"
[[face]]
uri = "udp4://127.0.0.1:9"
name = "a"
[[face]]
uri = "udp4://127.0.0.1:10"
name = "b"
[[route]]
prefix = "/x"
face = "a"
cost = 1
[[route]]
prefix = "/y"
face = "b"
[[strategy]]
prefix = "/x"
strategy = "multicast"
[cs]
capacity = "1MiB"
`
	second := quiet + `
log.level = "debug"
[[face]]
uri = "udp4://127.0.0.1:9"
name = "a2"
mtu = 1400
[[face]]
uri = "udp4://127.0.0.1:11"
name = "c"
[[route]]
prefix = "/x"
face = "a2"
cost = 5
[[route]]
prefix = "/z"
face = "c"
[[strategy]]
prefix = "/z"
strategy = "multicast"
[cs]
capacity = "2MiB"
admit = false
[pit]
max_entries = 1000
`
	d, log := startDaemon(t, first)
	before := state(d)
	a, _ := d.fwd.FaceByURI("udp4://127.0.0.1:9")
	if strings.Contains(log.String(), "face created") {
		t.Errorf("level warn: %s", log)
	}
	restart := d.Reload(parse(t, second))
	if !slices.Equal(restart, []string{"pit"}) {
		t.Errorf("restart needed for %v", restart)
	}
	want := `face udp4://127.0.0.1:9 a2 mtu=1400
face udp4://127.0.0.1:11 c mtu=8800
route /x udp4://127.0.0.1:9 5
route /z udp4://127.0.0.1:11 0
strategy / /localhost/nfd/strategy/best-route/v=5
strategy /z /localhost/nfd/strategy/multicast/v=5
cs 2MiB false true
`
	if got := state(d); got != want {
		t.Errorf("after the reload:\n%s\nwant:\n%s", got, want)
	}
	if now, _ := d.fwd.FaceByURI("udp4://127.0.0.1:9"); now.ID != a.ID {
		t.Errorf("the face that stays was made anew: %d, %d", a.ID, now.ID)
	}
	if !strings.Contains(log.String(), "face created") {
		t.Errorf("level debug: %s", log)
	}
	// Again: still told, and nothing else changes.
	if restart := d.Reload(parse(t, second)); !slices.Equal(restart, []string{"pit"}) {
		t.Errorf("restart needed for %v", restart)
	}
	if got := state(d); got != want {
		t.Errorf("after the second reload:\n%s\nwant:\n%s", got, want)
	}
	d.Reload(parse(t, first))
	if got := state(d); got != before {
		t.Errorf("after going back:\n%s\nwant:\n%s", got, before)
	}
}

// TestReloadUnderTraffic reloads while a peer sends.
func TestReloadUnderTraffic(t *testing.T) {
	addr := free(t)
	text := fmt.Sprintf("faces.udp.listen = [%q]\nfaces.tcp.listen = []\nadmin.listen = \"\"\n", addr)
	d, _ := startDaemon(t, text)
	tr, err := udp.Dial(addr, udp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	link := lp.New(lp.Config{})
	recv := &counter{}
	served := make(chan struct{})
	go func() { _ = tr.Serve(recv); close(served) }()
	defer func() { _ = tr.Close(); <-served }()
	with := text + "[[face]]\nuri = \"udp4://127.0.0.1:9\"\nname = \"n\"\n[[route]]\nprefix = \"/n\"\nface = \"n\"\n"
	for i := range 200 {
		var out face.Frames
		w := ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/x").AppendNumber(ndn.TypeSegment, uint64(i)), Nonce: uint32(i + 1)})
		if err := link.Send(1, w, nil, &out); err != nil {
			t.Fatal(err)
		}
		tr.Send(&out)
		if i%20 == 0 {
			d.Reload(parse(t, with))
			d.Reload(parse(t, text))
		}
	}
	eventually(t, "200 Nacks", func() bool { return recv.count() == 200 })
}

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) Receive(frames [][]byte) {
	c.mu.Lock()
	c.n += len(frames)
	c.mu.Unlock()
}
func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
func (c *counter) Flush()       {}
func (c *counter) Closed(error) {}

func TestLogFormats(t *testing.T) {
	b := &buffer{}
	l := NewLog(b, "console")
	l.SetLevel("info")
	l.Logger().Debug().Msg("quiet")
	l.Logger().Info().Str("k", "v").Msg("loud")
	if s := b.String(); strings.Contains(s, "quiet") || !strings.Contains(s, "INF loud k=v") || strings.Contains(s, "\x1b") {
		t.Errorf("%q", s)
	}
}
