package cdnbench

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func sampleResult() *Result {
	r := &Result{Scenario: "example", Seed: 7, Runs: 3, Question: "Does it <work>?", Environment: map[string]string{"os": "any"}}
	for run, v := range []float64{3, 1, 2} {
		r.Add(run, "ours", "goodput", v)
		r.Add(run, "theirs", "goodput", v/2)
	}
	r.Add(3, "ours", "goodput", math.NaN())
	r.Expect("ours to theirs", "twice", 2, 1.5, math.Inf(1))
	r.Plots = []Plot{
		{Name: "lines", Caption: "over time", Lines: []Line{{Name: "a", X: []float64{0, 1}, Y: []float64{1, 2}}}, At: []float64{0.5}},
		{Name: "boxes", Caption: "spread", Boxes: []Box{{"a", []float64{1, 2, 3}}, {"b", []float64{2, 3, 4}}}, Band: []float64{2}},
		{Name: "bars", Caption: "side by side", BarLabels: []string{"x", "y"}, Bars: []BarSet{{"a", []float64{1, 2}}, {"b", []float64{2, 1}}}},
	}
	return r
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	r := sampleResult()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := WriteIndex(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "example", "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"scenario", "seed", "runs", "environment", "arms", "checks", "calibrated", "ok"} {
		if _, ok := m[k]; !ok {
			t.Errorf("result.json lacks %q", k)
		}
	}
	if got := r.Arms["ours"]["goodput"]; got != (Stat{2, 1, 3}) {
		t.Errorf("statistics are %+v", got)
	}
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(page), "<svg"); n != 3 {
		t.Errorf("the page has %d plots, want 3", n)
	}
	if strings.Contains(string(page), "<work>") {
		t.Error("text is not escaped")
	}
	csv, err := os.ReadFile(filepath.Join(dir, "example", "samples.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(csv), "\n"); n != 7 {
		t.Errorf("samples.csv has %d lines, want 7", n)
	}
}

func TestJudge(t *testing.T) {
	known := []miss{{"example", "ours to theirs", "physics", 1}}
	r := sampleResult()
	r.judge(nil)
	if !r.OK {
		t.Error("a met check fails")
	}
	r = sampleResult()
	r.Exact = true
	r.judge(known)
	if r.OK {
		t.Error("an entry that no longer misses does not fail")
	}
	r = sampleResult()
	r.judge(known)
	if !r.OK || !r.Checks[0].OK || r.Checks[0].Known != "" {
		t.Errorf("what real processes meet here and miss elsewhere: ok %v, check %+v", r.OK, r.Checks[0])
	}
	r = sampleResult()
	r.Checks[0].OK = false
	r.judge(nil)
	if r.OK {
		t.Error("an unknown miss does not fail")
	}
	r = sampleResult()
	r.Checks[0].OK = false
	r.judge(known)
	if !r.OK || r.Checks[0].OK || r.Checks[0].Known == "" {
		t.Errorf("a known miss: ok %v, check %+v", r.OK, r.Checks[0])
	}
	r = sampleResult()
	r.judge([]miss{{"example", "gone", "old", 1}})
	if r.OK {
		t.Error("an entry without its check does not fail")
	}
	r = sampleResult()
	r.Reduced = true
	r.judge([]miss{{"example", "gone", "old", 1}, known[0]})
	if !r.OK {
		t.Error("a reduced run fails for a known miss that it does not show")
	}
	r = sampleResult()
	r.Checks[0].OK, r.Checks[0].Unjudged = false, true
	r.judge(nil)
	if !r.OK || r.Judged() > 0 || mark(r.Checks[0]) != "not judged" {
		t.Errorf("an unjudged check: ok %v, judged %d, %q", r.OK, r.Judged(), mark(r.Checks[0]))
	}
	r = sampleResult()
	r.Checks[0].Unjudged = true
	r.judge(known)
	if !r.OK || !r.Checks[0].OK {
		t.Error("an entry fails for a check that was met and not judged")
	}
	for _, c := range []struct {
		measured, low, high, figure float64
		exact, ok                   bool
	}{
		{0.90, 0.93, math.Inf(1), 0.91, true, true},  // within the tolerance
		{0.88, 0.93, math.Inf(1), 0.91, true, false}, // worse
		{0.92, 0.93, math.Inf(1), 0.91, true, true},  // better, and still a miss
		{75, math.Inf(-1), 65, 74, true, true},
		{79, math.Inf(-1), 65, 74, true, false},
		{70, math.Inf(-1), 65, 74, true, true},
		{79, math.Inf(-1), 65, 74, false, true}, // other seeds, or real processes
	} {
		r = &Result{Scenario: "example", Exact: c.exact}
		r.Expect("what", "paper", c.measured, c.low, c.high)
		r.judge([]miss{{"example", "what", "physics", c.figure}})
		if r.OK != c.ok {
			t.Errorf("%+v: %v, %q", c, r.OK, r.Checks[0].Band)
		}
	}
	r = &Result{Scenario: "example"}
	r.Expect("never ran", "", math.NaN(), 0, 1)
	r.judge(nil)
	if r.OK {
		t.Error("what was not measured passes")
	}
}

// TestIndexOrder: scenarios stand as listed, others after them, and large
// figures without an exponent.
func TestIndexOrder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		r := sampleResult()
		r.Scenario, r.Findings = name, "one\ntwo"
		r.Add(1, "ours", "bytes", 12345)
		if err := r.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteIndex(dir, "c", "b"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	at := func(name string) int { return strings.Index(page, `<h2 id="`+name+`">`) }
	if !(0 < at("c") && at("c") < at("b") && at("b") < at("a")) {
		t.Errorf("sections at %d, %d, %d", at("c"), at("b"), at("a"))
	}
	if !strings.Contains(page, "12345 [") || !strings.Contains(page, "<li>two</li>") {
		t.Error("a large figure, or a line of the findings, is not on the page as it should be")
	}
}

func TestKnownMisses(t *testing.T) {
	if _, err := knownMisses(); err != nil {
		t.Fatal(err)
	}
}

// named is a scenario that is never run.
type named struct {
	Scenario
	name string
}

func (n named) Name() string { return n.name }

func TestMisspeltMiss(t *testing.T) {
	all := []Scenario{named{name: "example"}}
	if err := misspelt([]miss{{Scenario: "example"}}, all); err != nil {
		t.Error(err)
	}
	if err := misspelt([]miss{{Scenario: "exampel"}}, all); err == nil || !strings.Contains(err.Error(), `"exampel"`) {
		t.Errorf("a scenario that there is not: %v", err)
	}
}

func TestFind(t *testing.T) {
	if _, err := Find(nil, []string{"x"}); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("an unknown scenario: %v", err)
	}
}

// TestLogTicks: an axis of little more than a decade has more than one label.
func TestLogTicks(t *testing.T) {
	var got []string
	for _, x := range logTicks(1, 20) {
		if x.Label != "" {
			got = append(got, x.Label)
		}
	}
	if s := strings.Join(got, " "); !strings.HasPrefix(s, "1 2 5 10 20") {
		t.Errorf("labels %q", s)
	}
	for _, x := range logTicks(1, 1e6) {
		if x.Label == "2" || x.Label == "5" {
			t.Error("many decades have more labels than they need")
		}
	}
}

// TestBandBesideOnePoint: figures to compare with are seen, however few points
// there are.
func TestBandBesideOnePoint(t *testing.T) {
	for _, log := range []bool{false, true} {
		p := Plot{Name: "one", XLabel: "x", YLabel: "y", Caption: "c", XLog: log, Band: []float64{0.9},
			Lines: []Line{{Name: "ours", X: []float64{0.5}, Y: []float64{0.8}, Points: true}}}
		dir := t.TempDir()
		if err := p.write(dir); err != nil {
			t.Fatal(err)
		}
		svg, err := os.ReadFile(filepath.Join(dir, "one.svg"))
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`<path d="M([0-9.]+),[0-9.]+L([0-9.]+),[0-9.]+"[^>]*dasharray`).FindStringSubmatch(string(svg))
		if m == nil || m[1] == m[2] {
			t.Errorf("log %v: the bound is drawn as %q", log, m)
		}
	}
}
