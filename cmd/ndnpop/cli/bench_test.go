package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndnpop/cdnbench"
)

// TestBenchList: what is listed is the same with and without --json.
func TestBenchList(t *testing.T) {
	table, asJSON := begin(t, nil, "bench", "list"), begin(t, nil, "bench", "list", "--json")
	if table.wait() != exitDone || asJSON.wait() != exitDone {
		t.Fatal(table.err.String(), asJSON.err.String())
	}
	var list []scenarioJSON
	if err := json.Unmarshal([]byte(asJSON.out.String()), &list); err != nil || len(list) != len(scenarios()) {
		t.Fatalf("%d scenarios, %v", len(list), err)
	}
	for _, s := range list {
		if s.Name == "" || s.About == "" || !strings.Contains(table.out.String(), s.Name+" ") {
			t.Errorf("%+v is not in the table", s)
		}
	}
}

// TestPrintResult: a run in which not everything was judged says so.
func TestPrintResult(t *testing.T) {
	for _, unjudged := range []bool{false, true} {
		var out strings.Builder
		r := &cdnbench.Result{Scenario: "x"}
		r.Expect("bytes", "all", 1, 1, 1)
		r.Expect("time", "short", 1, 0, 2)
		r.Checks[1].Unjudged = unjudged
		if err := printResult(&env{stdout: &out}, r); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "x: 1 of 2 checks were judged"); got != unjudged {
			t.Errorf("unjudged %v:\n%s", unjudged, out.String())
		}
	}
}

// TestBenchRunRefuses: what cannot end well fails before anything runs.
func TestBenchRunRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := begin(t, nil, "bench", "run", "marking", "--quick", "--out", filepath.Join(file, "x"))
	if code := out.wait(); code != exitFailed || !strings.Contains(out.err.String(), "--out") || out.out.String() != "" {
		t.Errorf("a directory that cannot be made: %d, %q, %q", code, out.err.String(), out.out.String())
	}
	unknown := begin(t, nil, "bench", "run", "cnd")
	if code := unknown.wait(); code != exitUsage || !strings.Contains(unknown.err.String(), "cdn-ttfb") || !strings.Contains(unknown.err.String(), "papers, cdn, all") {
		t.Errorf("an unknown scenario: %d, %q", code, unknown.err.String())
	}
}

// TestBenchProgress: what is done is told on a terminal only, unless asked for.
func TestBenchProgress(t *testing.T) {
	e := &env{stderr: new(strings.Builder)}
	for when, told := range map[string]bool{"auto": false, "always": true, "never": false} {
		if w, err := benchProgress(e, when); (w != nil) != told || err != nil {
			t.Errorf("%s: %v, %v", when, w, err)
		}
	}
	j := begin(t, nil, "bench", "run", "marking", "--progress", "sometimes")
	if code := j.wait(); code != exitUsage || !strings.Contains(j.err.String(), "auto, always, never") {
		t.Errorf("code %d, %s", code, j.err.String())
	}
}

// TestKnownMissesAreOfScenarios: each known miss is of an experiment that there
// is.
func TestKnownMissesAreOfScenarios(t *testing.T) {
	if err := cdnbench.CheckMisses(scenarios()); err != nil {
		t.Error(err)
	}
}

// unready is an experiment that cannot begin, and must not.
type unready struct {
	cdnbench.Scenario
	err error
}

func (unready) Name() string                                      { return "unready" }
func (u unready) Prepare(context.Context, cdnbench.Options) error { return u.err }

// TestBenchPrepares: what is missing is told all at once, before anything runs.
func TestBenchPrepares(t *testing.T) {
	found := []cdnbench.Scenario{unready{err: errors.New("no curl")}, unready{}, unready{err: errors.New("no nginx")}}
	err := prepare(t.Context(), found, cdnbench.Options{})
	if err == nil || !strings.Contains(err.Error(), "no curl") || !strings.Contains(err.Error(), "no nginx") {
		t.Errorf("%v", err)
	}
	if err := prepare(t.Context(), found[1:2], cdnbench.Options{}); err != nil {
		t.Error(err)
	}
}

// TestBenchCompletion: scenarios and groups are offered with what they are about.
func TestBenchCompletion(t *testing.T) {
	j := begin(t, nil, "__complete", "bench", "run", "")
	if code := j.wait(); code != 0 {
		t.Fatal(j.err.String())
	}
	out := j.out.String()
	want := []string{"papers\n", "cdn\n", "all\n"}
	for _, s := range scenarios() {
		want = append(want, s.Name()+"\t"+s.About())
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("no %q in %q", w, out)
		}
	}
}
