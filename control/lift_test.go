package control_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// A dry run says what the request itself would be told, also of the time that it would get.
func TestDryRunKnowsLimits(t *testing.T) {
	t.Parallel()
	b := newBooked(t, 2)
	if _, err := b.Control.LimitProject(t.Context(), root(), "default", wire.ProjectLimits{Set: []string{"ahead=2h"}}); err != nil {
		t.Fatal(err)
	}
	b.must("name: holds; nodes: 2; walltime: 10h", muster.ClusterBuilding)
	const late = "name: late; nodes: 2; walltime: 1h; start: earliest"
	call := yaml(late + "; head: shared; users: [alice]")
	_, err := b.Control.CreateCluster(t.Context(), root(), call)
	call.DryRun = true
	_, dry := b.Control.CreateCluster(t.Context(), root(), call)
	if muster.ReasonOf(err) != muster.ReasonOverLimit || muster.ReasonOf(dry) != muster.ReasonOverLimit {
		t.Errorf("%v, and dry %v", err, dry)
	}
}

// An exception is for one cluster: the living one, or the next of its name.
func TestExceptionsAreForOne(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 8, Build: true})
	project := func() muster.Project {
		var p muster.Project
		err := s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) (err error) {
			p, err = tx.Project("default")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	create := func(text string) (wire.Created, error) {
		return s.Control.CreateCluster(t.Context(), root(), yaml(text+"; head: shared; users: [alice]"))
	}
	if _, err := s.Control.LimitProject(t.Context(), root(), "default", wire.ProjectLimits{Set: []string{"machines=2"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Control.AllowProject(t.Context(), root(), "default", wire.ProjectAllow{Cluster: "big", Why: "a deadline"}); err != nil {
		t.Fatal(err)
	}
	first, err := create("name: big; nodes: 4")
	if err != nil {
		t.Fatal(err)
	}
	if len(project().Exceptions) != 0 {
		t.Errorf("it is not used: %+v", project().Exceptions)
	}
	waitFor(t, s.Client(""), first.ID, muster.ClusterReady)
	got := shown(t, s, first.ID)
	if got.Lifted == nil || got.Lifted.Why != "a deadline" || got.Lifted.UserOnly || len(got.Notices) == 0 {
		t.Errorf("%+v, %+v", got.Lifted, got.Notices)
	}
	if _, err := create("name: other; nodes: 1"); muster.ReasonOf(err) != muster.ReasonOverLimit {
		t.Errorf("another one: %v", err)
	}
	if _, err := s.Control.DeleteCluster(t.Context(), root(), "big"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, s.Client(""), first.ID, muster.ClusterDeleted)
	if _, err := create("name: big; nodes: 4"); muster.ReasonOf(err) != muster.ReasonOverLimit {
		t.Errorf("the next of its name: %v", err)
	}
	// Of a living one.
	small, err := create("name: small; nodes: 2")
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, s.Client(""), small.ID, muster.ClusterReady)
	if _, _, err := s.Control.Scale(t.Context(), root(), "small", wire.ScaleRequest{Nodes: 3}); muster.ReasonOf(err) != muster.ReasonOverLimit {
		t.Errorf("%v", err)
	}
	if _, err := s.Control.AllowProject(t.Context(), root(), "default", wire.ProjectAllow{Cluster: string(small.ID)}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Control.Scale(t.Context(), root(), "small", wire.ScaleRequest{Nodes: 3}); err != nil {
		t.Errorf("%v", err)
	}
	if p := project(); len(p.Exceptions) != 0 {
		t.Errorf("%+v", p.Exceptions)
	}
}
