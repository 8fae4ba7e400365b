package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// Limits of a walltime.
const (
	minWalltime = time.Minute
	maxWalltime = 366 * 24 * time.Hour
)

type span struct {
	name  string
	value time.Duration
}

func spans() []span {
	return []span{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
}

// ParseDuration reads a duration as requests write it: whole weeks, days,
// hours, minutes and seconds, largest first, such as "8h", "2d" or "1h30m".
// The error is a *muster.Error with code EInvalid.
func ParseDuration(s string) (time.Duration, error) {
	d, f := duration(s)
	if f != nil {
		return 0, f.error()
	}
	return d, nil
}

// FormatDuration writes a duration as ParseDuration reads it, to the second.
func FormatDuration(d time.Duration) string { return plaintext.Span(d) }

func duration(s string) (time.Duration, *fault) {
	text := strings.TrimSpace(s)
	if text == "" {
		return 0, faultf("leave the field out for no limit", "the value is missing").because(muster.ReasonRequired)
	}
	if _, err := strconv.Atoi(text); err == nil && len(text) < 8 {
		return 0, faultf(fmt.Sprintf("write %sm or %sh", text, text), "%q has no unit", text)
	}
	if clockForm.MatchString(text) {
		return 0, faultf("write it with units: 1d12h30m", "%q is not a duration known here", short(text))
	}
	var total time.Duration
	rest, units := text, spans()
	for rest != "" {
		end := 0
		for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		n, err := strconv.ParseInt(rest[:end], 10, 32)
		i := 0
		for i < len(units) && !strings.HasPrefix(rest[end:], units[i].name) {
			i++
		}
		if err != nil || i == len(units) {
			return 0, faultf("write whole units, largest first: 8h, 2d, 1h30m", "%q is not a duration", short(text))
		}
		if n > int64(maxDuration/units[i].value) || total > maxDuration-time.Duration(n)*units[i].value {
			return 0, faultf("", "%q is too long", short(text)).because(muster.ReasonOutOfRange)
		}
		total += time.Duration(n) * units[i].value
		rest, units = rest[end+len(units[i].name):], units[i+1:]
	}
	return total, nil
}

// maxDuration keeps sums far from overflow: a hundred years.
const maxDuration = 100 * 366 * 24 * time.Hour

var clockForm = regexp.MustCompile(`^(\d+-)?\d+(:\d+){1,2}$`)
