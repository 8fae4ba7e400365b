package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// MachineBoots lists the boots of bare machines that are under way or failed, and those
// that wait for their turn; of one rack, or of all. Nobody but administrators sees any.
func (s *Service) MachineBoots(ctx context.Context, who muster.Actor, q wire.BootQuery) (wire.MachineBoots, error) {
	var out wire.MachineBoots
	if s.Boots == nil || !who.Admin {
		return out, nil
	}
	rack := q.Rack
	out.Queue = s.Boots.Queue(rack)
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Registrations(store.RegistrationFilter{State: muster.RegistrationApproved})
		for _, r := range list {
			if rack != "" && r.Rack != rack {
				continue
			}
			b, ok := s.Boots.BootOf(r.ID)
			if !ok || b.Step == "queued" || b.Step == "done" {
				continue
			}
			if up, err := nodeUp(tx, b); err != nil || up {
				if err != nil {
					return err
				}
				continue
			}
			b.Rack = r.Rack
			out.Boots = append(out.Boots, b)
		}
		return err
	})
	return bootPage(out, q.Page), err
}

// bootPage is a page of boots: first those under way, by rack and machine, then those that
// wait, by rack and place.
func bootPage(all wire.MachineBoots, p wire.Page) (out wire.MachineBoots) {
	under := func(b wire.MachineBoot) string { return "0/" + b.Rack + "/" + string(b.Machine) }
	wait := func(b wire.QueuedBoot) string { return fmt.Sprintf("1/%s/%06d/%s", b.Rack, b.Place, b.Machine) }
	slices.SortFunc(all.Boots, func(a, b wire.MachineBoot) int { return cmp.Compare(under(a), under(b)) })
	slices.SortFunc(all.Queue, func(a, b wire.QueuedBoot) int { return cmp.Compare(wait(a), wait(b)) })
	if out.Boots, out.More = wire.Cut(all.Boots, p, under); out.Next != "" {
		return out
	}
	if left := p.Size() - len(out.Boots); left > 0 {
		out.Queue, out.More = wire.Cut(all.Queue, wire.Page{Limit: left, After: p.After}, wait)
	} else if len(all.Queue) > 0 {
		out.Next = under(out.Boots[len(out.Boots)-1])
	}
	return out
}

// nodeUp reports whether a boot has long come to its end: its node has joined.
func nodeUp(tx *store.Tx, b wire.MachineBoot) (bool, error) {
	if b.Kind != wire.BootImage || b.Step != "running" {
		return false, nil
	}
	m, err := tx.Machine(b.Machine)
	if err != nil || m.Cluster == "" {
		return false, absentIsNil(err)
	}
	n, err := tx.Node(m.Cluster, m.Node)
	if err != nil {
		return false, absentIsNil(err)
	}
	return n.Phase != muster.NodeAssigned && n.Phase != muster.NodeBooting, nil
}

func absentIsNil(err error) error {
	if muster.CodeOf(err) == muster.ENotFound {
		return nil
	}
	return err
}

// addBoot shows what a machine boots for, to those who may know what it is used for.
// A boot that is over and well is history.
func (s *Service) addBoot(tx *store.Tx, view *wire.Machine, who muster.Actor) error {
	if s.Boots == nil || view.Provider != s.Registrar || !who.Admin && view.Cluster == "" {
		return nil
	}
	b, ok := s.Boots.BootOf(view.ID)
	if !ok || b.Step == "done" {
		return nil
	}
	b.Rack = view.Facts.Rack
	view.Boot = &b
	if b.Kind != wire.BootImage || b.Step != "running" || view.Cluster == "" {
		return nil
	}
	n, err := tx.Node(view.Cluster, view.Node)
	if all := through(b.Stages, n.Stages); len(all) > len(b.Stages) {
		b.Stages, b.Doing = all, ""
	}
	return absentIsNil(err)
}

// through goes on with the stages that a machine's first program told where its node's
// agent does: up to ready. Both told some of them, which says when the machine's clock began.
func through(boot []wire.BootStage, node []muster.Stage) []wire.BootStage {
	told := func(name string) int {
		return slices.IndexFunc(boot, func(b wire.BootStage) bool { return b.Name == name })
	}
	i := slices.IndexFunc(node, func(n muster.Stage) bool { return told(n.Name) >= 0 })
	if i < 0 {
		return boot
	}
	began := node[i].At.Add(-time.Duration(boot[told(node[i].Name)].After))
	out := slices.Clone(boot)
	for _, n := range node {
		if told(n.Name) < 0 {
			out = append(out, wire.BootStage{Name: n.Name, After: muster.Duration(max(0, n.At.Sub(began)))})
		}
	}
	slices.SortStableFunc(out, func(a, b wire.BootStage) int { return cmp.Compare(a.After, b.After) })
	return out
}

// addRegistration shows how a machine is registered, to those who may see that.
func (s *Service) addRegistration(tx *store.Tx, view *wire.Machine) error {
	if view.Provider != s.Registrar {
		return nil
	}
	r, err := tx.Registration(view.ID)
	if muster.CodeOf(err) == muster.ENotFound {
		return nil
	}
	if err != nil {
		return err
	}
	r.Facts = nil // those of the machine say it
	view.Registration = &r
	return nil
}

// onlyRegistered shows a bare machine that is registered, and not yet, or never, one
// that clusters may have.
func (s *Service) onlyRegistered(tx *store.Tx, who muster.Actor, id muster.MachineID) (wire.Machine, error) {
	r, err := tx.Registration(id)
	if err != nil {
		return wire.Machine{}, err
	}
	view := wire.Machine{ID: id, Provider: s.Registrar, Status: muster.MachineNew, PhaseSince: r.Added, LastSeen: r.Seen}
	if r.Facts != nil {
		view.Facts = *r.Facts
		nameAccelerators(&view.Facts)
	}
	view.Facts.Rack, view.Facts.Class = r.Rack, r.Class
	c := muster.Condition{Code: muster.ConditionCode(r.State), Since: r.Added}
	switch r.State {
	case muster.RegistrationWaiting:
		c.Text, c.Hint = "it came by itself, and waits for approval", "muster machine approve "+string(id)+", or block it: muster machine block "+string(id)
	case muster.RegistrationBlocked:
		c.Text, c.Hint = "nothing is answered to it", "muster machine approve "+string(id)+" makes it one of the site"
	case muster.RegistrationApproved:
		c.Code, c.Text = "undiscovered", "it is approved, and its hardware is not known yet"
		if r.Facts != nil {
			c.Code, c.Text = "approved", "it is approved, and will be taken in"
		}
	}
	view.Conditions = []muster.Condition{c}
	r.Facts = nil
	view.Registration = &r
	return view, s.addBoot(tx, &view, who)
}
