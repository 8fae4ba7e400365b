package page

import (
	"reflect"

	"github.com/muster-hpc/muster/internal/cleantext"
)

// longest is how many characters of one text are shown: no honest one is longer.
const longest = 2000

// clean makes every text in a copy of something fit to be shown. Markup is not its
// business, the templates see to that. Control characters have no picture, and those
// that turn the direction of writing make a text look like another one.
func clean[T any](v T) T {
	out := reflect.New(reflect.TypeFor[T]()).Elem()
	out.Set(cleaned(reflect.ValueOf(v)))
	return out.Interface().(T)
}

func cleaned(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		out.SetString(cleanText(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(cleaned(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() && texts(v.Type().Elem()) {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(cleaned(v.Index(i)))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(cleaned(v.Field(i)))
			}
		}
	}
	return out
}

// texts reports whether there can be texts in values of a type.
func texts(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return false
	}
	return true
}

func cleanText(s string) string { return short(cleantext.Line(s), longest) }

// short cuts a text to so many characters.
func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n++; n == most {
			if rest := []rune(s[i:]); len(rest) > 1 {
				return s[:i] + "…"
			}
		}
	}
	return s
}
