package config

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"strings"
)

const sampleHead = `# Configuration of ndnpop run.
#
# Every key is shown with its default; leave out what you do not change. A key
# that is not known, or a value that is not possible, is refused: try
# "ndnpop check FILE". SIGHUP makes a running forwarder read the file again.
`

// WriteSample writes an annotated configuration that says what base says. It
// reads back as base.
func WriteSample(w io.Writer, base *Config) error {
	b := bufio.NewWriter(w)
	b.WriteString(sampleHead)
	sampleTable(b, "", reflect.ValueOf(base).Elem())
	return b.Flush()
}

// sampleTable writes the keys of a table and then its sub-tables.
func sampleTable(b *bufio.Writer, key string, v reflect.Value) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("toml")
		if name == "" || isTable(f.Type) {
			continue
		}
		comment(b, "# ", f.Tag)
		fmt.Fprintf(b, "%s = %s\n", name, literal(v.Field(i)))
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("toml")
		if name == "" || !isTable(f.Type) {
			continue
		}
		full := join(key, name)
		b.WriteByte('\n')
		if f.Type.Kind() == reflect.Struct {
			comment(b, "# ", f.Tag)
			fmt.Fprintf(b, "[%s]\n", full)
			sampleTable(b, full, v.Field(i))
			continue
		}
		comment(b, "# ", f.Tag)
		fmt.Fprintf(b, "# [[%s]]\n", full)
		sampleExample(b, f.Type.Elem())
	}
}

// sampleExample writes a table that may repeat, as a comment.
func sampleExample(b *bufio.Writer, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		example := f.Tag.Get("example")
		if f.Type.Kind() == reflect.String {
			example = fmt.Sprintf("%q", example)
		}
		note := strings.ReplaceAll(f.Tag.Get("doc"), "\n", " ")
		if c := f.Tag.Get("choices"); c != "" {
			note = strings.ReplaceAll(c, ",", " | ") + ". " + note
		}
		fmt.Fprintf(b, "# %-44s # %s\n", f.Tag.Get("toml")+" = "+example, note)
	}
}

func isTable(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

// comment writes what a key means and which values it takes.
func comment(b *bufio.Writer, lead string, tag reflect.StructTag) {
	doc := tag.Get("doc")
	if c := tag.Get("choices"); c != "" {
		doc += " One of " + strings.ReplaceAll(c, ",", ", ") + "."
	}
	if lo, hi := tag.Get("min"), tag.Get("max"); lo != "" {
		if lo == hi {
			doc += " Must be " + lo + "."
		} else {
			doc += " From " + lo + " to " + hi + "."
		}
	}
	for _, line := range strings.Split(doc, "\n") {
		fmt.Fprintf(b, "%s%s\n", lead, line)
	}
}

// literal writes a value as TOML.
func literal(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case Size:
		return fmt.Sprintf("%q", x.String())
	case Duration:
		return fmt.Sprintf("%q", x.String())
	case []string:
		q := make([]string, len(x))
		for i, s := range x {
			q[i] = fmt.Sprintf("%q", s)
		}
		return "[" + strings.Join(q, ", ") + "]"
	case string:
		return fmt.Sprintf("%q", x)
	}
	return fmt.Sprint(v.Interface())
}
