package function_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/vm/function"
)

func mac(t testing.TB) net.HardwareAddr {
	t.Helper()
	m, err := net.ParseMAC("52:01:02:03:04:01")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func first(t testing.TB, f *fake) function.Function {
	t.Helper()
	c, err := f.Card(cardName)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Functions()
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	return list[0]
}

func ignore(*function.Taken) error { return nil }

// A card is found by its interface, gets functions where it has none, and no other number where it has some.
func TestCard(t *testing.T) {
	t.Parallel()
	f := newFake(t, 0)
	for _, name := range []string{"lo", "ens9", "../x", ""} {
		if c, err := f.Card(name); err == nil {
			t.Errorf("%q: %+v", name, c)
		}
	}
	c, err := f.Card(cardName)
	if err != nil || c.Address != cardAddress {
		t.Fatal(c, err)
	}
	if err := c.Enable(8); err == nil {
		t.Error("it has 7 at most")
	}
	if err := c.Enable(3); err != nil {
		t.Fatal(err)
	}
	if on := f.read("bus/pci/devices/" + cardAddress + "/sriov_drivers_autoprobe"); on != "1" {
		t.Errorf("drivers are not probed any more: %s", on)
	}
	if err := c.Enable(2); err != nil {
		t.Errorf("it has more already: %v", err)
	}
	if err := c.Enable(4); err == nil || !strings.Contains(err.Error(), "after 0") {
		t.Errorf("the number was changed: %v", err)
	}
	if up, mtu, err := c.Up(); !up || mtu != 9000 || err != nil {
		t.Error(up, mtu, err)
	}
	f.put("kernel/iommu_groups/21/devices/0000:41:00.1", "") // the second shares its group
	list, err := c.Functions()
	want := []function.Function{{Card: cardName, Index: 0, Address: functionAddress(0), Group: 20}, {Card: cardName, Index: 2, Address: functionAddress(2), Group: 22}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("%+v, %v", list, err)
	}
}

// A function is taken with its guard set before any driver has it, noted before and after, and given back clean.
func TestTakeAndGive(t *testing.T) {
	t.Parallel()
	f := newFake(t, 2)
	v := first(t, f)
	f.bind(v.Address, "igbvf")
	f.put("bus/pci/devices/"+v.Address+"/net/ens5v0/flags", "0x1002") // down
	var done []string
	f.after = func(what string) { done = append(done, what) }
	var kept *function.Taken
	note := func(n *function.Taken) error {
		kept = n
		if n != nil {
			done = append(done, fmt.Sprint("note ", n.Done))
			c := *n
			kept = &c
		}
		return nil
	}
	if err := f.Take(v, mac(t), 101, note); err != nil {
		t.Fatal(err)
	}
	dir := "bus/pci/devices/" + v.Address
	want := []string{"note false", dir + "/driver/unbind " + v.Address, "set MAC 52:01:02:03:04:01, VLAN 101, spoof check on, trust off",
		dir + "/driver_override vfio-pci", "bus/pci/drivers_probe " + v.Address, "note true"}
	if !slices.Equal(done, want) {
		t.Errorf("%q", done)
	}
	if d, err := f.DriverOf(v.Address); d != function.Driver || err != nil {
		t.Error(d, err)
	}
	var used *function.InUseError
	if err := f.Take(v, mac(t), 102, note); !errors.As(err, &used) || f.guards[0].VLAN != 101 || !kept.Done {
		t.Errorf("a function that is taken was given again: %v", err)
	}
	for range 2 { // again does no harm
		if err := f.Give(*kept); err != nil {
			t.Fatal(err)
		}
		if err := f.clean(0); err != nil {
			t.Error(err)
		}
	}
	if f.resets[0] != 2 || f.resets[1] != 0 {
		t.Errorf("resets %v", f.resets)
	}
}

// What somebody else uses, or could not be given back clean, is not taken, and not touched.
func TestNotFree(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *fake, dir string){
		"another has it":        func(f *fake, _ string) { f.bind(functionAddress(0), "vfio-pci") },
		"another reserved it":   func(f *fake, dir string) { f.put(dir+"/driver_override", "vfio-pci") },
		"the host uses it":      func(f *fake, dir string) { f.put(dir+"/net/ens5v0/flags", "0x1003") },
		"it cannot be reset":    func(f *fake, dir string) { f.must(os.Remove(f.path(dir + "/reset"))) },
		"vfio-pci is not there": func(f *fake, _ string) { f.must(os.RemoveAll(f.path("bus/pci/drivers/vfio-pci"))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, 1)
			v := first(t, f)
			change(f, "bus/pci/devices/"+v.Address)
			f.before = func(what string) { t.Errorf("changed: %s", what) }
			if err := f.Take(v, mac(t), 101, func(*function.Taken) error { t.Error("noted"); return nil }); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

// What is not as it was set is an error, and nothing is kept of the try.
func TestLies(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *fake){
		"MAC":         func(f *fake) { f.lies = func(g *function.Guard) { g.MAC = append(g.MAC[:5:5], g.MAC[5]^9) } },
		"VLAN":        func(f *fake) { f.lies = func(g *function.Guard) { g.VLAN++ } },
		"spoof check": func(f *fake) { f.lies = func(g *function.Guard) { g.SpoofCheck = false } },
		"trust":       func(f *fake) { f.lies = func(g *function.Guard) { g.Trust = true } },
		"driver":      func(f *fake) { f.refuses = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, 1)
			v := first(t, f)
			change(f)
			var kept *function.Taken
			err := f.Take(v, mac(t), 101, func(n *function.Taken) error { kept = n; return nil })
			if err == nil || f.clean(0) != nil {
				t.Errorf("%v; %v", err, f.clean(0))
			}
			if f.lies != nil && kept == nil { // it could not be read back that it is clean: somebody must look again
				t.Error("the note is gone")
			}
			if f.lies == nil && kept != nil {
				t.Errorf("%+v is noted", kept)
			}
			f = newFake(t, 1)
			v = first(t, f)
			if err := f.Take(v, mac(t), 101, func(n *function.Taken) error { kept = n; return nil }); err != nil {
				t.Fatal(err)
			}
			change(f)
			if err := f.Give(*kept); f.lies != nil && err == nil {
				t.Error("a function that does not read as clean was given back")
			}
		})
	}
	f := newFake(t, 1)
	v := first(t, f)
	var kept *function.Taken
	if err := f.Take(v, mac(t), 101, func(n *function.Taken) error { kept = n; return nil }); err != nil {
		t.Fatal(err)
	}
	f.stays = true
	if err := f.Give(*kept); err == nil {
		t.Error("vfio-pci has it still")
	}
	full := errors.New("the disk is full")
	f = newFake(t, 1)
	if err := f.Take(first(t, f), mac(t), 101, func(n *function.Taken) error {
		if n != nil {
			return full
		}
		return nil
	}); !errors.Is(err, full) || f.clean(0) != nil {
		t.Errorf("%v; %v", err, f.clean(0))
	}
}

// Wherever it is killed, what is noted then is enough to leave the function clean.
func TestKilled(t *testing.T) {
	t.Parallel()
	type killed struct{}
	survive := func(do func()) (died bool) {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(killed); !ok {
					panic(r)
				}
				died = true
			}
		}()
		do()
		return false
	}
	for at := 0; ; at++ {
		f := newFake(t, 1)
		v := first(t, f)
		n := 0
		step := func(string) {
			if n == at {
				panic(killed{})
			}
			n++
		}
		f.before, f.after = step, step
		var kept *function.Taken
		note := func(t *function.Taken) error {
			step("")
			kept = t
			if t != nil {
				c := *t
				kept = &c
			}
			step("")
			return nil
		}
		died := survive(func() {
			if err := f.Take(v, mac(t), 101, note); err != nil {
				t.Error(at, err)
			}
		})
		if !died { // it ran to its end: now the same of giving back
			died = survive(func() {
				if err := f.Give(*kept); err != nil {
					t.Error(at, err)
				}
			})
		}
		f.before, f.after = func(string) {}, func(string) {}
		if kept != nil {
			if err := f.Give(*kept); err != nil {
				t.Errorf("killed at %d, noted %+v: %v", at, kept, err)
			}
			if f.resets[0] == 0 {
				t.Errorf("killed at %d: not reset", at)
			}
		}
		if err := f.clean(0); err != nil {
			t.Errorf("killed at %d, noted %+v: %v", at, kept, err)
		}
		if !died {
			if at < 15 {
				t.Errorf("only %d places to be killed", at)
			}
			return
		}
	}
}

// What another took, after one was killed before it changed anything, stays another's.
func TestTakenByAnother(t *testing.T) {
	t.Parallel()
	f := newFake(t, 1)
	v := first(t, f)
	mine := function.Taken{Function: v, MAC: "52:09:09:09:09:01", VLAN: 109} // noted, and then nothing
	if err := f.Take(v, mac(t), 101, ignore); err != nil {
		t.Fatal(err)
	}
	if err := f.Give(mine); err != nil {
		t.Error(err)
	}
	if d, _ := f.DriverOf(v.Address); d != function.Driver || f.guards[0].VLAN != 101 || f.resets[0] != 0 {
		t.Errorf("it was taken away: driver %s, %s", d, f.guards[0])
	}
	if err := f.Give(function.Taken{Function: function.Function{Card: cardName, Address: "0000:41:10.7"}, Done: true}); err != nil {
		t.Errorf("a function that is not there any more: %v", err)
	}
}
