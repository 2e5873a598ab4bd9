package strategy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ndnpop/ndn"
)

type nothing struct{ s Suppression }

func (nothing) Interest(*Context, *Interest) {}
func (nothing) Data(*Context, *Data)         {}

func factory(name string, version uint64) Factory {
	return Factory{
		Name: name, Version: version,
		Params: append(SuppressionParams(), Param{"count", ""}, Param{"flag", ""}, Param{"word", ""}),
		New: func(v Values) (Strategy, error) {
			s, err := ParseSuppression(v)
			if err != nil {
				return nil, err
			}
			if _, err := v.Uint("count", 1); err != nil {
				return nil, err
			}
			_, err = v.Bool("flag", false)
			return nothing{s}, err
		},
	}
}

func TestResolve(t *testing.T) {
	set, err := NewSet(factory("one", 1), factory("two", 3), factory("two", 12), factory("two", 2))
	if err != nil {
		t.Fatal(err)
	}
	const base = "/localhost/nfd/strategy"
	for name, want := range map[string]string{
		"/one":     "/one/v=1",
		"/two":     "/two/v=12",
		"/two/v=2": "/two/v=2",
		"/two/v=3/retx-suppression-initial~20/count~7": "/two/v=3/retx-suppression-initial~20/count~7",
		"/two/count~7": "/two/v=12/count~7",
	} {
		st, full, err := set.Resolve(ndn.MustName(base + name))
		if err != nil || st == nil || full.String() != base+want {
			t.Errorf("%s: %s %v", name, full, err)
		}
	}
	for _, c := range []struct {
		name string
		is   error
		says string
	}{
		{base + "/three", ErrUnknown, "/one/v=1"},
		{base, ErrUnknown, "/two/v=12"},
		{"/one", ErrUnknown, "/two/v=2"},
		{base + "/two/v=4", ErrVersion, "/two/v=3"},
		{base + "/one/colour~red", ErrParam, "retx-suppression-max"},
		{base + "/one/count", ErrParam, "name~value"},
		{base + "/one/count~1/count~2", ErrParam, "twice"},
		{base + "/one/count~x", ErrParam, "integer"},
		{base + "/one/count~-1", ErrParam, "integer"},
		{base + "/one/flag~2", ErrParam, "true or false"},
		{base + "/one/retx-suppression-initial~0", ErrParam, "at least 1"},
		{base + "/one/retx-suppression-initial~99999999999999999", ErrParam, "too long"},
		{base + "/one/retx-suppression-max~5", ErrParam, "less than"},
		{base + "/one/retx-suppression-multiplier~0.5", ErrParam, "1 to 1000"},
		{base + "/one/retx-suppression-multiplier~NaN", ErrParam, "number"},
		{base + "/one/8=count~1/seg=1", ErrParam, "name~value"},
	} {
		_, _, err := set.Resolve(ndn.MustName(c.name))
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestNameFromParameters(t *testing.T) {
	set, err := NewSet(factory("two", 12), factory("two", 2))
	if err != nil {
		t.Fatal(err)
	}
	n, err := set.Name("two", map[string]string{"word": "x", "count": "3"})
	if err != nil || n.String() != "/localhost/nfd/strategy/two/v=12/count~3/word~x" {
		t.Fatalf("%s %v", n, err)
	}
	if _, err := set.Name("two", map[string]string{"no": "1"}); !errors.Is(err, ErrParam) {
		t.Fatal(err)
	}
	if _, err := set.Name("tow", nil); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "two/v=2") {
		t.Fatal(err)
	}
}

func TestDuplicatesFail(t *testing.T) {
	if _, err := NewSet(factory("a", 1), factory("b", 1), factory("a", 1)); !errors.Is(err, ErrDuplicate) {
		t.Fatal(err)
	}
	if _, err := NewSet(Factory{Name: "a"}); err == nil {
		t.Fatal("a factory that makes nothing")
	}
}

func TestSuppressionGrows(t *testing.T) {
	s := DefaultSuppression()
	want := []time.Duration{20, 40, 80, 160, 250, 250}
	d := s.Initial
	for _, w := range want {
		if d = s.Next(d); d != w*time.Millisecond {
			t.Fatalf("%v, want %d ms", d, w)
		}
	}
}
