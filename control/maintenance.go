package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// AddMaintenance enters a time in which machines are kept free of tenants. A window that
// would break promises, or has clusters in its way, says which and is not entered unless it
// is forced; promises then move to other machines, or to another time, of which their people
// are told.
func (s *Service) AddMaintenance(ctx context.Context, who muster.Actor, r wire.MaintenanceRequest) (wire.Maintenance, error) {
	var out wire.Maintenance
	if err := administrator(who, "enter maintenance"); err != nil {
		return out, err
	}
	now := s.Clock.Now()
	w := muster.MaintenanceWindow{ID: "w-" + muster.RandomID(6), Why: r.Why, By: who.Name}
	var problems []muster.Problem
	read := func(field, text string, to *time.Time) {
		at, err := spec.ParseTime(text, now)
		if err != nil {
			problems = append(problems, asError(err).In(field))
			return
		}
		*to = at.UTC()
	}
	read("from", r.From, &w.From)
	if r.Until != "" {
		read("until", r.Until, &w.Until)
	}
	if !w.Until.IsZero() && !w.Until.After(w.From) {
		problems = append(problems, muster.Problem{Field: "until", Reason: muster.ReasonContradiction, Message: "the window ends before it begins", Hint: "exchange them"})
	}
	if !w.Until.IsZero() && !w.Until.After(now) {
		problems = append(problems, muster.Problem{Field: "until", Reason: muster.ReasonOutOfRange, Message: "the window is over", Hint: "write a time that is to come"})
	}
	names := map[string]bool{}
	for i, text := range r.Machines {
		set, err := nodeset.Parse(text)
		var list []string
		if err == nil {
			list, err = set.Expand()
		}
		if err != nil {
			problems = append(problems, muster.Problem{Field: fmt.Sprintf("machines[%d]", i), Reason: muster.ReasonBadValue, Message: err.Error(), Hint: "write names, or a range such as n[01-16]"})
		}
		for _, name := range list {
			names[name] = true
		}
	}
	if len(r.Machines) == 0 && r.Rack == "" && r.Class == "" {
		problems = append(problems, muster.Problem{Field: "machines", Reason: muster.ReasonRequired, Message: "no machines are named", Hint: "name machines, a rack or a class"})
	}
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		w.Machines = nil
		out.Breaks = nil
		sys := tx.AsSystem()
		machines, err := sys.Site()
		if err != nil {
			return err
		}
		known := map[string]bool{}
		for _, m := range machines {
			known[string(m.ID)] = true
			if names[string(m.ID)] || r.Rack != "" && m.Facts.Rack == r.Rack || r.Class != "" && m.Facts.Class == r.Class {
				w.Machines = append(w.Machines, m.ID)
			}
		}
		for name := range names {
			if !known[name] {
				problems = append(problems, muster.Problem{Field: "machines", Reason: muster.ReasonNoSuchMachine, Message: fmt.Sprintf("there is no machine %.64q", name), Hint: "see 'muster machine list'"})
			}
		}
		if len(w.Machines) == 0 && len(problems) == 0 {
			problems = append(problems, muster.Problem{Field: "machines", Reason: muster.ReasonNoSuchMachine, Message: "no machine is of that rack or class", Hint: "see 'muster machine list'"})
		}
		if e := spec.Error(problems); e != nil {
			return e
		}
		if out.Breaks, err = s.Allocator.InTheWay(tx, w); err != nil {
			return err
		}
		if len(out.Breaks) > 0 && !r.Force {
			return muster.Errorf(muster.EConflict, "the window is in the way of %s", strings.Join(out.Breaks, "; ")).Because(muster.ReasonBreaksPromises).
				WithHint("choose another time, or enter it all the same with --force: promises move then, and their people are told")
		}
		out.Window = w
		return tx.PutMaintenanceWindow(w, fmt.Sprintf("%s kept free from %s on", plaintext.Count(len(w.Machines), "machine"), w.From.Format(time.RFC3339)))
	})
	return out, err
}

// Maintenance lists the windows.
func (s *Service) Maintenance(ctx context.Context, who muster.Actor, page wire.Page) (out wire.MaintenanceList, err error) {
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		out.Windows, err = tx.MaintenanceWindows()
		slices.SortFunc(out.Windows, func(a, b muster.MaintenanceWindow) int { return strings.Compare(windowKey(a), windowKey(b)) })
		out.Windows, out.More = wire.Cut(out.Windows, page, windowKey)
		return err
	})
	if out.Windows == nil {
		out.Windows = []muster.MaintenanceWindow{}
	}
	return out, err
}

// windowKey is where a window stands in their list: by its beginning.
func windowKey(w muster.MaintenanceWindow) string {
	return w.From.UTC().Format("20060102150405") + " " + w.ID
}

// RemoveMaintenance takes a window out: its machines are for tenants again.
func (s *Service) RemoveMaintenance(ctx context.Context, who muster.Actor, id string) error {
	if err := administrator(who, "remove maintenance"); err != nil {
		return err
	}
	return s.Store.Update(ctx, who, func(tx *store.Tx) error { return tx.DeleteMaintenanceWindow(id, "removed by "+who.Name) })
}
