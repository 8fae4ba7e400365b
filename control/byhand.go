package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Hands asks administrators to switch machines off that nothing else can. It is
// power.Human. What was asked and answered is in the registration of the machine, so
// that it outlives the server.
type Hands struct {
	Store *store.DB
	Clock muster.Clock
	// Heard is when a machine was heard last, by whatever way; zero: never. Nil: nobody
	// listens.
	Heard func(ctx context.Context, id muster.MachineID) (time.Time, error)
}

// errNothingNew ends a transaction in which there was nothing to write.
var errNothingNew = errors.New("nothing new")

// handQuiet is how long a machine must have been silent until somebody is believed who
// says that it is off: three heartbeats of its agent.
const handQuiet = 9 * time.Second

// Off asks, and returns who has answered that the machine is off. EUnavailable: nobody
// has yet, or it was heard after that. ENotFound: it is not registered, and nobody can
// be asked.
func (h *Hands) Off(ctx context.Context, id muster.MachineID, why string) (by string, err error) {
	var heard time.Time
	if h.Heard != nil {
		if heard, err = h.Heard(ctx, id); err != nil {
			return "", err
		}
	}
	again := ""
	err = h.change(ctx, id, func(r *muster.Registration) (text string) {
		by, again = "", ""
		switch b := r.ByHand; {
		case b.Holds(newer(heard, r.Seen)):
			by = b.By
			return ""
		case b != nil && !b.Said.IsZero():
			again = fmt.Sprintf("; %s said so, and it was heard after that", b.By)
		case b.Waits():
			return ""
		}
		r.ByHand = &muster.ByHand{Asked: h.Clock.Now().UTC(), Why: why}
		return "waits for a human to cut it off: " + why + again
	})
	if err != nil || by != "" {
		return by, err
	}
	return "", muster.Errorf(muster.EUnavailable, "it waits for a human%s: switch it off, then: muster machine fenced %s --yes", again, id).Because(muster.ReasonNeedsHands).
		WithHint("switch machine %s off, or pull its cables, then say so: muster machine fenced %s --yes", id, id)
}

// Forget takes the question back, and the answer. It is no error when there is none.
func (h *Hands) Forget(ctx context.Context, id muster.MachineID) error {
	err := h.change(ctx, id, func(r *muster.Registration) string {
		if r.ByHand == nil {
			return ""
		}
		text := "that it was cut off by hand holds no more"
		if r.ByHand.Waits() {
			text = "nobody needs to cut it off any more"
		}
		r.ByHand = nil
		return text
	})
	if muster.CodeOf(err) == muster.ENotFound {
		return nil
	}
	return err
}

// change changes a registration, where do has a line for the audit.
func (h *Hands) change(ctx context.Context, id muster.MachineID, do func(*muster.Registration) string) error {
	err := h.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		r, err := tx.Registration(id)
		if err != nil {
			return err
		}
		text := do(&r)
		if text == "" {
			return errNothingNew
		}
		return tx.PutRegistration(r, text)
	})
	if errors.Is(err, errNothingNew) {
		return nil
	}
	return err
}

// saidFenced has an administrator answer, and says why that is no answer.
func (s *Service) saidFenced(ctx context.Context, tx *store.Tx, who muster.Actor, r muster.Registration, done *wire.RegisteredChange) (*muster.Problem, error) {
	now := s.Clock.Now().UTC()
	switch b := r.ByHand; {
	case b == nil:
		return &muster.Problem{Reason: muster.ReasonNobodyAsks, Message: "nobody asks whether it is cut off",
			Hint: fmt.Sprintf("Muster asks when it needs to know, and nothing else proves it: see `muster machine show %s`", r.ID)}, nil
	case !b.Waits():
		done.Text = "said by " + b.By
		return nil, nil
	}
	var heard time.Time
	if s.Heard != nil {
		var err error
		if heard, err = s.Heard(ctx, r.ID); err != nil {
			return nil, err
		}
	}
	if ago := now.Sub(heard); ago < handQuiet {
		return &muster.Problem{Reason: muster.ReasonStillHeard, Message: fmt.Sprintf("it was heard %v ago: it has power, and is connected", max(ago, 0).Round(time.Second)),
			Hint: "see whether it is this machine that you cut off; say it again when it is"}, nil
	}
	r.ByHand = &muster.ByHand{Asked: r.ByHand.Asked, Why: r.ByHand.Why, Said: now, By: who.Name}
	done.What = didFence
	done.Text = "whoever waits for that goes on within a minute"
	return nil, tx.PutRegistration(r, who.Name+" says that it is cut off: it has no power, or its cables are out")
}

// handCondition shows what a machine waits for that somebody has to do by hand.
func (s *Service) handCondition(tx *store.Tx, m muster.Machine) (c muster.Condition, waits bool, err error) {
	if m.Provider != s.Registrar {
		return c, false, nil
	}
	r, err := tx.Registration(m.ID)
	if muster.CodeOf(err) == muster.ENotFound { // or it is not for everybody to see
		return c, false, nil
	}
	if err != nil || !r.ByHand.Waits() {
		return c, false, err
	}
	return muster.Condition{
		Code: muster.ConditionWaitsForHuman, Text: "it waits for a human: " + r.ByHand.Why, Since: r.ByHand.Asked,
		Hint: fmt.Sprintf("switch it off, or pull its cables, then say so: muster machine fenced %s --yes", m.ID),
	}, true, nil
}
