package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/limit"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// longest is the longest walltime that any site allows.
const longest = 366 * 24 * time.Hour

// Extend gives a cluster more time. The walltime that the site allows bounds
// the whole, not each extension.
func (s *Service) Extend(ctx context.Context, who muster.Actor, ref string, r wire.ExtendRequest) (wire.Extended, error) {
	by, err := spec.ParseDuration(r.By)
	if err != nil {
		return wire.Extended{}, err
	}
	if by < time.Second {
		return wire.Extended{}, muster.Errorf(muster.EInvalid, "no time is given").Because(muster.ReasonRequired).WithHint("write how much longer, such as 2h or 1d12h")
	}
	var out wire.Extended
	err = s.Store.Update(ctx, who, func(tx *store.Tx) error {
		c, err := tx.FindCluster(ref)
		if err != nil {
			return err
		}
		if err := tx.MayChange(c); err != nil {
			return err
		}
		if err := s.mayExtend(c, by); err != nil {
			return err
		}
		if err := s.roomToExtend(tx, c, by); err != nil {
			return err
		}
		ask := limit.Ask{More: true, Walltime: time.Duration(c.Spec.Walltime) + by, From: c.Expires, Until: c.Expires.Add(by)}
		if !c.Expires.IsZero() { // it keeps its machines for longer
			machines, err := tx.AsSystem().Machines(store.MachineFilter{Cluster: c.ID})
			if err != nil {
				return err
			}
			var list []limit.Hardware
			for i := range machines {
				list = append(list, limit.Of(&machines[i]))
			}
			ask = ask.With(list)
		}
		if err := s.withinLimits(tx, c, nil, &ask); err != nil {
			return err
		}
		c.Spec.Walltime += muster.Duration(by)
		c.Generation++
		text := fmt.Sprintf("%s more time, given by %s", spec.FormatDuration(by), who.Name)
		if !c.Expires.IsZero() {
			c.Expires = c.Expires.Add(by)
			text += ": it ends at " + c.Expires.UTC().Format("2006-01-02 15:04:05 UTC")
			c.Notices = muster.AddNotice(c.Notices, s.Clock.Now(), muster.NoticeExtended, text)
			c.Conditions = slices.DeleteFunc(slices.Clone(c.Conditions), func(d muster.Condition) bool { return d.Code == muster.ConditionWalltime })
		}
		if p := c.Pause; p != nil && p.Left > 0 && c.Expires.IsZero() { // what is left when it is ready again
			longer := *p
			longer.Left += muster.Duration(by)
			c.Pause = &longer
		}
		out = wire.Extended{ID: c.ID, Name: c.Name, Walltime: c.Spec.Walltime, Expires: c.Expires}
		return tx.PutCluster(c, text)
	})
	if err != nil {
		return wire.Extended{}, err
	}
	s.Changed(out.ID)
	return out, nil
}

func (s *Service) mayExtend(c muster.Cluster, by time.Duration) error {
	switch {
	case !c.Ending.IsZero():
		return inUse(c, "extended")
	case c.Phase == muster.ClusterDeleting, c.Phase == muster.ClusterDeleted, c.Phase == muster.ClusterFailed:
		return muster.Errorf(muster.EConflict, "cluster %s is %s and cannot be extended", c.Name, c.Phase).Because(muster.ReasonWrongPhase).
			WithHint("ask for a new one")
	case c.Phase == muster.ClusterReserved:
		return muster.Errorf(muster.EConflict, "cluster %s has not started: its promised time would change", c.Name).Because(muster.ReasonWrongPhase).
			WithHint("`muster change %s --walltime %s`", c.Name, spec.FormatDuration(time.Duration(c.Spec.Walltime)+by))
	case c.Spec.Walltime == 0:
		return muster.Errorf(muster.EConflict, "cluster %s has no end: there is nothing to extend", c.Name).Because(muster.ReasonNoWalltime).
			WithHint("it lives until 'muster delete %s'", c.ID)
	case !c.Expires.IsZero() && !s.Clock.Now().Before(c.Expires):
		return muster.Errorf(muster.EConflict, "the walltime of cluster %s is over", c.Name).Because(muster.ReasonWalltimeOver).WithHint("ask for a new one")
	}
	most, whose := longest, "any site"
	if site := s.policy.Load().MaxWalltime; site > 0 && site < most {
		most, whose = site, "this site"
	}
	if time.Duration(c.Spec.Walltime)+by <= most {
		return nil
	}
	e := muster.Errorf(muster.EInvalid, "cluster %s would live for %s; %s allows %s", c.Name, spec.FormatDuration(time.Duration(c.Spec.Walltime)+by), whose, spec.FormatDuration(most)).Because(muster.ReasonWalltimeTooLong)
	if left := (most - time.Duration(c.Spec.Walltime)).Truncate(time.Second); left > 0 {
		return e.WithHint("extend it by %s at most", spec.FormatDuration(left))
	}
	return e.WithHint("it has all of it already; ask for a new cluster")
}

// roomToExtend refuses more time where a promise has the machines by then: the next one's
// start does not move.
func (s *Service) roomToExtend(tx *store.Tx, c muster.Cluster, by time.Duration) error {
	if !c.Phase.HoldsMachines() {
		return nil // it has none that others could want
	}
	latest, ends, bound, err := s.Allocator.LatestEnd(tx, c)
	if err != nil || !bound || !ends.Add(by).After(latest) {
		return err
	}
	if room, err := s.Allocator.MakeRoom(tx, c, ends.Add(by)); room || err != nil {
		return err
	}
	e := muster.Errorf(muster.EConflict, "its machines are promised to others: cluster %s can last until %s at most", c.Name, latest.UTC().Format(time.RFC3339)).Because(muster.ReasonPromisedAway)
	if left := latest.Sub(ends).Truncate(time.Second); left > 0 {
		return e.WithHint("extend it by %s at most", spec.FormatDuration(left))
	}
	return e.WithHint("it ends at %s; ask for a new cluster", ends.UTC().Format(time.RFC3339))
}

// walltime is what the site's policy says of a request's walltime.
func (s *Service) walltime(w *parsedRequest) []muster.Problem {
	policy, given := s.policy.Load(), w.spec.Walltime != 0
	most := policy.MaxWalltime
	if d := policy.DefaultWalltime; w.spec.Walltime == 0 && d > 0 && (most <= 0 || d <= most) {
		w.spec.Walltime = muster.Duration(d)
		w.notices = append(w.notices, "the walltime is "+spec.FormatDuration(d)+", this site's default")
	}
	switch {
	case most <= 0 && w.spec.Walltime == 0 && !w.spec.Start.IsZero():
		return []muster.Problem{{Field: "walltime", Reason: muster.ReasonRequired, Message: "a promise needs an end",
			Hint: "write how long: walltime: 8h"}}
	case most <= 0:
	case w.spec.Walltime == 0:
		w.spec.Walltime = muster.Duration(most)
		w.notices = append(w.notices, "the walltime is "+spec.FormatDuration(most)+", the longest that this site allows")
	case time.Duration(w.spec.Walltime) > most:
		return []muster.Problem{{Field: "walltime", Reason: muster.ReasonWalltimeTooLong, Message: spec.FormatDuration(time.Duration(w.spec.Walltime)) + " is longer than this site allows",
			Hint: "write " + spec.FormatDuration(most) + " or less"}}
	}
	if given {
		return nil // it is known already whether that fits into a window
	}
	return spec.CheckWindow(w.spec, s.Clock.Now())
}
