package config

import (
	"fmt"
	"sort"
	"strings"
)

// Error is one thing that is wrong in a configuration.
type Error struct {
	File      string // as given to Load; empty for Parse
	Line, Col int    // from 1; 0 when the key is not in the file
	Key       string // full key, e.g. faces.udp.mtu
	Msg       string // what is wrong and what would be right
}

// Error writes FILE:LINE:COL: KEY: MESSAGE.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", e.Line, e.Col)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	return b.String() + e.Msg
}

// Errors is all that is wrong, in the order of the file.
type Errors []*Error

// Error writes one error per line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// asError sorts the errors and makes them an error, nil when there are none.
func (es Errors) asError(file string) error {
	if len(es) == 0 {
		return nil
	}
	sort.SliceStable(es, func(i, j int) bool {
		if es[i].Line != es[j].Line {
			return es[i].Line < es[j].Line
		}
		return es[i].Col < es[j].Col
	})
	for _, e := range es {
		e.File = file
	}
	return es
}

// closest returns the choice that word was probably meant to be, or "".
func closest(word string, choices []string) string {
	best, bestDist := "", 3
	for _, c := range choices {
		limit := min(bestDist, 1+len(c)/3)
		if d := editDistance(strings.ToLower(word), strings.ToLower(c)); d < bestDist && d <= limit {
			best, bestDist = c, d
		}
	}
	return best
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diag, row[j] = row[j], min(row[j]+1, row[j-1]+1, diag+cost)
		}
	}
	return row[len(b)]
}
