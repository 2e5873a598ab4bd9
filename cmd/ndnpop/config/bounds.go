package config

import (
	"reflect"
)

// bounds checks every field of a configuration that no file was read into,
// with the tags that the reader obeys.
func (d *decoder) bounds(key string, c any) {
	v := reflect.ValueOf(c).Elem()
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("toml")
		if name == "" {
			continue
		}
		full, fv := join(key, name), v.Field(i)
		switch x := fv.Interface().(type) {
		case Size:
			d.value(full, x.String(), reflect.New(fv.Type()).Elem(), f.Tag)
			continue
		case Duration:
			d.value(full, x.String(), reflect.New(fv.Type()).Elem(), f.Tag)
			continue
		}
		switch fv.Kind() {
		case reflect.Struct:
			d.bounds(full, fv.Addr().Interface())
		case reflect.String:
			if f.Tag.Get("required") != "" && fv.Len() == 0 {
				d.fail(full, "missing, such as %s = %q", name, f.Tag.Get("example"))
			} else if f.Tag.Get("choices") != "" {
				d.value(full, fv.String(), reflect.New(fv.Type()).Elem(), f.Tag)
			}
		case reflect.Int:
			d.value(full, fv.Int(), reflect.New(fv.Type()).Elem(), f.Tag)
		case reflect.Slice:
			if fv.Type().Elem().Kind() == reflect.Struct {
				for j := range fv.Len() {
					d.bounds(at(full, j), fv.Index(j).Addr().Interface())
				}
			}
		}
	}
}
