package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/spec"
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
		c.Spec.Walltime += by
		c.Generation++
		text := fmt.Sprintf("%s more time, given by %s", spec.FormatDuration(by), who.Name)
		if !c.Expires.IsZero() {
			c.Expires = c.Expires.Add(by)
			text += ": it ends at " + c.Expires.UTC().Format("2006-01-02 15:04:05 UTC")
			c.Notices = tell(c.Notices, s.Clock.Now(), muster.NoticeExtended, text)
			c.Conditions = slices.DeleteFunc(slices.Clone(c.Conditions), func(d muster.Condition) bool { return d.Code == muster.ConditionWalltime })
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
	if c.Spec.Walltime+by <= most {
		return nil
	}
	e := muster.Errorf(muster.EInvalid, "cluster %s would live for %s; %s allows %s", c.Name, spec.FormatDuration(c.Spec.Walltime+by), whose, spec.FormatDuration(most)).Because(muster.ReasonWalltimeTooLong)
	if left := (most - c.Spec.Walltime).Truncate(time.Second); left > 0 {
		return e.WithHint("extend it by %s at most", spec.FormatDuration(left))
	}
	return e.WithHint("it has all of it already; ask for a new cluster")
}

// maxNotices is how many notices a cluster keeps: the newest.
const maxNotices = 20

// tell returns the list with one more notice. The list given is not changed.
func tell(list []muster.Notice, at time.Time, code muster.NoticeCode, text string) []muster.Notice {
	n := muster.Notice{ID: 1, At: at, Code: code, Text: text}
	if len(list) > 0 {
		n.ID = list[len(list)-1].ID + 1
	}
	out := append(slices.Clone(list), n)
	return out[max(0, len(out)-maxNotices):]
}

// walltime is what the site's policy says of a request's walltime.
func (s *Service) walltime(w *wanted) []muster.Problem {
	most := s.policy.Load().MaxWalltime
	switch {
	case most <= 0:
	case w.spec.Walltime == 0:
		w.spec.Walltime = most
		w.notices = append(w.notices, "the walltime is "+spec.FormatDuration(most)+", the longest that this site allows")
	case w.spec.Walltime > most:
		return []muster.Problem{{Field: "walltime", Reason: muster.ReasonWalltimeTooLong, Message: spec.FormatDuration(w.spec.Walltime) + " is longer than this site allows",
			Hint: "write " + spec.FormatDuration(most) + " or less"}}
	}
	return nil
}
