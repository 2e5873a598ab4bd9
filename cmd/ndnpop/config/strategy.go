package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"ndnpop/ndn"
)

// paramError is a parameter whose value has no form in a name.
type paramError struct{ key, msg string }

func (e *paramError) Error() string { return e.msg }

// penalty is the parameter that takes points per face, as
// face:points,face:points (strategy best-path).
const penalty = "penalty"

// FullName is the strategy's name as management writes it, with its
// parameters as components "key~value" in the order of their keys.
//
// What is given per face, by a penalty that is a table and by the terms, adds
// up to one penalty of points for each face. ids finds the faces that a name or
// URI means now; those that do not exist have no points. A nil ids is for
// checking: it stands for faces that exist.
func (s *Strategy) FullName(ids func(ref string) []ndn.FaceID) (ndn.Name, error) {
	n, err := s.bareName()
	if err != nil {
		return nil, err
	}
	params := map[string]string{}
	for k, v := range s.Params {
		switch p := v.(type) {
		case string, int64, float64, bool:
			params[k] = fmt.Sprint(p)
		case map[string]any:
			if k != penalty {
				return nil, &paramError{"params." + k, "only " + penalty + " may be a table of faces; others as terms"}
			}
		default:
			return nil, &paramError{"params." + k, "must be a number, a string, true or false, not " + kindOf(p)}
		}
	}
	points, err := s.points(params)
	if err != nil {
		return nil, err
	}
	if points != nil {
		params[penalty] = joinPoints(points, ids)
	}
	keys := make([]string, 0, len(params))
	for k := range params {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if k == penalty && params[k] == "" {
			continue // of faces that do not exist now
		}
		n = n.AppendGeneric(k + "~" + params[k])
	}
	return n, nil
}

// bareName is the name without parameters.
func (s *Strategy) bareName() (ndn.Name, error) {
	uri := s.Strategy
	if !strings.HasPrefix(uri, "/") {
		if strings.ContainsAny(uri, "/ ") {
			return nil, fmt.Errorf("%q is neither a strategy's short name nor a full one, %s/…", uri, StrategyPrefix)
		}
		uri = StrategyPrefix + "/" + uri
	}
	n, err := ndn.ParseName(uri)
	if err != nil {
		return nil, fmt.Errorf("%q is not a name: %v", s.Strategy, err)
	}
	prefix := ndn.MustName(StrategyPrefix)
	if !n.HasPrefix(prefix) || n.Len() == prefix.Len() {
		return nil, fmt.Errorf("%q is neither a strategy's short name nor a full one, %s/…", s.Strategy, StrategyPrefix)
	}
	return n, nil
}

// NamesFaces reports whether the parameters depend on which faces there are.
func (s *Strategy) NamesFaces() bool { return len(s.faceTables()) > 0 }

// faceTable is a table of values by face in the configuration.
type faceTable struct {
	key    string // of the configuration, below the strategy
	term   string // whose weight it takes; empty for points
	values any
}

// faceTables are the tables, in the order of their keys.
func (s *Strategy) faceTables() (all []faceTable) {
	if t, ok := s.Params[penalty].(map[string]any); ok {
		all = append(all, faceTable{"params." + penalty, "", t})
	}
	terms := make([]string, 0, len(s.Terms))
	for t := range s.Terms {
		terms = append(terms, t)
	}
	sort.Strings(terms)
	for _, t := range terms {
		all = append(all, faceTable{"terms." + t, t, s.Terms[t]})
	}
	return all
}

// points adds up the face tables, by the name or URI of the face. It takes the
// weights of the terms out of params.
func (s *Strategy) points(params map[string]string) (map[string]float64, error) {
	tables := s.faceTables()
	if len(tables) == 0 {
		return nil, nil
	}
	if _, both := params[penalty]; both {
		return nil, &paramError{"params." + penalty, "must be a table of faces where there are terms"}
	}
	points := map[string]float64{}
	for _, t := range tables {
		weight := 1.0
		switch t.term {
		case "":
		case "delay", "loss", "cost":
			return nil, &paramError{t.key, "is what best-path finds out itself; choose another name"}
		default:
			w := t.term + "-weight"
			if v, ok := params[w]; ok {
				x, err := strconv.ParseFloat(v, 64)
				if err != nil || !(x >= 0 && x <= 1e9) {
					return nil, &paramError{"params." + w, "must be a number from 0 to 1e+09"}
				}
				weight = x
				delete(params, w)
			}
		}
		m, ok := t.values.(map[string]any)
		if !ok {
			return nil, &paramError{t.key, "must be a table of faces, such as { pop-paris = 0.02 }, not " + kindOf(t.values)}
		}
		for _, face := range slices.Sorted(maps.Keys(m)) { // the first mistake is told
			v := m[face]
			var x float64
			switch v := v.(type) {
			case int64:
				x = float64(v)
			case float64:
				x = v
			default:
				return nil, &paramError{t.key + "." + face, "must be a number, not " + kindOf(v)}
			}
			if points[face] += weight * x; !(x >= 0 && points[face] <= 1e12) {
				return nil, &paramError{t.key + "." + face, fmt.Sprintf("must be 0 or more, and with its weight at most 1e+12, not %v", v)}
			}
		}
	}
	return points, nil
}

// joinPoints writes points by face as the parameter takes them.
func joinPoints(points map[string]float64, ids func(string) []ndn.FaceID) string {
	byID := map[ndn.FaceID]float64{}
	for ref, p := range points {
		if ids == nil {
			byID[ndn.FaceID(len(byID)+1)] = p
			continue
		}
		for _, id := range ids(ref) {
			byID[id] += p
		}
	}
	list := make([]ndn.FaceID, 0, len(byID))
	for id := range byID {
		list = append(list, id)
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	parts := make([]string, len(list))
	for i, id := range list {
		// As many digits as mean something, so that sums are read as written.
		p := math.Round(byID[id]*1e9) / 1e9
		parts[i] = fmt.Sprintf("%d:%s", id, strconv.FormatFloat(p, 'f', -1, 64))
	}
	return strings.Join(parts, ",")
}

// checkFaceTables checks that the faces that a strategy names exist.
func (c *Config) checkFaceTables(d *decoder, key string, s *Strategy, faces map[string]int) {
	for _, t := range s.faceTables() {
		m, _ := t.values.(map[string]any)
		refs := make([]string, 0, len(m))
		for ref := range m {
			refs = append(refs, ref)
		}
		sort.Strings(refs)
		for _, ref := range refs {
			c.checkFaceRef(d, key+"."+t.key+"."+ref, ref, faces)
		}
	}
}
