// Package redfish switches machines by Redfish over HTTPS. The controller's
// certificate is pinned, or signed by an authority that the site names.
//
// Only the few members of Redfish's tree that are needed are read, by a client
// of our own: a controller that sends too much, or a wrong type, or nothing
// where something belongs, gives an error and never more than that.
package redfish

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
)

// Maker gives this driver to power.Drivers.
func Maker() power.Maker { return power.Maker{New: open} }

type driver struct {
	t     power.Target
	quirk quirk
	clock muster.Clock
	c     *client

	root         *rootObject
	path         string // of the system
	token, place string // of the session
	basic        bool   // no sessions
}

func open(t power.Target, parts power.Deps) (power.Driver, error) {
	c, err := newClient(t.Address)
	if err != nil {
		return nil, err
	}
	d := &driver{t: t, quirk: quirkOf(t.Address.Quirk), clock: parts.Clock, c: c, path: t.Address.System}
	if d.clock == nil {
		d.clock = muster.SystemClock{}
	}
	return d, nil
}

// Abilities: the controller measures the power.
func (d *driver) Abilities() power.Abilities {
	return power.Abilities{NetworkBoot: true, Off: true, State: true, ProvesOff: true}
}

// On sets the boot override for one start, reads it back, and switches on.
func (d *driver) On(ctx context.Context) error {
	s, _, err := d.system(ctx)
	if err != nil {
		return err
	}
	if s.PowerState == "On" {
		return nil
	}
	if err := d.bootOnce(ctx); err != nil {
		return err
	}
	if err := d.pause(ctx); err != nil {
		return err
	}
	return d.reset(ctx, s, "On", "ForceOn")
}

// Off takes the power away.
func (d *driver) Off(ctx context.Context) error {
	s, _, err := d.system(ctx)
	if err != nil {
		return err
	}
	if s.PowerState == "Off" {
		return nil // some controllers refuse to switch off what is off
	}
	return d.reset(ctx, s, "ForceOff")
}

// State looks. What is between on and off is unknown.
func (d *driver) State(ctx context.Context) (power.Reading, error) {
	s, _, err := d.system(ctx)
	if err != nil {
		return power.Reading{}, err
	}
	r := power.Reading{State: power.Unknown, Proof: power.ProofController, Text: "its Redfish controller says " + line(s.PowerState)}
	switch s.PowerState {
	case "On":
		r.State = power.On
	case "Off":
		r.State = power.Off
	case "":
		r.Text = "its Redfish controller does not say"
	}
	return r, nil
}

// system reads the machine, and its entity tag.
func (d *driver) system(ctx context.Context) (systemObject, string, error) {
	if err := d.find(ctx); err != nil {
		return systemObject{}, "", err
	}
	a, err := d.ask(ctx, http.MethodGet, d.path, nil, nil)
	if err != nil {
		return systemObject{}, "", err
	}
	if a.status != http.StatusOK {
		return systemObject{}, "", refused("show the system", a)
	}
	s, err := parseSystem(a.body)
	return s, tagOf(a, s.Tag), err
}

// find takes the only system, where the address names none.
func (d *driver) find(ctx context.Context) error {
	if d.path != "" {
		return nil
	}
	if err := d.readRoot(ctx); err != nil {
		return err
	}
	path := d.root.Systems.Path
	if !isPath(path) {
		return muster.Errorf(muster.ENotFound, "its Redfish controller has no systems")
	}
	a, err := d.ask(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return refused("list its systems", a)
	}
	var list collectionObject
	if err := parse(a.body, &list); err != nil {
		return err
	}
	if len(list.Members) != 1 {
		return muster.Errorf(muster.EInvalid, "its Redfish controller has %d systems", len(list.Members)).
			WithHint("name one in the machine's power address: %s", names(list))
	}
	if !isPath(list.Members[0].Path) {
		return foreign()
	}
	d.path = list.Members[0].Path
	return nil
}

func names(list collectionObject) string {
	var all []string
	for _, m := range list.Members[:min(len(list.Members), 8)] {
		all = append(all, line(m.Path))
	}
	return strings.Join(all, ", ")
}

// reset asks for the first of the types that the controller allows.
func (d *driver) reset(ctx context.Context, s systemObject, types ...string) error {
	target := s.Actions.Reset.Target
	if target == "" {
		target = strings.TrimSuffix(d.path, "/") + "/Actions/ComputerSystem.Reset"
	}
	chosen := types[0]
	if allowed := s.Actions.Reset.Types; len(allowed) > 0 {
		i := slices.IndexFunc(types, func(t string) bool { return slices.Contains(allowed, t) })
		if i < 0 {
			return muster.Errorf(muster.EInvalid, "its Redfish controller does not allow %s, only %s", types[0], line(strings.Join(allowed, ", "))).
				WithHint("update the controller's firmware, or switch the machine by IPMI")
		}
		chosen = types[i]
	}
	a, err := d.ask(ctx, http.MethodPost, target, nil, map[string]string{"ResetType": chosen})
	if err != nil {
		return err
	}
	if a.status >= 300 {
		return refused("do "+chosen, a)
	}
	return nil
}

func (d *driver) pause(ctx context.Context) error {
	if d.quirk.pauseMillis == 0 {
		return nil
	}
	select {
	case <-d.clock.After(time.Duration(d.quirk.pauseMillis) * time.Millisecond):
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return muster.Errorf(muster.ETimeout, "timed out waiting for its controller").Wrap(ctx.Err())
		}
		return context.Cause(ctx)
	}
}
