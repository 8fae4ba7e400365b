package power

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/muster-hpc/muster"
)

// refusal is what a controller said to whom it does not let in. Whoever asks for the same
// machine in the same way is told so for a while, and the controller is left alone: many
// lock an account after a few tries.
type refusal struct {
	way    way
	secret [sha256.Size]byte
	until  time.Time
	err    *muster.Error
}

// refused returns what the controller said of late to the same account with the same
// password; nil if it was not asked. The caller holds the lane.
func (l *session) refused(ctx context.Context, t Target, now time.Time) error {
	r, ok := l.refusals[t.Machine]
	if !ok {
		return nil
	}
	secret, ok := secretSum(ctx, t)
	if !ok || secret != r.secret || t.way() != r.way || !now.Before(r.until) {
		delete(l.refusals, t.Machine)
		return nil
	}
	return r.err
}

// remember notes what became of a command. The caller holds the lane.
func (l *session) remember(ctx context.Context, t Target, err error, until time.Time) {
	var e *muster.Error
	if !errors.As(err, &e) || e.Code != muster.EUnauth {
		return
	}
	secret, ok := secretSum(ctx, t)
	if !ok {
		return // it was not asked: there is no password
	}
	said := *e
	said.Message += "; it is not asked again before " + until.UTC().Format("15:04:05") + " UTC, unless its address, password or key is changed: accounts are locked after some tries"
	l.refusals[t.Machine] = refusal{t.way(), secret, until, &said}
}

// secretSum is of all that proves who asks: the password and the key.
func secretSum(ctx context.Context, t Target) (sum [sha256.Size]byte, ok bool) {
	for _, get := range []func(context.Context) ([]byte, error){t.Secret, t.Key} {
		if get == nil {
			continue
		}
		b, err := get(ctx)
		if err != nil {
			return sum, false
		}
		one := sha256.Sum256(b)
		clear(b)
		sum = sha256.Sum256(append(sum[:], one[:]...))
	}
	return sum, true
}
