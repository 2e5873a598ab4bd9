package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"ndnpop/face"
	"ndnpop/face/udp"
	"ndnpop/fw/run"
	"ndnpop/internal/testbin"
)

const repo = "../../.." // of the repository

// gathered starts a daemon that has something to tell of everything, and
// returns the names of what it tells and what is wrong with ours.
func gathered(t *testing.T) (names []string, problems []promlint.Problem) {
	t.Helper()
	addr := free(t)
	d, _ := startDaemon(t, fmt.Sprintf(`
faces.unix.path = ""
faces.udp.listen = [%q]
faces.tcp.listen = []
admin.listen = ""
[[face]]
uri = "udp4://127.0.0.1:9"
name = "peer"
`, addr))
	tr, err := udp.Dial(addr, udp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = tr.Serve(&counter{}); close(done) }()
	defer func() { _ = tr.Close(); <-done }()
	idle := face.Frames{Buf: []byte{0x64, 0}, Ends: []int{2}}
	tr.Send(&idle)
	eventually(t, "a face on demand", func() bool {
		return slices.ContainsFunc(d.fwd.Faces(), func(i run.FaceInfo) bool { return i.Persistency == face.PersistencyOnDemand })
	})
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(newMetrics(d), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		names = append(names, m.GetName())
	}
	if problems, err = promlint.NewWithMetricFamilies(all).Lint(); err != nil {
		t.Fatal(err)
	}
	return names, slices.DeleteFunc(problems, func(p promlint.Problem) bool { return !isOurs(p.Metric) })
}

func isOurs(metric string) bool { return strings.HasPrefix(metric, "ndnpop_") }

func TestMetricsAreWellNamed(t *testing.T) {
	names, problems := gathered(t)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if len(names) < 40 {
		t.Errorf("only %d metrics", len(names))
	}
}

var metricName = regexp.MustCompile(`\b(?:ndnpop|process|go)_[a-z0-9_]+\b`)

// TestMetricsAreDocumented: docs/operations.md names every metric and none
// that does not exist.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repo, "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	have, _ := gathered(t)
	said := metricName.FindAllString(string(text), -1)
	for _, m := range have {
		if isOurs(m) && !slices.Contains(said, m) {
			t.Errorf("docs/operations.md lacks %s", m)
		}
	}
	for _, m := range said {
		if isOurs(m) && !slices.Contains(have, m) {
			t.Errorf("docs/operations.md names %s, which does not exist", m)
		}
	}
}

// TestDashboard: it is a dashboard, and each of its panels asks for metrics
// that exist.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repo, "deploy/grafana-dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title         string
		SchemaVersion int
		Panels        []struct {
			ID      int
			Type    string
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	have, _ := gathered(t)
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("panel %d is there twice", p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("panel %q asks nothing", p.Title)
		}
		for _, q := range p.Targets {
			names := metricName.FindAllString(q.Expr, -1)
			if len(names) == 0 {
				t.Errorf("panel %q: no metric in %s", p.Title, q.Expr)
			}
			for _, n := range names {
				if !slices.Contains(have, n) {
					t.Errorf("panel %q: %s does not exist", p.Title, n)
				}
			}
		}
	}
	if board.Title == "" || board.SchemaVersion == 0 || len(board.Panels) < 10 {
		t.Errorf("dashboard %q, schema %d, %d panels", board.Title, board.SchemaVersion, len(board.Panels))
	}
}

// TestUnit: systemd understands every line of the unit.
func TestUnit(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repo, "deploy/ndnpop.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Type=notify", "ExecStartPre=/usr/bin/ndnpop check ", "NoNewPrivileges=yes", "ProtectSystem=strict",
		"CapabilityBoundingSet=\n", "RuntimeDirectory=nfd", "Restart=on-failure", "StartLimitIntervalSec=0",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the unit lacks %s", want)
		}
	}
	tool, err := exec.LookPath("systemd-analyze")
	testbin.Need(t, err)
	// It must find the programs that the unit starts.
	dir := t.TempDir()
	bin, unit := filepath.Join(dir, "ndnpop"), filepath.Join(dir, "ndnpop.service")
	if err := os.WriteFile(bin, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "/usr/bin/ndnpop", bin)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// TestLocalhopWithoutRule: remote registration that is on and allows nobody
// anything is warned of, at the start and when the file is read again.
func TestLocalhopWithoutRule(t *testing.T) {
	const says, effect = "remote hosts may register nothing", "has no effect"
	on := quiet + "faces.unix.path = \"\"\nmgmt.localhop = true\n"
	rule := on + "[[mgmt.authorize]]\nmodules = [\"rib\"]\nfaces = \"any\"\nany_signature = true\n"
	d, log := startDaemon(t, on)
	if n := strings.Count(log.String(), says); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log)
	}
	d.Reload(parse(t, rule))
	if n := strings.Count(log.String(), says); n != 1 {
		t.Errorf("%d warnings with a rule:\n%s", n, log)
	}
	d.Reload(parse(t, on+"shards.prefix_components = 5\n"))
	if n := strings.Count(log.String(), says); n != 2 {
		t.Errorf("%d warnings without it again:\n%s", n, log)
	}
	if n := strings.Count(log.String(), effect); n != 1 {
		t.Errorf("%d warnings of shards.prefix_components:\n%s", n, log)
	}
}
