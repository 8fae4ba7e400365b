package control_test

import (
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

type oneBoot struct{ boot wire.MachineBoot }

func (b oneBoot) BootOf(id muster.MachineID) (wire.MachineBoot, bool) {
	return b.boot, id == b.boot.Machine
}
func (oneBoot) Queue(string) []wire.QueuedBoot { return nil }

// A boot is under way until its node has joined; who uses the machine sees it, others
// do not.
func TestBootUnderWay(t *testing.T) {
	t.Parallel()
	s, _ := metalSite(t)
	put(t, s, func(tx *store.Tx) error {
		m, err := tx.Machine("r1-n01")
		if err != nil {
			return err
		}
		m.Facts = muster.Facts{Architecture: "amd64", CPULevel: 3, Cores: 4, Threads: 4, Memory: 64 << 30}
		return tx.PutMachine(m, "")
	})
	boot := oneBoot{wire.MachineBoot{
		Machine: "r1-n01", Kind: wire.BootImage, Step: "running", Doing: "image", Since: time.Now(),
		Stages: []wire.BootStage{{Name: "kernel"}, {Name: "init", After: muster.Duration(3 * time.Second)}, {Name: "hello", After: muster.Duration(5500 * time.Millisecond)}},
	}}
	s.Control.Boots = boot
	s.Control.Contacts.AddAnswered(func(muster.MachineID) time.Time { return boot.boot.Since })
	c, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: a; nodes: 1; head: shared; users: [alice]; validate: off"))
	if err != nil || c.Status != "building" {
		t.Fatal(c.Status, err)
	}
	under := func() int {
		list, err := s.Control.MachineBoots(t.Context(), muster.System(), wire.BootQuery{Rack: "r1"})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Boots)
	}
	if under() != 1 {
		t.Error("a machine that boots is not listed")
	}
	for who, want := range map[*muster.Actor]bool{{Name: "system", Admin: true}: true, {Name: "mallory", Projects: []string{"other"}}: false} {
		m, err := s.Control.Machine(t.Context(), *who, "r1-n01")
		if err != nil || (m.Boot != nil) != want {
			t.Errorf("%s sees %+v, %v", who.Name, m.Boot, err)
		}
	}
	put(t, s, func(tx *store.Tx) error {
		list, err := tx.Nodes(c.ID)
		if err != nil {
			return err
		}
		for _, p := range []muster.NodePhase{muster.NodeBooting, muster.NodeConfiguring} {
			list[0].Phase = p
			list[0].Stages = []muster.Stage{
				{Name: "init", At: time.Unix(1003, 0)}, {Name: "hello", At: time.Unix(1005, 5e8)}, {Name: "image", At: time.Unix(1010, 0)}, {Name: "ready", At: time.Unix(1026, 2e8)},
			}
			if err := tx.PutNode(list[0], ""); err != nil {
				return err
			}
		}
		return nil
	})
	if under() != 0 {
		t.Error("a node that is up is listed as a boot")
	}
	// What its agent told goes on where its first program ended.
	m, err := s.Control.Machine(t.Context(), muster.System(), "r1-n01")
	want := []wire.BootStage{{Name: "kernel"}, {Name: "init", After: muster.Duration(3 * time.Second)}, {Name: "hello", After: muster.Duration(5500 * time.Millisecond)}, {Name: "image", After: muster.Duration(10 * time.Second)}, {Name: "ready", After: muster.Duration(26200 * time.Millisecond)}}
	if err != nil || !slices.Equal(m.Boot.Stages, want) || m.Boot.Doing != "" || !m.LastSeen.Equal(m.Boot.Since) {
		t.Errorf("%+v, %v", m.Boot, err)
	}
	// While a cluster uses it, it is not discovered.
	if _, err := s.Control.ChangeRegistered(t.Context(), muster.System(), "r1-n01", wire.RegisteredDiscover); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("%v", err)
	}
}
