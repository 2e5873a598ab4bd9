package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

const adminOnly = "faces.udp.listen = []\nfaces.tcp.listen = []\nfaces.unix.path = \"\"\nadmin.listen = \"127.0.0.1:0\"\n"

// visit connects to the admin server from an address of this host, and asks
// something.
func visit(t *testing.T, d *Daemon, from, ask string) net.Conn {
	t.Helper()
	dial := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	c, err := dial.Dial("tcp", d.admin.addr)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(patience))
	}
	if err == nil {
		_, err = io.WriteString(c, ask)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// get is an answer of the admin server to a client of its own.
func get(t *testing.T, d *Daemon, path string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + d.admin.addr + path)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return r.StatusCode, string(b)
}

const askMetrics = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"

// TestAdminConnections: many who connect to the admin server and say nothing, or do
// not read what they asked for, have few of the descriptors and keep nobody from an
// answer, least of all other hosts. What its library reports is a line of the log.
func TestAdminConnections(t *testing.T) {
	d, out := startDaemon(t, adminOnly)
	other := visit(t, d, "127.0.0.2", askMetrics)
	answers := bufio.NewReader(other)
	read := func() error {
		r, err := http.ReadResponse(answers, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine() // each connection that is served has one
	for _, ask := range []string{"", strings.Repeat(askMetrics, 500)} {
		for range 3 * adminConns {
			visit(t, d, "127.0.0.1", ask)
		}
		for _, path := range []string{"/healthz", "/metrics"} {
			if code, _ := get(t, d, path); code != http.StatusOK {
				t.Errorf("%s: status %d", path, code)
			}
		}
	}
	eventually(t, "connections made room", func() bool { return runtime.NumGoroutine()-before <= 2*adminConns+8 })
	err := other.SetDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = io.WriteString(other, askMetrics)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Errorf("a scraper of another host that waited: %v", err)
	}
	d.admin.srv.ErrorLog.Print("http: superfluous response.WriteHeader call")
	if !strings.Contains(out.String(), `"reason":"http: superfluous`) {
		t.Errorf("the log: %s", out)
	}
}

// TestAdminTimeouts: whatever a client of the admin server leaves undone, it is not
// waited for for ever; and a profile that takes longer is not cut short.
func TestAdminTimeouts(t *testing.T) {
	d, _ := startDaemon(t, adminOnly)
	s := d.admin.srv
	for _, b := range []time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout} {
		if b <= 0 || b > 30*time.Second {
			t.Errorf("header %v, read %v, write %v", s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout)
		}
	}
	if s.IdleTimeout <= 0 {
		t.Error("idle connections stay")
	}
	const read = 20 * time.Millisecond
	long := httptest.NewUnstartedServer(patient(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			t.Error("cut short")
		case <-time.After(10 * read):
		}
	}, read))
	long.Config.ReadTimeout = read
	long.Start()
	defer long.Close()
	r, err := http.Get(long.URL + "/?seconds=5")
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
}

// TestStarved: want of descriptors is said once, with the remedy, whoever notices
// it; what is no want is not.
func TestStarved(t *testing.T) {
	d, log := startDaemon(t, quiet+"faces.unix.path = \"\"\n")
	const says = "cannot accept connections"
	d.starved("tcp://a")(syscall.ECONNABORTED)
	if strings.Contains(log.String(), says) {
		t.Error(log)
	}
	for range 3 {
		d.starved("tcp://a")(&net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)})
		d.starved("unix://b")(&net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)})
	}
	if text := log.String(); strings.Count(text, says) != 1 || !strings.Contains(text, "LimitNOFILE") || !strings.Contains(text, "tcp://a") {
		t.Error(text)
	}
	d.starvedAt = d.starvedAt.Add(-2 * calm)
	d.starved("unix://b")(syscall.ENFILE)
	if text := log.String(); strings.Count(text, says) != 2 || !strings.Contains(text, "fs.file-max") {
		t.Error(text)
	}
}

// TestFewFiles: who allows more peers than files is told at the start.
func TestFewFiles(t *testing.T) {
	d, log := startDaemon(t, quiet+"faces.unix.path = \"\"\n")
	c := parse(t, "faces.tcp = { listen = [\"127.0.0.1:0\"], max_faces = 100 }\nfaces.unix = { path = \"/x\", max_faces = 50 }\nfaces.max = 120\n")
	d.warnFiles(c, 120+spareFiles)
	if strings.Contains(log.String(), "fewer files") {
		t.Error(log)
	}
	d.warnFiles(c, 119+spareFiles)
	if !strings.Contains(log.String(), "fewer files") || !strings.Contains(log.String(), fmt.Sprintf(`"may_need":%d`, 120+spareFiles)) {
		t.Error(log)
	}
}

// TestRemovedSocket: the socket comes back, and the log says why it was away.
func TestRemovedSocket(t *testing.T) {
	path := t.TempDir() + "/s"
	_, log := startDaemon(t, quiet+"faces.unix.path = \""+path+"\"\n")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the socket", func() bool {
		c, err := net.Dial("unix", path)
		if err == nil {
			_ = c.Close()
		}
		return err == nil || !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED)
	})
	eventually(t, "a line of the log", func() bool { return strings.Contains(log.String(), "made again") })
}
