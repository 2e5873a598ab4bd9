package cli

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ndnpop/strategy"
	"ndnpop/strategy/multicast"
)

const patience = 10 * time.Second

// syncBuffer may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *syncBuffer) waitFor(t *testing.T, what string) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(b.String(), what); {
		if time.Now().After(end) {
			t.Fatalf("no %q in:\n%s", what, b)
		}
		time.Sleep(time.Millisecond)
	}
}

// invoke runs the command to its end.
func invoke(o Options, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = Main(args, strings.NewReader(""), &out, &err, o)
	return code, out.String(), err.String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRunReloadsAndStops(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		dir := t.TempDir()
		file, sock := filepath.Join(dir, "c.toml"), filepath.Join(dir, "s")
		base := fmt.Sprintf("faces.unix.path = %q\nfaces.udp.listen = []\nfaces.tcp.listen = []\nadmin.listen = \"\"\n", sock)
		write(t, file, base)
		log, code := &syncBuffer{}, make(chan int, 1)
		go func() { code <- Main([]string{"run", "-c", file}, strings.NewReader(""), log, log, Options{}) }()
		log.waitFor(t, "ready")

		signal := func(s syscall.Signal) {
			t.Helper()
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Signal(s)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		write(t, file, base+"cs.capacity = \"lots\"\npit.max_entries = 1\n")
		signal(syscall.SIGHUP)
		log.waitFor(t, "the old one stays in force")
		for _, want := range []string{"c.toml:5:15: cs.capacity", "c.toml:6:19: pit.max_entries"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, log)
			}
		}
		write(t, file, base+"cs.capacity = \"1MB\"\npit.max_entries = 1000\n")
		signal(syscall.SIGHUP)
		log.waitFor(t, "configuration reloaded")
		log.waitFor(t, "only a restart applies")

		conn, err := net.Dial("unix", sock)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		signal(sig)
		select {
		case c := <-code:
			if c != 0 {
				t.Errorf("%v: exit code %d:\n%s", sig, c, log)
			}
		case <-time.After(patience):
			t.Fatalf("%v does not stop it:\n%s", sig, log)
		}
		if _, err := os.Lstat(sock); !os.IsNotExist(err) {
			t.Errorf("%v: socket file left: %v", sig, err)
		}
		// One that comes while the process ends does not kill it.
		signal(syscall.SIGHUP)
	}
}

func TestRunRefusals(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	quiet := "faces.unix.path = \"\"\nfaces.udp.listen = []\nadmin.listen = \"\"\n"
	busy, bad := filepath.Join(dir, "busy.toml"), filepath.Join(dir, "bad.toml")
	write(t, busy, quiet+fmt.Sprintf("faces.tcp.listen = [%q]\n", taken.Addr()))
	write(t, bad, "colour = 1\nlog.level = \"loud\"\n")
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"run", "-c", busy}, 1, []string{"TCP " + taken.Addr().String() + " is in use", "faces.tcp.listen"}},
		{[]string{"run", "-c", bad}, 2, []string{"2 errors in", "1:10: colour: unknown key", `2:13: log.level: "loud" is none of debug, info`}},
		{[]string{"run", "-c", filepath.Join(dir, "none")}, 2, []string{"there is no file", "ndnpop config >"}},
		{[]string{"run", "-c", dir}, 2, []string{"is a directory"}},
		{[]string{"run", "x"}, 2, []string{"run --help"}},
		{[]string{"check"}, 2, []string{"check --help"}},
		{[]string{"check", bad}, 2, []string{"2 errors in"}},
		{[]string{"config", "x"}, 2, []string{"config --help"}},
	} {
		code, out, stderr := invoke(Options{}, c.args...)
		if code != c.code || out != "" {
			t.Errorf("%v: exit code %d, want %d; stdout %q", c.args, code, c.code, out)
		}
		for _, w := range c.want {
			if !strings.Contains(stderr, w) {
				t.Errorf("%v: %q lacks %q", c.args, stderr, w)
			}
		}
	}
}

func TestConfigPrintsWhatCheckAccepts(t *testing.T) {
	code, out, stderr := invoke(Options{}, "config")
	if code != 0 || stderr != "" {
		t.Fatal(code, stderr)
	}
	file := filepath.Join(t.TempDir(), "c.toml")
	write(t, file, out)
	if code, out, stderr := invoke(Options{}, "check", file); code != 0 || !strings.Contains(out, "is valid") {
		t.Fatal(code, out, stderr)
	}
}

func TestOwnStrategy(t *testing.T) {
	mine := multicast.Factory()
	mine.Name = "mine"
	file := filepath.Join(t.TempDir(), "c.toml")
	write(t, file, "[[strategy]]\nprefix = \"/x\"\nstrategy = \"mine\"\n")
	code, _, stderr := invoke(Options{}, "check", file)
	if code != 2 || !strings.Contains(stderr, `"mine" is none of `) {
		t.Error(code, stderr)
	}
	if code, _, stderr := invoke(Options{Strategies: []strategy.Factory{mine}}, "check", file); code != 0 {
		t.Error(code, stderr)
	}
	if code, _, stderr := invoke(Options{Strategies: []strategy.Factory{multicast.Factory()}}, "check", file); code != 2 ||
		!strings.Contains(stderr, "registered twice") {
		t.Error(code, stderr)
	}
}

// TestCheckNamesTheFile: of a file that the configuration names, too, it is said
// where.
func TestCheckNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pop.toml")
	if err := os.WriteFile(file, []byte("[[mgmt.authorize]]\ncertificates = [\"/none.cert\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	j := begin(t, nil, "check", file)
	if code := j.wait(); code != exitUsage || !strings.Contains(j.err.String(), file+":2:17: mgmt.authorize[0].certificates[0]: open /none.cert") {
		t.Errorf("code %d, %s", code, j.err.String())
	}
}

// TestCheckWarns of what a valid file says without effect, and of nothing else.
func TestCheckWarns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.toml")
	write(t, file, "mgmt.localhop = true\n[shards]\ncount = 1\nprefix_components = 3\n")
	code, out, stderr := invoke(Options{}, "check", file)
	want := []string{file + ":1:17: mgmt.localhop: ", file + ":4:21: shards.prefix_components: 3 has no effect"}
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if code != 0 || !strings.Contains(out, "is valid") || len(lines) != len(want) {
		t.Fatal(code, out, stderr)
	}
	for i, w := range want {
		if !strings.Contains(lines[i], w) {
			t.Errorf("%q lacks %q", lines[i], w)
		}
	}
	write(t, file, "shards = { count = 1, prefix_components = 2 }\n")
	if code, _, stderr := invoke(Options{}, "check", file); code != 0 || stderr != "" {
		t.Error(code, stderr)
	}
}

func TestCount(t *testing.T) {
	if a, b := count(uint64(1), "packet"), count(0, "packet"); a != "1 packet" || b != "0 packets" {
		t.Errorf("%q, %q", a, b)
	}
}
