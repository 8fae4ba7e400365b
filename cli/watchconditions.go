package cli

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
)

const (
	// conditionLook is how often the conditions of a cluster are looked at.
	conditionLook = time.Second
	// conditionAgain is how long one that is told with ever other words is quiet.
	conditionAgain = 30 * time.Second
)

// toldCondition is what was said last of a condition.
type toldCondition struct {
	text string
	at   time.Time
}

// conditions reports why a cluster waits, of which there are no events: each condition when
// it comes, and again when it has another text.
func (w *watcher) conditions(ctx context.Context) {
	began := time.Now()
	told := map[muster.ConditionCode]toldCondition{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(conditionLook):
		}
		c, err := w.client.Cluster(ctx, string(w.id))
		if err != nil {
			continue // the events tell of a server that does not answer
		}
		w.lines.Lock()
		if ctx.Err() == nil && !w.ended() {
			w.tellConditions(c.Conditions, told, began)
		}
		w.lines.Unlock()
	}
}

// tellConditions says what is new in a list; w.lines is held.
func (w *watcher) tellConditions(list []muster.Condition, told map[muster.ConditionCode]toldCondition, began time.Time) {
	for _, c := range list {
		before, known := told[c.Code]
		if known && (before.text == c.Text || time.Since(before.at) < conditionAgain) {
			continue
		}
		told[c.Code] = toldCondition{c.Text, time.Now()}
		at := c.Since
		if known { // by the clock of the server, which may not be this one
			at = w.started.Add(time.Since(began))
		}
		text := string(c.Code) + ": " + c.Text
		if c.Hint != "" {
			text += " (" + c.Hint + ")"
		}
		w.line(at, text)
	}
}

// ended reports whether the last line was said.
func (w *watcher) ended() bool {
	return w.phase == w.goal || w.phase == muster.ClusterFailed || w.phase == muster.ClusterDeleted
}
