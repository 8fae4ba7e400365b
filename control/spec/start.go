package spec

import (
	"fmt"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// startForms is said when a time cannot be read.
const startForms = "write now, +2h, earliest, 2026-12-01T10:00:00Z or 2026-12-01 10:00 Europe/Berlin"

// farthest is how far ahead a start may be.
const farthest = 2 * 366 * 24 * time.Hour

// ParseTime reads one moment as requests and commands write it: now, +2h, RFC 3339, or a
// date and a time of day in a named zone. The error is a *muster.Error with code EInvalid.
func ParseTime(text string, now time.Time) (time.Time, error) {
	at, f := moment(text, now)
	if f != nil {
		return time.Time{}, f.error()
	}
	return at, nil
}

// ParseStart reads the start of a request written as one text.
func ParseStart(text string, now time.Time) (muster.Start, error) {
	v := &validator{}
	s := v.start(wire.StartWish{At: text}, now)
	if e := Error(v.problems); e != nil {
		return muster.Start{}, e
	}
	return s, nil
}

func moment(text string, now time.Time) (time.Time, *fault) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return time.Time{}, faultf(startForms, "the time is missing").because(muster.ReasonRequired)
	case text == "now":
		return now, nil
	case strings.HasPrefix(text, "+"):
		d, f := duration(text[1:])
		if f != nil {
			return time.Time{}, f
		}
		return now.Add(d), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	return local(text)
}

// local reads 2026-12-01 10:00 Europe/Berlin.
func local(text string) (time.Time, *fault) {
	words := strings.Fields(text)
	if len(words) == 2 && strings.Contains(words[0], "T") { // 2026-12-01T10:00 Europe/Berlin
		date, clock, _ := strings.Cut(words[0], "T")
		words = []string{date, clock, words[1]}
	}
	var wall time.Time
	err := fmt.Errorf("no clock")
	if len(words) == 2 || len(words) == 3 {
		for _, form := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05"} {
			if wall, err = time.Parse(form, words[0]+" "+words[1]); err == nil {
				break
			}
		}
	}
	if err != nil {
		return time.Time{}, faultf(startForms, "%q is not a time known here", short(text))
	}
	if len(words) == 2 {
		return time.Time{}, faultf(fmt.Sprintf("write the zone, too: %s %s Europe/Berlin, or UTC", words[0], words[1]), "%q names no time zone", short(text)).because(muster.ReasonRequired)
	}
	zone, err := time.LoadLocation(words[2])
	if err != nil || words[2] == "Local" {
		return time.Time{}, faultf("write a zone such as Europe/Berlin or UTC", "the time zone %q is not known", short(words[2]))
	}
	return inZone(wall, zone)
}

// inZone is the moment at which the clocks of a zone show a time. Once a year they show some
// times never, and some twice.
func inZone(wall time.Time, zone *time.Location) (time.Time, *fault) {
	shows := func(at time.Time) bool {
		return at.In(zone).Format("2006-01-02 15:04:05") == wall.Format("2006-01-02 15:04:05")
	}
	with := func(near time.Time) time.Time { // by the offset that holds near it
		_, offset := near.In(zone).Zone()
		return time.Unix(wall.Unix()-int64(offset), 0).In(zone)
	}
	first, second := with(wall.Add(-24*time.Hour)), with(wall.Add(24*time.Hour))
	switch {
	case first.Equal(second) && shows(first):
		return first, nil
	case shows(first) && shows(second):
		return time.Time{}, faultf(fmt.Sprintf("write %s or %s", first.Format(time.RFC3339), second.Format(time.RFC3339)), "%s comes twice in %s: the clocks go back", wall.Format("2006-01-02 15:04"), zone)
	case shows(first):
		return first, nil
	case shows(second):
		return second, nil
	}
	return time.Time{}, faultf(fmt.Sprintf("write %s or %s", second.Format("2006-01-02 15:04 ")+zone.String(), first.Format("2006-01-02 15:04 ")+zone.String()), "%s does not exist in %s: the clocks go forward", wall.Format("2006-01-02 15:04"), zone)
}

// start judges when a cluster is wanted.
func (v *validator) start(w wire.StartWish, now time.Time) muster.Start {
	read := func(field, text string) time.Time {
		at, f := moment(text, now)
		if f != nil {
			v.fault(field, f)
			return time.Time{}
		}
		at = at.UTC()
		switch {
		case at.Before(now.Truncate(time.Second)):
			v.add(muster.ReasonOutOfRange, field, "write a time that is to come, or now", "%s is over: it is %s", at.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
		case at.After(now.Add(farthest)):
			v.add(muster.ReasonOutOfRange, field, "write a time within two years", "%s is too far ahead", at.Format(time.RFC3339))
		}
		return at
	}
	window := w.After != "" || w.Before != ""
	switch {
	case w.At != "" && window:
		v.add(muster.ReasonContradiction, "start", "write one time, or after and before", "one time and a window are given")
		return muster.Start{}
	case w.At == "earliest":
		return muster.Start{Earliest: true}
	case w.At == "" && !window, strings.TrimSpace(w.At) == "now":
		return muster.Start{}
	case w.At != "":
		at := read("start", w.At)
		return muster.Start{After: at, Before: at}
	}
	var s muster.Start
	if w.After != "" {
		s.After = read("start.after", w.After)
	}
	if w.Before != "" {
		s.Until = read("start.before", w.Before)
	}
	if !s.After.IsZero() && !s.Until.IsZero() && !s.Until.After(s.After) {
		v.add(muster.ReasonContradiction, "start.before", "exchange them", "the window ends at %s, before it begins", s.Until.Format(time.RFC3339))
	}
	s.Earliest = true
	return s
}

// CheckWindow tells when the time of a request does not fit into the window that it names.
func CheckWindow(s muster.Spec, now time.Time) []muster.Problem {
	begin := now
	if s.Start.After.After(now) {
		begin = s.Start.After
	}
	if s.Start.Until.IsZero() || s.Walltime <= 0 || !begin.Add(time.Duration(s.Walltime)).After(s.Start.Until) || !s.Start.Until.After(begin) {
		return nil
	}
	room := s.Start.Until.Sub(begin).Truncate(time.Second)
	return []muster.Problem{{Field: "start", Reason: muster.ReasonContradiction, Message: "the window of " + FormatDuration(room) + " is shorter than the walltime of " + FormatDuration(time.Duration(s.Walltime)),
		Hint: "write walltime: " + FormatDuration(room) + " or less, or a longer window: the whole walltime lies in it"}}
}
