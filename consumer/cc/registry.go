package cc

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrUnknown is wrapped by the errors about names that are not registered and
// options that an algorithm does not have.
var ErrUnknown = errors.New("unknown")

// Params is what a controller may be configured with. Zero values take the
// algorithm's defaults.
type Params struct {
	InitCwnd     float64 // first window in packets
	InitSsthresh float64 // end of the first slow start in packets
	Window       float64 // of "fixed", in packets
	MaxRate      float64 // cap in bytes per second, for algorithms with a rate
	MaxCwnd      float64 // bound of the window in packets, of any algorithm
	Seed         uint64  // of the algorithm's own randomness
	// PathMayChange: the path may become another one under the controller
	// (2LCCM). BBR's stale-guard is on then, unless Options say otherwise.
	PathMayChange bool
	// Options are the algorithm's own, by name. An unknown one is refused.
	Options map[string]string
}

// Factory makes controllers of one kind.
type Factory struct {
	Name  string
	About string // one line for help texts
	New   func(Params) (Controller, error)
}

// Registry finds factories by name.
type Registry struct {
	byName map[string]Factory
	names  []string
}

// NewRegistry refuses factories without a name and names that occur twice.
func NewRegistry(fs ...Factory) (*Registry, error) {
	r := &Registry{byName: make(map[string]Factory, len(fs))}
	for _, f := range fs {
		switch {
		case f.Name == "" || f.New == nil:
			return nil, errors.New("cc: a factory needs a name and a constructor")
		case r.byName[f.Name].New != nil:
			return nil, fmt.Errorf("cc: pipeline %q is registered twice", f.Name)
		}
		r.byName[f.Name] = f
		r.names = append(r.names, f.Name)
	}
	return r, nil
}

// Names lists the registered names in the order of registration.
func (r *Registry) Names() []string { return slices.Clone(r.names) }

// About is the one-line description of a registered name.
func (r *Registry) About(name string) string { return r.byName[name].About }

// New makes a controller. An unknown name fails with the known ones.
func (r *Registry) New(name string, p Params) (Controller, error) {
	f, ok := r.byName[name]
	if !ok {
		return nil, fmt.Errorf("%w pipeline %q; choose one of %s", ErrUnknown, name, strings.Join(r.names, ", "))
	}
	c, err := f.New(p)
	if err != nil {
		return nil, fmt.Errorf("pipeline %s: %w", name, err)
	}
	if p.MaxCwnd > 0 {
		c = newBound(c, p.MaxCwnd)
	}
	return c, nil
}

// options reads Params.Options: every accessor names a known option, and done
// refuses the others.
type options struct {
	given map[string]string
	known []string
	err   error
}

func (o *options) number(name string, def float64) float64 {
	o.known = append(o.known, name)
	s, ok := o.given[name]
	if !ok {
		return def
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v != v || v < 0 {
		o.fail(fmt.Errorf("option %s: %q is not a number of 0 or more", name, s))
		return def
	}
	return v
}

// seconds reads a number of seconds.
func (o *options) seconds(name string, def time.Duration) time.Duration {
	v := o.number(name, def.Seconds())
	if v > maxSeconds {
		o.fail(errRange(name, v, "0 to 1e6 seconds"))
		return def
	}
	return time.Duration(v * float64(time.Second))
}

const maxSeconds = 1e6

// errRange says what an option may be.
func errRange(name string, v any, want string) error {
	return fmt.Errorf("option %s: %v: want %s", name, v, want)
}

func (o *options) flag(name string, def bool) bool {
	o.known = append(o.known, name)
	s, ok := o.given[name]
	if !ok {
		return def
	}
	v, err := strconv.ParseBool(s)
	if err != nil {
		o.fail(fmt.Errorf("option %s: %q is neither true nor false", name, s))
	}
	return v
}

func (o *options) choice(name, def string, choices ...string) string {
	o.known = append(o.known, name)
	s, ok := o.given[name]
	if !ok {
		return def
	}
	if !slices.Contains(choices, s) {
		o.fail(fmt.Errorf("option %s: %w value %q; choose one of %s", name, ErrUnknown, s, strings.Join(choices, ", ")))
	}
	return s
}

func (o *options) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

func (o *options) done() error {
	for _, name := range slices.Sorted(maps.Keys(o.given)) {
		if !slices.Contains(o.known, name) {
			known := "it has none"
			if len(o.known) > 0 {
				known = "known are " + strings.Join(o.known, ", ")
			}
			o.fail(fmt.Errorf("%w option %q; %s", ErrUnknown, name, known))
		}
	}
	return o.err
}
