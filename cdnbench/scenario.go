package cdnbench

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// DefaultSeed is the seed of runs that are given none.
const DefaultSeed = 1

// Options of a run of a scenario.
type Options struct {
	Runs  int    // 0: the scenario's own number
	Seed  uint64 // of everything that is random
	Quick bool   // a reduced set for continuous integration
	// OneWay reads the delays of the CDN experiments' topology as one way,
	// instead of round trip.
	OneWay bool
	// Ndnpop is the path of this program, which scenarios with real processes
	// start.
	Ndnpop string
	// Cache is a directory where built peers are kept, made when there is one;
	// empty: there is no place.
	Cache string
	// Log takes a line for what does not go as it should.
	Log io.Writer
	// Progress takes a line for each run that is done; nil: nobody watches.
	Progress io.Writer
}

// Did tells who watches what is done.
func (o Options) Did(format string, args ...any) {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, format+"\n", args...)
	}
}

// Scenario is one experiment.
type Scenario interface {
	Name() string
	// About says in a line what question it answers.
	About() string
	Run(ctx context.Context, o Options) (*Result, error)
}

// Preparer is a Scenario that needs programs or rights.
type Preparer interface {
	// Prepare installs what is absent, and fails, saying what to do, where a run
	// with these options could not begin. It is called before anything runs.
	Prepare(ctx context.Context, o Options) error
}

// Find returns the scenarios of these names, in this order; an unknown name
// is an error that lists the choices.
func Find(all []Scenario, names []string) ([]Scenario, error) {
	var found []Scenario
	for _, n := range names {
		var s Scenario
		var known []string
		for _, c := range all {
			if known = append(known, c.Name()); c.Name() == n {
				s = c
			}
		}
		if s == nil {
			return nil, fmt.Errorf("there is no scenario %q; choose from %s", n, strings.Join(known, ", "))
		}
		found = append(found, s)
	}
	return found, nil
}

// Environment describes the machine that a result was measured on.
func Environment() map[string]string {
	env := map[string]string{
		"os": runtime.GOOS + "/" + runtime.GOARCH, "go": runtime.Version(),
		"cpus": fmt.Sprint(runtime.NumCPU()),
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		env["kernel"] = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				env["cpu"] = strings.TrimSpace(v)
				break
			}
		}
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		env["load_before"] = strings.TrimSpace(string(b))
	}
	return env
}
