package allocate

import (
	"context"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/store"
)

// Taking is one taking of machines.
type Taking struct {
	// Demands are what is needed, as the records are now; none: nothing is asked, and
	// Record decides alone. It is called in a transaction that reads.
	Demands func(tx *store.Tx) ([]Demand, error)
	// Ahead are the requests before it; nil: the whole queue.
	Ahead []admit.Waiting
	// Record carries out what was answered, in the transaction that writes: what is
	// taken is taken by Assign. It may be called again, and must not keep anything of
	// an earlier call. The answers are those of the demands, in their order.
	Record func(tx *store.Tx, demands []Demand, answers []muster.Answer) error
	// Once: a plan that no longer holds is not made anew.
	Once bool
	// Now: unless there is room for all of it now, nothing is recorded.
	Now bool
	// Nodes is how many are recorded, about. Many get a transaction of their own.
	Nodes int
}

// tries is how often machines are asked for; the last time within the writer, where
// nothing can change.
const tries = 3

// many nodes are recorded in a transaction of their own.
const many = 128

// Take asks for machines outside of the store's writer, where it holds up nobody, and
// has them recorded within. When the site has changed in between it asks again. It
// returns what was answered last.
func (a *Allocator) Take(ctx context.Context, who muster.Actor, t Taking) ([]muster.Answer, error) {
	update := a.Store.Update
	if t.Nodes > many {
		update = a.Store.UpdateMany
	}
	for try := 1; ; try++ {
		within := try == tries && !t.Once
		var demands []Demand
		var answers []muster.Answer
		ask := func(tx *store.Tx) (err error) {
			demands, answers, err = a.ask(tx, t)
			return err
		}
		if !within {
			if err := a.Store.View(ctx, who, ask); err != nil || t.Now && !room(answers) {
				return answers, err
			}
		}
		err := update(ctx, who, func(tx *store.Tx) error {
			if within {
				if err := ask(tx); err != nil || t.Now && !room(answers) {
					return err
				}
			}
			for _, answer := range answers {
				if err := a.move(tx, answer.Moves); err != nil {
					return err
				}
			}
			return t.Record(tx, demands, slices.Clone(answers))
		})
		if !Stale(err) || within || t.Once {
			return answers, err
		}
	}
}

// room reports whether there is room now for all that was asked.
func room(answers []muster.Answer) bool {
	return !slices.ContainsFunc(answers, func(a muster.Answer) bool { return a.Verdict != muster.VerdictNow })
}

func (a *Allocator) ask(tx *store.Tx, t Taking) ([]Demand, []muster.Answer, error) {
	demands, err := t.Demands(tx)
	if err != nil || len(demands) == 0 {
		return nil, nil, err
	}
	specs := make([]muster.Spec, len(demands))
	for i, d := range demands {
		specs[i] = d.Spec
	}
	site, err := a.Site(tx, t.Ahead, specs...)
	if err != nil {
		return nil, nil, err
	}
	return demands, site.AskAll(demands), nil
}

// Changed is the error of a Record that finds other demands than were answered.
func Changed() error {
	return staleError{muster.Errorf(muster.EConflict, "the cluster changed while machines were looked for").Because(muster.ReasonPlanStale).WithHint("ask again")}
}
