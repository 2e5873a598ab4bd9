package cdnbench

import (
	_ "embed"
	"fmt"

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

func knownMisses() ([]miss, error) {
	var f struct{ Miss []miss }
	if err := toml.Unmarshal(knownMissesFile, &f); err != nil {
		return nil, fmt.Errorf("known-misses.toml: %w", err)
	}
	for _, m := range f.Miss {
		if m.Scenario == "" || m.Check == "" || m.Reason == "" {
			return nil, fmt.Errorf("known-misses.toml: an entry needs scenario, check, reason and figure: %+v", m)
		}
	}
	return f.Miss, nil
}

// judge marks known misses and sets OK. An entry that does not miss any more,
// or whose check is gone, fails: the list must not outlive its reasons.
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
		case r.Checks[at].OK:
			c := &r.Checks[at]
			c.OK, c.Band = false, c.Band+"; it is met, so its entry in known-misses.toml must go"
		default:
			r.Checks[at].Known = fmt.Sprintf("%s (measured then: %.4g)", m.Reason, m.Figure)
		}
	}
	for _, c := range r.Checks {
		r.OK = r.OK && (c.OK || c.Unjudged || c.Known != "")
	}
}
