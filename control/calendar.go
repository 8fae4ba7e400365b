package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/wildcard"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// calendarSpan is what a calendar shows where nobody says until when.
const calendarSpan = 7 * 24 * time.Hour

// Calendar is what the machines of the site do, from one time until another. Of what the
// asker may not see it tells only that machines are busy.
func (s *Service) Calendar(ctx context.Context, who muster.Actor, q wire.CalendarQuery) (wire.Calendar, error) {
	now := s.Clock.Now()
	out := wire.Calendar{From: now, Entries: []wire.CalendarEntry{}}
	var problems []muster.Problem
	read := func(field, text string, to *time.Time) {
		if text == "" {
			return
		}
		at, err := spec.ParseTime(text, now)
		if err != nil {
			problems = append(problems, asError(err).In(field))
		}
		*to = at
	}
	read("from", q.From, &out.From)
	out.Until = out.From.Add(calendarSpan)
	read("to", q.Until, &out.Until)
	if len(problems) == 0 && !out.Until.After(out.From) {
		problems = append(problems, muster.Problem{Field: "to", Reason: muster.ReasonContradiction, Message: "it is before from", Hint: "exchange them"})
	}
	if e := spec.Error(problems); e != nil {
		return out, e
	}
	out.From, out.Until = out.From.UTC(), out.Until.UTC()
	return out, s.Store.View(ctx, who, func(tx *store.Tx) error {
		visible, err := tx.Clusters(store.ClusterFilter{Living: true})
		if err != nil {
			return err
		}
		seen := make(map[muster.ClusterID]bool, len(visible))
		for _, c := range visible {
			seen[c.ID] = !q.Mine || c.Owner == who.Name || slices.Contains(who.Projects, c.Project) || who.Admin && len(who.Projects) == 0
		}
		sys := tx.AsSystem()
		all, err := sys.Clusters(store.ClusterFilter{Living: true})
		if err != nil {
			return err
		}
		for i := range all {
			c := &all[i]
			known, mine := seen[c.ID]
			if q.Mine && (!known || !mine) || !seen[c.ID] && q.Mine {
				continue
			}
			for _, e := range s.calendarOf(c) {
				if e.Start.After(out.Until) || !e.End.IsZero() && e.End.Before(out.From) || q.Class != "" && !wildcard.Match(q.Class, e.Class) {
					continue
				}
				if !known {
					e.Cluster, e.Name, e.Project, e.Text = "", "busy", "", ""
				}
				out.Entries = append(out.Entries, e)
			}
		}
		machines, err := sys.Site()
		if err != nil {
			return err
		}
		class := make(map[muster.MachineID]string, len(machines))
		var serving []*muster.Facts
		for i := range machines {
			m := &machines[i]
			class[m.ID] = m.Facts.Class
			if m.Phase != muster.MachineRetired && (q.Class == "" || wildcard.Match(q.Class, m.Facts.Class)) {
				serving = append(serving, &m.Facts)
			}
		}
		out.Machines = atOnce(serving)
		windows, err := tx.MaintenanceWindows()
		if err != nil {
			return err
		}
		for _, w := range windows {
			n := 0
			for _, id := range w.Machines {
				if q.Class == "" || wildcard.Match(q.Class, class[id]) {
					n++
				}
			}
			if n > 0 && !w.From.After(out.Until) && (w.Until.IsZero() || w.Until.After(out.From)) && !q.Mine {
				out.Entries = append(out.Entries, wire.CalendarEntry{Kind: wire.CalendarMaintenance, Name: w.ID, Machines: n, Start: w.From, End: w.Until, Text: w.Why})
			}
		}
		slices.SortStableFunc(out.Entries, func(a, b wire.CalendarEntry) int {
			if a.Start.IsZero() != b.Start.IsZero() { // what has no time comes last
				return -cmp.Compare(b2i(b.Start.IsZero()), b2i(a.Start.IsZero()))
			}
			return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Name, b.Name))
		})
		return nil
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// calendarOf are the entries of one cluster.
func (s *Service) calendarOf(c *muster.Cluster) (list []wire.CalendarEntry) {
	entry := func(kind wire.CalendarKind, start, end time.Time) *wire.CalendarEntry {
		list = append(list, wire.CalendarEntry{Kind: kind, Cluster: c.ID, Name: c.Name, Project: c.Project, Class: cmp.Or(c.Class, c.Spec.Machine.Class), Machines: c.Spec.TotalNodes(), Start: start, End: end})
		return &list[len(list)-1]
	}
	if p := c.PromiseAhead(); p != nil {
		entry(wire.CalendarPromise, p.Start, p.End).Machines = len(p.Plan.Assign)
	}
	switch {
	case c.Phase == muster.ClusterPaused:
		if e, ok := s.Allocator.Estimate(c.ID); ok && c.Promise == nil {
			entry(wire.CalendarEstimate, e.StartAt, endOf(e.StartAt, c.Needs())).StartSpread = muster.Duration(e.Spread)
		} else if c.Promise == nil {
			entry(wire.CalendarPause, c.PhaseSince, c.Deadline).Text = "paused"
		}
	case c.Phase == muster.ClusterQueued:
		e, _ := s.Allocator.Estimate(c.ID)
		entry(wire.CalendarEstimate, e.StartAt, endOf(e.StartAt, c.Spec)).StartSpread = muster.Duration(e.Spread)
	case c.Phase.HoldsMachines():
		start, end := c.Ready, c.Expires
		if start.IsZero() {
			start = c.PhaseSince
		}
		if end.IsZero() && c.Phase != muster.ClusterReady {
			end = endOf(start, c.Spec)
			if c.Promise != nil {
				start, end = c.Promise.Start, c.Promise.End
			}
		}
		if c.Pause != nil && c.Phase == muster.ClusterReady && !c.Pause.At.IsZero() {
			end = c.Pause.At
		}
		entry(wire.CalendarCluster, start, end).Text = string(c.Phase)
	}
	return list
}

// endOf is when a cluster that starts then ends; zero: never, or nobody knows.
func endOf(start time.Time, s muster.Spec) time.Time {
	if start.IsZero() || s.Walltime <= 0 {
		return time.Time{}
	}
	return start.Add(time.Duration(s.Walltime))
}
