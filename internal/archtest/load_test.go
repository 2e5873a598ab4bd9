package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// module is this module's path.
const module = "ndnpop"

// source is one parsed file.
type source struct {
	*ast.File
	path string // from the root, with slashes
	test bool
	// imports maps the name by which the file knows a package to its path.
	imports map[string]string
}

// pkg is one package without its tests.
type pkg struct {
	path  string // from the root: "fw/run"
	files []*source
}

var fset = token.NewFileSet()

func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// sources parses every Go file of the module once.
var sources = sync.OnceValues(func() ([]*source, error) {
	var out []*source
	err := filepath.WalkDir(root(), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root(), p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			name := d.Name()
			if rel != "." && (name[0] == '.' || name[0] == '_' || name == "testdata") {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && rel != "." {
				return fs.SkipDir // a module of its own
			}
			return nil
		}
		if path.Ext(rel) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s := &source{File: f, path: rel, test: strings.HasSuffix(rel, "_test.go"), imports: map[string]string{}}
		for _, i := range f.Imports {
			to, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			name := defaultName(to)
			if i.Name != nil {
				name = i.Name.Name
			}
			s.imports[name] = to
		}
		out = append(out, s)
		return nil
	})
	return out, err
})

// defaultName is the name of a package by its path: the last element, but for
// a version after it.
func defaultName(importPath string) string {
	name := path.Base(importPath)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(importPath))
	}
	return name
}

// packages returns the packages of the module by path, without tests.
func packages(t *testing.T) map[string]*pkg {
	t.Helper()
	srcs, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*pkg{}
	for _, s := range srcs {
		if s.test {
			continue
		}
		dir := path.Dir(s.path)
		if out[dir] == nil {
			out[dir] = &pkg{path: dir}
		}
		out[dir].files = append(out[dir].files, s)
	}
	return out
}

// internal returns the path from the root of a package of this module.
func internal(importPath string) (string, bool) {
	return strings.CutPrefix(importPath, module+"/")
}

// at tells where a node is.
func at(s *source, n ast.Node) string {
	return s.path + ":" + strconv.Itoa(fset.Position(n.Pos()).Line)
}

// under reports whether a package is dir or below it.
func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
