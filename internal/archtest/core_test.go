package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// cores are the packages that are told the time and do no I/O: the daemon and
// the simulator both drive them. Packages below one are not meant unless they
// are listed or end in "/...".
var cores = []string{
	"ndn", "table", "strategy", "strategy/...", "fw", "face/lp",
	"consumer", "consumer/cc", "consumer/rtt", "producer",
}

// notCores lie below a "/..." entry and are none.
var notCores = []string{"strategy/strategytest"}

func isCore(p string) bool {
	return !slices.Contains(notCores, p) && slices.ContainsFunc(cores, func(c string) bool {
		dir, all := strings.CutSuffix(c, "/...")
		return p == dir && !all || all && strings.HasPrefix(p, dir+"/")
	})
}

// bannedImports are packages that a core may not import, with the reason.
var bannedImports = map[string]string{
	"net":                   "a core has no socket: its driver does",
	"os":                    "a core knows no files or environment: its driver passes what it needs",
	"io/fs":                 "a core knows no files",
	"os/signal":             "signals are the driver's",
	"syscall":               "system calls are the driver's",
	"log":                   "a core counts and returns; it does not log",
	"log/slog":              "a core counts and returns; it does not log",
	"github.com/rs/zerolog": "a core counts and returns; it does not log",
	"sync":                  "a core is used by one goroutine at a time; its driver locks",
	"sync/atomic":           "a core is used by one goroutine at a time; its driver locks",
	"context":               "a core never waits, so there is nothing to cancel",
	"crypto/rand":           "randomness is seeded by the driver, so that runs repeat",
	"math/rand":             "use math/rand/v2 with a seeded source",
	"runtime":               "a core does not depend on the machine that it runs on",
	"time/tzdata":           "a core is told the time",
}

// bannedTime are the functions of package time that read a clock or wait.
var bannedTime = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// seededRand are what math/rand/v2 offers without its global source.
var seededRand = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}

func TestCoresArePure(t *testing.T) {
	pkgs := packages(t)
	for _, c := range cores {
		if dir, all := strings.CutSuffix(c, "/..."); !all && pkgs[dir] == nil {
			t.Errorf("there is no package %s: correct the list in this test", c)
		}
	}
	for p, k := range pkgs {
		if !isCore(p) {
			continue
		}
		for _, s := range k.files {
			for _, to := range s.imports {
				if why := bannedImports[to]; why != "" {
					t.Errorf("%s imports %s: %s", s.path, to, why)
				} else if strings.HasPrefix(to, "net/") {
					t.Errorf("%s imports %s: %s", s.path, to, bannedImports["net"])
				}
			}
			ast.Inspect(s.File, func(n ast.Node) bool {
				if what, why := impure(s, n); what != "" {
					t.Errorf("%s: %s in a core: %s", at(s, n), what, why)
				}
				return true
			})
		}
	}
}

// impure says what a node does that a core may not, and why it may not.
func impure(s *source, n ast.Node) (what, why string) {
	const noGoroutine = "a core is a synchronous state machine; goroutines and channels are its driver's"
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement", noGoroutine
	case *ast.ChanType:
		return "a channel", noGoroutine
	case *ast.SelectStmt:
		return "a select", noGoroutine
	case *ast.SendStmt:
		return "a send", noGoroutine
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a receive", noGoroutine
		}
	case *ast.SelectorExpr:
		x, ok := n.X.(*ast.Ident)
		if !ok {
			break
		}
		switch s.imports[x.Name] {
		case "time":
			if slices.Contains(bannedTime, n.Sel.Name) {
				return "time." + n.Sel.Name, "a core is told the time (now ndn.Time), so that the simulator can run it"
			}
		case "math/rand/v2":
			if !slices.Contains(seededRand, n.Sel.Name) {
				return "rand." + n.Sel.Name, "the global source cannot be seeded, so runs would not repeat"
			}
		}
	}
	return "", ""
}
