package converge

import (
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/store"
)

// recordSwitches marks the machines behind switches that were not reached, and takes marks away.
func recordSwitches(tx *store.Tx, actions []Action) error {
	isSwitch := func(a Action) bool {
		switch a.(type) {
		case MarkSwitch, ClearSwitch:
			return true
		}
		return false
	}
	if !slices.ContainsFunc(actions, isSwitch) {
		return nil
	}
	sys := tx.AsSystem()
	machines, err := sys.Site()
	if err != nil {
		return err
	}
	described, err := sys.SiteTree()
	if err != nil {
		return err
	}
	tree := topology.New(described, machines)
	for _, a := range actions {
		for i := range machines {
			m, text := &machines[i], ""
			switch a := a.(type) {
			case MarkSwitch:
				if !tree.Inside(m.ID, tree.Named(a.Stand)) {
					continue
				}
				text = fmt.Sprintf("nothing behind %s was reached over the message network: %s", a.Stand, a.Text)
				m.Conditions = append(withoutCondition(m.Conditions, muster.ConditionSwitchDown), muster.Condition{
					Code: muster.ConditionSwitchDown, Stand: a.Stand, Since: a.Since, Text: text,
					Hint: fmt.Sprintf("check %s and its cables; machines behind it are given last meanwhile; `muster machine test %s` clears that if it passes", a.Stand, m.ID),
				})
			case ClearSwitch:
				c := conditionOf(m.Conditions, muster.ConditionSwitchDown)
				if c == nil || c.Stand != a.Stand {
					continue
				}
				text = "machines behind " + a.Stand + " count like others again: " + a.Text
				m.Conditions = withoutCondition(m.Conditions, c.Code)
			default:
				continue
			}
			if err := tx.PutMachine(*m, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// wakeMarked has the machines looked at that are behind a switch which was not reached: that ends some time.
func (v *Converger) wakeMarked() {
	var ids []muster.MachineID
	err := v.c.Store.View(v.ctx, muster.System(), func(tx *store.Tx) error {
		machines, err := tx.Site()
		for i := range machines {
			if hasCondition(machines[i].Conditions, muster.ConditionSwitchDown) {
				ids = append(ids, machines[i].ID)
			}
		}
		return err
	})
	if err != nil {
		v.c.Log.Warn("machines behind a switch that was not reached are not looked at again", "error", err)
	}
	for _, id := range ids {
		v.wakeMachine(id)
	}
}
