package ovs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/muster-hpc/muster/internal/process"
	"github.com/muster-hpc/muster/lab/sleep"
	"github.com/muster-hpc/muster/lab/vswitch"
	"github.com/muster-hpc/muster/metal/switches"
	"github.com/muster-hpc/muster/metal/switches/switchtest"
	"github.com/muster-hpc/muster/provider/local/network"
)

// rig is a real Open vSwitch in a namespace of its own, with a tap on every port.
type rig struct {
	switches.Switch
	c     vswitch.Config
	ns    *network.Namespace
	names []string
	taps  map[string]*sleep.Tap
	ends  map[string]*os.File
}

func needSwitch(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a switch needs root")
	}
	for _, p := range vswitch.Programs() {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed: apt-get install openvswitch-switch", p)
		}
	}
}

func newRig(t *testing.T) *rig {
	needSwitch(t)
	dir, err := os.MkdirTemp("/var/tmp", "ovs")
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("muster-ovs-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9)
	ns, err := network.OpenNamespace(name, true)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{c: vswitch.Config{Dir: dir, Lab: name, In: ns.Do}, ns: ns, names: []string{"p1", "p2", "p3", "p4", "p5"}, taps: map[string]*sleep.Tap{}, ends: map[string]*os.File{}}
	t.Cleanup(func() {
		for n := range r.taps {
			r.Unplug(t, n)
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
	err = ns.Do(func() error {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0); err != nil {
			return err
		}
		for _, n := range r.names {
			if err := sleep.CreateTap(n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.start(t)
	for _, n := range r.names {
		r.Plug(t, n)
	}
	return r
}

func (r *rig) start(t *testing.T) {
	t.Helper()
	s, err := vswitch.Start(t.Context(), r.c, r.names...)
	if err != nil {
		log, _ := os.ReadFile(r.c.Dir + "/ovs-vswitchd.log")
		t.Fatalf("%v: %v\n%s", err, errors.Unwrap(err), log)
	}
	r.Switch = s
}

func (r *rig) Plug(t *testing.T, port string) {
	t.Helper()
	err := r.ns.Do(func() error {
		tap, err := sleep.OpenTap(port, net.HardwareAddr{2, 0, 0, 0, 0, 1})
		if err != nil {
			return err
		}
		r.taps[port] = tap
		r.ends[port], err = tap.Lend()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) Unplug(t *testing.T, port string) {
	t.Helper()
	if err := errors.Join(r.ends[port].Close(), r.taps[port].Close()); err != nil {
		t.Error(err)
	}
	delete(r.taps, port)
}

// Send sends and listens until the frame was heard nowhere else for a while.
func (r *rig) Send(t *testing.T, port string, frame []byte) []string {
	t.Helper()
	if _, err := r.ends[port].Write(frame); err != nil && !errors.Is(err, os.ErrInvalid) {
		// A device that is off takes nothing: as good as a frame that is dropped.
		t.Logf("send on %s: %v", port, err)
	}
	var heard []string
	buf := make([]byte, 2048)
	end := time.Now().Add(150 * time.Millisecond)
	for _, n := range r.names {
		if n == port {
			continue
		}
		// Never one that has passed: then nothing is read at all.
		_ = r.ends[n].SetReadDeadline(later(end, time.Now().Add(10*time.Millisecond)))
		for {
			got, err := r.ends[n].Read(buf)
			if err != nil {
				break
			}
			if bytes.Equal(buf[:got], frame) {
				heard = append(heard, n)
				_ = r.ends[n].SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			}
		}
	}
	return heard
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (r *rig) Restart() func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		list, err := process.List(r.c.Lab)
		if err != nil || len(list) != 2 {
			t.Fatalf("%d processes: %v", len(list), err)
		}
		for _, p := range list { // as bad as it can be
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			p.Close()
		}
		for len(list) > 0 {
			time.Sleep(10 * time.Millisecond)
			list, _ = process.List(r.c.Lab)
		}
		r.start(t)
	}
}

type suiteRig struct{ *rig }

func (r suiteRig) Switch() switches.Switch { return r.rig.Switch }
func (r suiteRig) Ports() []string         { return r.names }

func TestSuite(t *testing.T) {
	t.Parallel()
	needSwitch(t)
	switchtest.Run(t, func(t *testing.T) switchtest.Rig { return suiteRig{newRig(t)} })
}

// A port that somebody opened behind Muster's back, with one of its two locks, does
// not count as closed, and closing it again closes it.
func TestOneLockIsNotClosed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.names[0]
	if err := r.Set(t.Context(), switches.Want{Port: p, VLAN: 4, Closed: true}); err != nil {
		t.Fatal(err)
	}
	err := r.ns.Do(func() error {
		link, err := netlink.LinkByName(p)
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(link)
	})
	if err != nil {
		t.Fatal(err)
	}
	closed := func() bool {
		ports, err := r.Ports(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return ports[0].Closed
	}
	for end := time.Now().Add(2 * time.Minute); closed(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a port whose link is on counts as closed")
		}
	}
	if err := switches.Close(t.Context(), r, p); err != nil || !closed() {
		t.Fatalf("closed again: %v", err)
	}
}

// A limit slows what comes in by a port, and is lifted.
func TestPolice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.names[0], r.names[1]
	if err := r.Set(t.Context(), switches.Want{Port: a, VLAN: 2}, switches.Want{Port: b, VLAN: 2}); err != nil {
		t.Fatal(err)
	}
	s := vswitch.Open(r.c.Dir, r.c.Lab)
	frame := append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5}, make([]byte, 1400)...)
	// pass sends 1.4 MB within a moment and counts what arrives.
	pass := func() int {
		n := 0
		buf := make([]byte, 2048)
		for range 1000 {
			if _, err := r.ends[a].Write(frame); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Microsecond)
			_ = r.ends[b].SetReadDeadline(time.Now().Add(time.Microsecond))
			for {
				if _, err := r.ends[b].Read(buf); err != nil {
					break
				}
				n++
			}
		}
		_ = r.ends[b].SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		for {
			if _, err := r.ends[b].Read(buf); err != nil {
				return n
			}
			n++
		}
	}
	free := pass()
	if err := s.Police(t.Context(), a, 1e6); err != nil {
		t.Fatal(err)
	}
	slow := pass()
	if err := s.Police(t.Context(), a, 0); err != nil {
		t.Fatal(err)
	}
	again := pass()
	if free < 900 || slow > free/4 || again < 900 {
		t.Errorf("of 1000 frames %d pass, %d with a limit, %d when it is lifted", free, slow, again)
	}
}
