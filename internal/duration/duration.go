// Package duration reads lengths of time as people write them: 90s, 10m, 1h30m, 2d, 1w.
package duration

import (
	"fmt"
	"math"
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

// Parse reads what time.ParseDuration does, with weeks and days before it: 2d, 1w, 1w2d12h,
// 1.5d. What is longer than 292 years is an error.
func Parse(text string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a length of time such as 90s, 10m, 2d or 1w", text)
	rest, total := text, time.Duration(0)
	for _, unit := range []struct {
		name  string
		value time.Duration
	}{{"w", Week}, {"d", Day}} {
		number, after, found := strings.Cut(rest, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || strings.Trim(number, "0123456789.") != "" || n*float64(unit.value)+float64(total) >= math.MaxInt64 {
			return 0, bad
		}
		total += time.Duration(n * float64(unit.value))
		rest = after
	}
	if rest == "" && text != "" {
		return total, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || total > 0 && (rest[0] == '-' || rest[0] == '+') || total > math.MaxInt64-max(d, 0) {
		return 0, bad
	}
	return total + d, nil
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
