package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"ndnpop/mgmt"
)

// ctl runs a ctl command and returns what it printed and its exit code.
func ctl(t *testing.T, transport string, args ...string) (out, err string, code int) {
	t.Helper()
	j := begin(t, nil, append([]string{"ctl", transport}, args...)...)
	code = j.wait()
	return j.out.String(), j.err.String(), code
}

// TestCtl manages a forwarder with every command.
func TestCtl(t *testing.T) {
	transport := forwarder(t)
	face := ""
	for _, tc := range []struct {
		args string // FACE stands for the number of the face that was created
		code int
		want []string // in standard output, or in standard error if code is not 0
	}{
		{"status", 0, []string{"version ", "running for", "unix:///", "FIB 1, PIT 1", "content store  0 packets, 0 B, in ", "of 1.0 MB of memory", "shard 0", "% of a processor, PIT "}},
		{"face create udp4://127.0.0.1:19999 --persistency permanent --mtu 1400", 0, []string{"udp4://127.0.0.1:19999", "permanent"}},
		{"face create udp4://127.0.0.1:19999", 1, []string{"face FACE goes to udp4://127.0.0.1:19999 already", "ctl face update FACE"}},
		{"face create", 2, []string{"--help"}},
		{"face create nonsense", 2, []string{"no URI like udp4://"}},
		{"face create ftp://192.0.2.7", 1, []string{"406", "there are udp4"}},
		{"face create udp4://127.0.0.1:19998 --persistency sometimes", 2, []string{"persistent or permanent"}},
		{"face list", 0, []string{"FACE ", "internal://", "FACE   udp4://127.0.0.1:19999", "permanent", "1400"}},
		{"face list --scheme udp4", 0, []string{"udp4://127.0.0.1:19999"}},
		{"face list FACE", 0, []string{"udp4://127.0.0.1:19999"}},
		{"face list udp://127.0.0.1:19999", 0, []string{"FACE   udp4://127.0.0.1:19999"}},
		{"face list udp4://localhost:19999", 0, []string{"FACE   udp4://127.0.0.1:19999"}},
		{"face list udp4://127.0.0.1", 1, []string{"face udp4://127.0.0.1 does not exist"}},
		{"face list tcp://127.0.0.1:19999", 1, []string{"does not exist"}},
		{"face list 99999", 1, []string{`face 99999 does not exist; "ndnpop ctl face list" shows those that do`}},
		{"face list nonsense", 2, []string{"neither the number of a face nor a URI"}},
		{"face create tcp4://127.0.0.1:9 --persistency permanent", 0, []string{"tcp4://127.0.0.1:9", "permanent"}},
		{"face list tcp4://127.0.0.1:9", 0, []string{"DOWN", "for "}},
		{"--json face list tcp4://127.0.0.1:9", 0, []string{`"down": {`, `"for_s":`}},
		{"face update FACE --reliability on", 0, []string{"face FACE: permanent, reliability, congestion-marking"}},
		{"face update udp4://127.0.0.1:19999 --reliability off --congestion-marking off", 0, []string{"permanent, no flags"}},
		{"face update FACE --local-fields on", 1, []string{"409", "not possible for this face: local-fields"}},
		{"face update FACE --reliability maybe", 2, []string{"on or off"}},
		{"face update FACE", 2, []string{"nothing to change", "--persistency", "--mtu", "--congestion-threshold", "--help"}},
		{"face list FACE --scheme udp4", 2, []string{"not both"}},

		{"route add /cdn FACE --cost 10", 0, []string{"/cdn through face FACE, cost 10, origin static"}},
		{"route add /cdn/video FACE --origin client --expires 1h --capture --no-inherit", 0, []string{"origin client"}},
		{"route add /short udp://127.0.0.1:19999", 0, []string{"/short through face FACE"}},
		{"route remove /short udp://127.0.0.1:19999/", 0, []string{"/short through face FACE is gone"}},
		{"route add /cdn 0", 1, []string{"face 0 does not exist"}},
		{"route add /cdn 99999", 1, []string{"face 99999 does not exist"}},
		{"route add /cdn FACE --origin nobody", 2, []string{"one of app, autoreg, client"}},
		{"route add /cdn FACE --expires 0s", 2, []string{"at least 1ms"}},
		{"route list", 0, []string{"/cdn        FACE  ", "static  10    never", "child-inherit", "client  0     in 1h0m0s  capture"}},
		{"route list /cdn/video", 0, []string{"/cdn/video"}},
		{"fib list", 0, []string{"/cdn            FACE (10)", "/localhost/nfd  1 (0)"}},
		{"route remove /cdn FACE --origin nlsr", 1, []string{"no route /cdn through face FACE of origin nlsr"}},
		{"route remove /cdn FACE", 0, []string{"is gone"}},
		{"route remove /cdn FACE", 1, []string{"no route /cdn"}},

		{"strategy set /cdn multicast", 0, []string{"/cdn: multicast/v="}},
		{"strategy set /cdn none", 1, []string{"404", "the choices are", "best-route"}},
		{"strategy list", 0, []string{"/       best-route/v=", "/cdn    multicast/v="}},
		{"strategy unset /cdn", 0, []string{"inherits"}},
		{"strategy unset /", 2, []string{"not unset"}},

		{"cs info", 0, []string{"capacity  1.0 MB of memory", "holds     0 packets, 0 B", "of memory, in pages", "admit     on", "hits      0 of "}},
		{"cs config --capacity 88kB --admit off", 0, []string{"capacity 10 packets of up to 8800 bytes (88.0 kB), admit off, serve on"}},
		{"cs config --capacity 5 --serve off", 0, []string{"capacity 5 packets of up to 8800 bytes (44.0 kB), admit off, serve off"}},
		{"cs config --capacity many", 2, []string{"--capacity"}},
		{"cs config", 2, []string{"nothing to change"}},
		{"cs erase /cdn", 0, []string{"erased 0 Data"}},
		{"cs erase /cdn --count 0", 2, []string{"1 or more"}},

		{"face destroy FACE", 0, []string{"face FACE to udp4://127.0.0.1:19999 is gone"}},
		{"face destroy FACE", 1, []string{"face FACE does not exist"}},
		{"--sign rot13 status", 2, []string{"choose one of digest"}},
		{"frobnicate", 2, []string{"frobnicate"}},
	} {
		out, errs, code := ctl(t, transport, strings.Fields(strings.ReplaceAll(tc.args, "FACE", face))...)
		if code != tc.code {
			t.Errorf("ctl %s: exit code %d, want %d\n%s%s", tc.args, code, tc.code, out, errs)
			continue
		}
		if face == "" && strings.HasPrefix(tc.args, "face create udp4") {
			face, _, _ = strings.Cut(strings.TrimPrefix(out, "face "), ":")
		}
		text := out
		if code != 0 {
			text = errs
			if out != "" {
				t.Errorf("ctl %s failed and printed %q to standard output", tc.args, out)
			}
		}
		for _, w := range tc.want {
			if !strings.Contains(text, strings.ReplaceAll(w, "FACE", face)) && !strings.Contains(text, w) {
				t.Errorf("ctl %s: no %q in\n%s", tc.args, w, text)
			}
		}
	}
}

// TestCtlCompletion: what the forwarder knows is offered; without one, or without
// a wish, nothing and no file names.
func TestCtlCompletion(t *testing.T) {
	transport := forwarder(t)
	out, errs, code := ctl(t, transport, "face", "create", "udp4://127.0.0.1:19999")
	if code != 0 {
		t.Fatal(errs)
	}
	face, _, _ := strings.Cut(strings.TrimPrefix(out, "face "), ":")
	for _, args := range []string{"route add /cdn/film FACE", "strategy set /live multicast"} {
		if _, errs, code := ctl(t, transport, strings.Fields(strings.ReplaceAll(args, "FACE", face))...); code != 0 {
			t.Fatal(errs)
		}
	}
	const files = ":4\n" // ShellCompDirectiveNoFileComp
	for _, tc := range []struct{ args, want, not string }{
		{"face destroy ?", face + "\tudp4://127.0.0.1:19999\n", "internal"},
		{"face list ?", face + "\t", "internal"},
		{"face update udp?", "udp4://127.0.0.1:19999\n", face + "\t"},
		{"face update tcp?", "", "udp4"},
		{"face destroy 1 ?", "", face},
		{"route add ?", "/cdn/film\n", face},
		{"route add /x ?", face + "\t", "/cdn"},
		{"route remove /c?", "/cdn/film\n", "/localhost"},
		{"route list ?", "/cdn/film\n", face},
		{"strategy set ?", "/cdn/film\n", "multicast"},
		{"strategy set /x m?", "multicast\n", "/live"},
		{"strategy unset ?", "/live\n", "/cdn"},
		{"face create ?", "", "udp4"},
	} {
		args := strings.Fields(tc.args)
		args[len(args)-1] = strings.TrimSuffix(args[len(args)-1], "?")
		for _, reachable := range []bool{true, false} {
			where := transport
			if !reachable {
				where = "--transport=unix:///nonexistent/nfd.sock"
			}
			j := begin(t, nil, append([]string{"__complete", "ctl", where}, args...)...)
			code := j.wait()
			out := j.out.String()
			if code != 0 || !strings.HasSuffix(out, files) {
				t.Errorf("%s: code %d: %q", tc.args, code, out)
			}
			if reachable && !strings.Contains(out, tc.want) || strings.Contains(out, tc.not) && reachable {
				t.Errorf("%s: %q", tc.args, out)
			}
		}
	}
}

// TestCompletionDoesNotWait: a forwarder that does not even let itself be connected
// to is left, by the program that completes, before the connection is given up.
func TestCompletionDoesNotWait(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	j := begin(t, nil, "__complete", "ctl", "--transport=ws://"+l.Addr().String(), "face", "destroy", "")
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if code := j.wait(); code != 0 {
		t.Errorf("code %d: %s", code, j.out.String())
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := io.Copy(io.Discard, c); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection was given up: %v", err)
	}
}

// TestCtlJSON checks that --json prints what a program can read.
func TestCtlJSON(t *testing.T) {
	transport := forwarder(t)
	for args, keys := range map[string][]string{
		"status":                             {"version", "uptime_s", "fib_entries", "pit_entries", "cs", "listeners", "shards"},
		"face create udp4://127.0.0.1:19999": {"id", "remote", "local", "persistency", "flags"},
		"cs info":                            {"capacity_bytes", "used_bytes", "hits", "hit_ratio"},
		"strategy set /a multicast":          {"prefix", "strategy"},
	} {
		out, errs, code := ctl(t, transport, append([]string{"--json"}, strings.Fields(args)...)...)
		var v map[string]any
		if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil {
			t.Errorf("%s: code %d, %v: %s%s", args, code, err, out, errs)
			continue
		}
		for _, k := range keys {
			if _, ok := v[k]; !ok {
				t.Errorf("%s: no %q in %s", args, k, out)
			}
		}
	}
	// The answer to an update does not say which face it was.
	out, errs, code := ctl(t, transport, "--json", "face", "update", "udp4://127.0.0.1:19999", "--mtu", "1400")
	var face struct {
		Remote string
		MTU    int
	}
	if err := json.Unmarshal([]byte(out), &face); code != 0 || err != nil || face.Remote != "udp4://127.0.0.1:19999" || face.MTU != 1400 {
		t.Errorf("face update: code %d, %v: %s%s", code, err, out, errs)
	}
	for _, args := range []string{"face list", "route list", "fib list", "strategy list"} {
		out, errs, code := ctl(t, transport, append([]string{"--json"}, strings.Fields(args)...)...)
		var v []map[string]any
		if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil {
			t.Errorf("%s: code %d, %v: %s%s", args, code, err, out, errs)
		}
	}
}

// TestCtlEvents follows a face that comes and goes.
func TestCtlEvents(t *testing.T) {
	transport := forwarder(t)
	j := begin(t, nil, "ctl", "events", transport)
	// Whether the command already listens cannot be seen: cause events until
	// it has told of one.
	for n := 0; !strings.Contains(j.out.String(), "destroyed"); n++ {
		if n > 500 {
			t.Fatalf("no event: %s%s", j.out.String(), j.err.String())
		}
		uri := fmt.Sprintf("udp4://127.0.0.1:%d", 20000+n)
		if _, errs, code := ctl(t, transport, "face", "create", uri); code != 0 {
			t.Fatal(errs)
		}
		if _, errs, code := ctl(t, transport, "face", "destroy", uri); code != 0 {
			t.Fatal(errs)
		}
	}
	if code := j.end(errors.New("interrupt signal received")); code != exitInterrupted {
		t.Errorf("an interrupt ends events with %d", code)
	}
	if line, _, _ := strings.Cut(j.out.String(), "\n"); !strings.Contains(line, "face ") {
		t.Errorf("%q", line)
	}
}

func TestCtlUnreachable(t *testing.T) {
	_, errs, code := ctl(t, "--transport=unix:///nonexistent/nfd.sock", "status")
	if code != exitGaveUp || !strings.Contains(errs, "nfd.sock (no such file or directory);") || !strings.Contains(errs, "ndnpop run") || !strings.Contains(errs, "--transport") {
		t.Errorf("code %d: %s", code, errs)
	}
	if _, errs, code := ctl(t, "--transport=nonsense", "status"); code != exitUsage {
		t.Errorf("code %d: %s", code, errs)
	}
}

// TestCtlFromAfar: a forwarder that says nothing, because it takes us for a remote
// host, is not called overloaded.
func TestCtlFromAfar(t *testing.T) {
	for uri, want := range map[string]bool{
		"unix:///run/nfd/nfd.sock": true, "tcp4://127.0.0.1:6363": true, "tcp6://[::1]:6363": true, "tcp://localhost": true, "tcp6://[::1]": true,
		"tcp4://192.0.2.7:6363": false, "tcp://pop-paris": false, "udp4://127.0.0.1:6363": false, "ws://127.0.0.1:9696": false,
	} {
		err := (&ctlFlags{}).explain(uri, fmt.Errorf("no luck: %w", mgmt.ErrTimeout))
		var coded *codedError
		if !errors.As(err, &coded) || coded.code != exitGaveUp || strings.Contains(err.Error(), "overloaded") != want {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func TestCtlText(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_951: "1.0 MB", 1<<64 - 1: "18.4 EB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	if got := safe("udp4://\x1b[2J"); strings.ContainsRune(got, '\x1b') {
		t.Errorf("%q", got)
	}
	if got := faceFlagNames(mgmt.FaceLocalFields | mgmt.FaceMarking); fmt.Sprint(got) != "[local-fields congestion-marking]" {
		t.Errorf("%v", got)
	}
}
