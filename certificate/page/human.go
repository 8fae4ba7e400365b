package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
)

// scaled is by what a value of a unit is divided to be read easily, and what the
// result is called.
func scaled(unit string, v float64) (per float64, name string) {
	v = math.Abs(v)
	switch unit {
	case "s":
		switch {
		case v == 0 || v >= 1:
			return 1, "s"
		case v < 0.9995e-6:
			return 1e-9, "ns"
		case v < 0.9995e-3:
			return 1e-6, "µs"
		}
		return 1e-3, "ms"
	case "1":
		return 0.01, "%"
	case "flop/s":
		per, prefix := thousands(v)
		return per, prefix + "FLOP/s"
	case "B/s", "op/s":
		per, prefix := thousands(v)
		return per, prefix + unit
	}
	return 1, unit
}

func thousands(v float64) (per float64, prefix string) {
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	per = 1
	i := 0
	for i+1 < len(prefixes) && v >= 999.5*per {
		per *= 1000
		i++
	}
	return per, prefixes[i]
}

// number writes three digits that count, and no more than needed.
func number(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "?"
	case a != 0 && (a < 1e-4 || a >= 1e7):
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a >= 99.95 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	digits := 2 - int(math.Floor(math.Log10(a*1.0005)))
	return strconv.FormatFloat(v, 'f', min(max(digits, 0), 6), 64)
}

// human is a value with its unit.
func human(v float64, unit string) string {
	per, name := scaled(unit, v)
	return strings.TrimSpace(number(v/per) + " " + name)
}

// between is a range with one unit.
func between(lo, hi float64, unit string) string {
	per, name := scaled(unit, math.Max(math.Abs(lo), math.Abs(hi)))
	return strings.TrimSpace(number(lo/per) + " to " + number(hi/per) + " " + name)
}

// percent is a share.
func percent(v float64) string {
	v *= 100
	if a := math.Abs(v); a >= 0.995 && a < 1e6 {
		return strings.TrimSuffix(tenth(v), ".0") + " %"
	}
	return number(v) + " %"
}

// tick is a value beside an axis: as short as it can be.
func tick(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// tickUnit is a tick with its unit.
func tickUnit(v float64, unit string) string {
	per, name := scaled(unit, v)
	return strings.TrimSpace(tick(v/per) + " " + name)
}

// signed is by how much a value differs from a reference.
func signed(v, reference float64) string {
	if reference == 0 {
		return ""
	}
	d := 100 * (v/reference - 1)
	switch {
	case math.IsNaN(d) || math.Abs(d) > 1e6:
		return ""
	case math.Abs(d) < 0.05:
		return "±0 %"
	case d < 0:
		return "−" + tenth(-d) + " %"
	}
	return "+" + tenth(d) + " %"
}

func tenth(d float64) string {
	if math.Abs(d) < 9.95 {
		return strconv.FormatFloat(d, 'f', 1, 64)
	}
	return strconv.FormatFloat(d, 'f', 0, 64)
}

// size is a number of bytes.
func size(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d %s", n/u.bytes, u.name)
		}
	}
	if n >= 10<<20 {
		per := int64(1 << 20)
		name := "MiB"
		if n >= 10<<30 {
			per, name = 1<<30, "GiB"
		}
		return number(float64(n)/float64(per)) + " " + name
	}
	return fmt.Sprintf("%d B", n)
}

// hertz is a clock.
func hertz(n int64) string { return number(float64(n)/1e9) + " GHz" }

// when is a time.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2 January 2006, 15:04 UTC")
}

// lasted is from when to when.
func lasted(from, to time.Time) string {
	switch {
	case from.IsZero() || to.IsZero():
		return when(from) + when(to)
	case from.Format(time.DateOnly) == to.Format(time.DateOnly):
		return from.UTC().Format("2 January 2006, 15:04:05") + " to " + to.UTC().Format("15:04:05 UTC")
	}
	return when(from) + " to " + when(to)
}

// count is a number of things.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return whole(n) + " " + many
}

// whole is a number with commas, where it is long.
func whole(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && n >= 10000; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// folded writes names of nodes the short way, n[01-08].
func folded(names []string) string {
	if len(names) <= 3 {
		return strings.Join(names, ", ")
	}
	return short(nodeset.Fold(names), 400)
}

// gradeText is a verdict in words.
func gradeText(g muster.Grade) string {
	switch g {
	case muster.GradePass:
		return "as fast as it should be"
	case muster.GradeLow:
		return "slower than it should be"
	case muster.GradeUnstable:
		return "varies too much to say"
	}
	return "nothing to compare with"
}

// gradeSign is a verdict as one character, for those who see no colours.
func gradeSign(g muster.Grade) string {
	switch g {
	case muster.GradePass:
		return "✓"
	case muster.GradeLow:
		return "▼"
	case muster.GradeUnstable:
		return "≈"
	}
	return "?"
}

// gradeClass is how a verdict looks. It is one of four words, whatever was signed.
func gradeClass(g muster.Grade) string {
	switch g {
	case muster.GradePass, muster.GradeLow, muster.GradeUnstable:
		return string(g)
	}
	return "unknown"
}
