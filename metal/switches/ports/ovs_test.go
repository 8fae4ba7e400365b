package ports_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/process"
	"github.com/muster-hpc/muster/lab/sleep"
	"github.com/muster-hpc/muster/lab/vswitch"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/switches/ports"
	"github.com/muster-hpc/muster/provider/local/network"
)

// TestOpenVSwitch has two machines at a real switch, named as registrations name it:
// they speak in a cluster, are cut off, and the switch sees which card sleeps.
func TestOpenVSwitch(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a switch needs root")
	}
	for _, p := range vswitch.Programs() {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed: apt-get install openvswitch-switch", p)
		}
	}
	dir, err := os.MkdirTemp("/var/tmp", "wire")
	ok(t, err)
	name := fmt.Sprintf("muster-wire-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9)
	ns, err := network.OpenNamespace(name, true)
	ok(t, err)
	taps := map[string]*sleep.Tap{}
	ends := map[string]*os.File{}
	t.Cleanup(func() {
		for p := range taps {
			_ = errors.Join(ends[p].Close(), taps[p].Close())
		}
		if err := vswitch.Stop(context.Background(), dir); err != nil {
			t.Error(err)
		}
		if n, err := process.Sweep(context.Background(), name); n > 0 || err != nil {
			t.Errorf("%d processes were left: %v", n, err)
		}
		if err := errors.Join(ns.Close(), network.DeleteNamespace(name), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	names := []string{"a0", "a1", "b0", "b1"}
	nics := map[muster.MachineID][]muster.RegisteredNIC{
		"a": {nic("management", "52:54:00:00:00:a0", "ovs:"+dir, "a0"), nic("message", "52:54:00:00:00:a1", "ovs:"+dir, "a1")},
		"b": {nic("management", "52:54:00:00:00:b0", "ovs:"+dir, "b0"), nic("message", "52:54:00:00:00:b1", "ovs:"+dir, "b1")},
	}
	ok(t, ns.Do(func() error {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0); err != nil {
			return err
		}
		for _, p := range names {
			if err := sleep.CreateTap(p); err != nil {
				return err
			}
		}
		return nil
	}))
	_, err = vswitch.Start(t.Context(), vswitch.Config{Dir: dir, Lab: name, In: ns.Do}, names...)
	ok(t, err)
	ok(t, ns.Do(func() error {
		for _, p := range names {
			tap, err := sleep.OpenTap(p, net.HardwareAddr{2, 0, 0, 0, 0, 1})
			if err != nil {
				return err
			}
			taps[p] = tap
			if ends[p], err = tap.Lend(); err != nil {
				return err
			}
		}
		return nil
	}))
	w := ports.New(ports.Config{NICs: func(id muster.MachineID) []muster.RegisteredNIC { return nics[id] }})
	ok(t, w.JoinAll(t.Context(), map[muster.MachineID]int{"a": 12, "b": 12}))
	// send has a machine's card say something to all, and reports whether the other's
	// hears it.
	send := func(from, to, mac string) bool {
		t.Helper()
		source, err := net.ParseMAC(mac)
		ok(t, err)
		frame := append(append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, source...), 0x88, 0xb5)
		frame = append(frame, make([]byte, 50)...)
		buf := make([]byte, 2048)
		for range 5 {
			_, _ = ends[from].Write(frame) // a port that is off takes nothing
			_ = ends[to].SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			if n, err := ends[to].Read(buf); err == nil && n == len(frame) {
				return true
			}
		}
		return false
	}
	if !send("a1", "b1", "52:54:00:00:00:a1") || send("a0", "b0", "52:54:00:00:00:a0") {
		t.Error("the cluster's network does not carry, or that of management does")
	}
	if got, err := w.Through(t.Context(), "a"); err != nil || !got {
		t.Errorf("seen at its own port: %v, %v", got, err)
	}
	speed := func(bits int64, want power.Link) {
		t.Helper()
		ok(t, ns.Do(func() error {
			for _, p := range []string{"a0", "a1"} {
				if err := errors.Join(taps[p].SetSpeed(bits), taps[p].SetCarrier(false), taps[p].SetCarrier(true)); err != nil {
					return err
				}
			}
			return nil
		}))
		link(t, w, "a", want)
	}
	link(t, w, "a", power.Link{Up: true})
	speed(sleep.SlowLink, power.Link{Up: true, Asleep: true})
	speed(sleep.FullLink, power.Link{Up: true})

	ok(t, w.Close(t.Context(), "a"))
	if send("a1", "b1", "52:54:00:00:00:a1") || send("b1", "a1", "52:54:00:00:00:b1") {
		t.Error("who is cut off is heard, or hears")
	}
	link(t, w, "a", power.Link{Closed: true})
	ok(t, w.Join(t.Context(), "a", 12))
	if !send("a1", "b1", "52:54:00:00:00:a1") {
		t.Error("who joined again is not heard")
	}
	ok(t, w.Leave(t.Context(), "a"))
	if send("a1", "b1", "52:54:00:00:00:a1") {
		t.Error("who left is heard")
	}
	link(t, w, "a", power.Link{Up: true})

	nics["b"][1].Port = "a1" // two registrations name each other's port
	nics["a"][1].Port = "b1"
	ok(t, w.JoinAll(t.Context(), map[muster.MachineID]int{"a": 12, "b": 12}))
	send("a1", "b1", "52:54:00:00:00:a1")
	fails(t, w.Close(t.Context(), "a"), muster.EUnavailable, "a1")
}

func link(t *testing.T, w *ports.Wiring, id muster.MachineID, want power.Link) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got, err := w.Link(t.Context(), id)
		ok(t, err)
		if got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %+v, not %+v", id, got, want)
		}
	}
}
