package strategy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ndnpop/ndn"
)

// Errors of the registry. The messages that wrap them list the choices.
var (
	ErrUnknown   = errors.New("unknown strategy")
	ErrVersion   = errors.New("unknown version of the strategy")
	ErrParam     = errors.New("bad strategy parameter")
	ErrDuplicate = errors.New("strategy is registered twice")
)

// root is the prefix of all strategy names.
var root = ndn.MustName("/localhost/nfd/strategy")

// Param documents one parameter of a strategy.
type Param struct{ Name, Usage string }

// Factory makes instances of one version of a strategy.
type Factory struct {
	// Name is the short name, such as "best-route".
	Name    string
	Version uint64
	Usage   string  // one line
	Params  []Param // all that are accepted
	// New makes an instance; every prefix that chooses the strategy has its
	// own. The values have names out of Params; New checks them.
	New func(v Values) (Strategy, error)
}

// FullName is the name that chooses this version, without parameters:
// /localhost/nfd/strategy/<name>/v=<version>.
func (f *Factory) FullName() ndn.Name {
	return root.Clone().AppendGeneric(f.Name).AppendNumber(ndn.TypeVersion, f.Version)
}

// Set is a set of strategies to choose from.
type Set struct{ all []Factory }

// NewSet makes a set. Two factories with the same name and version, or one
// that is incomplete, are an error.
func NewSet(fs ...Factory) (*Set, error) {
	s := &Set{all: slices.Clone(fs)}
	slices.SortFunc(s.all, func(a, b Factory) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		if a.Version < b.Version {
			return -1
		} else if a.Version > b.Version {
			return 1
		}
		return 0
	})
	for i := range s.all {
		f := &s.all[i]
		if f.Name == "" || f.New == nil {
			return nil, fmt.Errorf("strategy %q: a name and New are needed", f.Name)
		}
		if i > 0 && f.Name == s.all[i-1].Name && f.Version == s.all[i-1].Version {
			return nil, fmt.Errorf("%w: %s version %d", ErrDuplicate, f.Name, f.Version)
		}
	}
	return s, nil
}

// Factories lists the strategies, by name and version.
func (s *Set) Factories() []Factory { return slices.Clone(s.all) }

// Name makes the full name of a strategy from its short name ("best-route"),
// in its newest version, with parameters in the order of their names. It
// fails as Resolve does.
func (s *Set) Name(short string, params map[string]string) (ndn.Name, error) {
	n := root.Clone().AppendGeneric(short)
	f, err := s.find(n, short, nil)
	if err != nil {
		return nil, err
	}
	n = f.FullName()
	keys := make([]string, 0, len(params))
	for k := range params {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		n = n.AppendGeneric(k + "~" + params[k])
	}
	if _, err := f.values(n.Suffix(root.Len() + 2)); err != nil {
		return nil, err
	}
	return n, nil
}

// Resolve makes an instance of the strategy that a name chooses. A name
// without a version chooses the newest. full is the name with its version and
// parameters.
func (s *Set) Resolve(name ndn.Name) (st Strategy, full ndn.Name, err error) {
	if !name.HasPrefix(root) || name.Len() == root.Len() {
		return nil, nil, fmt.Errorf("%w %s: the choices are %s", ErrUnknown, name, s.choices())
	}
	c, rest := name[len(root):].Next()
	var version *uint64
	if len(rest) > 0 {
		v, after := rest.Next()
		if v.Type == ndn.TypeVersion {
			n, ok := v.Number()
			if !ok {
				return nil, nil, fmt.Errorf("%w: %s", ErrVersion, name)
			}
			version, rest = &n, after
		}
	}
	f, err := s.find(name, string(c.Value), version)
	if err != nil {
		return nil, nil, err
	}
	v, err := f.values(rest)
	if err != nil {
		return nil, nil, err
	}
	if st, err = f.New(v); err != nil {
		return nil, nil, err
	}
	return st, append(f.FullName(), rest...), nil
}

func (s *Set) find(name ndn.Name, short string, version *uint64) (*Factory, error) {
	var newest *Factory
	for i := range s.all {
		if f := &s.all[i]; f.Name == short {
			if version != nil && *version == f.Version {
				return f, nil
			}
			newest = f
		}
	}
	switch {
	case newest == nil:
		return nil, fmt.Errorf("%w %s: the choices are %s", ErrUnknown, name, s.choices())
	case version != nil:
		return nil, fmt.Errorf("%w: %s has no version %d: the choices are %s", ErrVersion, short, *version, s.choices())
	}
	return newest, nil
}

func (s *Set) choices() string {
	names := make([]string, len(s.all))
	for i := range s.all {
		names[i] = s.all[i].FullName().String()
	}
	return strings.Join(names, ", ")
}

// Values are the parameters given for one instance.
type Values struct {
	strategy string
	kv       [][2]string
}

func (f *Factory) values(n ndn.Name) (Values, error) {
	v := Values{strategy: f.Name}
	for len(n) > 0 {
		var c ndn.Component
		c, n = n.Next()
		key, val, ok := strings.Cut(string(c.Value), "~")
		if c.Type != ndn.TypeGeneric || !ok {
			return v, fmt.Errorf("%w: %s: %q is not of the form name~value", ErrParam, f.Name, c.Value)
		}
		if !slices.ContainsFunc(f.Params, func(p Param) bool { return p.Name == key }) {
			return v, fmt.Errorf("%w: %s has no parameter %q: %s", ErrParam, f.Name, key, f.known())
		}
		if _, dup := v.get(key); dup {
			return v, fmt.Errorf("%w: %s: %s is given twice", ErrParam, f.Name, key)
		}
		v.kv = append(v.kv, [2]string{key, val})
	}
	return v, nil
}

func (f *Factory) known() string {
	if len(f.Params) == 0 {
		return "it takes none"
	}
	names := make([]string, len(f.Params))
	for i, p := range f.Params {
		names[i] = p.Name
	}
	return "the known ones are " + strings.Join(names, ", ")
}

func (v Values) get(key string) (string, bool) {
	for _, p := range v.kv {
		if p[0] == key {
			return p[1], true
		}
	}
	return "", false
}

func (v Values) bad(key, why string) error {
	s, _ := v.get(key)
	return fmt.Errorf("%w: %s: %s~%s %s", ErrParam, v.strategy, key, s, why)
}

// String returns a parameter, or def when it was not given.
func (v Values) String(key, def string) string {
	if s, ok := v.get(key); ok {
		return s
	}
	return def
}

// Uint returns a parameter as a non-negative integer.
func (v Values) Uint(key string, def uint64) (uint64, error) {
	s, ok := v.get(key)
	if !ok {
		return def, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return def, v.bad(key, "is not a non-negative integer")
	}
	return n, nil
}

// Float returns a parameter as a finite number.
func (v Values) Float(key string, def float64) (float64, error) {
	s, ok := v.get(key)
	if !ok {
		return def, nil
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n-n != 0 {
		return def, v.bad(key, "is not a number")
	}
	return n, nil
}

// Millis returns a parameter in milliseconds as a duration.
func (v Values) Millis(key string, def time.Duration) (time.Duration, error) {
	n, err := v.Uint(key, uint64(def/time.Millisecond))
	if err == nil && n > uint64(ndn.MaxLifetime/time.Millisecond) {
		err = v.bad(key, "is too long")
	}
	return time.Duration(n) * time.Millisecond, err
}

// Bool returns a parameter as true or false.
func (v Values) Bool(key string, def bool) (bool, error) {
	s, ok := v.get(key)
	if !ok {
		return def, nil
	}
	b, err := strconv.ParseBool(s)
	if err != nil {
		return def, v.bad(key, "is not true or false")
	}
	return b, nil
}

// UintIn is Uint with limits.
func (v Values) UintIn(key string, def, least, most uint64) (uint64, error) {
	n, err := v.Uint(key, def)
	if err == nil && (n < least || n > most) {
		err = v.bad(key, fmt.Sprintf("must be from %d to %d", least, most))
	}
	return n, err
}

// FloatIn is Float with limits.
func (v Values) FloatIn(key string, def, least, most float64) (float64, error) {
	n, err := v.Float(key, def)
	if err == nil && (n < least || n > most) {
		err = v.bad(key, fmt.Sprintf("must be from %g to %g", least, most))
	}
	return n, err
}

// MillisIn is Millis with limits.
func (v Values) MillisIn(key string, def, least, most time.Duration) (time.Duration, error) {
	n, err := v.Millis(key, def)
	if err == nil && (n < least || n > most) {
		err = v.bad(key, fmt.Sprintf("must be from %d to %d", least.Milliseconds(), most.Milliseconds()))
	}
	return n, err
}
