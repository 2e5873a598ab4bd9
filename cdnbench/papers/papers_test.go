package papers

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndnpop/cdnbench"
)

// tinies are all scenarios, too short for their figures to mean anything.
func tinies() []cdnbench.Scenario {
	return []cdnbench.Scenario{
		Loss{true}, Replica{true}, Fairness{true}, MpcSingle{true}, MpcFlows{true}, MpcBuffers{true}, Mixture{true}, Marking{true},
		HopByHop{true}, HopFairness{true}, CdnSim{true}, Scale{true},
	}
}

// TestScenarios runs each scenario in small and reads what it wrote.
func TestScenarios(t *testing.T) {
	for _, s := range tinies() {
		t.Run(s.Name(), func(t *testing.T) {
			t.Parallel()
			r, err := s.Run(context.Background(), cdnbench.Options{Seed: 1, Runs: 1, Quick: true, Log: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := r.Write(dir); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(dir, s.Name(), "result.json"))
			if err != nil {
				t.Fatal(err)
			}
			var m map[string]any
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatal(err)
			}
			for _, k := range []string{"scenario", "seed", "runs", "environment", "arms", "checks", "calibrated", "ok", "question", "setup", "findings", "plots"} {
				if _, ok := m[k]; !ok {
					t.Errorf("result.json lacks %q", k)
				}
			}
			if r.Calibrated == "" {
				t.Error("does not say what was fitted, or that nothing was")
			}
			if len(r.Checks) < 4 || len(r.Plots) < 3 || len(r.Arms) < 2 {
				t.Errorf("%d checks, %d plots, %d arms", len(r.Checks), len(r.Plots), len(r.Arms))
			}
			for _, p := range r.Plots {
				for _, label := range []string{p.XLabel, p.YLabel} {
					if slices.Contains([]string{"s", "ms", "seconds", "kB", "MB", "kbit/s", "Mbit/s", "packets", "segments", "%"}, label) {
						t.Errorf("an axis of %s says %q and not what of", p.Name, label)
					}
				}
				if _, err := os.Stat(filepath.Join(dir, s.Name(), p.Name+".svg")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestKnownMissesAreMade: each known miss of an experiment in virtual time is of a
// check that it makes.
func TestKnownMissesAreMade(t *testing.T) {
	for _, s := range tinies() {
		if unmade, err := (&cdnbench.Result{Scenario: s.Name()}).Unmade(); err != nil || len(unmade) == 0 {
			continue // none of its own
		}
		t.Run(s.Name(), func(t *testing.T) {
			t.Parallel()
			r, err := s.Run(context.Background(), cdnbench.Options{Seed: 1, Runs: 1, Log: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			if unmade, err := r.Unmade(); err != nil || len(unmade) > 0 {
				t.Errorf("known-misses.toml has checks that are not made: %q, %v", unmade, err)
			}
		})
	}
}

// TestRepeats: the same seed gives the same figures, and that a run is done is
// no matter for the log.
func TestRepeats(t *testing.T) {
	run := func() map[string]map[string]cdnbench.Stat {
		var log, progress strings.Builder
		r, err := Loss{true}.Run(context.Background(), cdnbench.Options{Seed: 5, Runs: 2, Quick: true, Log: &log, Progress: &progress})
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(progress.String(), "\n"); n != 2*len(r.Arms) || log.Len() > 0 {
			t.Errorf("%d lines of progress for %d arms; logged: %s", n, len(r.Arms), log.String())
		}
		return r.Arms
	}
	a, b := run(), run()
	for arm, metrics := range a {
		for k, v := range metrics {
			if b[arm][k] != v {
				t.Errorf("%s, %s: %v and %v", arm, k, v, b[arm][k])
			}
		}
	}
}

// TestCancelled: a run ends when its context does.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (MpcFlows{true}).Run(ctx, cdnbench.Options{Seed: 1, Quick: true}); err == nil {
		t.Error("a run without time succeeds")
	}
}

func TestStatistics(t *testing.T) {
	if j := jain([]float64{1, 1, 1, 1}); j != 1 {
		t.Errorf("Jain's index of equals is %g", j)
	}
	if j := jain([]float64{1, 0}); j != 0.5 {
		t.Errorf("Jain's index when one has all is %g", j)
	}
	if v := variation([]float64{1, 3}); v != 0.5 {
		t.Errorf("variation %g", v)
	}
	if m := median([]float64{3, 1, 2}); m != 2 || !math.IsNaN(median(nil)) {
		t.Errorf("median %g", m)
	}
	x, y := thin(make([]float64, 1000), make([]float64, 1000))
	if len(x) > points || len(x) != len(y) {
		t.Errorf("%d points of 1000", len(x))
	}
}
