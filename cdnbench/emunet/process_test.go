//go:build linux

package emunet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ndnpop/internal/testbin"
)

func TestCommandsRunInTheHost(t *testing.T) {
	n := network(t, Options{})
	h := host(t, n, "a")
	out, err := h.Command("readlink", "/proc/self/ns/net").Output()
	if err != nil || strings.TrimSpace(string(out)) != h.id {
		t.Errorf("namespace %q, %v; want %s", out, err, h.id)
	}
	if own, _ := os.Readlink("/proc/self/ns/net"); own == h.id {
		t.Error("this process moved into the host")
	}
	var exit *exec.ExitError
	out, err = h.Command("sh", "-c", "echo out; echo err >&2; exit 3").CombinedOutput()
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || string(out) != "out\nerr\n" {
		t.Errorf("output %q, %v", out, err)
	}
	if err := h.Command("/no/such/command").Run(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing command: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := h.CommandContext(ctx, "sleep", "1000")
	must(t, c.Start())
	cancel()
	if err := c.Wait(); err == nil {
		t.Error("the end of the context did not kill the process")
	}
	if len(h.cmds) != 0 {
		t.Errorf("%d commands remembered after they ended", len(h.cmds))
	}
}

func TestSignalsReachAllOfAHost(t *testing.T) {
	n := network(t, Options{})
	a, b := host(t, n, "a"), host(t, n, "b")
	// A daemon with a child in a session of its own, as servers do.
	c := a.Command("sh", "-c", "setsid sleep 1000 & wait")
	must(t, c.Start())
	other := b.Command("sleep", "1000")
	must(t, other.Start())
	eventually(t, "start of both", func() bool {
		p, err := a.Processes()
		must(t, err)
		return len(p) == 2
	})
	k, err := a.Signal(unix.SIGKILL)
	must(t, err)
	if k != 2 {
		t.Errorf("%d processes signalled", k)
	}
	c.Wait()
	if !c.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("%v", c.ProcessState)
	}
	eventually(t, "death of both", func() bool {
		p, err := a.Processes()
		must(t, err)
		return len(p) == 0
	})
	if p, err := b.Processes(); err != nil || len(p) != 1 {
		t.Errorf("processes of the other host: %v, %v", p, err)
	}
	must(t, n.Close())
	if err := other.Wait(); err == nil {
		t.Error("Close left a process")
	}
	if _, err := os.Stat(filepath.Join(nsDir, b.Namespace())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Close left a namespace: %v", err)
	}
}

func TestEndOfAllProcessesIsTold(t *testing.T) {
	n := network(t, Options{})
	a, b := host(t, n, "a"), host(t, n, "b")
	must(t, b.Command("sleep", "1000").Start())
	first, second := a.Command("sleep", "1000"), a.Command("sleep", "1000")
	must(t, first.Start())
	must(t, second.Start())
	ended, err := a.Ended()
	must(t, err)
	must(t, first.Process.Kill())
	first.Wait()
	must(t, b.Command("true").Run()) // time enough to be wrong
	select {
	case <-ended:
		t.Error("the end was told while a process was left")
	default:
	}
	killed := time.Now()
	must(t, second.Process.Kill())
	select {
	case at := <-ended:
		if at.Before(killed) {
			t.Errorf("ended %v before it was killed", killed.Sub(at))
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the end was not told")
	}
	// Nobody is left to wait for.
	ended, err = a.Ended()
	must(t, err)
	<-ended
}

func TestClosedNetworkRefuses(t *testing.T) {
	n, l := pair(t, Options{}, Params{})
	h := l.A.Host
	must(t, n.Close())
	must(t, n.Close())
	_, hostErr := n.AddHost("c")
	_, linkErr := n.AddLink(h, l.B.Host, LinkConfig{})
	_, countErr := l.Counters(AB)
	for what, err := range map[string]error{
		"AddHost": hostErr, "AddLink": linkErr, "Counters": countErr,
		"Do": h.Do(func() error { return nil }), "Start": h.Command("true").Start(),
		"Route": h.AddRoute(Route{Dst: l.A.Prefix, Via: l.B.Prefix.Addr()}), "Congestion": h.SetCongestionControl("reno"),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestBadArguments(t *testing.T) {
	if _, err := New(Options{Emulator: "dummynet"}); err == nil || !strings.Contains(err.Error(), "netem") {
		t.Errorf("unknown emulator: %v", err)
	}
	n := network(t, Options{})
	a := host(t, n, "a")
	for _, name := range []string{"", "a", "../x", "a b", strings.Repeat("x", 65)} {
		if _, err := n.AddHost(name); err == nil {
			t.Errorf("host %q was accepted", name)
		}
	}
	if _, err := n.AddLink(a, a, LinkConfig{MTU: 1}); err == nil {
		t.Error("an MTU of 1 was accepted")
	}
	if _, err := n.AddLink(a, a, LinkConfig{}); err != nil {
		t.Errorf("after a link that failed: %v", err)
	}
}

// ownerChild makes a network with a daemon in it and waits to be killed.
func ownerChild() {
	err := func() error {
		n, err := New(Options{Emulator: TUN})
		if err != nil {
			return err
		}
		a, err := n.AddHost("a")
		if err != nil {
			return err
		}
		if _, err := n.AddLink(a, a, LinkConfig{}); err != nil {
			return err
		}
		c := a.Command("sh", "-c", "setsid sleep 1000 & echo $!; wait")
		out, err := c.StdoutPipe()
		if err != nil {
			return err
		}
		if err := c.Start(); err != nil {
			return err
		}
		pid, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			return err
		}
		dir, err := MkdirTemp()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)
		}
		fmt.Println(a.Namespace(), c.Process.Pid, strings.TrimSpace(pid), dir)
		return err
	}()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	io.Copy(io.Discard, os.Stdin)
}

// running reports whether a process exists and is no zombie.
func running(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func TestLeftoversOfAKilledRunAreCleaned(t *testing.T) {
	testbin.Need(t, supported())
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), childEnv+"=owner")
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	defer c.Wait()
	defer c.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	f := strings.Fields(line)
	if err != nil || len(f) != 4 {
		t.Fatalf("child said %q, %v", line, err)
	}
	ns, shell, daemon, dir := f[0], f[1], f[2], f[3]
	if got, err := CleanLeftovers(); err != nil || len(got) != 0 {
		t.Errorf("cleaned %v of a living owner, %v", got, err)
	}
	must(t, c.Process.Kill())
	c.Wait()
	eventually(t, "death of the direct child with its owner", func() bool { return !running(shell) })
	if !running(daemon) {
		t.Error("the daemon is gone already: nothing left to test")
	}
	if _, err := os.Stat(filepath.Join(nsDir, ns)); err != nil {
		t.Errorf("the namespace is gone already: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
		t.Errorf("the files of a living owner are gone: %v", err)
	}
	// What any later run does first.
	n, err := New(Options{Emulator: TUN})
	must(t, err)
	defer n.Close()
	if _, err := os.Stat(filepath.Join(nsDir, ns)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("namespace: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("files: %v", err)
	}
	eventually(t, "death of the daemon", func() bool { return !running(daemon) })
}

func TestOnlyOrphansAreOurs(t *testing.T) {
	own, err := ownPrefix()
	must(t, err)
	for name, want := range map[string]bool{
		"blue": false, "emunet": false, "emunet-x-1-a": false, "emunet-1-x-a": false, own + "net-a": false,
		fmt.Sprintf("emunet-%d-1-net-a", os.Getpid()): true, // an earlier process with our id
		"emunet-999999999-1-net-a":                    true,
	} {
		if got := orphaned(name); got != want {
			t.Errorf("%s: orphaned %v", name, got)
		}
	}
}

func TestSupportedSaysWhyNot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to run something as another user")
	}
	// A copy that another user can reach.
	dir, err := os.MkdirTemp("", "emunet")
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chmod(dir, 0o755))
	b, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	exe := filepath.Join(dir, "test")
	must(t, os.WriteFile(exe, b, 0o755))
	c := exec.Command(exe)
	c.Dir = "/"
	c.Env = []string{childEnv + "=supported"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil || !strings.Contains(string(out), "needs root") {
		t.Errorf("without privileges: %q, %v", out, err)
	}
}

func TestNetemWhereTheKernelHasIt(t *testing.T) {
	testbin.Need(t, supported())
	if err := haveNetem(); err != nil {
		if _, err := New(Options{Emulator: Netem}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("netem without netem: %v", err)
		}
		n := network(t, Options{})
		if n.Emulator() != TUN {
			t.Errorf("chose %s", n.Emulator())
		}
		t.Skip("this kernel has no netem: ", err)
	}
	n, l := pair(t, Options{Emulator: Netem}, Params{Delay: 10e6, Rate: 50e6, Loss: 0.01})
	got, err := n.Calibrate(t.Context(), CalibrateConfig{Tolerance: 0.2})
	t.Log(got)
	must(t, err)
	transfer(t, l, 1<<20)
	must(t, l.BlackHole())
	must(t, l.Up())
	must(t, l.Down())
	must(t, l.Up())
	must(t, l.SetBoth(Params{Delay: 5e6}))
	transfer(t, l, 1<<20)
}
