package cli_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

func TestDeleteAsks(t *testing.T) {
	t.Parallel()
	var state atomic.Pointer[wire.SchedulerState]
	s := controltest.Start(t, controltest.Options{Machines: 8, Build: true, Control: func(c *control.Config) {
		c.Scheduler = func(muster.MachineID) *wire.SchedulerState { return state.Load() }
	}})
	busy := func(jobs ...wire.Job) { state.Store(&wire.SchedulerState{Up: true, List: jobs}) }
	w := at(t, s)
	w.run("create", "cfd", "-n", "1", "--head", "shared", "--wait").want(t, 0)
	id := idOf(t, w, "cfd")
	kept := func() {
		t.Helper()
		w.run("show", id).want(t, 0, "ready")
	}
	// A home is erased by those only who say so.
	w.refused(2, muster.ReasonNotConfirmed, "delete", "cfd", "--erase").naming("cfd", "--yes")
	w.terminal = true
	w.refused(2, muster.ReasonNotConfirmed, "delete", "cfd", "--erase").naming("--yes") // a program
	w.stdin("yes\n").run("delete", "cfd", "--erase").want(t, 2, "Type cfd to go on", "nothing was changed")
	w.stdin("").run("delete", "cfd", "--erase").want(t, 2)
	kept()
	// Jobs are told, and asked for.
	busy(wire.Job{ID: "1", User: "bob", State: "running"}, wire.Job{ID: "2", User: "alice", State: "running"}, wire.Job{ID: "3", User: "alice", State: "running"}, wire.Job{ID: "4", User: "carol", State: "pending"})
	const jobs = `3 jobs run on cfd \(2 of alice, 1 of bob\)`
	w.stdin("n\n").run("delete", "cfd").want(t, 2, jobs, "nothing was changed")
	w.stdin("no\n").run("delete", "cfd", "--erase").want(t, 2, jobs+", and the home of cfd would be erased")
	kept()
	w.run("delete", "nope", "--erase").want(t, 3, "nope")
	w.stdin("cfd\n").run("delete", "cfd", "--erase", "--wait").want(t, 0, jobs, "deleted after")

	// Scripts are told of jobs, and not stopped.
	for i, args := range [][]string{{"delete", "two"}, {"delete", "two", "--yes"}, {"delete", "two", "-o", "json"}, {"delete", "two", "--erase", "--yes"}, {"delete", "-f", "-"}} {
		w.terminal = i == 1
		w.run("create", "two", "-n", "1", "--head", "shared", "--wait").want(t, 0)
		busy(wire.Job{ID: "1", User: "bob", State: "running"})
		if i == 4 {
			w.stdin("cluster: two\nerase: true\n")
		}
		r := w.run(append(args, "--wait")...).want(t, 0)
		if told := strings.Contains(r.err, "1 job runs on two (1 of bob)"); told != (i != 2) {
			t.Errorf("%v: %s", args, r.err)
		}
	}
}
