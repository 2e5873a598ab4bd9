package testbin

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func sh(tb testing.TB, script string) Cmd {
	path, err := exec.LookPath("sh")
	if err != nil {
		tb.Skip("needs a shell")
	}
	return Cmd{Path: path, Args: []string{"-c", script}}
}

func TestRunCaptures(t *testing.T) {
	c := sh(t, "cat; echo $GREETING >&2; exit 3")
	c.Stdin = strings.NewReader("in")
	c.Env = []string{"GREETING=hello"}
	p, code := Run(t, c, 10*time.Second)
	if code != 3 || p.Stdout.String() != "in" || p.Stderr.String() != "hello\n" || p.Running() {
		t.Errorf("exit %d, %q, %q", code, p.Stdout, p.Stderr)
	}
}

func TestStopAndKill(t *testing.T) {
	p := Start(t, sh(t, `trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done`))
	Eventually(t, 10*time.Second, "the trap", func() bool { return p.Stdout.Contains("ready") }, p)
	if code := p.Stop(t, 10*time.Second); code != 7 {
		t.Errorf("exit %d", code)
	}
	p.Kill() // once more is no error
	p.Signal(t, syscall.SIGTERM)

	p = Start(t, sh(t, `trap '' TERM; echo ready; while :; do sleep 0.05; done`))
	Eventually(t, 10*time.Second, "the trap", func() bool { return p.Stdout.Contains("ready") }, p)
	if now, peak := p.RSS(t); now <= 0 || peak < now {
		t.Errorf("memory %d, peak %d", now, peak)
	}
	p.Kill()
	if code := p.Wait(t, time.Second); code != -1 {
		t.Errorf("exit %d", code)
	}
}
