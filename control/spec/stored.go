package spec

import (
	"strings"
)

// asWritten turns the fields of a spec, as the API shows it, into those that a person
// writes: what `muster show C -o json | jq .spec` prints is a request, too. Both may stand
// in one request; a field given in both ways is given twice.
func asWritten(t tree) tree {
	if t.shape != shapeMap {
		return t
	}
	out := t
	out.fields = nil
	for _, f := range t.fields {
		switch f.name {
		case "allowed":
			if f.value.shape == shapeMap {
				continue // what its project may have, which is looked up for each request
			}
		case "walltime_seconds", "retain_seconds":
			f.name, f.value = strings.TrimSuffix(f.name, "_seconds"), withUnit(f.value, "s")
			if f.value.text == "0s" {
				f.value.text = "0"
			}
		case "home_quota_bytes":
			f.name, f.value = "home_quota", withUnit(f.value, "B")
		case "link_rate_bps":
			f.name, f.value = "link_rate", withUnit(f.value, "b/s")
		case "shape":
			f.value = shapeAsWritten(f.value)
		case "start":
			f.value = startAsWritten(f.value)
		case "volumes":
			f.value = volumesAsWritten(f.value)
		case "machine":
			f.value = machineAsWritten(f.value)
		}
		out.fields = append(out.fields, f)
	}
	return out
}

// withUnit is a number as a text with a unit. What is no number stays, to be refused.
func withUnit(t tree, unit string) tree {
	if t.shape == shapeNumber || t.untyped && t.shape == shapeText && t.text != "" {
		t.shape, t.text = shapeText, t.text+unit
	}
	return t
}

// get is a field of a map.
func (t tree) get(name string) (tree, bool) {
	for _, f := range t.fields {
		if f.name == name {
			return f.value, true
		}
	}
	return tree{}, false
}

// startAsWritten knows the start of a spec by its fields until and earliest, or by one
// time that is the first and the last.
func startAsWritten(t tree) tree {
	after, hasAfter := t.get("after")
	before, hasBefore := t.get("before")
	_, hasUntil := t.get("until")
	earliest, hasEarliest := t.get("earliest")
	text := func(s string) tree {
		return tree{shape: shapeText, text: s, place: t.place, untyped: t.untyped}
	}
	switch {
	case t.shape != shapeMap:
		return t
	case hasAfter && hasBefore && !hasUntil && !hasEarliest && after.text != "" && after.text == before.text:
		return text(after.text)
	case hasEarliest && earliest.text == "true" && len(t.fields) == 1:
		return text("earliest")
	case !hasEarliest && !hasUntil:
		return t
	}
	out := t
	out.fields = nil
	for _, f := range t.fields {
		switch f.name {
		case "earliest":
			continue
		case "until":
			f.name = "before"
		}
		out.fields = append(out.fields, f)
	}
	return out
}

func volumesAsWritten(t tree) tree {
	out := t
	out.items = make([]tree, len(t.items))
	for i, item := range t.items {
		out.items[i] = volumeAsWritten(item)
	}
	if t.untyped { // XML: <volumes><volume>...
		out.items, out.fields = nil, make([]field, len(t.fields))
		for i, f := range t.fields {
			f.value = volumeAsWritten(f.value)
			out.fields[i] = f
		}
	}
	return out
}

// volumeAsWritten makes NAME:/PLACE:ro of what a spec mounts.
func volumeAsWritten(t tree) tree {
	name, ok := t.get("volume")
	if t.shape != shapeMap || !ok || name.text == "" {
		return t
	}
	text := name.text
	for _, f := range t.fields {
		switch {
		case f.name == "volume":
		case f.name == "target" && f.value.text != "":
			text += ":" + f.value.text
		case f.name == "read_only" && (f.value.text == "true" || f.value.text == "false"):
		default:
			return t
		}
	}
	if ro, _ := t.get("read_only"); ro.text == "true" {
		text += ":ro"
	}
	return tree{shape: shapeText, text: text, place: t.place, untyped: t.untyped}
}

func shapeAsWritten(t tree) tree {
	if t.shape != shapeMap {
		return t
	}
	out := t
	out.fields = nil
	for _, f := range t.fields {
		if f.name == "memory_per_core_bytes" {
			f.name, f.value = "memory_per_core", withUnit(f.value, "B")
		}
		out.fields = append(out.fields, f)
	}
	return out
}

func machineAsWritten(t tree) tree {
	if t.shape != shapeMap {
		return t
	}
	out := t
	out.fields = nil
	for _, f := range t.fields {
		switch f.name {
		case "memory_bytes", "disk_bytes":
			f.name, f.value = strings.TrimSuffix(f.name, "_bytes"), quantityAsWritten(f.value, "B")
		case "nic_speed_bps":
			f.name, f.value = "nic_speed", quantityAsWritten(f.value, "b/s")
		case "cores", "nics", "accelerators":
			f.value = quantityAsWritten(f.value, "")
		}
		out.fields = append(out.fields, f)
	}
	return out
}

// quantityAsWritten makes ">=16" of {op: ">=", value: 16}. A value of 0 is left out there.
func quantityAsWritten(t tree, unit string) tree {
	op, hasOp := t.get("op")
	if t.shape != shapeMap {
		return withUnit(t, unit)
	}
	value, hasValue := t.get("value")
	if !hasValue {
		value.text = "0"
	}
	known := 1
	if hasValue {
		known++
	}
	if !hasOp || op.text == "" || len(t.fields) != known {
		return t
	}
	return tree{shape: shapeText, text: op.text + value.text + unit, place: t.place, untyped: t.untyped}
}
