package cdnbench

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func mark(c Check) string {
	switch {
	case c.Unjudged:
		return "not judged"
	case c.OK:
		return "met"
	case c.Known != "":
		return "missed (known)"
	}
	return "MISSED"
}

// metricsOf lists the metrics of all arms, sorted.
func (r *Result) metricsOf() []string {
	var names []string
	for _, m := range r.Arms {
		for k := range m {
			if !slices.Contains(names, k) {
				names = append(names, k)
			}
		}
	}
	slices.Sort(names)
	return names
}

// armsOf lists the arms: in the order of their samples, or sorted when the
// result was read from a file.
func (r *Result) armsOf() []string {
	if len(r.order) > 0 {
		return r.order
	}
	var names []string
	for a := range r.Arms {
		names = append(names, a)
	}
	slices.Sort(names)
	return names
}

// Number writes a figure with so many significant digits, and without an
// exponent where it is large.
func Number(v float64, digits int) string {
	if math.Abs(v) >= math.Pow10(digits)-0.5 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', digits, 64)
}

// setUp heads what is long, and much the same for several scenarios.
const setUp = "Set-up"

func number(v float64) string { return Number(v, 4) }

// Judged counts the checks that were judged.
func (r *Result) Judged() (n int) {
	for _, c := range r.Checks {
		if !c.Unjudged {
			n++
		}
	}
	return n
}

func (r *Result) markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n", r.Scenario)
	for _, s := range []struct{ head, text string }{
		{"Question", r.Question}, {setUp, r.Setup}, {"What it says", r.Findings}, {"Calibrated", r.Calibrated},
	} {
		if s.text != "" {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.head, s.text)
		}
	}
	for _, p := range r.Plots {
		fmt.Fprintf(&b, "\n![%s](%s.svg)\n\n%s\n", p.Name, p.Name, p.Caption)
	}
	if len(r.Checks) > 0 {
		b.WriteString("\n## Checks\n\n| check | paper or target | measured | band | |\n|---|---|--:|---|---|\n")
		for _, c := range r.Checks {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.What, c.Paper, number(c.Measured), c.Band, mark(c))
		}
		for _, c := range r.Checks {
			if c.Known != "" {
				fmt.Fprintf(&b, "\nMissed: %s. %s\n", c.What, c.Known)
			}
		}
	}
	fmt.Fprintf(&b, "\n## Figures\n\nMedian [smallest..largest] of %d runs, seed %d.\n\n| arm | metric | value |\n|---|---|---|\n", r.Runs, r.Seed)
	for _, a := range r.armsOf() {
		for _, m := range r.metricsOf() {
			if s, ok := r.Arms[a][m]; ok {
				fmt.Fprintf(&b, "| %s | %s | %s [%s..%s] |\n", a, m, number(s.Median), number(s.Min), number(s.Max))
			}
		}
	}
	return b.Bytes()
}

//go:embed index.html.tmpl
var indexText string

// WriteIndex writes DIR/index.html from all results below DIR: one page that
// needs no network. Scenarios come in the order given, others after them.
func WriteIndex(dir string, order ...string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*", resultFile))
	if err != nil {
		return err
	}
	rank := func(path string) int {
		i := slices.Index(order, filepath.Base(filepath.Dir(path)))
		return (i + len(order) + 1) % (len(order) + 1) // what is not listed is last
	}
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	type figure struct {
		SVG     template.HTML
		Caption string
	}
	type paragraph struct {
		Head   string
		Lines  []string
		Folded bool // all but the first line
	}
	type row struct{ Arm, Metric, Value string }
	type section struct {
		*Result
		Paragraphs []paragraph
		Figures    []figure
		Rows       []row
	}
	var all []section
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r := &Result{}
		if err := json.Unmarshal(b, r); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		s := section{Result: r}
		for _, p := range []struct{ Head, Text string }{
			{"Question", r.Question}, {setUp, r.Setup}, {"What it says", r.Findings}, {"Calibrated", r.Calibrated},
		} {
			if p.Text != "" {
				s.Paragraphs = append(s.Paragraphs, paragraph{p.Head, strings.Split(strings.TrimSpace(p.Text), "\n"), p.Head == setUp})
			}
		}
		for _, p := range r.Plots {
			svg, err := os.ReadFile(filepath.Join(filepath.Dir(path), p.Name+".svg"))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			_, body, _ := strings.Cut(string(svg), "<svg")
			// Our own drawing, not anybody's input.
			s.Figures = append(s.Figures, figure{template.HTML("<svg" + body), p.Caption})
		}
		for _, a := range r.armsOf() {
			for _, m := range r.metricsOf() {
				if v, ok := r.Arms[a][m]; ok {
					s.Rows = append(s.Rows, row{a, m, fmt.Sprintf("%s [%s..%s]", number(v.Median), number(v.Min), number(v.Max))})
				}
			}
		}
		all = append(all, s)
	}
	t, err := template.New("index").Funcs(template.FuncMap{"mark": mark, "number": number}).Parse(indexText)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, all); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "index.html"), out.Bytes(), 0o644)
}
