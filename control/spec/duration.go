package spec

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	lengthof "github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// Limits of a walltime.
const (
	minWalltime = time.Minute
	maxWalltime = 366 * 24 * time.Hour
)

// ParseDuration reads a duration as requests write it: weeks, days, hours, minutes and
// seconds, largest first, such as "8h", "2d", "1h30m" or "1.5h"; whole seconds in sum.
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
	d, err := lengthof.Parse(text)
	switch {
	case errors.Is(err, lengthof.ErrTooLong), err == nil && d > maxDuration:
		return 0, faultf("", "%q is too long", short(text)).because(muster.ReasonOutOfRange)
	case err != nil:
		return 0, faultf("write units, largest first: 8h, 2d, 1h30m, 1.5h", "%q is not a duration", short(text))
	case strings.Trim(text[:1], "+-") == "":
		return 0, faultf("leave the sign out: 8h, 2d, 1h30m", "%q is not a duration", short(text))
	case d%time.Second != 0:
		return 0, faultf("write whole seconds: 8h, 2d, 90s", "%q is not a number of seconds", short(text))
	}
	return d, nil
}

// maxDuration keeps sums far from overflow: a hundred years.
const maxDuration = 100 * 366 * 24 * time.Hour

var clockForm = regexp.MustCompile(`^(\d+-)?\d+(:\d+){1,2}$`)
