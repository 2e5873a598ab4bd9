package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ndnpop/internal/testbin"
)

// TestSignals: how the commands end that run until they are stopped. An
// interrupt from the keyboard is 130; SIGTERM is how a service is stopped, and
// is no failure, except of a transfer that did not come to its end.
func TestSignals(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	file := randomFile(t, 10*mb, 70)
	serve(t, n.unix(), "/signals/slow", file)
	out := filepath.Join(t.TempDir(), "out")
	apps := faces(t, n)
	for _, tc := range []struct {
		name     string
		args     []string
		begun    func(p *testbin.Proc) bool
		on       os.Signal
		code     int
		out, err string // what it says then
	}{
		{"put", []string{"put", "/signals/put", file}, says("fetch it with"), syscall.SIGTERM, 0, "", "served 0 segments"},
		{"put", []string{"put", "/signals/put", file}, says("fetch it with"), os.Interrupt, 130, "", "interrupted"},
		{"cat", []string{"cat", "/signals/slow", "-o", out, "--max-rate", "5mbit"}, exists(out + ".part"), syscall.SIGTERM, 130, "", "add --resume"},
		{"cat", []string{"cat", "/signals/slow", "--resume", "-o", out, "--max-rate", "5mbit", "-v"}, exists(out + ".part"), os.Interrupt, 130, "", "add --resume"},
		{"cat to a pipe", []string{"cat", "/signals/slow", "--max-rate", "5mbit"}, printed, os.Interrupt, 130, "", "ndnpop: interrupted"},
		{"pingserver", []string{"pingserver", "/signals/ping"}, printed, syscall.SIGTERM, 0, "ping server statistics", ""},
		{"pingserver", []string{"pingserver", "/signals/ping"}, printed, os.Interrupt, 130, "ping server statistics", "interrupted"},
		{"ctl events", []string{"ctl", "events"}, started, syscall.SIGTERM, 0, "", ""},
		{"ctl events", []string{"ctl", "events"}, started, os.Interrupt, 130, "", "interrupted"},
	} {
		t.Run(tc.name+" "+tc.on.String(), func(t *testing.T) {
			testbin.Eventually(t, patience, "the last command to be gone", func() bool { return faces(t, n) == apps })
			p := ndnpop(t, n.unix(), tc.args...)
			testbin.Eventually(t, patience, "the command to have begun", func() bool {
				return tc.begun(p) && faces(t, n) > apps
			}, p)
			p.Signal(t, tc.on)
			if code := p.Wait(t, patience); code != tc.code || !p.Stdout.Contains(tc.out) || !p.Stderr.Contains(tc.err) {
				t.Errorf("ended with %d: %s", code, p.Stderr)
			}
		})
	}
	if _, code := run(t, n.unix(), "cat", "/signals/slow", "-o", out, "--resume"); code != 0 {
		t.Errorf("cannot go on: %d", code)
	}
	sameFile(t, out, file)
	for _, s := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		n := startNode(t, nodeConf{})
		n.Signal(t, s)
		if code := n.Wait(t, patience); code != 0 || !n.Stderr.Contains(`"message":"stopped"`) {
			t.Errorf("run ended with %d on %v: %s", code, s, n.Stderr)
		}
		if _, err := os.Stat(n.sock); !os.IsNotExist(err) {
			t.Errorf("the socket is left behind on %v: %v", s, err)
		}
	}
}

func says(text string) func(*testbin.Proc) bool {
	return func(p *testbin.Proc) bool { return p.Stderr.Contains(text) }
}

func exists(file string) func(*testbin.Proc) bool {
	return func(*testbin.Proc) bool { _, err := os.Stat(file); return err == nil }
}

func printed(p *testbin.Proc) bool { return len(p.Stdout.Bytes()) > 0 }
func started(*testbin.Proc) bool   { return true }

// faces is the number of applications at a node.
func faces(t *testing.T, n *node) float64 {
	t.Helper()
	return n.metrics(t)[`ndnpop_faces{persistency="on-demand",scheme="fd"}`]
}

// TestSecondInterrupt: whoever waits for a reader that does not read is ended
// by a second signal at the latest.
func TestSecondInterrupt(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	serve(t, n.unix(), "/signals/pipe", randomFile(t, 5*mb, 71))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := appCmd(t, n.unix(), "cat", "/signals/pipe")
	cmd.Stdout = w
	p := testbin.Start(t, cmd)
	_ = w.Close()
	testbin.Eventually(t, patience, "cat to end", func() bool {
		p.Signal(t, syscall.SIGTERM) // a shell's background jobs ignore interrupts from birth
		return !p.Running()
	})
}

// TestPingServerOutlivesItsReader: pings are answered when nobody reads of them
// any more.
func TestPingServerOutlivesItsReader(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := appCmd(t, n.unix(), "pingserver", "/signals/reader")
	cmd.Stdout = w
	p := testbin.Start(t, cmd)
	_ = w.Close()
	_, err = r.Read(make([]byte, 1)) // it serves
	_ = r.Close()
	if err != nil {
		t.Fatal(err)
	}
	if ping, code := run(t, n.unix(), "ping", "/signals/reader", "-c", "3", "-i", "10"); code != 0 || !ping.Stdout.Contains("3 received") {
		t.Errorf("ping ended with %d: %s", code, ping.Stdout)
	}
	if !p.Running() {
		t.Error("pingserver has ended")
	}
}
