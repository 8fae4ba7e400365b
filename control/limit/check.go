package limit

import (
	"fmt"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/internal/wildcard"
)

// Ask is what somebody asks for more than they have.
type Ask struct {
	Machines int
	// Cores and Accelerators of the machines that a plan names, or else what the request
	// asks for at least.
	Cores, Accelerators int
	// Walltime of the whole; 0: without end.
	Walltime time.Duration
	// More: it asks for more beside what it has, from From until Until; Walltime is still
	// that of the whole.
	More bool
	// Promise: it asks for a time; Start is that.
	Promise bool
	Start   time.Time
	// From and Until are when it has its machines. Until zero: for good.
	From, Until time.Time
}

// AskOf is what a request asks for as a whole, before machines are chosen.
func AskOf(s muster.Spec, now time.Time) Ask {
	a := Ask{Machines: s.TotalNodes(), Walltime: time.Duration(s.Walltime), Promise: !s.Start.IsZero(), Start: s.Start.After, From: now}
	if a.Start.After(now) {
		a.From = a.Start
	}
	if s.Walltime > 0 {
		a.Until = a.From.Add(a.Walltime)
	}
	a.Cores = s.Nodes * least(s.Machine.Cores)
	a.Accelerators = s.Nodes * least(s.Machine.Accelerators)
	return a
}

// least is the smallest number that a quantity allows.
func least(q muster.Quantity) int {
	switch q.Op {
	case muster.AtLeast, muster.Exactly:
		return int(min(q.Value, 1<<20))
	case muster.More:
		return int(min(q.Value+1, 1<<20))
	}
	return 0
}

// With is the ask with the machines that a plan names.
func (a Ask) With(list []Hardware) Ask {
	has := amount(list)
	a.Machines, a.Cores, a.Accelerators = has.Machines, has.Cores, has.Accelerators
	return a
}

// Promised is the ask with the time that a promise gives it.
func (a Ask) Promised(p *muster.Promise) Ask {
	if p != nil {
		a.Promise, a.Start, a.From, a.Until = true, p.Start, p.Start.Add(-time.Duration(p.Lead)), p.End
	}
	return a
}

// Whose says whose limits are checked, in words for people.
type Whose struct {
	Name   string // "project cfd", "each user of project cfd"
	Lifter string // who can lift them
}

// Check lists every limit that an ask exceeds, beside what is in use.
func Check(w Whose, l muster.Limits, u Usage, a Ask, now time.Time) (list []muster.Problem) {
	over := func(field string, limit, used, asked, hint string) {
		list = append(list, muster.Problem{Field: field, Reason: muster.ReasonOverLimit,
			Message: fmt.Sprintf("%s asked, %s in use: %s may have %s", asked, used, w.Name, limit),
			Hint:    hint + w.Lifter + " can lift the limit for one request"})
	}
	count := func(field string, limit, used, asked int, noun string) {
		if limit > 0 && asked > 0 && used+asked > limit {
			hint := fmt.Sprintf("ask for %d or fewer, or wait; ", max(0, limit-used))
			if used >= limit {
				hint = "wait until some are given back; "
			}
			over(field, plaintext.Count(limit, noun)+" at once", fmt.Sprint(used), fmt.Sprint(asked), hint)
		}
	}
	used := u.Peak(a.From, a.Until)
	count("machines", l.Machines, used.Machines, a.Machines, "machine")
	count("cores", l.Cores, used.Cores, a.Cores, "core")
	count("accelerators", l.Accelerators, used.Accelerators, a.Accelerators, "accelerator")
	if most := time.Duration(l.Walltime); most > 0 && (a.Walltime <= 0 || a.Walltime > most) {
		asked := "no end"
		if a.Walltime > 0 {
			asked = plaintext.Span(a.Walltime)
		}
		list = append(list, muster.Problem{Field: "walltime", Reason: muster.ReasonOverLimit, Message: fmt.Sprintf("%s asked: %s may have %s", asked, w.Name, plaintext.Span(most)),
			Hint: "write " + plaintext.Span(most) + " or less; " + w.Lifter + " can lift the limit for one request"})
	}
	if a.Promise {
		count("promises", l.Promises, u.Promises, 1, "promise")
		if far := time.Duration(l.Ahead); far > 0 && a.Start.Sub(now) > far {
			list = append(list, muster.Problem{Field: "start", Reason: muster.ReasonOverLimit, Message: fmt.Sprintf("%s ahead asked: %s may book %s ahead", plaintext.Span(a.Start.Sub(now)), w.Name, plaintext.Span(far)),
				Hint: "ask for an earlier time; " + w.Lifter + " can lift the limit for one request"})
		}
	}
	if most := time.Duration(l.MachineTime); most > 0 {
		length := a.Walltime
		if a.More {
			length = a.Until.Sub(a.From)
		}
		asked := times(a.Machines, length)
		if a.Walltime <= 0 || add(u.Booked, asked) > most {
			over("machine_time", fmt.Sprintf("%.0f machine-hours in %s", most.Hours(), plaintext.Span(time.Duration(l.Period))), fmt.Sprintf("%.0f", u.Booked.Hours()), fmt.Sprintf("%.0f machine-hours", asked.Hours()), "ask for less; ")
		}
	}
	return list
}

// CheckHours lists the limits of hours of the week that an ask exceeds. A broken record of
// hours bounds nothing.
func CheckHours(w Whose, hours []muster.HourLimit, u Usage, a Ask) (list []muster.Problem) {
	for _, h := range hours {
		used := u.Peak(a.From, a.Until).Machines
		if a.Machines == 0 || used+a.Machines <= h.Machines {
			continue
		}
		if at, ok := Meets(h, a.From, a.Until); ok {
			list = append(list, muster.Problem{Field: "machines", Reason: muster.ReasonOverLimit,
				Message: fmt.Sprintf("%d asked, %d in use: %s may have %s from %s to %s (%s)", a.Machines, used, w.Name, plaintext.Count(h.Machines, "machine"), h.From, h.Until, h.Zone),
				Hint:    fmt.Sprintf("be done by %s, or ask for fewer; %s can lift the limit for one request", at.Format(time.RFC3339), w.Lifter)})
		}
	}
	return list
}

// CheckRights lists what a request asks for that its people may not ask for.
func CheckRights(w Whose, r muster.Rights, s muster.Spec) (list []muster.Problem) {
	deny := func(field, what string) {
		list = append(list, muster.Problem{Field: field, Reason: muster.ReasonNoRight, Message: w.Name + " may not " + what, Hint: "leave it out; " + w.Lifter + " can allow it"})
	}
	if r.NoPromises && !s.Start.IsZero() {
		deny("start", "ask for a time")
	}
	if r.NoRacks && s.Machine.Rack != "" {
		deny("machine.rack", "name a rack")
	}
	if r.NoRacks && s.Within != "" && s.Within != muster.WithinSite && s.Within != muster.WithinAnySite {
		deny("within", "ask for all nodes in one "+s.Within)
	}
	if r.NoHardware && s.Machine.Processor != "" {
		deny("machine.processor", "name a processor")
	}
	if r.NoHardware && s.Machine.Accelerator != "" {
		deny("machine.accelerator", "name an accelerator")
	}
	one := func(field, asked string, allowed []string) {
		if len(allowed) == 0 || asked == "" || strings.ContainsAny(asked, "*?") {
			return // what is planned keeps to what is allowed
		}
		for _, p := range allowed {
			if p == asked || wildcard.Match(p, asked) {
				return
			}
		}
		list = append(list, muster.Problem{Field: field, Reason: muster.ReasonNoRight, Message: w.Name + " may have " + strings.Join(allowed, ", ") + " only",
			Hint: "write one of these; " + w.Lifter + " can allow more"})
	}
	one("machine.class", s.Machine.Class, r.Classes)
	if s.VM == nil { // of these, what they are made of is looked at
		one("machine.provider", s.Machine.Provider, r.Providers)
	}
	return list
}
