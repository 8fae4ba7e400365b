package converge_test

import (
	"context"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
)

// handFenced is a provider that nothing but a human's word proves a fence to.
type handFenced struct {
	provider.Provider
	control *power.Control
}

func (p handFenced) Fence(ctx context.Context, id muster.MachineID) (muster.FenceRecord, error) {
	// A kind without a driver stands for a controller that is broken for good.
	return p.control.Fence(ctx, power.Target{Machine: id, Address: muster.PowerAddress{Kind: muster.PowerIPMI}}), nil
}

// A node whose machine nothing proves to be off waits, and says for whom; once an
// administrator has answered, the next try finds that, also after a restart, and the
// node's way says who it was.
func TestANodeMovesWithAHumansWord(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := lively(t, newRig(t, fake.Options{Machines: 4}))
		r.wrap = func(s *server, p provider.Provider) provider.Provider {
			c := power.NewControl(power.Config{Deps: power.Deps{Clock: r.clock, ManualFence: &control.ManualFencing{Store: s.db, Clock: r.clock}}})
			t.Cleanup(func() { _ = c.Close() })
			return handFenced{p, c}
		}
		s := r.start()
		s.untilFree(4)
		id := s.mustCreate(slurm(2))
		s.untilPhase(id, muster.ClusterReady)
		old := s.nodeNamed(id, "n0002").Machine
		registered := func(change func(*muster.Registration)) {
			t.Helper()
			err := s.db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
				reg, err := tx.Registration(old)
				if muster.CodeOf(err) == muster.ENotFound {
					reg, err = muster.Registration{ID: old, State: muster.RegistrationApproved, Power: muster.PowerAddress{Kind: muster.PowerWOL},
						NICs: []muster.RegisteredNIC{{MAC: "52:54:00:00:00:01", Use: muster.UseManagement}}}, nil
				}
				if err != nil {
					return err
				}
				change(&reg)
				return tx.PutRegistration(reg, "changed")
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		registered(func(*muster.Registration) {})
		r.world.Hang(old)
		until(t, "it waits for a human", func() bool {
			for _, c := range s.nodeNamed(id, "n0002").Conditions {
				if c.Code == muster.ConditionNotFenced {
					return strings.Contains(c.Text, "muster machine confirm-off "+string(old)+" --yes")
				}
			}
			return false
		})
		if n := s.nodeNamed(id, "n0002"); n.Machine != old || n.Phase != muster.NodeFencing {
			t.Errorf("it moved without proof: %+v", n)
		}
		registered(func(reg *muster.Registration) {
			if !reg.ManualFence.Waits() {
				t.Errorf("nobody is asked: %+v", reg.ManualFence)
				return
			}
			reg.ManualFence.Said, reg.ManualFence.By = r.clock.Now(), "carol"
		})
		r.stop()
		s = r.start()
		s.untilWhole(id)
		if n := s.nodeNamed(id, "n0002"); n.Machine == old || n.Repairs != 1 {
			t.Errorf("node %+v", n)
		}
		told := false
		if err := s.db.View(t.Context(), muster.System(), func(tx *store.Tx) error {
			lines, err := tx.Audits(store.AuditFilter{})
			for _, l := range lines {
				told = told || strings.Contains(l.Text, "carol says that it is cut off")
			}
			return err
		}); err != nil || !told {
			t.Errorf("nobody can tell who said so: %v", err)
		}
	})
}
