package control_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

func alice() muster.Actor { return muster.Actor{Name: "alice", Projects: []string{"sea"}} }
func carol() muster.Actor { return muster.Actor{Name: "carol", Projects: []string{"sky"}} }

// keptHome puts a home on record that a deleted cluster left.
func keptHome(t *testing.T, s *controltest.Site, owner, project, name string) muster.Volume {
	t.Helper()
	v := muster.Volume{ID: muster.NewVolumeID(), Name: name, Owner: owner, Project: project, Kind: muster.VolumeHome,
		Driver: muster.DriverHostPath, Phase: muster.VolumeReady, Expires: time.Now().Add(time.Hour)}
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		if err := tx.PutVolume(v, ""); err != nil {
			return err
		}
		v.Phase = muster.VolumeRetained
		return tx.PutVolume(v, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestHomeTakenOnce: of clusters that ask for one home at once, one gets it.
func TestHomeTakenOnce(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 8})
	s.User("alice", "sea")
	home := keptHome(t, s, "alice", "sea", "old-home")
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = s.Control.CreateCluster(t.Context(), alice(), yaml(fmt.Sprintf("name: c%d; nodes: 1; head: shared; home: old-home", i)))
		})
	}
	wg.Wait()
	// A dry run says so too.
	dry := yaml("name: dry; nodes: 1; head: shared; home: old-home")
	dry.DryRun = true
	if _, err := s.Control.CreateCluster(t.Context(), alice(), dry); muster.ReasonOf(err) != muster.ReasonVolumeInUse {
		t.Errorf("a dry run says %v", err)
	}
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		if e := code(t, err, muster.EConflict); e.Reason != muster.ReasonVolumeInUse {
			t.Error(e)
		}
	}
	v, err := s.Control.Volume(t.Context(), alice(), string(home.ID))
	if err != nil || won != 1 || v.Status != muster.VolumeReady || len(v.UsedBy) != 1 || !v.Expires.IsZero() {
		t.Errorf("%d won; %+v, %v", won, v, err)
	}
	list, err := s.Control.Clusters(t.Context(), root(), wire.ClusterQuery{})
	if err != nil || len(list.Clusters) != 1 {
		t.Errorf("%d clusters, %v: a refused one left something", len(list.Clusters), err)
	}
}

// TestRepeatedWithHome: a request that is repeated finds its cluster, which has
// the home by now.
func TestRepeatedWithHome(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	s.User("alice", "sea")
	keptHome(t, s, "alice", "sea", "old-home")
	call := yaml("name: a; nodes: 1; head: shared; home: old-home")
	call.Key = "k"
	first, err := s.Control.CreateCluster(t.Context(), alice(), call)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Control.CreateCluster(t.Context(), alice(), call)
	if err != nil || again.ID != first.ID {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestForeignVolumes: whatever way a stranger names a volume, the answer is that
// of one that does not exist, and nothing changes.
func TestForeignVolumes(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	s.User("alice", "sea")
	s.User("carol", "sky")
	data, err := s.Control.CreateVolume(t.Context(), alice(), wire.VolumeRequest{Name: "inputs"})
	if err != nil {
		t.Fatal(err)
	}
	home := keptHome(t, s, "alice", "sea", "old-home")
	for _, ref := range []string{"inputs", "sea/inputs", string(data.ID), "old-home", "sea/old-home", string(home.ID), "../sea/inputs", "sky/" + string(data.ID)} {
		_, err := s.Control.Volume(t.Context(), carol(), ref)
		code(t, err, muster.ENotFound)
		_, err = s.Control.DeleteVolume(t.Context(), carol(), ref)
		code(t, err, muster.ENotFound)
		_, err = s.Control.RetainVolume(t.Context(), carol(), ref, wire.VolumeRetention{For: "1h"})
		code(t, err, muster.ENotFound)
		for _, text := range []string{"home: %q", "volumes: [%q]"} {
			_, err = s.Control.CreateCluster(t.Context(), carol(), yaml("name: x; nodes: 1; head: shared; "+fmt.Sprintf(text, ref)))
			if e := code(t, err, muster.EInvalid); strings.Contains(fmt.Sprint(e.Problems), "alice") || strings.Contains(fmt.Sprint(e.Problems), "in use") {
				t.Errorf("%s tells %v", ref, e.Problems)
			}
		}
	}
	// Somebody of both projects cannot carry it over.
	both := muster.Actor{Name: "dave", Projects: []string{"sea", "sky"}}
	s.User("dave", "sea", "sky")
	for _, ref := range []string{"inputs", string(data.ID)} {
		_, err = s.Control.CreateCluster(t.Context(), both, yaml("name: x; project: sky; nodes: 1; head: shared; volumes: ["+ref+"]"))
		code(t, err, muster.EInvalid)
	}
	_, err = s.Control.CreateCluster(t.Context(), both, yaml("name: x; project: sky; nodes: 1; head: shared; home: old-home"))
	code(t, err, muster.EInvalid)
	if _, err = s.Control.CreateCluster(t.Context(), both, yaml("name: x; project: sea; nodes: 1; head: shared; volumes: [inputs]")); err != nil {
		t.Error(err)
	}
	// An administrator is no way around it.
	_, err = s.Control.CreateCluster(t.Context(), root(), yaml("name: y; project: sky; nodes: 1; head: shared; users: [carol]; home: "+string(home.ID)))
	code(t, err, muster.EInvalid)
	if v, err := s.Control.Volume(t.Context(), alice(), string(home.ID)); err != nil || v.Status != muster.VolumeRetained {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestVolumeInUse: what a cluster mounts stays, also while it waits in the queue.
func TestVolumeInUse(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	s.User("alice", "sea")
	if _, err := s.Control.CreateVolume(t.Context(), alice(), wire.VolumeRequest{Name: "inputs", Size: "1GiB"}); err != nil {
		t.Fatal(err)
	}
	keptHome(t, s, "alice", "sea", "old-home")
	if _, err := s.Control.CreateCluster(t.Context(), alice(), yaml("name: first; nodes: 1; head: shared")); err != nil {
		t.Fatal(err)
	}
	created, err := s.Control.CreateCluster(t.Context(), alice(), yaml("name: second; nodes: 1; head: shared; home: old-home; volumes: [inputs]"))
	if err != nil || created.Status != "queued" {
		t.Fatalf("%+v, %v", created, err)
	}
	for _, name := range []string{"inputs", "old-home"} {
		_, err := s.Control.DeleteVolume(t.Context(), alice(), name)
		if e := code(t, err, muster.EConflict); !strings.Contains(e.Message, "second") {
			t.Error(e)
		}
	}
	v, err := s.Control.RetainVolume(t.Context(), alice(), "old-home", wire.VolumeRetention{For: "2d"})
	if err != nil || v.Status != muster.VolumeReady {
		t.Errorf("%+v, %v", v, err)
	}
	c, err := s.Control.Cluster(t.Context(), alice(), "second")
	if err != nil || c.Spec.Retain != muster.Duration(48*time.Hour) || len(c.Volumes) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestExports: an export is one project's.
func TestExports(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1, Control: nil})
	ask := func(who muster.Actor, r wire.VolumeRequest) error {
		r.Driver = "nfs"
		_, err := s.Control.CreateVolume(t.Context(), who, r)
		return err
	}
	code(t, ask(alice(), wire.VolumeRequest{Name: "a", Source: "filer:/x"}), muster.EForbidden)
	all := code(t, ask(root(), wire.VolumeRequest{Name: "A b", Source: "nowhere", Size: "1GiB"}), muster.EInvalid)
	for _, field := range []string{"name", "project", "size", "source"} {
		if !slices.ContainsFunc(all.Problems, func(p muster.Problem) bool { return p.Field == field }) {
			t.Errorf("nothing of the %s is told: %+v", field, all.Problems)
		}
	}
	code(t, ask(root(), wire.VolumeRequest{Name: "a", Source: "filer:/x"}), muster.EInvalid)
	code(t, ask(root(), wire.VolumeRequest{Name: "a", Project: "sea", Source: "filer:/x", Size: "1GiB"}), muster.EInvalid)
	for _, r := range []wire.VolumeRequest{{Name: "a", Project: "sea", Source: "filer:/x"}, {Name: "b", Project: "sea", Source: "filer:/x/sub"}, {Name: "c", Project: "sky", Source: "filer:/y"}} {
		if err := ask(root(), r); err != nil {
			t.Error(err)
		}
	}
	for _, source := range []string{"filer:/x", "filer:/x/other", "FILER:/x"} {
		code(t, ask(root(), wire.VolumeRequest{Name: "d", Project: "sky", Source: source}), muster.EConflict)
	}
}

// TestVolumeOfAnotherProvider: admission knows the drivers of the volumes that a request
// names, of its home and of its data.
func TestVolumeOfAnotherProvider(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Control: func(c *control.Config) {
		c.Providers = muster.Providers{"fake": {Volumes: []muster.VolumeDriver{muster.DriverNFS, muster.DriverManagedNFS}}}
	}})
	s.User("alice", "sea")
	keptHome(t, s, "alice", "sea", "old-home")
	_, err := s.Control.CreateCluster(t.Context(), alice(), yaml("name: c; nodes: 1; head: shared; home: old-home"))
	if e := code(t, err, muster.ENever); !strings.Contains(fmt.Sprintf("%+v", e), "machines") {
		t.Errorf("%+v", e)
	}
	if _, err := s.Control.CreateCluster(t.Context(), alice(), yaml("name: c; nodes: 1; head: shared")); err != nil {
		t.Errorf("without that home: %v", err)
	}
}
