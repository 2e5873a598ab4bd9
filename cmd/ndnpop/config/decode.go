package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 16 << 20

// Load reads a file over the defaults in base and checks it against known.
// base is not changed. An error is Errors, or the operating system's.
func Load(path string, base *Config, known Known) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The size is not asked for: a device or a pipe does not tell.
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: larger than %v", path, Size(maxFile))
	}
	return parse(path, text, base, known)
}

// Parse is Load for text.
func Parse(text []byte, base *Config, known Known) (*Config, error) {
	return parse("", text, base, known)
}

func parse(file string, text []byte, base *Config, known Known) (*Config, error) {
	// Editors of Windows begin UTF-8 with it.
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	var tree map[string]any
	if err := toml.Unmarshal(text, &tree); err != nil {
		e := &Error{File: file, Msg: err.Error()}
		var de *toml.DecodeError
		if errors.As(err, &de) {
			e.Line, e.Col = de.Position()
			e.Msg = strings.TrimPrefix(de.Error(), "toml: ")
		}
		return nil, Errors{e}
	}
	c := *base
	c.pos = locate(text)
	d := decoder{pos: c.pos}
	d.table("", tree, reflect.ValueOf(&c).Elem())
	// Who lowers the bound of all need not also lower the default of each.
	if _, given := c.pos["pit.max_entries_per_face"]; !given {
		c.PIT.MaxEntriesPerFace = min(c.PIT.MaxEntriesPerFace, c.PIT.MaxEntries)
	}
	// Cross-checks look at what could be read, so that one mistake does not
	// hide another; a key that was refused is not judged twice.
	c.check(known, &d)
	if err := d.errs.asError(file); err != nil {
		return nil, err
	}
	return &c, nil
}

// position is a place in the file.
type position struct{ line, col int }

// positions maps full keys ("route[1].face", "faces.udp.listen[0]") to where
// their values stand, or their keys where the value's place is not known.
type positions map[string]position

// locate finds the place of every key. text has been parsed without error.
func locate(text []byte) positions {
	pos := positions{}
	var p unstable.Parser
	p.Reset(text)
	at := func(n *unstable.Node) (position, bool) {
		if n.Raw.Length == 0 {
			return position{}, false
		}
		s := p.Shape(n.Raw).Start
		return position{s.Line, s.Column}, true
	}
	arrays := map[string]int{} // tables seen of [[key]]
	// path resolves a dotted key below prefix; a step that names a repeated
	// table means its latest one.
	path := func(prefix string, it unstable.Iterator, array bool) (string, position) {
		var where position
		first := true
		for it.Next() {
			n := it.Node()
			if q, ok := at(n); ok && first {
				where, first = q, false
			}
			prefix = join(prefix, string(n.Data))
			last := it.IsLast()
			if array && last {
				arrays[prefix]++
			}
			if n := arrays[prefix]; n > 0 {
				prefix += "[" + strconv.Itoa(n-1) + "]"
			}
			if _, ok := pos[prefix]; !ok {
				pos[prefix] = where
			}
		}
		return prefix, where
	}
	var value func(key string, where position, n *unstable.Node)
	value = func(key string, where position, n *unstable.Node) {
		if q, ok := at(n); ok {
			where = q
		}
		pos[key] = where
		it := n.Children()
		switch n.Kind {
		case unstable.Array:
			for i := 0; it.Next(); i++ {
				value(key+"["+strconv.Itoa(i)+"]", where, it.Node())
			}
		case unstable.InlineTable:
			for it.Next() {
				k, w := path(key, it.Node().Key(), false)
				value(k, w, it.Node().Value())
			}
		}
	}
	table := ""
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table:
			table, _ = path("", e.Key(), false)
		case unstable.ArrayTable:
			table, _ = path("", e.Key(), true)
		case unstable.KeyValue:
			k, w := path(table, e.Key(), false)
			value(k, w, e.Value())
		}
	}
	return pos
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

// decoder carries the values of a parsed file into a Config.
type decoder struct {
	pos  positions
	errs Errors
	bad  map[string]bool // keys refused already
}

// fail notes what is wrong with a key, once for each.
func (d *decoder) fail(key, format string, args ...any) {
	if d.bad[key] {
		return
	}
	if d.bad == nil {
		d.bad = map[string]bool{}
	}
	d.bad[key] = true
	p, ok := d.pos[key]
	if !ok {
		p = d.pos[at(key, 0)] // unknown, and repeated
	}
	d.errs = append(d.errs, &Error{Line: p.line, Col: p.col, Key: key, Msg: fmt.Sprintf(format, args...)})
}

// table reads a table into a struct.
func (d *decoder) table(key string, tree map[string]any, dst reflect.Value) {
	t := dst.Type()
	fields := map[string]int{}
	var names []string
	for i := range t.NumField() {
		if n := t.Field(i).Tag.Get("toml"); n != "" {
			fields[n] = i
			names = append(names, n)
		}
	}
	keys := make([]string, 0, len(tree))
	for k := range tree {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		i, ok := fields[k]
		if !ok {
			hint := ""
			if c := closest(k, names); c != "" {
				hint = fmt.Sprintf("; did you mean %q?", c)
			}
			where := "the top level has"
			if key != "" {
				where = "[" + strings.TrimRight(key, "[]0123456789") + "] has"
			}
			d.fail(join(key, k), "unknown key%s (%s: %s)", hint, where, strings.Join(names, ", "))
			continue
		}
		d.value(join(key, k), tree[k], dst.Field(i), t.Field(i).Tag)
	}
	for _, n := range names {
		f := t.Field(fields[n])
		if v, ok := tree[n]; (!ok || v == "") && f.Tag.Get("required") != "" {
			full := join(key, n)
			if !ok {
				d.pos[full] = d.pos[key]
			}
			d.fail(full, "missing, such as %s = %q", n, f.Tag.Get("example"))
		}
	}
}

// value reads one value into a field.
func (d *decoder) value(key string, v any, dst reflect.Value, tag reflect.StructTag) {
	switch dst.Interface().(type) {
	case Size:
		var n Size
		switch v := v.(type) {
		case int64:
			n = Size(v)
		case string:
			var err error
			if n, err = ParseSize(v); err != nil {
				d.fail(key, "%v", err)
				return
			}
		default:
			d.fail(key, "must be a size, such as \"64MiB\", \"2GB\" or a number of bytes, not %s", kindOf(v))
			return
		}
		lo, _ := ParseSize(tag.Get("min"))
		hi, _ := ParseSize(tag.Get("max"))
		if n < lo || n > hi {
			d.fail(key, "%v is out of bounds, must be %v to %v", n, lo, hi)
			return
		}
		dst.SetInt(int64(n))
		return
	case Duration:
		s, ok := v.(string)
		if !ok {
			d.fail(key, "must be a duration in quotes, such as \"10ms\", not %s", kindOf(v))
			return
		}
		n, err := ParseDuration(s)
		if err != nil {
			d.fail(key, "%v", err)
			return
		}
		lo, _ := ParseDuration(tag.Get("min"))
		hi, _ := ParseDuration(tag.Get("max"))
		if n < lo || n > hi {
			d.fail(key, "%v is out of bounds, must be %v to %v", n, lo, hi)
			return
		}
		dst.SetInt(int64(n))
		return
	case Rate:
		s, ok := v.(string)
		if !ok {
			d.fail(key, "must be a rate in quotes, such as \"100mbit\", not %s", kindOf(v))
			return
		}
		n, err := ParseRate(s)
		if err != nil {
			d.fail(key, "%v", err)
			return
		}
		dst.SetInt(int64(n))
		return
	case Toggle:
		switch v {
		case false:
			dst.SetUint(uint64(Off))
		case true:
			dst.SetUint(uint64(On))
		case "auto":
			dst.SetUint(uint64(Auto))
		default:
			d.fail(key, "must be true, false or \"auto\", not %s", kindOf(v))
		}
		return
	}
	switch dst.Kind() {
	case reflect.Struct:
		t, ok := v.(map[string]any)
		if !ok {
			d.fail(key, "must be a table [%s], not %s", key, kindOf(v))
			return
		}
		d.table(key, t, dst)
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			d.fail(key, "must be a string, not %s", kindOf(v))
			return
		}
		if choices := tag.Get("choices"); choices != "" {
			d.choice(key, s, strings.Split(choices, ","))
		}
		dst.SetString(s)
	case reflect.Int:
		n, ok := v.(int64)
		if !ok {
			d.fail(key, "must be an integer, not %s", kindOf(v))
			return
		}
		lo, _ := strconv.ParseInt(tag.Get("min"), 10, 64)
		hi, _ := strconv.ParseInt(tag.Get("max"), 10, 64)
		if n < lo || n > hi {
			bounds := fmt.Sprintf("%d to %d", lo, hi)
			if lo == hi {
				bounds = strconv.FormatInt(lo, 10)
			}
			d.fail(key, "%d is out of bounds, must be %s", n, bounds)
			return
		}
		dst.SetInt(n)
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			d.fail(key, "must be true or false, not %s", kindOf(v))
			return
		}
		dst.SetBool(b)
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			d.fail(key, "must be an inline table, such as { key = 1 }, not %s", kindOf(v))
			return
		}
		dst.Set(reflect.ValueOf(m))
	case reflect.Slice:
		d.list(key, v, dst)
	}
}

// list reads a list of strings, or repeated tables.
func (d *decoder) list(key string, v any, dst reflect.Value) {
	items, ok := v.([]any)
	elem := dst.Type().Elem()
	if !ok {
		if elem.Kind() == reflect.Struct {
			d.fail(key, "must be written as [[%s]], as it may repeat; not %s", key, kindOf(v))
		} else {
			d.fail(key, "must be a list of strings, such as [\"…\"], not %s", kindOf(v))
		}
		return
	}
	out := reflect.MakeSlice(dst.Type(), len(items), len(items))
	for i, item := range items {
		k := key + "[" + strconv.Itoa(i) + "]"
		if def, ok := out.Index(i).Addr().Interface().(defaulter); ok {
			def.setDefaults()
		}
		d.value(k, item, out.Index(i), "")
	}
	dst.Set(out)
}

// choice checks a string against its choices.
func (d *decoder) choice(key, s string, choices []string) bool {
	for _, c := range choices {
		if s == c {
			return true
		}
	}
	hint := ""
	if c := closest(s, choices); c != "" {
		hint = fmt.Sprintf("; did you mean %q?", c)
	}
	d.fail(key, "%q is none of %s%s", s, strings.Join(choices, ", "), hint)
	return false
}

func kindOf(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("the string %q", v)
	case int64:
		return fmt.Sprintf("the integer %d", v)
	case float64:
		return fmt.Sprintf("the number %v", v)
	case bool:
		return fmt.Sprintf("%v", v)
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}
