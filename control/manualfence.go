package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/lastcontact"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// ManualFencing asks administrators to switch machines off that nothing else can. It is
// power.ManualFencing. What was asked and answered is in the registration of the machine, so
// that it outlives the server.
type ManualFencing struct {
	Store *store.DB
	Clock muster.Clock
	// Contacts are when machines were last heard. Nil: nobody listens.
	Contacts *lastcontact.Contacts
}

// errNothingNew ends a transaction in which there was nothing to write.
var errNothingNew = errors.New("nothing new")

// manualFenceQuiet is how long a machine must have been silent until somebody is believed who
// says that it is off: three heartbeats of its agent.
const manualFenceQuiet = 9 * time.Second

// Off asks, and returns who has answered that the machine is off. EUnavailable: nobody
// has yet, or it was heard after that. ENotFound: it is not registered, and nobody can
// be asked.
func (h *ManualFencing) Off(ctx context.Context, id muster.MachineID, why string) (by string, err error) {
	heard, err := h.Contacts.Heard(ctx, id)
	if err != nil {
		return "", err
	}
	again := ""
	err = h.change(ctx, id, func(r *muster.Registration) (text string) {
		by, again = "", ""
		switch b := r.ManualFence; {
		case b.Holds(newer(heard, r.Seen)):
			by = b.By
			return ""
		case b != nil && !b.Said.IsZero():
			again = fmt.Sprintf("; %s said so, and it was heard after that", b.By)
		case b.Waits():
			return ""
		}
		r.ManualFence = &muster.ManualFence{Asked: h.Clock.Now().UTC(), Why: why}
		return "waits for manual fencing: " + why + again
	})
	if err != nil || by != "" {
		return by, err
	}
	return "", muster.Errorf(muster.EUnavailable, "manual fencing required%s: switch it off, then: muster machine confirm-off %s --yes", again, id).Because(muster.ReasonNeedsHands).
		WithHint("switch machine %s off, or pull its cables, then: muster machine confirm-off %s --yes", id, id)
}

// Forget takes the question back, and the answer. It is no error when there is none.
func (h *ManualFencing) Forget(ctx context.Context, id muster.MachineID) error {
	err := h.change(ctx, id, func(r *muster.Registration) string {
		if r.ManualFence == nil {
			return ""
		}
		text := "its manual fencing is no longer valid"
		if r.ManualFence.Waits() {
			text = "manual fencing is no longer required"
		}
		r.ManualFence = nil
		return text
	})
	if muster.CodeOf(err) == muster.ENotFound {
		return nil
	}
	return err
}

// change changes a registration, where do has a line for the audit.
func (h *ManualFencing) change(ctx context.Context, id muster.MachineID, do func(*muster.Registration) string) error {
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

// confirmOff records an administrator's answer, and says why that is no answer.
func (s *Service) confirmOff(ctx context.Context, tx *store.Tx, who muster.Actor, r muster.Registration, done *wire.RegisteredChange) (*muster.Problem, error) {
	now := s.Clock.Now().UTC()
	switch b := r.ManualFence; {
	case b == nil:
		return &muster.Problem{Reason: muster.ReasonNobodyAsks, Message: "manual fencing was not requested",
			Hint: fmt.Sprintf("Muster asks when it needs to know, and nothing else proves it: see `muster machine show %s`", r.ID)}, nil
	case !b.Waits():
		done.Text = "said by " + b.By
		return nil, nil
	}
	heard, err := s.Contacts.Heard(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	if ago := now.Sub(heard); ago < manualFenceQuiet {
		return &muster.Problem{Reason: muster.ReasonStillHeard, Message: fmt.Sprintf("it was heard %v ago: it has power, and is connected", max(ago, 0).Round(time.Second)),
			Hint: "see whether it is this machine that you cut off; say it again when it is"}, nil
	}
	r.ManualFence = &muster.ManualFence{Asked: r.ManualFence.Asked, Why: r.ManualFence.Why, Said: now, By: who.Name}
	done.What = didFence
	done.Text = "its node is replaced within a minute"
	return nil, tx.PutRegistration(r, who.Name+" says that it is cut off: it has no power, or its cables are out")
}

// manualFenceCondition shows what a machine waits for that somebody has to do by hand.
func (s *Service) manualFenceCondition(tx *store.Tx, m muster.Machine) (c muster.Condition, waits bool, err error) {
	if m.Provider != s.Registrar {
		return c, false, nil
	}
	r, err := tx.Registration(m.ID)
	if muster.CodeOf(err) == muster.ENotFound { // or it is not for everybody to see
		return c, false, nil
	}
	if err != nil || !r.ManualFence.Waits() {
		return c, false, err
	}
	return muster.Condition{
		Code: muster.ConditionManualFenceRequired, Text: "manual fencing required: " + r.ManualFence.Why, Since: r.ManualFence.Asked,
		Hint: fmt.Sprintf("switch it off, or pull its cables, then: muster machine confirm-off %s --yes", m.ID),
	}, true, nil
}
