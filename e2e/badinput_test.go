package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ndnpop/internal/testbin"
)

// TestBadInput: what goes wrong has its exit code and a message that says
// what it was and names what the person can change.
func TestBadInput(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	file := randomFile(t, 100_000, 30)
	serve(t, n.unix(), "/bad/f", file)
	dir := t.TempDir()
	conf := func(name, content string) string {
		p := filepath.Join(dir, name)
		writeFile(t, p, content)
		return p
	}
	quiet := "[faces.udp]\nlisten = []\n[faces.tcp]\nlisten = []\n[faces.unix]\npath = \"\"\n"
	taken := conf("taken.toml", fmt.Sprintf("[faces.udp]\nlisten = []\n[faces.tcp]\nlisten = [%q]\n[faces.unix]\npath = \"\"\n[admin]\nlisten = \"\"\n", n.tcp))
	nodir := conf("nodir.toml", fmt.Sprintf("[faces.udp]\nlisten = []\n[faces.tcp]\nlisten = []\n[faces.unix]\npath = %q\n[admin]\nlisten = \"\"\n", filepath.Join(file, "s")))
	nowhere := "unix://" + filepath.Join(dir, "nobody")

	for _, c := range []struct {
		name      string
		transport string // empty: the node
		args      []string
		code      int
		says      []string
	}{
		{"no arguments", "", []string{"cat"}, 2, []string{"--help"}},
		{"too many arguments", "", []string{"cat", "/a", "/b"}, 2, []string{"--help"}},
		{"unknown command", "", []string{"fetch", "/a"}, 2, []string{"fetch"}},
		{"unknown flag", "", []string{"cat", "/a", "--fast"}, 2, []string{"--fast", "--help"}},
		{"flag without value", "", []string{"cat", "/a", "-o"}, 2, []string{"-o"}},
		{"flag that wants a number", "", []string{"cat", "/a", "-r", "many"}, 2, []string{"many"}},
		{"unknown pipeline lists the known", "", []string{"cat", "/a", "-p", "warp"}, 2, []string{"warp", "fixed", "aimd", "reno", "cubic"}},
		{"no name", "", []string{"cat", "/a//b"}, 2, []string{"/a//b"}},
		{"unknown component type", "", []string{"put", "/a/part=1", file}, 2, []string{"part"}},
		{"bad range", "", []string{"cat", "/bad/f", "--range", "9-1"}, 2, []string{"9-1"}},
		{"bad range text", "", []string{"cat", "/bad/f", "--range", "all"}, 2, []string{"all"}},
		{"bad segments", "", []string{"cat", "/bad/f", "--segments", "-"}, 2, []string{"segments"}},
		{"bad hash", "", []string{"cat", "/bad/f", "--sha256", "beef"}, 2, []string{"sha256"}},
		{"bad transport", "smoke://signals", []string{"cat", "/bad/f"}, 2, []string{"smoke"}},
		{"bad segment size", "", []string{"put", "/a", file, "-s", "0"}, 2, []string{"0"}},
		{"segment beyond a packet", "", []string{"put", "/a", file, "-s", "9000"}, 2, []string{"9000"}},
		{"unknown signature", "", []string{"put", "/a", file, "-S", "wax"}, 2, []string{"wax", "digest"}},

		{"no forwarder", nowhere, []string{"cat", "/bad/f"}, 5, []string{"forwarder", nowhere, "ndnpop run"}},
		{"no forwarder to put", nowhere, []string{"put", "/a", file}, 5, []string{"forwarder", nowhere, "ndnpop run"}},
		{"no forwarder to ping", nowhere, []string{"ping", "/a"}, 5, []string{"forwarder", nowhere, "ndnpop run"}},
		{"no route", "", []string{"cat", "/nowhere/f", "-r", "1", "-l", "100"}, 5, []string{"/nowhere/f", "route"}},
		{"no such content", "", []string{"cat", "/bad/f/v=1", "-r", "1", "-l", "500"}, 3, []string{"/bad/f/v=1"}},
		{"wrong hash", "", []string{"cat", "/bad/f", "--sha256", strings.Repeat("00", 32), "-o", filepath.Join(dir, "wrong")}, 4, []string{strings.Repeat("00", 32)}},
		{"output in a directory that is not there", "", []string{"cat", "/bad/f", "-o", filepath.Join(dir, "none", "out")}, 1, []string{filepath.Join(dir, "none")}},
		{"output is a directory", "", []string{"cat", "/bad/f", "-o", dir}, 1, []string{dir}},
		{"missing file", "", []string{"put", "/a", filepath.Join(dir, "missing")}, 1, []string{filepath.Join(dir, "missing")}},

		{"missing configuration", "", []string{"run", "-c", filepath.Join(dir, "none.toml")}, 2, []string{filepath.Join(dir, "none.toml")}},
		{"no TOML", "", []string{"run", "-c", conf("syntax.toml", quiet+"[cs\n")}, 2, []string{":7:"}},
		{"unknown key", "", []string{"run", "-c", conf("key.toml", quiet+"[cs]\ncapcity = \"1GB\"\n")}, 2, []string{":8:", "capcity", "capacity"}},
		{"bad value", "", []string{"check", conf("value.toml", quiet+"[cs]\npolicy = \"magic\"\n")}, 2, []string{":8:", "magic", "lru"}},
		{"unknown strategy", "", []string{"check", conf("strategy.toml", quiet+"[[strategy]]\nprefix = \"/\"\nstrategy = \"hope\"\n")}, 2, []string{":9:", "hope", "best-route"}},
		{"route to no face", "", []string{"check", conf("route.toml", quiet+"[[route]]\nprefix = \"/\"\nface = \"ghost\"\n")}, 2, []string{":9:", "ghost"}},
		{"port in use", "", []string{"run", "-c", taken}, 1, []string{n.tcp}},
		{"no place for the socket", "", []string{"run", "-c", nodir}, 1, []string{filepath.Join(file, "s"), "faces.unix.path"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			transport := c.transport
			if transport == "" {
				transport = n.unix()
			}
			p, code := run(t, transport, c.args...)
			if code != c.code {
				t.Errorf("exit %d, not %d: %s", code, c.code, p.Stderr)
			}
			if out := p.Stdout.String(); out != "" && c.args[0] != "ping" { // which begins as ndnping does
				t.Errorf("standard output is for data, not for %q", out)
			}
			msg := p.Stderr.String()
			for _, want := range c.says {
				if !strings.Contains(msg, want) {
					t.Errorf("the message does not say %q: %s", want, msg)
				}
			}
			if strings.Contains(msg, "goroutine") || !strings.Contains(msg, "ndnpop: ") {
				t.Errorf("that is no message: %s", msg)
			}
		})
	}
	left, err := filepath.Glob(filepath.Join(dir, "wrong*"))
	if err != nil || len(left) > 0 && left[0] == filepath.Join(dir, "wrong") {
		t.Errorf("content that failed its check has the final name: %v, %v", left, err)
	}
}

// TestOutputUntouched: a fetch that fails leaves a file of that name as it
// was.
func TestOutputUntouched(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	out := filepath.Join(t.TempDir(), "out")
	writeFile(t, out, "precious")
	for _, args := range [][]string{
		{"cat", "/nowhere", "-o", out, "-r", "1", "-l", "100"},
		{"cat", "/nowhere", "-o", out, "--warp"},
	} {
		if p, code := run(t, n.unix(), args...); code == 0 {
			t.Fatalf("%v succeeded: %s", args, p.Stderr)
		}
		if b, err := os.ReadFile(out); err != nil || string(b) != "precious" {
			t.Errorf("%v left %q, %v", args, b, err)
		}
	}
}

// TestInterrupted: Ctrl-C leaves a part that can be resumed.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	file := randomFile(t, 10*mb, 31)
	serve(t, n.unix(), "/int/f", file)
	out := filepath.Join(t.TempDir(), "out")
	p := ndnpop(t, n.unix(), "cat", "/int/f", "-o", out, "--max-rate", "20mbit")
	testbin.Eventually(t, patience, "some Data", func() bool {
		return n.metric(t, `ndnpop_packets_total{direction="out",kind="data"}`) > 100
	}, p)
	p.Signal(t, os.Interrupt)
	if code := p.Wait(t, patience); code != 130 || !p.Stderr.Contains("--resume") {
		t.Errorf("exit %d, and the message should name --resume: %s", code, p.Stderr)
	}
	if _, code := run(t, n.unix(), "cat", "/int/f", "-o", out, "--resume"); code != 0 {
		t.Fatal("cannot go on")
	}
	sameFile(t, out, file)
}

// TestFullDisk: a disk that fills up is named, and what has arrived can be
// resumed when there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	file := randomFile(t, 4*mb, 32)
	serve(t, n.unix(), "/full/f", file)

	t.Run("standard output", func(t *testing.T) {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		defer full.Close()
		c := appCmd(t, n.unix(), "cat", "/full/f")
		c.Stdout = full
		p, code := testbin.Run(t, c, patience)
		if code != 1 || !p.Stderr.Contains("no space left") {
			t.Errorf("exit %d: %s", code, p.Stderr)
		}
	})
	t.Run("file", func(t *testing.T) {
		disk := smallDisk(t)
		out := filepath.Join(disk, "out")
		p, code := run(t, n.unix(), "cat", "/full/f", "-o", out)
		if code != 1 || !p.Stderr.Contains("no space left") {
			t.Errorf("exit %d: %s", code, p.Stderr)
		}
		if _, err := os.Stat(out); !os.IsNotExist(err) {
			t.Errorf("an incomplete file has the final name: %v", err)
		}
		mount(t, "-o", "remount,size=16m", disk)
		p, code = run(t, n.unix(), "cat", "/full/f", "-o", out, "--resume")
		if code != 0 {
			t.Fatalf("cannot go on: %s", p.Stderr)
		}
		sameFile(t, out, file)
	})
	t.Run("spool of standard input", func(t *testing.T) {
		disk := smallDisk(t)
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		c := appCmd(t, n.unix(), "put", "/full/stdin", "-")
		// A pipe: what can be read again is not spooled.
		c.Stdin, c.Env = struct{ io.Reader }{in}, append(c.Env, "TMPDIR="+disk)
		p, code := testbin.Run(t, c, patience)
		if code != 1 || !p.Stderr.Contains("no space left") {
			t.Errorf("exit %d: %s", code, p.Stderr)
		}
	})
}

// smallDisk mounts a file system of 2 MB; without the right to, the test is
// skipped.
func smallDisk(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("mounting a small disk takes root on Linux")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", dir).CombinedOutput(); err != nil {
		testbin.Need(t, fmt.Errorf("cannot mount a small disk: %w: %s", err, out))
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

func mount(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
}

// TestDownFace: a route by a face that is down is no route; the consumer is
// told at once.
func TestDownFace(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close() // nobody listens there
	n := startNode(t, nodeConf{faces: []faceConf{{"up", "tcp4://" + addr}}, routes: []routeConf{{"/f", "up", 0}}})
	testbin.Eventually(t, patience, "the face to be down", func() bool {
		return n.Stderr.Contains("face down") || n.Stderr.Contains(`"up":false`)
	}, n.Proc)
	d := dial(t, n, "tcp")
	d.send(interest(name("/f", "x")))
	got := d.receive("a Nack")
	if !got.IsNack {
		t.Errorf("%s %s", kindName(got.Kind), got.Interest.Name)
	}
}
