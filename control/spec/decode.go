package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// decoder fills a request from a tree and collects what is wrong.
type decoder struct {
	places   Places
	problems []muster.Problem
}

// amountFields are texts that may be written as a bare number.
func isAmount(name string) bool {
	return slices.Contains([]string{"cores", "memory", "disk", "nics", "nic_speed", "accelerators", "walltime", "retain", "home_quota", "link_rate", "memory_per_core"}, name)
}

func (d *decoder) problem(why muster.Reason, path string, p Place, hint, format string, args ...any) {
	if p != (Place{}) {
		if _, known := d.places[path]; !known {
			d.places[path] = p
		}
	}
	d.problems = append(d.problems, muster.Problem{
		Field: path, Place: p.String(), Reason: why, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// fields fills a struct from a map. path is "" at the top.
func (d *decoder) fields(t tree, into reflect.Value, path string) {
	if t.shape != shapeMap {
		if t.untyped && t.text == "" {
			return // an empty element
		}
		d.problem(muster.ReasonWrongType, cmp.Or(path, wholeRequest), t.place, "write: "+exampleFields(into.Type()), "fields are expected, found %s", t.found())
		return
	}
	known := fieldNames(into.Type())
	seen := make(map[string]Place)
	for _, f := range t.fields {
		f.name = canonical(f.name)
		at := join(path, short(f.name))
		if first, twice := seen[f.name]; twice {
			d.problem(muster.ReasonGivenTwice, at, f.place, fmt.Sprintf("it stands at %s already: keep one", first), "the field is given twice")
			continue
		}
		seen[f.name] = f.place
		i := slices.Index(known, f.name)
		if i < 0 {
			d.problem(muster.ReasonUnknownField, join(path, short(f.name)), f.place, suggestField(f.name, path, known), "there is no such field")
			continue
		}
		d.places[at] = f.value.place
		d.value(f.value, into.Field(i), at, f.name)
	}
}

// value fills one field.
func (d *decoder) value(t tree, into reflect.Value, path, name string) {
	switch into.Kind() {
	case reflect.Struct:
		if at, ok := into.Addr().Interface().(*wire.StartWish); ok && t.shape == shapeText && (!t.untyped || t.text != "") {
			at.At = t.text
			return
		}
		d.fields(t, into, path)
	case reflect.Slice:
		d.list(t, into, path, name)
	case reflect.Pointer:
		v := reflect.New(into.Type().Elem())
		before := len(d.problems)
		d.value(t, v.Elem(), path, name)
		if len(d.problems) == before {
			into.Set(v)
		}
	case reflect.Bool:
		d.boolean(t, into, path)
	case reflect.Int:
		d.number(t, into, path)
	default:
		if s, ok := d.str(t, path, name); ok {
			into.SetString(s)
		}
	}
}

func (d *decoder) boolean(t tree, into reflect.Value, path string) {
	if t.shape == shapeBool || (t.untyped && t.shape == shapeText) {
		switch t.text {
		case "true", "True", "TRUE":
			into.SetBool(true)
			return
		case "false", "False", "FALSE":
			return
		}
	}
	d.problem(muster.ReasonWrongType, path, t.place, "", "true or false is expected, found %s", t.found())
}

func (d *decoder) number(t tree, into reflect.Value, path string) {
	if t.shape == shapeNumber || (t.untyped && t.shape == shapeText) {
		// Plain decimal numbers only: 0x10, 010, 1e3 and 1_000 mean different
		// things in different formats.
		if n, err := strconv.ParseInt(t.text, 10, 32); err == nil && strconv.FormatInt(n, 10) == t.text {
			into.SetInt(n)
			return
		}
	}
	hint := ""
	if _, err := strconv.ParseInt(t.text, 10, 32); err == nil && t.shape == shapeText {
		hint = "write it without quotes"
	}
	d.problem(muster.ReasonWrongType, path, t.place, hint, "a whole number is expected, found %s", t.found())
}

func (d *decoder) str(t tree, path, name string) (string, bool) {
	switch {
	case t.shape == shapeText && t.untyped && t.text == "":
		d.problem(muster.ReasonRequired, path, t.place, "leave the field out to ask for nothing", "the value is missing")
	case t.shape == shapeText:
		return t.text, true
	case t.shape == shapeNumber && isAmount(name):
		return t.text, true
	case t.shape == shapeBool && isSwitch(path):
		return t.text, true
	case t.shape == shapeNull:
		d.problem(muster.ReasonRequired, path, t.place, "leave the field out to ask for nothing", "the value is missing")
	case t.shape == shapeNumber || t.shape == shapeBool:
		d.problem(muster.ReasonWrongType, path, t.place, fmt.Sprintf("write it in quotes: %q", short(t.text)), "text is expected, found %s", t.found())
	default:
		d.problem(muster.ReasonWrongType, path, t.place, "", "text is expected, found %s", t.found())
	}
	return "", false
}

// list fills a list of texts. In XML its items are elements named after it in
// the singular.
func (d *decoder) list(t tree, into reflect.Value, path, name string) {
	singular := strings.TrimSuffix(name, "s")
	items := t.items
	switch {
	case t.shape == shapeList:
	case t.untyped && t.shape == shapeMap:
		for _, f := range t.fields {
			if canonical(f.name) != singular {
				d.problem(muster.ReasonUnknownField, join(path, short(f.name)), f.place, fmt.Sprintf("did you mean <%s>?", singular), "there is no such field")
				continue
			}
			items = append(items, f.value)
		}
	case t.untyped && t.text == "":
	case t.untyped:
		d.problem(muster.ReasonWrongType, path, t.place, fmt.Sprintf("write <%s><%s>%s</%s></%s>", name, singular, short(t.text), singular, name), "a list is expected, found text")
		return
	case t.shape == shapeText:
		d.problem(muster.ReasonWrongType, path, t.place, fmt.Sprintf("write [%s]", short(t.text)), "a list is expected, found text")
		return
	default:
		d.problem(muster.ReasonWrongType, path, t.place, "", "a list is expected, found %s", t.found())
		return
	}
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.places[at] = item.place
		s, _ := d.str(item, at, "")
		into.Set(reflect.Append(into, reflect.ValueOf(s)))
	}
}

// found describes a value that was not expected.
func (t tree) found() string {
	switch t.shape {
	case shapeText:
		if t.text == "" {
			return "nothing"
		}
		return fmt.Sprintf("the text %q", short(t.text))
	case shapeNumber:
		return "the number " + short(t.text)
	case shapeBool:
		return "the truth value " + short(t.text)
	}
	return t.shape.String()
}

// canonical is the name of a field that is published with hyphens, too.
func canonical(name string) string {
	switch name {
	case "memory-per-core", "kernel-args", "kernel-arg", "link-rate":
		return strings.ReplaceAll(name, "-", "_")
	}
	return name
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// fieldNames are the names of a struct's fields in a request.
func fieldNames(t reflect.Type) []string {
	list := make([]string, t.NumField())
	for i := range list {
		list[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return list
}

func exampleFields(t reflect.Type) string {
	if t == reflect.TypeFor[wire.MachineConstraints]() {
		return `machine: {cores: ">=2"}`
	}
	if t == reflect.TypeFor[wire.ShapeWish]() {
		return `shape: {cores: 2, sockets: 1, memory_per_core: 4GiB}`
	}
	if t == reflect.TypeFor[wire.VMWish]() {
		return `vm: {tune: on, nic: virtio, pages: 2MiB}`
	}
	if t == reflect.TypeFor[wire.BookRequest]() {
		return "name: NAME, seats: N and days: [tue]"
	}
	if t == reflect.TypeFor[wire.StartWish]() {
		return `start: +2h`
	}
	return "name: NAME and nodes: N"
}
