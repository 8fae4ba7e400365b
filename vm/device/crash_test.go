package device_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster/vm/device"
)

type killed struct{}

// survives reports whether nobody was killed in it.
func survives(do func()) (alive bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			alive = false
		}
	}()
	do()
	return true
}

// Wherever it is killed, what is noted then is enough to leave the devices clean, and nobody erases what is not noted.
func TestKilled(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	list := f.checked(diskAt, gpuAt, soundAt)
	for at := 0; ; at++ { // each begins with the host as it was
		f.erased = nil
		n, steps := &notes{}, 0
		step := func(string) {
			if steps == at {
				panic(killed{})
			}
			steps++
		}
		f.before, f.after = step, step
		keep := func(l []device.Held) error {
			step("")
			err := n.keep(l)
			step("")
			return err
		}
		alive := survives(func() {
			if err := f.Take(t.Context(), list, nil, keep); err != nil {
				t.Error(at, err)
			}
			if f.media[diskAt].holds = ""; f.driver(diskAt) == "vfio-pci" {
				f.media[diskAt].holds = "the tenant's"
			}
			if err := n.clean(f); err != nil {
				t.Error(at, err)
			}
			for _, d := range n.held {
				if err := f.Release(d); err != nil {
					t.Error(at, err)
				}
			}
		})
		f.before, f.after = func(string) {}, func(string) {}
		if len(n.held) == 0 && len(f.erased) > 0 {
			t.Errorf("killed at %d: erased %v, which is not noted", at, f.erased)
		}
		if err := n.clean(f); err != nil {
			t.Errorf("killed at %d, noted %+v: %v", at, n.held, err)
		}
		for _, d := range n.held {
			if err := f.Release(d); err != nil {
				t.Errorf("killed at %d: %v", at, err)
			}
		}
		for address, driver := range f.natural {
			if f.driver(address) != driver || f.read("bus/pci/devices/"+address+"/driver_override") != "(null)" {
				t.Errorf("killed at %d: %s has the driver %q", at, address, f.driver(address))
			}
		}
		if m := f.media[diskAt]; m.holds != "" {
			t.Errorf("killed at %d: the disk holds what is %s", at, m.holds)
		}
		if alive {
			if at < 60 {
				t.Errorf("only %d places to be killed", at)
			}
			return
		}
	}
}

// Whatever happens in whatever order, a disk that counts as clean is empty, one that nobody noted is never erased, and the
// host's own is left alone.
func TestOrders(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	list := f.checked(diskAt)
	rapid.Check(t, func(r *rapid.T) {
		f.boot()
		f.media[diskAt], f.erased = &medium{serial: "TENANT-1", firmware: "1.0"}, nil
		n := &notes{}
		runs := false
		kill := func(do func()) {
			left := rapid.IntRange(0, 40).Draw(r, "until it is killed")
			f.before = func(string) {
				if left--; left < 0 {
					panic(killed{})
				}
			}
			survives(do)
			f.before = func(string) {}
		}
		noted := func() bool {
			return slices.ContainsFunc(n.held, func(d device.Held) bool { return d.Address == diskAt && !d.Clean })
		}
		r.Repeat(map[string]func(*rapid.T){
			"take": func(*rapid.T) {
				if runs || noted() {
					return
				}
				kill(func() { runs = f.Take(t.Context(), list, n.held, n.keep) == nil })
			},
			"write": func(*rapid.T) {
				if runs {
					f.media[diskAt].holds = "the tenant's"
				}
			},
			"end": func(*rapid.T) {
				runs = false
				kill(func() { _ = n.clean(f) })
			},
			"boot": func(*rapid.T) { runs = false; f.boot() },
			"exchange": func(*rapid.T) {
				if !runs {
					f.media[diskAt] = &medium{serial: "NEW" + rapid.StringMatching("[0-9]{3}").Draw(r, "serial"), firmware: "1.0", holds: rapid.SampledFrom([]string{"", "the site's"}).Draw(r, "holds")}
					if f.driver(diskAt) != "" {
						f.unbind(diskAt)
						f.bind(diskAt, "nvme")
					}
				}
			},
			"": func(r *rapid.T) {
				m := f.media[diskAt]
				if m.holds == "the tenant's" && !noted() {
					r.Fatalf("it counts as clean: %+v", n.held)
				}
				if f.media[otherAt].holds == "" {
					r.Fatal("the host's disk is empty")
				}
				for _, serial := range f.erased {
					if serial == "SYSTEM" {
						r.Fatal("the host's disk was erased")
					}
				}
			},
		})
	})
}
