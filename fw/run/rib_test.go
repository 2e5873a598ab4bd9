package run

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndnpop/ndn"
)

// naiveFIB computes next hops from the rules, entry by entry.
func naiveFIB(routes map[string]Route) map[string]map[ndn.FaceID]uint64 {
	byPrefix := map[string][]Route{}
	for _, r := range routes {
		byPrefix[string(r.Prefix)] = append(byPrefix[string(r.Prefix)], r)
	}
	fib := map[string]map[ndn.FaceID]uint64{}
	for p, own := range byPrefix {
		hops := map[ndn.FaceID]uint64{}
		capture := false
		for _, r := range own {
			if c, ok := hops[r.Face]; !ok || r.Cost < c {
				hops[r.Face] = r.Cost
			}
			capture = capture || r.Capture
		}
		name := ndn.Name(p)
		for k := name.Len() - 1; k >= 0 && !capture; k-- {
			level := map[ndn.FaceID]uint64{}
			for _, r := range byPrefix[string(name.Prefix(k))] {
				if c, ok := level[r.Face]; r.ChildInherit && (!ok || r.Cost < c) {
					level[r.Face] = r.Cost
				}
				capture = capture || r.Capture
			}
			for id, c := range level {
				if _, ok := hops[id]; !ok {
					hops[id] = c
				}
			}
		}
		fib[p] = hops
	}
	return fib
}

// TestManagementCannotBeTakenOver: nobody but management has a route to what it
// answers.
func TestManagementCannotBeTakenOver(t *testing.T) {
	f := start(t, Options{})
	_, id := memApp(t, f, nil)
	for name, want := range map[string]error{
		"/localhost/nfd": ErrReservedPrefix, "/localhost/nfd/rib/register": ErrReservedPrefix,
		"/localhost": nil, "/localhost/nlsr": nil, "/localhop/nfd": nil, "/": nil,
	} {
		n := ndn.MustName(name)
		if err := f.AddRoute(Route{Prefix: n, Face: id}); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("route %s: %v", name, err)
		}
		if err := f.SetNextHop(n, id, 0); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("next hop %s: %v", name, err)
		}
	}
	if err := f.SetNextHop(ndn.MustName("/localhost/nfd"), InternalFace, 0); err != nil {
		t.Error(err)
	}
}

func TestRIBAgainstNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fib := map[string]map[ndn.FaceID]uint64{}
		b := newRIB(40, func(c fibChange) {
			hops := fib[string(c.prefix)]
			if c.remove {
				delete(hops, c.face)
				if len(hops) == 0 {
					delete(fib, string(c.prefix))
				}
				return
			}
			if hops == nil {
				hops = map[ndn.FaceID]uint64{}
				fib[string(c.prefix)] = hops
			}
			hops[c.face] = c.cost
		})
		model := map[string]Route{}
		key := func(r *Route) string { return fmt.Sprintf("%s %d %d", r.Prefix, r.Face, r.Origin) }
		var prefixes []ndn.Name
		for _, p := range []string{"/", "/a", "/a/b", "/a/b/c", "/a/d", "/e", "/e/f/g"} {
			prefixes = append(prefixes, ndn.MustName(p))
		}
		draw := func(t *rapid.T) Route {
			return Route{
				Prefix: rapid.SampledFrom(prefixes).Draw(t, "prefix"),
				Face:   ndn.FaceID(rapid.IntRange(256, 259).Draw(t, "face")),
				Origin: uint64(rapid.SampledFrom([]int{0, 65, 255}).Draw(t, "origin")),
			}
		}
		now := ndn.Time(1)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				r := draw(t)
				r.Cost = uint64(rapid.IntRange(0, 5).Draw(t, "cost"))
				r.ChildInherit = rapid.Bool().Draw(t, "inherit")
				r.Capture = rapid.IntRange(0, 3).Draw(t, "capture") == 0
				if rapid.Bool().Draw(t, "expires") {
					r.Expires = now + ndn.Time(rapid.IntRange(1, 20).Draw(t, "in"))
				}
				_, had := model[key(&r)]
				added, err := b.add(&r)
				if err != nil {
					if had || len(model) < 40 {
						t.Fatal(err)
					}
					return
				}
				if added == had {
					t.Fatalf("added %v, had %v", added, had)
				}
				model[key(&r)] = r
			},
			"remove": func(t *rapid.T) {
				r := draw(t)
				e := b.get(r.Prefix, r.Face, r.Origin)
				_, had := model[key(&r)]
				if (e != nil) != had {
					t.Fatalf("found %v, had %v", e, had)
				}
				if e != nil {
					b.remove(e)
					delete(model, key(&r))
				}
			},
			"face": func(t *rapid.T) {
				id := ndn.FaceID(rapid.IntRange(256, 259).Draw(t, "face"))
				for r := b.byFace[id]; r != nil; r = b.byFace[id] {
					b.remove(r)
				}
				maps.DeleteFunc(model, func(_ string, r Route) bool { return r.Face == id })
			},
			"expire": func(t *rapid.T) {
				now += ndn.Time(rapid.IntRange(0, 10).Draw(t, "step"))
				for r := b.expired(now); r != nil; r = b.expired(now) {
					b.remove(r)
				}
				maps.DeleteFunc(model, func(_ string, r Route) bool { return r.Expires != 0 && r.Expires <= now })
			},
			"": func(t *rapid.T) {
				want := naiveFIB(model)
				if len(want) != len(fib) {
					t.Fatalf("fib %v, want %v", fib, want)
				}
				for p, hops := range want {
					if !maps.Equal(hops, fib[p]) {
						t.Fatalf("%s: %v, want %v", ndn.Name(p), fib[p], hops)
					}
				}
				var got []Route
				b.each(func(r *route) { got = append(got, r.export()) })
				if len(got) != len(model) || b.count != len(model) {
					t.Fatalf("%d routes, count %d, want %d", len(got), b.count, len(model))
				}
				if !slices.IsSortedFunc(got, func(x, y Route) int {
					if c := x.Prefix.Compare(y.Prefix); c != 0 {
						return c
					}
					if x.Face != y.Face {
						return int(x.Face) - int(y.Face)
					}
					return int(x.Origin) - int(y.Origin)
				}) {
					t.Fatalf("not sorted: %v", got)
				}
				for _, r := range got {
					m := model[key(&r)]
					if m.Cost != r.Cost || m.Expires != r.Expires || m.Capture != r.Capture || m.ChildInherit != r.ChildInherit {
						t.Fatalf("%v, want %v", r, m)
					}
				}
				if len(model) == 0 && (len(b.root.kids) != 0 || len(b.byFace) != 0 || b.expiry.Len() != 0) {
					t.Fatal("something is left of an empty RIB")
				}
			},
		})
	})
}
