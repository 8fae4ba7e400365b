package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/store"
)

// Conditions of clusters in the queue. One of them is always there.
const (
	waitingForMachines = muster.ConditionWaitingForMachines
	// waitingForMissing: it needs machines that do not come by waiting.
	waitingForMissing = muster.ConditionWaitingForMissingMachines
	cannotBeServed    = muster.ConditionCannotBeServed
)

func (s *Service) waitsForMachines(a muster.Answer) muster.Condition {
	if len(a.Notices) > 0 { // a queued answer has one when waiting alone will not do
		return muster.Condition{Code: waitingForMissing, Text: a.Notices[0], Since: s.Clock.Now(),
			Hint: "it starts by itself when they are back, and holds no other request up"}
	}
	text := fmt.Sprintf("%s fit, %d of them free", plaintext.Count(a.Fits, "machine"), a.Free)
	if a.Fits == 1 {
		text = fmt.Sprintf("1 machine fits, %d of them free", a.Free)
	}
	return muster.Condition{Code: waitingForMachines, Text: text, Since: s.Clock.Now(),
		Hint: "it starts by itself when machines are given back"}
}

// neverNow is the condition of a request that was fit to wait and is not any
// more: the site has changed. It stays in the queue, since the site may change
// again.
func (s *Service) neverNow(why *muster.Error) muster.Condition {
	hint := "it waits for the site to change"
	if why.Hint != "" {
		hint = why.Hint + "; or " + hint
	}
	return muster.Condition{Code: cannotBeServed, Text: why.Message, Since: s.Clock.Now(), Hint: hint}
}

// noImage is why a request waits whose image is gone.
func (s *Service) noImage(ref string) *muster.Error {
	_, err := s.Config.Images.Resolve(ref)
	var e *muster.Error
	if errors.As(err, &e) {
		return muster.Errorf(muster.ENever, "its image is gone: %s", e.Message).Because(muster.ReasonImageGone).
			WithHint("delete it and ask for another image, or an administrator builds this one again")
	}
	text, _ := muster.Explain(err)
	return muster.Errorf(muster.ENever, "its image %q cannot be read: %s", ref, text).Because(muster.ReasonImageGone).WithHint("an administrator looks at the server's state directory")
}

// tell puts the condition of a waiting cluster into its record, in place of
// the one that it had. Nothing is written where nothing has changed.
func (s *Service) tell(ctx context.Context, c muster.Cluster, d muster.Condition) error {
	if i := slices.IndexFunc(c.Conditions, waits); i >= 0 && c.Conditions[i].Code == d.Code &&
		(d.Code == waitingForMachines || c.Conditions[i].Text == d.Text) {
		return nil
	}
	return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		now, err := tx.Cluster(c.ID)
		if err != nil || now.Phase != c.Phase {
			return err // deleted meanwhile
		}
		if now.Phase == muster.ClusterPaused {
			d.Code, d.Text = muster.ConditionResuming, "it waits for machines to come back: "+d.Text
		}
		now.Conditions = append(slices.DeleteFunc(now.Conditions, waits), d)
		text := "cannot be served: " + d.Text
		switch d.Code {
		case waitingForMachines:
			text = "can be served again: " + d.Text
		case waitingForMissing:
			text = d.Text
		}
		return tx.PutCluster(now, text)
	})
}

// waits reports whether a condition ends with the waiting.
func waits(d muster.Condition) bool {
	return d.Code == muster.ConditionOverLimit || d.Code == muster.ConditionResuming || d.Code == waitingForMachines || d.Code == waitingForMissing || d.Code == cannotBeServed
}
