package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Limits of a course.
const (
	maxSeats       = 500
	maxOccurrences = 200
	maxAllSeats    = 6000
)

// ReadCourse reads a request for a course: the element <course> in XML. The error is a
// *muster.Error with code EInvalid that lists every problem of the text.
func ReadCourse(data []byte, format Format, now time.Time) (wire.BookRequest, error) {
	r, places, problems := decodeAs[wire.BookRequest](data, format, kind{"course", "name, seats, days and times"})
	_, more := Occurrences(r, now)
	if e := Error(places.Merge(problems, more)); e != nil {
		return r, e
	}
	return r, nil
}

// Occurrences are the dates of a course, or every problem of its request.
func Occurrences(r wire.BookRequest, now time.Time) (list []muster.Occurrence, problems []muster.Problem) {
	v := &validator{}
	v.fault("name", checkName(r.Name))
	if len(r.Name) > 16 {
		v.add(muster.ReasonBadName, "name", "write 16 characters or fewer: seats are named after it", "%q is too long", short(r.Name))
	}
	v.fault("project", checkProject(r.Project))
	if r.Seats < 1 || r.Seats > maxSeats {
		v.add(muster.ReasonOutOfRange, "seats", fmt.Sprintf("write 1 to %d", maxSeats), "%d seats are not possible", r.Seats)
	}
	days := v.weekdays(r.Days)
	clock := func(field, text string) time.Duration {
		at, err := time.Parse("15:04", text)
		if err != nil {
			v.add(muster.ReasonBadValue, field, "write a time of day such as 10:00", "%q is no time of day", short(text))
		}
		return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	}
	begin, end := clock("begin", r.Begin), clock("end", r.End)
	if begin >= end && r.Begin != "" && r.End != "" {
		v.add(muster.ReasonContradiction, "end", "write a later time", "it ends at %s, before it begins at %s", r.End, r.Begin)
	}
	zone, err := time.LoadLocation(cmp.Or(r.Zone, "?"))
	if err != nil || r.Zone == "Local" {
		v.add(muster.ReasonBadValue, "zone", "write a zone such as Europe/Berlin or UTC", "the time zone %q is not known", short(r.Zone))
		zone = time.UTC
	}
	date := func(field, text string) time.Time {
		d, err := time.Parse(time.DateOnly, text)
		if err != nil {
			v.add(muster.ReasonBadValue, field, "write a date such as 2026-10-06", "%q is no date", short(text))
		}
		return d
	}
	first, last := date("first", r.First), date("last", r.Last)
	if !first.IsZero() && !last.IsZero() && last.Before(first) {
		v.add(muster.ReasonContradiction, "last", "exchange them", "the last date is before the first")
	}
	if !last.IsZero() && last.Sub(first) > farthest {
		v.add(muster.ReasonOutOfRange, "last", "write a date within two years", "%s is too far ahead", r.Last)
	}
	except := map[time.Time]bool{}
	for i, text := range r.Except {
		field := fmt.Sprintf("except[%d]", i)
		d := date(field, text)
		if !d.IsZero() && (d.Before(first) || d.After(last) || !days[d.Weekday()]) {
			v.add(muster.ReasonContradiction, field, "leave it out", "%s is no date of the course", text)
		}
		except[d] = true
	}
	if r.Claim != "" {
		if _, f := duration(r.Claim); f != nil {
			v.fault("claim", f)
		}
	}
	if len(v.problems) > 0 {
		return nil, limitProblems(v.problems)
	}
	for d := first; !d.After(last); d = d.AddDate(0, 0, 1) {
		if !days[d.Weekday()] || except[d] {
			continue
		}
		from, f := inZone(d.Add(begin), zone)
		until, g := inZone(d.Add(end), zone)
		switch {
		case f != nil:
			v.fault("begin", f)
		case g != nil:
			v.fault("end", g)
		case from.Before(now):
			v.add(muster.ReasonOutOfRange, "first", "begin with a later date", "%s is over", from.Format("2006-01-02 15:04"))
		default:
			list = append(list, muster.Occurrence{Start: from.UTC(), End: until.UTC(), State: muster.OccurrencePlanned})
		}
	}
	switch {
	case len(v.problems) > 0:
	case len(list) == 0:
		v.add(muster.ReasonContradiction, "days", "write days that lie between the first and the last date", "the course has no date")
	case len(list) > maxOccurrences || len(list)*r.Seats > maxAllSeats:
		v.add(muster.ReasonTooMany, "last", fmt.Sprintf("book %d dates and %d seats in all at most", maxOccurrences, maxAllSeats), "%d dates of %d seats are too many", len(list), r.Seats)
	}
	return list, limitProblems(v.problems)
}

// weekdays reads mon, tue and so on.
func (v *validator) weekdays(list []string) map[time.Weekday]bool {
	names := []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	out := map[time.Weekday]bool{}
	if len(list) == 0 {
		v.add(muster.ReasonRequired, "days", "write days: [tue]", "no day of the week is named")
	}
	for i, text := range list {
		n := slices.Index(names, strings.ToLower(text))
		if n < 0 {
			v.add(muster.ReasonBadValue, fmt.Sprintf("days[%d]", i), "write mon, tue, wed, thu, fri, sat or sun", "%q is no day of the week", short(text))
			continue
		}
		out[time.Weekday(n)] = true
	}
	return out
}
