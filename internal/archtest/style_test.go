package archtest

import (
	"bytes"
	"go/ast"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPackageComments: every package says its one job, once.
func TestPackageComments(t *testing.T) {
	pkgs := packages(t)
	for _, p := range slices.Sorted(maps.Keys(pkgs)) {
		var docs []string
		for _, s := range pkgs[p].files {
			if s.Doc != nil {
				docs = append(docs, s.path)
				want := "Package " + s.Name.Name + " "
				if s.Name.Name == "main" {
					want = "Command "
				}
				if !strings.HasPrefix(s.Doc.Text(), want) {
					t.Errorf("%s: the package comment must begin with %q", s.path, want)
				}
			}
		}
		if len(docs) != 1 {
			t.Errorf("package %s has %d package comments, not one %v: say what its one job is", p, len(docs), docs)
		}
	}
}

// TestNoInit: what a program does is written in its main, not in an order of
// imports.
func TestNoInit(t *testing.T) {
	for _, k := range packages(t) {
		for _, s := range k.files {
			for _, d := range s.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					t.Errorf("%s: no init functions: registration is explicit, with factories passed by main", at(s, f))
				}
			}
		}
	}
}

// maxMethods is the most methods that an interface may have.
const maxMethods = 6

// TestSmallInterfaces: an interface that is larger is several interfaces.
func TestSmallInterfaces(t *testing.T) {
	type key struct{ pkg, name string }
	types := map[key]*ast.InterfaceType{}
	where := map[key]*source{}
	pkgs := packages(t)
	for p, k := range pkgs {
		for _, s := range k.files {
			ast.Inspect(s.File, func(n ast.Node) bool {
				if ts, ok := n.(*ast.TypeSpec); ok {
					if it, ok := ts.Type.(*ast.InterfaceType); ok {
						types[key{p, ts.Name.Name}], where[key{p, ts.Name.Name}] = it, s
					}
				}
				return true
			})
		}
	}
	// count follows embedded interfaces of this module; others count as one.
	var count func(k key) int
	count = func(k key) int {
		it, n := types[k], 0
		if it == nil {
			return 1
		}
		for _, f := range it.Methods.List {
			switch e := f.Type.(type) {
			case *ast.FuncType:
				n += len(f.Names)
			case *ast.Ident:
				n += count(key{k.pkg, e.Name})
			case *ast.SelectorExpr:
				x, _ := e.X.(*ast.Ident)
				to, _ := internal(where[k].imports[x.Name])
				n += count(key{to, e.Sel.Name})
			}
		}
		return n
	}
	for k := range types {
		if n := count(k); n > maxMethods {
			t.Errorf("%s: interface %s has %d methods, more than %d: make the extras optional interfaces", at(where[k], types[k]), k.name, n, maxMethods)
		}
	}
}

// selfEvident are methods whose meaning the language fixes.
var selfEvident = []string{"String", "Error", "Unwrap"}

// TestExportedDocs: every exported identifier has a comment, alone or with
// its group.
func TestExportedDocs(t *testing.T) {
	for p, k := range packages(t) {
		if p == "cmd/ndnpop" {
			continue
		}
		for _, s := range k.files {
			for _, d := range s.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Name.IsExported() && d.Doc == nil && receiverExported(d) && !slices.Contains(selfEvident, d.Name.Name) {
						t.Errorf("%s: %s has no comment", at(s, d), d.Name.Name)
					}
				case *ast.GenDecl:
					for _, sp := range d.Specs {
						switch sp := sp.(type) {
						case *ast.TypeSpec:
							if sp.Name.IsExported() && d.Doc == nil && sp.Doc == nil && sp.Comment == nil {
								t.Errorf("%s: type %s has no comment", at(s, sp), sp.Name.Name)
							}
						case *ast.ValueSpec:
							if sp.Names[0].IsExported() && d.Doc == nil && sp.Doc == nil && sp.Comment == nil {
								t.Errorf("%s: %s has no comment", at(s, sp), sp.Names[0].Name)
							}
						}
					}
				}
			}
		}
	}
}

// receiverExported reports whether a function has no receiver or one of an
// exported type.
func receiverExported(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	name := ""
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return ast.IsExported(name)
}

// maxLines bounds a file, so that each has one job.
const maxLines = 650

func TestFileSize(t *testing.T) {
	for _, k := range packages(t) {
		for _, s := range k.files {
			if n := fset.Position(s.FileEnd).Line; n > maxLines {
				t.Errorf("%s has %d lines, more than %d: it has more than one job", s.path, n, maxLines)
			}
		}
	}
}

// badWords may stand in no tracked file.
var badWords = []struct {
	word          string
	before, after string // regular expressions
	why           string
}{
	// Written in parts, so that this file does not hold them itself.
	{"/wo" + "rk/", `(^|[^\w./-])`, "", "a path of one machine"},
	{"/tmp/bash_jo" + "bs", "", "", "a path of one machine"},
	{"/ro" + "ot/go/", "", "", "a path of one machine"},
	{"proxy.gol" + "ang.org", "", "", registry},
	{"registry.npm" + "js.org", "", "", registry},
	{"deb.deb" + "ian.org", "", "", registry},
	{"TO" + "DO", `\b`, `\b`, note},
	{"FIX" + "ME", `\b`, `\b`, note},
	{"XX" + "X", `\b`, `\b`, note},
}

const (
	registry = "the host of a package registry: ordinary clients know it"
	note     = "a note to oneself: do it, or write down why it is not done"
)

func TestTrackedFiles(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = root()
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a git work tree: %v", err)
	}
	// What git says go test does not see; it sees that this file is another one, and
	// then takes no earlier result for this one.
	_, _ = os.Stat(filepath.Join(root(), ".git", "index"))
	patterns := make([]*regexp.Regexp, len(badWords))
	for i, w := range badWords {
		patterns[i] = regexp.MustCompile("(?m)" + w.before + regexp.QuoteMeta(w.word) + w.after)
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join(root(), filepath.FromSlash(name)))
		if err != nil || bytes.IndexByte(b, 0) >= 0 {
			continue // deleted in the work tree, or binary
		}
		for i, w := range badWords {
			if !bytes.Contains(b, []byte(w.word)) {
				continue // quick where a regular expression is not
			}
			for _, at := range patterns[i].FindAllIndex(b, -1) {
				line := 1 + bytes.Count(b[:at[1]], []byte("\n"))
				t.Errorf("%s:%d holds %q: %s", name, line, b[at[0]:at[1]], w.why)
			}
		}
	}
}
