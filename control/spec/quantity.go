package spec

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// measure is what a quantity counts, with the units it may be written in.
type measure struct {
	units   []measureUnit
	example string
	alone   bool // a value, which nothing is compared with
}

type measureUnit struct {
	name  string
	value int64
}

// The measures. Those without units are plain whole numbers.
func counted() measure { return measure{example: "16"} }

func bytesMeasure() measure {
	return measure{example: "64GiB", units: []measureUnit{
		{"B", 1},
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"PiB", 1 << 50},
		{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15},
	}}
}

// sizeMeasure is for what is made, and is so large: without a comparison.
func sizeMeasure() measure {
	m := bytesMeasure()
	m.example, m.alone = "10GiB", true
	return m
}

func speedMeasure() measure {
	return measure{example: "10Gb/s", units: []measureUnit{
		{"b/s", 1}, {"Kb/s", 1e3}, {"Mb/s", 1e6}, {"Gb/s", 1e9}, {"Tb/s", 1e12},
	}}
}

// fault is what is wrong with a value, and what to write instead.
type fault struct {
	why           muster.Reason
	message, hint string
}

func faultf(hint, format string, args ...any) *fault {
	return &fault{why: muster.ReasonBadValue, message: fmt.Sprintf(format, args...), hint: hint}
}

func (f *fault) because(why muster.Reason) *fault {
	f.why = why
	return f
}

// error is the fault of a value that stands alone.
func (f *fault) error() *muster.Error {
	return muster.Errorf(muster.EInvalid, "%s", f.message).Because(f.why).WithHint("%s", f.hint)
}

// ParseBytes reads a size such as "64GiB" without a comparison.
func ParseBytes(s string) (int64, error) {
	v, f := size(s)
	if f != nil {
		return 0, f.error()
	}
	return v, nil
}

// ParseRate reads a rate of a link such as "10Gb/s", in bits/s, without a comparison.
func ParseRate(s string) (int64, error) {
	m := speedMeasure()
	m.alone = true
	v, f := m.value(strings.TrimSpace(s))
	if f != nil {
		return 0, f.error()
	}
	return v, nil
}

func size(s string) (int64, *fault) {
	m := sizeMeasure()
	text := strings.TrimSpace(s)
	switch {
	case text == "":
		return 0, faultf(m.advice(), "the value is missing").because(muster.ReasonRequired)
	case strings.ContainsAny(text[:1], "<>="):
		return 0, faultf(m.advice(), "%q compares, where a size is expected", short(s))
	case text[0] == '-':
		return 0, faultf(m.advice(), "%q is below zero", short(s)).because(muster.ReasonOutOfRange)
	case len(text) > 64:
		return 0, m.none(text)
	}
	return m.value(text)
}

// none is the fault of what cannot be read at all.
func (m measure) none(text string) *fault {
	if m.alone {
		return faultf(m.advice(), "%q is not a size", short(text))
	}
	return faultf(m.advice(), "%q is not a quantity", short(text))
}

func (m measure) advice() string {
	if m.alone {
		return "write a size such as " + m.example
	}
	return "write a value such as >=" + m.example
}

// quantity reads ">=16", "16" (which means at least 16), "= 2", "<64GiB".
func (m measure) quantity(s string) (muster.Quantity, *fault) {
	text := strings.TrimSpace(s)
	if text == "" {
		return muster.Quantity{}, faultf("leave the field out to ask for nothing", "the value is missing").because(muster.ReasonRequired)
	}
	if len(text) > 64 {
		return muster.Quantity{}, m.none(s)
	}
	q := muster.Quantity{Op: muster.AtLeast}
	for _, op := range []muster.Op{muster.AtLeast, muster.AtMost, muster.More, muster.Less, muster.Exactly} {
		if rest, ok := strings.CutPrefix(text, string(op)); ok {
			q.Op, text = op, strings.TrimSpace(rest)
			break
		}
	}
	if strings.HasPrefix(text, "-") {
		return muster.Quantity{}, faultf("", "%q is below zero", short(s)).because(muster.ReasonOutOfRange)
	}
	v, f := m.value(text)
	if f != nil {
		return muster.Quantity{}, f
	}
	if q.Op == muster.Less && v == 0 {
		return muster.Quantity{}, faultf("", "nothing is less than 0").because(muster.ReasonOutOfRange)
	}
	q.Value = v
	return q, nil
}

// value reads a number with its unit.
func (m measure) value(text string) (int64, *fault) {
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.') {
		end++
	}
	number, unit := text[:end], strings.TrimSpace(text[end:])
	whole, fraction, hasPoint := strings.Cut(number, ".")
	switch {
	case number == "" || whole == "" || (hasPoint && fraction == "") || strings.Contains(fraction, "."):
		return 0, m.none(text)
	case len(m.units) == 0 && unit != "":
		return 0, faultf("write the number alone: "+short(whole), "%q has a unit, where a plain number is expected", short(text))
	case len(m.units) == 0 && hasPoint:
		return 0, faultf("", "%q is not a whole number", short(text))
	}
	factor := int64(1)
	if len(m.units) > 0 && strings.Trim(number, "0.") != "" || unit != "" {
		var f *fault
		if factor, f = m.factor(number, unit); f != nil {
			return 0, f
		}
	}
	v, ok := scale(whole, fraction, factor)
	if !ok {
		return 0, faultf(m.advice(), "%q is too large", short(text)).because(muster.ReasonOutOfRange)
	}
	return v, nil
}

func (m measure) factor(number, unit string) (int64, *fault) {
	if unit == "" {
		example := m.units[len(m.units)/3].name
		return 0, faultf(fmt.Sprintf("write %s%s, for instance", number, example), "%q has no unit", short(number))
	}
	names := make([]string, len(m.units))
	for i, u := range m.units {
		if u.name == unit {
			return u.value, nil
		}
		names[i] = u.name
	}
	hint := "the units are " + strings.Join(names, ", ") + ": " + m.advice()
	if s := m.meant(unit); s != "" {
		hint = "did you mean " + number + s + "?"
	}
	return 0, faultf(hint, "%q is not a unit known here", short(unit))
}

// meant guesses the unit from other ways to write it: 16G, 64gib, 10Gbps.
func (m measure) meant(unit string) string {
	u := strings.ToLower(unit)
	isSpeed := m.units[0].name == "b/s"
	var list []string
	for _, k := range m.units {
		name := strings.ToLower(k.name)
		letter := name[:1]
		if isSpeed {
			switch u {
			case name, letter, letter + "bps", letter + "bit", letter + "bits", letter + "bit/s", letter + "bits/s", letter + "b", letter + "be":
				return k.name
			}
			continue
		}
		switch {
		case u == letter && u != "b":
			list = append(list, k.name)
		case u == name, u == strings.TrimSuffix(name, "b"), u == name+"ytes", u == letter+"bytes":
			return k.name
		}
	}
	if len(list) == 0 {
		return ""
	}
	return list[0] // GiB before GB
}

// scale computes whole.fraction * factor, rounded down.
func scale(whole, fraction string, factor int64) (int64, bool) {
	w, err := strconv.ParseUint(whole, 10, 63)
	if err != nil {
		return 0, false
	}
	hi, lo := bits.Mul64(w, uint64(factor))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, false
	}
	total := lo
	unit := uint64(factor)
	if len(fraction) > 15 {
		fraction = fraction[:15]
	}
	if fraction != "" {
		f, err := strconv.ParseUint(fraction, 10, 63)
		if err != nil {
			return 0, false
		}
		ten := uint64(1)
		for range fraction {
			ten *= 10
		}
		hi, lo := bits.Mul64(f, unit)
		part, _ := bits.Div64(hi, lo, ten) // f < ten, so part < unit
		total += part
	}
	if total > math.MaxInt64 {
		return 0, false
	}
	return int64(total), true
}
