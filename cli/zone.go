package cli

import (
	"regexp"
	"strings"
	"time"
)

// utcTimes are the times in the server's texts: with a date, or of today.
var utcTimes = regexp.MustCompile(`\b(?:\d{4}-\d{2}-\d{2}[T ])?\d{2}:\d{2}:\d{2}(?:Z| UTC)(?:\b|$)`)

// localTimes writes the times of a text from the server, which are in UTC, in the zone in which
// this program writes all others.
func localTimes(text string, zone *time.Location, now time.Time) string {
	if !strings.Contains(text, ":") {
		return text
	}
	return utcTimes.ReplaceAllStringFunc(text, func(s string) string {
		clock := strings.TrimSuffix(strings.TrimSuffix(s, "Z"), " UTC")
		date, dated := clock, len(clock) > len("15:04:05")
		if !dated {
			date = now.UTC().Format(time.DateOnly) + " " + clock
		}
		at, err := time.Parse("2006-01-02 15:04:05", strings.Replace(date, "T", " ", 1))
		if err != nil {
			return s
		}
		if at = at.In(zone); at.Format("-0700") == "+0000" && at.Format("MST") == "UTC" {
			return s
		}
		if !dated {
			return at.Format("15:04:05 MST")
		}
		return at.Format("2006-01-02 15:04:05 MST")
	})
}
