package limit

import (
	"fmt"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// week is the length of a week by the clocks on a wall, in minutes.
const week = 7 * 24 * 60

// ParseHour reads "fri 18:00" as minutes since Monday 00:00.
func ParseHour(text string) (int, error) {
	day, clock, ok := strings.Cut(strings.TrimSpace(strings.ToLower(text)), " ")
	days := []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	at, err := time.Parse("15:04", strings.TrimSpace(clock))
	for i, d := range days {
		if ok && err == nil && day == d {
			return (i*24+at.Hour())*60 + at.Minute(), nil
		}
	}
	return 0, fmt.Errorf("%.20q is no hour of the week: write fri 18:00", text)
}

// Meets reports whether a time meets the hours of a limit, and when it does first. until zero:
// for good.
func Meets(h muster.HourLimit, from, until time.Time) (time.Time, bool) {
	a, errA := ParseHour(h.From)
	b, errB := ParseHour(h.Until)
	zone, errZone := time.LoadLocation(h.Zone)
	if errA != nil || errB != nil || errZone != nil || a == b {
		return time.Time{}, false
	}
	local := from.In(zone)
	at := (int(local.Weekday()+6)%7*24+local.Hour())*60 + local.Minute()
	if in := (at - a + week) % week; in < (b-a+week)%week {
		return from, true
	}
	next := (a - at + week) % week
	begin := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute()+next, 0, 0, zone) // wall clock: right over changes of the clocks
	return begin, until.IsZero() || begin.Before(until)
}
