package admit

import (
	"fmt"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// Refusal turns an answer that does not serve the request into the error to
// return: ENever, or ENoCapacity where there is no room now and the request
// does not want to queue. It returns nil when the request goes ahead or waits.
func Refusal(spec muster.Spec, a muster.Answer) *muster.Error {
	var e *muster.Error
	switch {
	case a.Verdict == muster.VerdictNever:
		e = muster.Errorf(muster.ENever, "no machines of this site can serve the request: %s%s", tally(spec, a.Fits, "fits", "fit"), because(a)).Because(muster.ReasonNeverFits)
	case a.Verdict == muster.VerdictQueued && !spec.Queue:
		e = muster.Errorf(muster.ENoCapacity, "there is no room now: %s%s", tally(spec, a.Free, "is free", "are free"), because(a)).Because(muster.ReasonNoRoom)
	case a.Verdict == muster.VerdictLater:
		e = muster.Errorf(muster.ENoCapacity, "that time cannot be promised: %s", tally(spec, a.Fits, "fits", "fit")+" and others have them by then").Because(muster.ReasonNotThen)
		if a.StartAt.IsZero() {
			e = muster.Errorf(muster.ENoCapacity, "no time can be promised: clusters without an end have what it needs").Because(muster.ReasonNotThen)
		}
	default:
		return nil
	}
	if len(a.Change) > 0 {
		return e.WithHint("%s", a.Change[0])
	}
	return e
}

// tally sets what is needed against what there is.
func tally(spec muster.Spec, have int, one, many string) string {
	need := spec.TotalNodes() - spec.Nodes + max(1, spec.Min)
	verb := many
	if have == 1 {
		verb = one
	}
	return fmt.Sprintf("%s needed, %d %s", plaintext.Count(need, "machine"), have, verb)
}

// because names the reason that rejects most.
func because(a muster.Answer) string {
	var worst muster.Rejection
	for _, r := range a.Rejections {
		if r.Count > worst.Count {
			worst = r
		}
	}
	for _, n := range a.Notices {
		if strings.HasPrefix(n, apart) || strings.Contains(n, stands) {
			return fmt.Sprintf(" (%s)", n)
		}
	}
	if worst.Count == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s)", worst.Text)
}
