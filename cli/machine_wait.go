package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/wire"
)

// machineLook is how often machines are looked at while somebody waits.
const machineLook = 300 * time.Millisecond

// awaitMachines waits until what was asked of the machines is done, and returns
// how they stand then. A machine that comes into quarantine is an error, and so is
// one that is not done in time; a timeout of 0 is as long as it takes.
func awaitMachines(ctx context.Context, k *client.Client, what wire.MachineAction, list []wire.MachineChanged, timeout time.Duration) ([]wire.MachineChanged, error) {
	var late <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		late = t.C
	}
	for {
		now, err := k.Machines(ctx, true)
		if err != nil {
			return list, err
		}
		by := make(map[muster.MachineID]wire.Machine, len(now))
		for _, m := range now {
			by[m.ID] = m
		}
		var left, bad []string
		for i, c := range list {
			m, ok := by[c.ID]
			if !ok {
				continue
			}
			list[i].Status, list[i].Intent = m.Status, m.Intent
			if !settled(what, m) {
				left = append(left, string(m.ID))
				continue // its text says what is to come
			}
			list[i].Text = "done"
			if m.Status == muster.MachineQuarantined {
				bad = append(bad, string(m.ID))
				list[i].Text = quarantineText(m)
			}
		}
		if len(left) == 0 && len(bad) > 0 {
			return list, muster.Errorf(muster.EConflict, "in quarantine: %s", nodeset.Fold(bad)).Because(muster.ReasonQuarantined).WithHint("see 'muster machine show %s'", bad[0])
		}
		if len(left) == 0 {
			return list, nil
		}
		select {
		case <-ctx.Done():
			return list, ctx.Err()
		case <-late:
			return list, muster.Errorf(muster.ETimeout, "%s: not done after %s", nodeset.Fold(left), timeout).Because(muster.ReasonNotDoneYet).
				WithHint("it goes on; look with 'muster machine list --all', or wait with a longer --timeout")
		case <-time.After(machineLook):
		}
	}
}

// writeAwaited says of machines that clusters have what is waited for: that may
// be long.
func writeAwaited(w io.Writer, what wire.MachineAction, list []wire.MachineChanged) {
	if what == wire.MachineUndrain {
		return // what is in use stays so, and is not waited for
	}
	var texts []string
	by := map[string][]string{}
	for _, m := range list {
		if !m.Status.Held() {
			continue
		}
		if by[m.Text] == nil {
			texts = append(texts, m.Text)
		}
		by[m.Text] = append(by[m.Text], string(m.ID))
	}
	for _, text := range texts {
		fmt.Fprintf(w, "waiting for %s: %s\n", clean(nodeset.Fold(by[text])), clean(text))
	}
}

// settled reports whether what was asked of a machine is done, or never will be.
func settled(what wire.MachineAction, m wire.Machine) bool {
	switch {
	case what == wire.MachineMaintenance:
		return m.Status == muster.MachineMaintenance || m.Intent != muster.IntentMaintenance
	case what == wire.MachineRetire:
		return m.Status == muster.MachineRetired || m.Intent != muster.IntentRetire
	case m.Intent == muster.IntentTest:
		return false
	}
	switch m.Status {
	case muster.MachineNew, muster.MachineCleaning, muster.MachineSuspect, muster.MachineTesting:
		return false
	case muster.MachineMaintenance, muster.MachineQuarantined:
		// Taken back a moment ago, unless it is wanted there or came there.
		return m.Intent != muster.IntentNone || hasCode(m.Conditions, muster.ConditionQuarantined)
	}
	return true
}

func hasCode(list []muster.Condition, code muster.ConditionCode) bool {
	for _, c := range list {
		if c.Code == code {
			return true
		}
	}
	return false
}

func quarantineText(m wire.Machine) string {
	for _, c := range m.Conditions {
		if c.Code == muster.ConditionQuarantined {
			return c.Text
		}
	}
	return fmt.Sprintf("it is %s", m.Status)
}
