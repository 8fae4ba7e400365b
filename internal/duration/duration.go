// Package duration reads lengths of time as people write them: 90s, 10m, 1h30m, 2d, 1w.
package duration

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Day and Week are 24 hours and seven times that: changes of the clocks do not count.
const (
	Day  = 24 * time.Hour
	Week = 7 * Day
)

// ErrTooLong is the error of what is longer than 292 years.
var ErrTooLong = errors.New("it is longer than 292 years")

// units are those of Parse, largest first.
func units() []string { return []string{"w", "d", "h", "m", "s", "ms", "us", "ns"} }

// Parse reads weeks, days, hours, minutes, seconds and parts of seconds (ms, us, ns), largest
// first, each once, with fractions: 2d, 1w, 1w2d12h, 1.5h. A sign may stand before them, and 0
// needs no unit.
func Parse(text string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a length of time such as 90s, 10m, 1.5h, 2d or 1w, with the largest unit first", text)
	rest, negative := strings.CutPrefix(text, "-")
	if !negative {
		rest = strings.TrimPrefix(rest, "+")
	}
	if rest == "0" {
		return 0, nil
	}
	if rest == "" {
		return 0, bad
	}
	var total time.Duration
	for left := units(); rest != ""; {
		number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789."))]
		rest = rest[len(number):]
		unit := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))]
		rest = rest[len(unit):]
		i := slices.Index(left, unit)
		if i < 0 || strings.Trim(number, ".") == "" || strings.Count(number, ".") > 1 {
			return 0, bad
		}
		d, err := part(number, unit)
		if err != nil || total > math.MaxInt64-d {
			return 0, fmt.Errorf("%q: %w", text, ErrTooLong)
		}
		total, left = total+d, left[i+1:]
	}
	if negative {
		total = -total
	}
	return total, nil
}

// part is a number of a unit.
func part(number, unit string) (time.Duration, error) {
	value := map[string]time.Duration{"w": Week, "d": Day}[unit]
	if value == 0 {
		return time.ParseDuration(number + unit)
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n*float64(value) >= math.MaxInt64 {
		return 0, ErrTooLong
	}
	return time.Duration(n * float64(value)), nil
}

// Var defines a flag that Parse reads.
func Var(set *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	set.Var((*flag)(p), name, usage)
}

type flag time.Duration

func (f *flag) String() string { return time.Duration(*f).String() }

// Type is the word that help and errors have for such a flag.
func (f *flag) Type() string { return "duration" }

func (f *flag) Set(text string) error {
	d, err := Parse(text)
	if err == nil {
		*f = flag(d)
	}
	return err
}
