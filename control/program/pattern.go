package program

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// mostPattern is how long a pattern may be.
const mostPattern = 1000

// compile reads a pattern as RE2; ^ and $ stand for the ends of a line.
func compile(pattern string) (*regexp.Regexp, *muster.Error) {
	if len(pattern) > mostPattern {
		return nil, muster.Errorf(muster.EInvalid, "the pattern is longer than %d bytes", mostPattern).Because(muster.ReasonTooLarge).WithHint("write a shorter one")
	}
	re, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "%.60q is not a pattern: %s", pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: ")).
			Because(muster.ReasonBadSyntax).WithHint("write it in the syntax of RE2: https://github.com/google/re2/wiki/Syntax")
	}
	return re, nil
}

// ParseMetric reads a metric as people write it: "NAME: PATTERN" or "NAME (UNIT): PATTERN".
// A name alone is its own unit: "ns/day".
func ParseMetric(text, better string) (*muster.ProgramMetric, *muster.Error) {
	label, pattern, ok := strings.Cut(text, ": ")
	if !ok || strings.TrimSpace(pattern) == "" {
		return nil, muster.Errorf(muster.EInvalid, "%.60q is not a metric", text).Because(muster.ReasonBadSyntax).
			WithHint(`write a name, a colon, a blank and a pattern with one group: 'ns/day: Performance: +([0-9.]+)'`)
	}
	label = strings.TrimSpace(label)
	m := muster.ProgramMetric{Name: label, Unit: label, Pattern: strings.TrimSpace(pattern), Better: muster.Better(better)}
	if name, rest, ok := strings.Cut(label, " ("); ok && strings.HasSuffix(rest, ")") {
		m.Name, m.Unit = strings.TrimSpace(name), strings.TrimSuffix(rest, ")")
	}
	if m.Name == "" || m.Name[0] == '(' || m.Unit == "" || len(label) > 100 || strings.ContainsAny(label, "\n\t\x00") {
		return nil, muster.Errorf(muster.EInvalid, "%.60q is not the name of a metric", label).Because(muster.ReasonBadName).WithHint("write a name and perhaps a unit, at most 100 bytes: 'rate (GB/s): ...'")
	}
	return &m, nil
}

// checkMetric reports what is wrong with a metric.
func checkMetric(m muster.ProgramMetric) *muster.Error {
	re, err := compile(m.Pattern)
	if err != nil {
		return err
	}
	if n := re.NumSubexp(); n != 1 {
		return muster.Errorf(muster.EInvalid, "the pattern %.60q has %d groups", m.Pattern, n).Because(muster.ReasonBadValue).
			WithHint("put parentheses around the number, and write other groups as (?:...)")
	}
	return nil
}

// find is the last number that the pattern of a metric finds in an output; nil: none.
func find(m muster.ProgramMetric, output string) *muster.ProgramFigure {
	re, err := compile(m.Pattern)
	if err != nil || re.NumSubexp() != 1 {
		return nil
	}
	all := re.FindAllStringSubmatch(output, -1)
	for i := len(all) - 1; i >= 0; i-- {
		v, err := strconv.ParseFloat(strings.TrimSpace(all[i][1]), 64)
		if err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			return &muster.ProgramFigure{Name: m.Name, Unit: m.Unit, Value: v, Better: m.Better, Source: muster.FigureOfProgram}
		}
	}
	return nil
}
