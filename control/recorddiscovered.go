package control

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/enrollment"
	"github.com/muster-hpc/muster/metal/factsdiff"
	"github.com/muster-hpc/muster/store"
)

const (
	// mostWaiting bounds the machines that wait for an administrator: whoever stands on
	// the wire can be as many machines as they like.
	mostWaiting = 1000
	// foundEvery is how often a machine that waits is written down again, newEvery how
	// often a new one from one source is, and anyEvery one from anywhere.
	foundEvery = time.Minute
	newEvery   = 50 * time.Millisecond
	anyEvery   = 5 * time.Millisecond
)

// RecordDiscovered takes a machine that nobody registered and that came by itself. It waits for an
// administrator, as m- and its MAC, or a rule of the site decides once it has told all.
// One that waits already is refreshed, at most once a minute. Of too many, one goes of the
// source that has the most, which was not seen for longest.
//
// Errors: EInvalid for what cannot be a machine, EUnavailable when too many come at
// once, or of the store: it may say so again.
func (s *Service) RecordDiscovered(ctx context.Context, g muster.DiscoveredMachine) error {
	g, err := boundedDiscovered(g)
	if err != nil {
		return err
	}
	var old muster.Registration
	err = s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		old, err = discoveredOwner(tx, g)
		return err
	})
	if err != nil {
		return err
	}
	now := s.Clock.Now()
	switch {
	case old.ID != "" && old.State != muster.RegistrationWaiting:
		return nil // it was approved or forbidden meanwhile, or speaks with another of its interfaces
	case old.ID != "" && !s.recordDiscovered.Allow(fmt.Sprint(g.MAC, g.Whole)):
		return nil
	case old.ID == "" && (!s.sources.Allow(sourceOf(g.MAC, g.Switch, g.Port)) || !s.fresh.AllowN(s.Clock.Now(), 1)):
		return muster.Errorf(muster.EUnavailable, "too many unknown machines come at once").Because(muster.ReasonTooManyRequests).WithHint("ask again in a moment")
	}
	return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		old, err := discoveredOwner(tx, g)
		if err != nil || old.ID != "" && old.State != muster.RegistrationWaiting {
			return err
		}
		r, text := old, ""
		if old.ID == "" {
			if err := makeRoom(tx); err != nil {
				return err
			}
			r = muster.Registration{
				ID: muster.MachineID("m-" + strings.ReplaceAll(g.MAC, ":", "")), State: muster.RegistrationWaiting,
				Power: muster.PowerAddress{Kind: muster.PowerWOL}, Added: now.UTC(),
			}
			if _, err := tx.Registration(r.ID); muster.CodeOf(err) != muster.ENotFound {
				return err // its cards were exchanged: it is known by others
			}
			text = "it came by itself, and waits"
		}
		if r.NICs, err = guessed(tx, r.ID, g); err != nil {
			return err
		}
		if r.Facts != nil && !g.Whole {
			kept := factsdiff.Kept(*r.Facts, *g.Facts)
			g.Facts = &kept
		}
		r.Serial, r.UUID, r.Facts, r.ObservedEK = g.Serial, g.UUID, g.Facts, g.Endorsement
		r.Seen, r.Trust = now.UTC(), muster.TrustNetwork
		return s.decided(tx, r, old, g, text)
	})
}

// sourceOf is whom new machines count for: the port behind which a machine
// is, where a trusted relay says it, else who made its card. Its address is no source:
// who makes up MACs is leased an address for each.
func sourceOf(mac, at, port string) string {
	if at != "" && port != "" {
		return "port " + at + "\x00" + port
	}
	return "vendor " + mac[:len("52:54:00")]
}

// decided writes down a machine that came by itself, as the site's rules have it.
func (s *Service) decided(tx *store.Tx, r, old muster.Registration, g muster.DiscoveredMachine, text string) error {
	waits := r
	var d enrollment.Decision
	var ok bool
	var err error
	if g.Whole { // else a later rule could decide because less is known
		d, ok, err = s.policy.Load().Approval.For(g)
	}
	if ok && err == nil {
		err = s.byRule(tx, &r, d)
	}
	if ok && err == nil {
		if old.ID != "" && old.ID != r.ID {
			if err := tx.DeleteRegistration(old.ID, "it is "+string(r.ID)); err != nil {
				return err
			}
		}
		shared, err := withoutShared(tx, &r)
		if err != nil {
			return err
		}
		how := "as a trusted relay says where it is plugged in"
		if d.Claimed {
			how = "on what it says of itself"
		}
		if err := tx.PutRegistration(r, strings.Join(append([]string{string(r.State) + " by the rule " + d.Rule + ", " + how}, shared...), "; ")); err != nil {
			return err
		}
		if d.Password != "" {
			if err := tx.PutPowerSecret(r.ID, []byte(d.Password)); err != nil {
				return err
			}
		}
		if d.PowerKey != "" {
			key, err := muster.ParsePowerKey(string(d.PowerKey))
			if err != nil {
				return err
			}
			return tx.PutPowerKey(r.ID, key)
		}
		return nil
	}
	if g.Whole {
		waits.Remark = ""
	}
	if err != nil {
		text, _ := muster.Explain(err)
		waits.Remark = "the rule " + d.Rule + " is its, and it waits: " + text
	}
	if text == "" && waits.Remark != old.Remark {
		text = waits.Remark
	}
	return tx.PutRegistration(waits, text)
}

// byRule makes of a machine what a rule says. The error is why it cannot be.
func (s *Service) byRule(tx *store.Tx, r *muster.Registration, d enrollment.Decision) error {
	r.State, r.Remark = d.State, ""
	if d.State == muster.RegistrationBlocked {
		return nil
	}
	r.ID = cmp.Or(d.Name, r.ID)
	r.Class, r.Rack, r.Position, r.Power, r.MinTrust, r.Service = d.Class, d.Rack, d.Position, d.Power, d.MinTrust, d.Service
	enrol(r)
	if problems := s.wrongWith(*r, string(d.Password), string(d.PowerKey)); len(problems) > 0 {
		return muster.Errorf(muster.EInvalid, "what the rule says of it cannot be used").Because(muster.ReasonHasProblems).Listing(problems)
	}
	if owner, err := tx.Registration(r.ID); err == nil && !slices.ContainsFunc(owner.NICs, func(n muster.RegisteredNIC) bool { return n.MAC == r.NICs[0].MAC }) {
		return muster.Errorf(muster.EConflict, "%s is another machine", r.ID).Because(muster.ReasonAddressTaken)
	} else if err != nil && muster.CodeOf(err) != muster.ENotFound {
		return err
	}
	if m, err := tx.Machine(r.ID); err == nil && m.Provider != s.Registrar {
		return muster.Errorf(muster.EConflict, "%s is a machine of provider %s", r.ID, m.Provider).Because(muster.ReasonNameTaken)
	} else if err != nil && muster.CodeOf(err) != muster.ENotFound {
		return err
	}
	return nil
}

// makeRoom removes a waiting machine, where too many wait: of the source that has the
// most, the one that was not seen for longest.
func makeRoom(tx *store.Tx) error {
	list, err := tx.Registrations(store.RegistrationFilter{State: muster.RegistrationWaiting})
	if err != nil || len(list) < mostWaiting {
		return err
	}
	of := map[string]int{}
	source := func(r muster.Registration) string {
		if len(r.NICs) == 0 {
			return ""
		}
		n := r.NICs[0] // that it booted from
		return sourceOf(n.MAC, n.Switch, n.Port)
	}
	for _, r := range list {
		of[source(r)]++
	}
	oldest := slices.MinFunc(list, func(a, b muster.Registration) int {
		return cmp.Or(cmp.Compare(of[source(b)], of[source(a)]), a.Seen.Compare(b.Seen), bytes.Compare([]byte(a.ID), []byte(b.ID)))
	})
	return tx.DeleteRegistration(oldest.ID, "too many machines wait, most of them from its source, and of those it was not seen for longest")
}
