package archtest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layers says which packages of this module a package may import, by the
// longest matching entry. An entry covers the packages below it as well; so
// does each element of its list.
var layers = map[string][]string{
	"ndn": {"ndn"},
	// Files of certificates are needed by consumers, producers and management.
	"ndn/certfile": {"ndn"},
	"ndn/manifest": {"ndn"},
	// So is the decision whom to believe.
	"ndn/verify": {"ndn"},
	"table":      {"ndn"},
	"strategy":   {"ndn", "table", "strategy"},
	// The recorder and topology tester alone may run a simulation, with its
	// consumers.
	"strategy/strategytest": {"ndn", "table", "strategy", "fw", "sim", "consumer"},
	"fw":                    {"ndn", "table", "strategy"},
	"fw/run":                {"ndn", "table", "strategy", "fw", "face"},
	"fw/mgmt":               {"ndn", "table", "strategy", "fw", "face", "mgmt"},
	"face":                  {"ndn", "face"},
	"mgmt":                  {"ndn", "mgmt"},
	// The codec stays free of faces; its client's driver is apart.
	"mgmt/client":  {"ndn", "mgmt", "face"},
	"consumer":     {"ndn", "face", "mgmt", "consumer"},
	"consumer/cc":  {"ndn", "consumer/cc"},
	"consumer/rtt": {"ndn"},
	"producer":     {"ndn", "face", "mgmt", "producer"},
	"sim":          {"ndn", "table", "strategy", "fw", "face/lp", "face", "consumer", "producer", "sim"},
	"cdnbench":     {"*"},
	"cmd":          {"*"},
	"e2e":          {"*"},
	"internal":     {"*"},
}

// forbidden are dependencies that would undo the design, however long the
// chain of imports.
var forbidden = []struct{ from, to, why string }{
	{"table", "strategy", "tables know nothing of who decides"},
	{"strategy", "fw", "a strategy sees the shard only through its context, so that it can be tested without one"},
	{"fw", "face", "the shard sends through an interface that it declares itself, so that a simulator can drive it"},
	{"face", "fw", "faces are also the applications' side of links"},
	{"consumer", "fw", "a consumer is an application: it works with any forwarder"},
	{"consumer", "table", "a consumer is an application: it works with any forwarder"},
	{"producer", "fw", "a producer is an application: it works with any forwarder"},
	{"producer", "table", "a producer is an application: it works with any forwarder"},
	{"mgmt", "fw", "the codec and client also manage other forwarders"},
	{"cmd", "cdnbench/emunet/internal", "emulation is private to the benchmarks"},
}

// drivers are exempt from the forbidden pair that names the core beside them.
var drivers = map[string][]string{
	"fw": {"fw/run", "fw/mgmt"},
	// strategytest is a test tool that lies beside the strategies.
	"strategy": {"strategy/strategytest"},
}

func TestImportDirections(t *testing.T) {
	pkgs := packages(t)
	for _, p := range slices.Sorted(maps.Keys(pkgs)) {
		rule := ""
		for dir := range layers {
			if under(p, dir) && len(dir) > len(rule) {
				rule = dir
			}
		}
		if rule == "" {
			t.Errorf("package %s is in no layer: add it to this test and to docs/architecture.md, with the reason for it", p)
			continue
		}
		for _, s := range pkgs[p].files {
			for _, to := range s.imports {
				to, ok := internal(to)
				if !ok || to == p {
					continue
				}
				if !slices.ContainsFunc(layers[rule], func(dir string) bool { return dir == "*" || under(to, dir) }) {
					t.Errorf("%s imports %s, but %s may import only %s", s.path, to, rule, strings.Join(layers[rule], ", "))
				}
			}
		}
	}
}

func TestForbiddenDependencies(t *testing.T) {
	pkgs := packages(t)
	for _, f := range forbidden {
		for _, p := range slices.Sorted(maps.Keys(pkgs)) {
			exempt := slices.ContainsFunc(drivers[f.from], func(dir string) bool { return under(p, dir) })
			if !under(p, f.from) || exempt {
				continue
			}
			if chain := chainTo(pkgs, p, f.to, map[string]bool{}); chain != nil {
				t.Errorf("%s depends on %s: %s", f.from, f.to, f.why)
				t.Logf("  by %s", strings.Join(chain, " → "))
			}
		}
	}
}

// chainTo finds a chain of imports from p to a package under dir.
func chainTo(pkgs map[string]*pkg, p, dir string, seen map[string]bool) []string {
	if seen[p] || pkgs[p] == nil {
		return nil
	}
	seen[p] = true
	for _, s := range pkgs[p].files {
		for _, to := range slices.Sorted(maps.Values(s.imports)) {
			to, ok := internal(to)
			if !ok {
				continue
			}
			if under(to, dir) {
				return []string{p, to}
			}
			if rest := chainTo(pkgs, to, dir, seen); rest != nil {
				return append([]string{p}, rest...)
			}
		}
	}
	return nil
}

// libraries are the modules that the design names.
var libraries = []string{
	"github.com/named-data/ndnd/std", "github.com/pelletier/go-toml/v2", "github.com/hashicorp/golang-lru/v2",
	"github.com/rs/zerolog", "github.com/spf13/cobra", "github.com/prometheus/client_golang", "github.com/vbauerster/mpb/v8",
	"gonum.org/v1/plot", "github.com/vishvananda/netlink", "golang.org/x/sys", "golang.org/x/net",
	"pgregory.net/rapid", "go.uber.org/goleak", "github.com/rogpeppe/go-internal",
}

// TestLibraries: every other library has its reason in the architecture.
func TestLibraries(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root(), "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	srcs, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, s := range srcs {
		for _, to := range s.imports {
			first, _, _ := strings.Cut(to, "/")
			if !strings.Contains(first, ".") || slices.ContainsFunc(libraries, func(l string) bool { return under(to, l) }) {
				continue
			}
			parts := strings.Split(to, "/")
			lib := strings.Join(parts[:min(3, len(parts))], "/")
			if under(to, "github.com/named-data/ndnd") {
				t.Errorf("%s imports %s: of ndnd only std may be used", s.path, to)
			} else if !told[lib] && !strings.Contains(string(doc), lib) {
				told[lib] = true
				t.Errorf("%s imports %s, which docs/architecture.md does not mention: say there what it does, what else was looked at, and how well it is kept", s.path, lib)
			}
		}
	}
}
