package cdnbench

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Stat summarises the runs of one metric.
type Stat struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Check holds one measured figure against its band.
type Check struct {
	What     string  `json:"what"`
	Paper    string  `json:"paper"` // what the paper or the target says, in words
	Measured float64 `json:"measured"`
	Band     string  `json:"band"`
	OK       bool    `json:"ok"`
	// Unjudged checks are shown and count for nothing: what was measured cannot
	// carry a judgement.
	Unjudged bool `json:"unjudged,omitempty"`
	// Known is why a miss is accepted for now (known-misses.toml). It is still
	// a miss.
	Known string `json:"known,omitempty"`

	low, high float64 // Band
}

// Result is what one scenario reports (result.json).
type Result struct {
	Scenario    string                     `json:"scenario"`
	Seed        uint64                     `json:"seed"`
	Runs        int                        `json:"runs"`
	Environment map[string]string          `json:"environment"`
	Arms        map[string]map[string]Stat `json:"arms"`
	Checks      []Check                    `json:"checks"`
	// Calibrated says in words what was fitted to a paper, empty if nothing.
	Calibrated string `json:"calibrated"`
	OK         bool   `json:"ok"` // every check is met, or a known miss
	// Reduced runs are shorter than the experiment: known misses that do not
	// show in them are not held against the list.
	Reduced bool `json:"reduced,omitempty"`
	// Exact runs repeat exactly, in virtual time, with the seeds that the figures
	// of known misses are from: a miss must not be worse than its figure.
	Exact bool `json:"exact,omitempty"`

	// For the report: what was asked, how it was set up, and what the figures
	// say, also where they do not favour us. Each in plain sentences.
	Question string `json:"question,omitempty"`
	Setup    string `json:"setup,omitempty"`
	Findings string `json:"findings,omitempty"`
	Plots    []Plot `json:"plots,omitempty"`

	samples []sample
	order   []string // arms in the order of their first sample
}

type sample struct {
	run         int
	arm, metric string
	value       float64
}

// Add records one measured value. What is no number was not measured and leaves
// no sample.
func (r *Result) Add(run int, arm, metric string, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	if !slices.Contains(r.order, arm) {
		r.order = append(r.order, arm)
	}
	r.samples = append(r.samples, sample{run, arm, metric, value})
}

// ArmNames lists the arms in the order of their first sample.
func (r *Result) ArmNames() []string { return r.order }

// Values returns the samples of one metric by run.
func (r *Result) Values(arm, metric string) []float64 {
	var v []float64
	for _, s := range r.samples {
		if s.arm == arm && s.metric == metric {
			v = append(v, s.value)
		}
	}
	return v
}

// Summarise computes the statistics of each arm. It is called again after
// further samples.
func (r *Result) Summarise() {
	r.Arms = map[string]map[string]Stat{}
	for _, s := range r.samples {
		m := r.Arms[s.arm]
		if m == nil {
			m = map[string]Stat{}
			r.Arms[s.arm] = m
		}
		if _, done := m[s.metric]; !done {
			m[s.metric] = Summary(r.Values(s.arm, s.metric))
		}
	}
}

// Expect adds a check that low ≤ measured ≤ high; an infinite bound is open.
// What is no number (an arm that never finished, say) fails.
func (r *Result) Expect(what, paper string, measured, low, high float64) {
	ok := measured >= low && measured <= high
	if math.IsNaN(measured) || math.IsInf(measured, 0) {
		measured, ok, what = 0, false, what+" (not measured)"
	}
	band := fmt.Sprintf("%.4g to %.4g", low, high)
	switch {
	case math.IsInf(high, 1):
		band = fmt.Sprintf("at least %.4g", low)
	case math.IsInf(low, -1):
		band = fmt.Sprintf("at most %.4g", high)
	}
	r.Checks = append(r.Checks, Check{What: what, Paper: paper, Measured: measured, Band: band, OK: ok, low: low, high: high})
}

// Summary returns median, smallest and largest of values.
func Summary(values []float64) Stat {
	if len(values) == 0 {
		return Stat{}
	}
	v := slices.Clone(values)
	slices.Sort(v)
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (v[len(v)/2-1] + mid) / 2
	}
	return Stat{mid, v[0], v[len(v)-1]}
}

// Write judges the checks and writes DIR/SCENARIO/: result.json, samples.csv,
// the plots and report.md.
func (r *Result) Write(dir string) error {
	known, err := knownMisses()
	if err != nil {
		return err
	}
	r.Summarise()
	r.judge(known)
	dir = filepath.Join(dir, r.Scenario)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := range r.Plots {
		if err := r.Plots[i].write(dir); err != nil {
			return fmt.Errorf("plot %s: %w", r.Plots[i].Name, err)
		}
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, resultFile), append(b, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.md"), r.markdown(), 0o644); err != nil {
		return err
	}
	var samples bytes.Buffer
	if err := r.writeSamples(&samples); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "samples.csv"), samples.Bytes(), 0o644)
}

const resultFile = "result.json"

func (r *Result) writeSamples(w io.Writer) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"run", "arm", "metric", "value"}}
	for _, s := range r.samples {
		rows = append(rows, []string{strconv.Itoa(s.run), s.arm, s.metric, strconv.FormatFloat(s.value, 'g', -1, 64)})
	}
	return c.WriteAll(rows)
}
