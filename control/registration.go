package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// What becomes of registrations.
const (
	didAdd     = "added"
	didChange  = "changed"
	didNothing = "unchanged"
	didApprove = "approved"
	didAccept  = "accepted"
	didAsk     = "asked"
	didBlock   = "blocked"
	didForget  = "deleted"
	didFence   = "confirmed-off"
)

// errOnlyAsked ends a transaction of which nothing is to stay.
var errOnlyAsked = errors.New("only asked")

// Registered lists the bare machines that the site knows, in the order of their
// names; with a state, those in it. Nobody but administrators sees any.
func (s *Service) Registered(ctx context.Context, who muster.Actor, q wire.RegisteredQuery) (wire.RegisteredList, error) {
	out := wire.RegisteredList{Machines: []muster.Registration{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) (err error) {
		list, err := tx.Registrations(store.RegistrationFilter{State: q.State, After: muster.MachineID(q.After), Limit: q.Size() + 1})
		list, more := partOf(list, q.Page)
		out.Machines = append(out.Machines, list...)
		out.More, _ = nextAfter(list, more, func(r muster.Registration) (string, error) { return string(r.ID), nil })
		return err
	})
	return out, err
}

// Register registers bare machines: all of them, or none. A machine that came by
// itself, and waits, is taken for the one whose interface it has.
func (s *Service) Register(ctx context.Context, who muster.Actor, r wire.RegisterRequest) ([]wire.RegisteredChange, error) {
	if err := administrator(who, "register machines"); err != nil {
		return nil, err
	}
	var out []wire.RegisteredChange
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		out = nil
		var problems []muster.Problem
		claims, err := claimed(tx, r.Machines)
		if err != nil {
			return err
		}
		for i, b := range r.Machines {
			for j, n := range b.NICs {
				if mac, err := muster.ParseMAC(n.MAC); err == nil {
					b.NICs[j].MAC = mac
				}
			}
			c, bad, err := s.register(tx, who, b, r.Replace)
			if err != nil {
				return err
			}
			// What stands twice in the request was not taken before it.
			twice := claims.add(b.Registration(), i)
			bad = append(slices.DeleteFunc(bad, func(p muster.Problem) bool {
				return p.Reason == muster.ReasonAddressTaken && slices.ContainsFunc(twice, func(q muster.Problem) bool { return q.Field == p.Field })
			}), twice...)
			for _, p := range bad {
				p.Field = fmt.Sprintf("machines[%d].%s", i, p.Field)
				p.Message = fmt.Sprintf("%.63s: %s", string(b.Name), p.Message)
				problems = append(problems, p)
			}
			out = append(out, c)
		}
		if len(problems) > 0 {
			return muster.Errorf(muster.EInvalid, "no machine registered: %s", plural(len(problems), "error", "errors")).Because(muster.ReasonHasProblems).
				WithHint("fix the errors and retry").Listing(problems)
		}
		if r.DryRun {
			return errOnlyAsked
		}
		return nil
	})
	if err != nil && !errors.Is(err, errOnlyAsked) {
		return nil, err
	}
	if err == nil {
		did := map[string]int{}
		for _, c := range out {
			did[c.What]++
		}
		s.Log.Info("machines registered", "by", who.Name, "what", did)
	}
	return out, nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "one " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// register registers one machine, or says what is wrong with it.
func (s *Service) register(tx *store.Tx, who muster.Actor, b wire.BareMachine, replace bool) (done wire.RegisteredChange, problems []muster.Problem, err error) {
	bad := func(why muster.Reason, field, hint, format string, args ...any) {
		problems = append(problems, muster.Problem{Field: field, Reason: why, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	r := b.Registration()
	r.State, r.Added, r.By = muster.RegistrationApproved, s.Clock.Now().UTC(), who.Name
	problems = s.wrongWith(r, b.Password, b.PowerKey)
	key, err := muster.ParsePowerKey(b.PowerKey)
	if err != nil && len(problems) == 0 {
		return done, nil, err
	}
	done = wire.RegisteredChange{Name: r.ID, What: didAdd}
	old, err := tx.Registration(r.ID)
	switch known := err == nil; {
	case err != nil && muster.CodeOf(err) != muster.ENotFound:
		return done, nil, err
	case known:
		done.What = didChange
		if old.State != muster.RegistrationApproved {
			done.What = didApprove
		}
		r = keptOf(r, old)
		if old.State != muster.RegistrationApproved {
			enrol(&r)
		}
		same := reflect.DeepEqual(r, old)
		kept, err := tx.IsPowerSecret(r.ID, []byte(b.Password))
		if err != nil {
			return done, nil, err
		}
		keyKept, err := tx.IsPowerKey(r.ID, key)
		if err != nil {
			return done, nil, err
		}
		keyKept = keyKept || b.PowerKey == ""
		if same && len(problems) == 0 && (b.Password == "" || kept) && keyKept {
			done.What = didNothing
			return done, nil, nil
		}
		if what := r.Differences(old); done.What == didChange {
			if b.Password != "" && !kept {
				what = append(what, "another password")
			}
			if !keyKept {
				what = append(what, "another key K_G")
			}
			done.Text = strings.Join(what, "; ")
		}
		if !same && !replace && old.State != muster.RegistrationWaiting {
			bad(muster.ReasonNameTaken, "name", "change it with --replace, or choose another name", "it is registered already, and not like this: %s", cmp.Or(done.Text, string(old.State)))
		}
	}
	if m, err := tx.Machine(r.ID); err == nil && m.Provider != s.Registrar {
		bad(muster.ReasonNameTaken, "name", "choose another name", "a machine of provider %s has that name", m.Provider)
	} else if err == nil && m.Phase == muster.MachineRetired && done.What == didAdd {
		bad(muster.ReasonMachineRetired, "name", "choose another name: one that was retired never comes back under its own", "machine %s was retired for good on %s", m.ID, m.PhaseSince.UTC().Format(time.DateOnly))
	} else if err != nil && muster.CodeOf(err) != muster.ENotFound {
		return done, nil, err
	}
	if p, err := s.takeOver(tx, &r, &done); err != nil {
		return done, nil, err
	} else if p != nil {
		problems = append(problems, *p)
	}
	hasController := r.Power.HasController()
	if hasController && b.Password == "" && old.Power.Kind != r.Power.Kind {
		bad(muster.ReasonRequired, "power_password", "give it with --power-password-file FILE; in a list of machines, with password_file or the column power_password_file", "the password of its controller is missing")
	}
	if len(problems) > 0 {
		return done, problems, nil
	}
	text := "registered: " + r.Power.String()
	if done.What == didChange {
		text = "its registration was changed: " + done.Text
	}
	if err := tx.PutRegistration(r, text); err != nil {
		if e := (*muster.Error)(nil); errors.As(err, &e) && e.Code == muster.EConflict && len(e.Problems) > 0 {
			for _, p := range e.Problems { // told with what is wrong with other machines
				p.Field = strings.TrimPrefix(p.Field, string(r.ID)+".")
				problems = append(problems, p)
			}
			return done, problems, nil
		}
		return done, nil, err
	}
	if b.Password != "" || !hasController {
		err = tx.PutPowerSecret(r.ID, []byte(b.Password))
	}
	if err == nil && (b.PowerKey != "" || r.Power.Kind != muster.PowerIPMI) {
		err = tx.PutPowerKey(r.ID, key)
	}
	return done, nil, err
}

// wrongWith returns what is wrong with what an administrator says of a machine, in itself and
// on this server.
func (s *Service) wrongWith(r muster.Registration, password, key string) []muster.Problem {
	problems := append(append(r.Check(), r.Power.CheckPassword([]byte(password))...), r.Power.CheckPowerKey(key)...)
	if s.Unusable == nil {
		return problems
	}
	for _, p := range s.Unusable(r) {
		if !slices.ContainsFunc(problems, func(q muster.Problem) bool { return q.Field == p.Field }) {
			problems = append(problems, p)
		}
	}
	return problems
}

// keptOf is a new registration with what Muster found out of the machine before.
func keptOf(r, old muster.Registration) muster.Registration {
	r.EndorsementKey, r.ObservedEK, r.Trust, r.Seen, r.Asked = old.EndorsementKey, old.ObservedEK, old.Trust, old.Seen, old.Asked
	r.Facts, r.Accepted, r.Changed = old.Facts, old.Accepted, old.Changed
	r.ManualFence = old.ManualFence
	if old.By != "" {
		r.Added, r.By = old.Added, old.By
	}
	return r
}

// takeOver puts a machine in the place of one that came by itself and has an
// interface of it. Any other that has one is a fault.
func (s *Service) takeOver(tx *store.Tx, r *muster.Registration, done *wire.RegisteredChange) (*muster.Problem, error) {
	for i, n := range r.NICs {
		owner, err := tx.RegistrationOf(n.MAC)
		switch {
		case muster.CodeOf(err) == muster.ENotFound || err == nil && owner.ID == r.ID:
		case err != nil:
			return nil, err
		case owner.State != muster.RegistrationWaiting:
			return &muster.Problem{
				Field:   fmt.Sprintf("nics[%d].mac", i),
				Reason:  muster.ReasonAddressTaken,
				Message: fmt.Sprintf("interface %s belongs to machine %s", n.MAC, owner.ID),
				Hint:    "look at both; `muster machine delete " + string(owner.ID) + "` if that one is gone",
			}, nil
		default:
			*r = keptOf(*r, owner)
			enrol(r)
			done.What, done.Text = didApprove, "it came by itself, as "+string(owner.ID)
			if err := tx.DeleteRegistration(owner.ID, "it is "+string(r.ID)); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// ChangeRegistered approves, blocks, deletes or discovers registered machines, named by
// a set: all of them, or none.
func (s *Service) ChangeRegistered(ctx context.Context, who muster.Actor, set string, what wire.RegisteredAction) ([]wire.RegisteredChange, error) {
	if err := administrator(who, "approve and block machines"); err != nil {
		return nil, err
	}
	names, err := machineNames(set)
	if err != nil {
		return nil, err
	}
	var out []wire.RegisteredChange
	err = s.Store.Update(ctx, who, func(tx *store.Tx) error {
		out = nil
		var problems []muster.Problem
		code := muster.ENotFound // unless one is wrong that is there
		for _, name := range names {
			c, p, err := s.changeRegistered(ctx, tx, who, muster.MachineID(name), what)
			if err != nil {
				return err
			}
			if p != nil {
				p.Field = name
				problems = append(problems, *p)
				if _, err := tx.Registration(muster.MachineID(name)); muster.CodeOf(err) != muster.ENotFound {
					code = muster.EConflict
				}
			}
			out = append(out, c)
		}
		return together(code, "not possible for some machines", problems)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Service) changeRegistered(ctx context.Context, tx *store.Tx, who muster.Actor, id muster.MachineID, what wire.RegisteredAction) (wire.RegisteredChange, *muster.Problem, error) {
	done := wire.RegisteredChange{Name: id, What: didNothing}
	r, err := tx.Registration(id)
	if muster.CodeOf(err) == muster.ENotFound {
		return done, s.noRegistered(tx, id), nil
	}
	if err != nil {
		return done, nil, err
	}
	m, err := tx.Machine(id)
	if err != nil && muster.CodeOf(err) != muster.ENotFound {
		return done, nil, err
	}
	if what == wire.RegisteredFenced {
		p, err := s.confirmOff(ctx, tx, who, r, &done)
		return done, p, err
	}
	// A machine that was retired, or that never was one, is used by nobody.
	used := err == nil && m.Phase != muster.MachineRetired
	switch what {
	case wire.RegisteredApprove:
		return s.approve(tx, r)
	case wire.RegisteredDiscover:
		if p := discoverable(r, m, used); p != nil {
			return done, p, nil
		}
		r.Asked = s.Clock.Now().UTC()
		done.What, done.Text = didAsk, discoverText(m, used)
		return done, nil, tx.PutRegistration(r, "hardware discovery requested")
	case wire.RegisteredForbid:
		if r.State == muster.RegistrationBlocked {
			return done, nil, nil
		}
		if used {
			return done, machineUsed(m), nil
		}
		r.State, done.What = muster.RegistrationBlocked, didBlock
		return done, nil, tx.PutRegistration(r, "blocked: its network boots are not answered")
	case wire.RegisteredForget:
		if used {
			return done, machineUsed(m), nil
		}
		done.What = didForget
		return done, nil, tx.DeleteRegistration(id, "deleted")
	}
	return done, nil, muster.Errorf(muster.EInvalid, "%.40q is not an action on registered machines", string(what)).Because(muster.ReasonBadValue).WithHint("use approve, block, delete, discover or confirm-off")
}

func machineUsed(m muster.Machine) *muster.Problem {
	return &muster.Problem{Reason: muster.ReasonMachineInUse, Message: fmt.Sprintf("it is a machine of the site, and %s", m.Phase), Hint: "retire it first: muster machine retire " + string(m.ID)}
}

func (s *Service) noRegistered(tx *store.Tx, id muster.MachineID) *muster.Problem {
	p := &muster.Problem{Reason: muster.ReasonNotRegistered, Message: "no bare machine is registered under that name", Hint: "see 'muster machine list --registered'"}
	list, err := tx.Registrations(store.RegistrationFilter{})
	if err != nil {
		return p
	}
	names := make([]string, 0, len(list))
	for _, r := range list {
		names = append(names, string(r.ID))
	}
	if hint := didYouMean(string(id), names); hint != "" && !slices.Contains(names, string(id)) {
		p.Hint = hint
	}
	return p
}
