package cdnbench

import (
	_ "embed"
	"fmt"
	"math"
	"slices"

	"github.com/pelletier/go-toml/v2"
)

//go:embed known-misses.toml
var knownMissesFile []byte

// miss is a check that is known to miss, and why.
type miss struct {
	Scenario string
	Check    string // Check.What
	Reason   string
	Figure   float64 // what was measured when the reason was found
}

// missTolerance is by how much of its figure a known miss may be worse before it
// is one that nobody has explained. Figures are compared where they repeat
// exactly (Result.Exact): what is left is their rounding in the file, and
// arithmetic of other processors.
const missTolerance = 0.02

func knownMisses() ([]miss, error) {
	var f struct{ Miss []miss }
	if err := toml.Unmarshal(knownMissesFile, &f); err != nil {
		return nil, fmt.Errorf("known-misses.toml: %w", err)
	}
	type key struct{ scenario, check string }
	seen := map[key]bool{}
	for _, m := range f.Miss {
		k := key{m.Scenario, m.Check}
		switch {
		case m.Scenario == "" || m.Check == "" || m.Reason == "":
			return nil, fmt.Errorf("known-misses.toml: an entry needs scenario, check, reason and figure: %+v", m)
		case seen[k]:
			return nil, fmt.Errorf("known-misses.toml: %s: %q stands there twice", m.Scenario, m.Check)
		}
		seen[k] = true
	}
	return f.Miss, nil
}

// CheckMisses fails where known-misses.toml is malformed or names a scenario that
// is none of all.
func CheckMisses(all []Scenario) error {
	known, err := knownMisses()
	if err != nil {
		return err
	}
	return misspelt(known, all)
}

func misspelt(known []miss, all []Scenario) error {
	for _, m := range known {
		if _, err := Find(all, []string{m.Scenario}); err != nil {
			return fmt.Errorf("known-misses.toml: %w", err)
		}
	}
	return nil
}

// Unmade lists the checks that known-misses.toml has of this scenario and that
// the result does not make.
func (r *Result) Unmade() (checks []string, err error) {
	known, err := knownMisses()
	for _, m := range known {
		if m.Scenario == r.Scenario && !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.What == m.Check }) {
			checks = append(checks, m.Check)
		}
	}
	return checks, err
}

// worse reports whether a miss is worse than its figure, beyond the tolerance.
func (c *Check) worse(figure float64) bool {
	by := figure - c.Measured // of a lower bound
	if c.Measured > c.high {
		by = -by
	}
	return by > missTolerance*math.Abs(figure)
}

// judge marks known misses and sets OK. An entry whose check is gone, or does not
// miss any more where figures repeat exactly, fails: the list must not outlive its
// reasons. Real processes may meet on one machine what they miss on another.
func (r *Result) judge(known []miss) {
	r.OK = true
	if r.Checks == nil {
		r.Checks = []Check{}
	}
	for _, m := range known {
		if m.Scenario != r.Scenario {
			continue
		}
		at := -1
		for i := range r.Checks {
			if r.Checks[i].What == m.Check {
				at = i
			}
		}
		switch {
		case at < 0 && (r.Reduced || len(r.Checks) == 0), at >= 0 && (r.Checks[at].Unjudged || r.Reduced && r.Checks[at].OK):
			// A reduced run makes fewer checks, and easier ones; what is not
			// judged neither misses nor meets.
		case at < 0:
			r.Checks = append(r.Checks, Check{What: m.Check, Band: "known-misses.toml lists a check that this run does not make"})
		case r.Checks[at].OK && !r.Exact:
			r.Checks[at].Band += fmt.Sprintf("; it has been missed, with %.4g", m.Figure)
		case r.Checks[at].OK:
			c := &r.Checks[at]
			c.OK, c.Band = false, c.Band+"; it is met, so its entry in known-misses.toml must go"
		case r.Exact && r.Checks[at].worse(m.Figure):
			c := &r.Checks[at]
			c.Band += fmt.Sprintf("; it is known to miss, but was %.4g when its reason was found", m.Figure)
		default:
			r.Checks[at].Known = fmt.Sprintf("%s (measured then: %.4g)", m.Reason, m.Figure)
		}
	}
	for _, c := range r.Checks {
		r.OK = r.OK && (c.OK || c.Unjudged || c.Known != "")
	}
}
