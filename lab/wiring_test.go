package lab_test

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/lab/machine"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/switches"
	"github.com/muster-hpc/muster/metal/switches/ports"
)

// What the lab says of its machines in its inventory is enough to join them, to cut them
// off, and to see at their ports whether they sleep, also at ports that were closed when
// they went to sleep or came on.
func TestWiring(t *testing.T) {
	r := start(t, small(2))
	list, err := r.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	nics := map[muster.MachineID][]muster.RegisteredNIC{}
	for _, m := range list.Machines {
		for _, n := range m.NICs {
			nics[muster.MachineID(m.Name)] = append(nics[muster.MachineID(m.Name)], muster.RegisteredNIC{Use: n.Use, MAC: n.MAC, Switch: n.Switch, Port: n.Port})
		}
	}
	w := ports.New(ports.Config{NICs: func(id muster.MachineID) []muster.RegisteredNIC { return nics[id] }})
	is := func(id muster.MachineID, want power.Link) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			got, err := w.Link(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %+v, not %+v", id, got, want)
			}
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	off := func(name string) {
		t.Helper()
		_, err := r.Power(t.Context(), []string{name}, machine.DoOff)
		do(err)
	}
	asleep, awake := power.Link{Up: true, Asleep: true}, power.Link{Up: true}
	is("m01", asleep)
	do(w.JoinAll(t.Context(), map[muster.MachineID]int{"m01": 12, "m02": 12}))
	if p := r.port(t, "m02-msg"); p.VLAN != 12 || p.Closed || p.Isolated {
		t.Errorf("its message port is %+v", p)
	}
	is("m01", asleep) // its message port, too
	r.wake(t, "m01")
	r.await(t, "m01", machine.Booting)
	is("m01", awake)
	do(w.Leave(t.Context(), "m01"))
	off("m01")
	is("m01", asleep)
	do(w.Join(t.Context(), "m01", 13)) // opened after it went to sleep
	is("m01", asleep)

	do(w.Close(t.Context(), "m01"))
	is("m01", power.Link{Closed: true})
	r.wake(t, "m01") // no packet reaches it
	r.stays(t, "m01", machine.Asleep)
	do(w.Manage(t.Context(), "m01"))
	if p := r.port(t, "m01-mgmt"); p.Want != (switches.Want{Port: "m01-mgmt", VLAN: 1, Isolated: true}) {
		t.Errorf("its management port is %+v", p)
	}
	r.wake(t, "m01")
	r.await(t, "m01", machine.Booting)
	is("m01", awake)
	do(w.Close(t.Context(), "m01"))
	is("m01", power.Link{Closed: true})
	r.fault(t, "m02", machine.Fault{Kind: machine.PowerCut}, false)
	is("m02", power.Link{})
}
