package power

import (
	"context"
	"errors"

	"github.com/muster-hpc/muster"
)

// retryRule says what becomes of a command that failed.
type retryRule struct {
	Code  muster.Code
	Retry bool
	Why   string
}

// retryRules is the table. All commands lead to a state and may be repeated;
// what is not repeated is what a second try cannot mend or could make worse.
func retryRules() []retryRule {
	return []retryRule{
		{muster.EUnavailable, true, "no answer, busy, no session free: controllers recover in seconds"},
		{muster.ETimeout, true, "it may have happened: the state is set again, not toggled"},
		{muster.ECorrupt, true, "a damaged answer: another one may come whole"},
		{muster.EConflict, true, "what was set did not stay: some controllers need it twice"},
		{muster.EUnauth, false, "a wrong password does not become right, and accounts are locked after some tries"},
		{muster.EForbidden, false, "the account's privilege does not change by asking"},
		{muster.EInvalid, false, "the controller cannot do this"},
		{muster.ENotFound, false, "there is no such system"},
		{muster.EInternal, false, "a defect is not repeated"},
	}
}

// mayRetry reports whether another try makes sense. Who gave up waiting is not
// asked to wait again.
func mayRetry(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	code := muster.CodeOf(err)
	if errors.Is(err, context.DeadlineExceeded) {
		code = muster.ETimeout
	}
	for _, rule := range retryRules() {
		if rule.Code == code {
			return rule.Retry
		}
	}
	return false
}
