package device_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/device"
)

// Everything that is wrong is said, at once, each with what to do.
func TestCheck(t *testing.T) {
	t.Parallel()
	good := newFake(t)
	list := good.checked(diskAt, soundAt, gpuAt)
	want := "[{0000:41:00.0 10de:2330:10de:16c1:010802 5 true} {0000:c1:00.1 10de:2330:10de:16c1:040300 7 false} {0000:c1:00.0 10de:2330:10de:16c1:030200 7 false}]"
	if fmt.Sprint(list) != want {
		t.Errorf("%v", list)
	}
	for says, c := range map[string]struct {
		change func(*fake, *device.Site)
		give   []string
	}{
		"no such device":          {nil, []string{"0000:99:00.0"}},
		"a bridge":                {nil, []string{bridgeAt, gpuAt, soundAt}},
		"given twice":             {nil, []string{diskAt, diskAt}},
		"vf-group: .*c1:00.1":     {nil, []string{gpuAt}},
		"mounted at /":            {nil, []string{otherAt}},
		"nvme5n1 is not empty":    {func(f *fake, _ *device.Site) { f.media[diskAt].holds = "the site's" }, nil},
		"namespace 9 is not atta": {func(f *fake, _ *device.Site) { f.media[diskAt].hidden = true }, nil},
		"no serial number":        {func(f *fake, _ *device.Site) { f.media[diskAt].serial = "" }, nil},
		"nvme5n1 is swap":         {func(f *fake, _ *device.Site) { f.swap("/dev/nvme5n1") }, nil},
		"nvme5n1p1 is part of md": {func(f *fake, _ *device.Site) {
			f.put("class/block/nvme5n1/nvme5n1p1/x", "")
			f.put("class/block/nvme5n1p1/dev", "259:9")
			f.put("class/block/nvme5n1p1/holders/md0/x", "")
		}, nil},
		"part of dm-0":        {func(f *fake, _ *device.Site) { f.put("class/block/nvme5n1/holders/dm-0/x", "") }, nil},
		"interface ib0 is up": {func(f *fake, _ *device.Site) { f.put(at(diskAt, "net/ib0/flags"), "0x1003") }, nil},
		"ib0 has addresses": {func(f *fake, _ *device.Site) {
			f.put(at(diskAt, "net/ib0/flags"), "0x1002")
			f.Addresses = func(name string) (int, error) { return map[string]int{"ib0": 1}[name], nil }
		}, nil},
		"ib0 is part of bond0": {func(f *fake, _ *device.Site) {
			f.put(at(diskAt, "net/ib0/flags"), "0x1002")
			f.link(at(diskAt, "net/ib0/master"), "../../bond0")
		}, nil},
		"4 virtual functions":  {func(f *fake, _ *device.Site) { f.put(at(diskAt, "sriov_numvfs"), "4") }, nil},
		"the card of --vm-car": {func(f *fake, s *device.Site) { s.Card = diskAt }, nil},
		"is a virtual functio": {func(f *fake, _ *device.Site) { f.link(at(diskAt, "physfn"), "../"+otherAt) }, nil},
		"graphics card":        {func(f *fake, _ *device.Site) { f.put(at(diskAt, "boot_vga"), "1") }, nil},
		"cannot be reset":      {func(f *fake, _ *device.Site) { f.must(os.Remove(f.path(at(diskAt, "reset")))) }, nil},
		"uses no IOMMU":        {func(_ *fake, s *device.Site) { s.VM.IOMMU = false }, nil},
		"do not pass the IOMM": {func(_ *fake, s *device.Site) { s.VM.Remapping = false }, nil},
		"no IOMMU group":       {func(f *fake, _ *device.Site) { f.must(os.Remove(f.path(at(diskAt, "iommu_group")))) }, nil},
		"driver vfio-pci":      {func(f *fake, _ *device.Site) { f.must(os.RemoveAll(f.path("bus/pci/drivers/vfio-pci"))) }, nil},
		"is no NVMe":           {func(f *fake, _ *device.Site) { f.put(at(diskAt, "class"), "0x010601") }, nil},
		"it has no driver":     {func(f *fake, _ *device.Site) { f.unbind(diskAt) }, nil},
		`driver is "vfio-pci"`: {func(f *fake, _ *device.Site) { f.bind(gpuAt, "vfio-pci") }, []string{gpuAt, soundAt}},
		`driver is "uio"`:      {func(f *fake, _ *device.Site) { f.bind(diskAt, "uio") }, nil},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			s := f.site()
			if c.change != nil {
				c.change(f, &s)
			}
			give := c.give
			if give == nil {
				give = []string{diskAt}
			}
			f.before = func(what string) { t.Errorf("changed: %s", what) }
			list, problems := f.Check(t.Context(), give, s)
			found := slices.ContainsFunc(problems, func(p device.Problem) bool { return match(says, p.Text) && p.Cure != "" })
			if !found || list != nil {
				t.Errorf("%v, %+v", list, problems)
			}
		})
	}
	f := newFake(t)
	f.media[diskAt].holds = "the site's"
	f.put(at(diskAt, "boot_vga"), "1")
	if _, problems := f.Check(t.Context(), []string{diskAt, gpuAt, "x"}, device.Site{}); len(problems) < 4 {
		t.Errorf("%+v", problems)
	}
	if list, problems := newFake(t).Check(t.Context(), nil, device.Site{}); list != nil || problems != nil {
		t.Error("without a device nothing is asked of a host", list, problems)
	}
}

func match(pattern, text string) bool {
	for part := range strings.SplitSeq(pattern, ".*") {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}

func (f *fake) swap(path string) {
	f.must(os.WriteFile(filepath.Join(f.Proc, "swaps"), []byte("Filename Type Size Used Priority\n"+path+" partition 1 0 -2\n"), 0o644))
}

// notes keeps what it is given.
type notes struct{ held []device.Held }

func (n *notes) keep(list []device.Held) error { n.held = slices.Clone(list); return nil }

// clean gives back and cleans what is noted, as a provider does.
func (n *notes) clean(f *fake) error {
	for i := range n.held {
		if n.held[i].Clean {
			continue
		}
		if err := f.Give(n.held[i]); err != nil {
			return err
		}
		if _, err := f.Host.Clean(f.t.Context(), n.held[i]); err != nil {
			return err
		}
		list := slices.Clone(n.held)
		list[i].Clean = true
		if err := n.keep(list); err != nil {
			return err
		}
	}
	return nil
}

// Devices are taken with all of their group, noted before anything is changed; given back they are reset, a disk is erased,
// and all stand ready without a driver until they are released.
func TestTakeAndGive(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	list := f.checked(diskAt, gpuAt, soundAt)
	var done []string
	f.after = func(what string) { done = append(done, what) }
	n := &notes{}
	keep := func(l []device.Held) error { done = append(done, "note"); return n.keep(l) }
	if err := f.Take(t.Context(), list, nil, keep); err != nil {
		t.Fatal(err)
	}
	var want []string
	want = append(want, "note")
	for _, a := range []string{diskAt, gpuAt, soundAt} {
		want = append(want, at(a, "driver/unbind")+" "+a, at(a, "driver_override")+" vfio-pci", "bus/pci/drivers_probe "+a)
		if f.driver(a) != "vfio-pci" {
			t.Errorf("%s has the driver %s", a, f.driver(a))
		}
	}
	if !slices.Equal(done, want) {
		t.Errorf("%q", done)
	}
	rule, err := os.ReadFile(filepath.Join(f.Rules, "10-muster-"+diskAt+".rules"))
	if err != nil || !strings.Contains(string(rule), `KERNELS=="`+diskAt+`"`) {
		t.Errorf("%v: %s", err, rule)
	}
	if err := f.Take(t.Context(), list, nil, func([]device.Held) error { t.Error("noted"); return nil }); err == nil {
		t.Error("devices that are taken were given again")
	}
	if f.driver(bridgeAt) != "pcieport" {
		t.Error("the bridge was taken")
	}
	f.media[diskAt].holds = "the tenant's"
	for range 2 {
		if err := n.clean(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range []string{diskAt, gpuAt, soundAt} {
		if err := f.ready(a); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
	if !slices.Equal(f.erased, []string{"TENANT-1"}) {
		t.Errorf("erased: %v", f.erased)
	}
	if err := f.Take(t.Context(), list, n.held, n.keep); err != nil { // the next
		t.Fatal(err)
	}
	if err := n.clean(f); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, d := range n.held {
			if err := f.Release(d); err != nil {
				t.Error(err)
			}
			if f.driver(d.Address) != f.natural[d.Address] || f.read(at(d.Address, "driver_override")) != "(null)" {
				t.Errorf("%s has the driver %q, override %s", d.Address, f.driver(d.Address), f.read(at(d.Address, "driver_override")))
			}
		}
	}
	if left, _ := os.ReadDir(f.Rules); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// What is not proven is not clean, and what is another disk is not erased.
func TestNotClean(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fake){
		"another disk":        func(f *fake) { f.media[diskAt].serial = "OTHER" },
		"other firmware":      func(f *fake) { f.media[diskAt].firmware = "6.66" },
		"a hidden namespace":  func(f *fake) { f.media[diskAt].hidden = true },
		"it cannot be erased": func(f *fake) { f.media[diskAt].broken = true },
		"another device":      func(f *fake) { f.put(at(diskAt, "device"), "0x1111") },
		"it is gone":          func(f *fake) { f.must(os.RemoveAll(f.path(at(diskAt)))) },
		"vfio-pci keeps it":   func(f *fake) { f.stays = true },
		"the host uses it":    func(f *fake) { f.boot(); f.swap("/dev/nvme5n1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			n := &notes{}
			if err := f.Take(t.Context(), f.checked(diskAt), nil, n.keep); err != nil {
				t.Fatal(err)
			}
			f.media[diskAt].holds = "the tenant's"
			change(f)
			err := n.clean(f)
			if err == nil || n.held[0].Clean || len(f.erased) > 0 || f.media[diskAt].holds == "" {
				t.Errorf("%v; %+v; erased %v", err, n.held, f.erased)
			}
			if err := f.Release(n.held[0]); err == nil {
				t.Error("what is not clean was given to the host")
			}
			if _, problems := f.Check(t.Context(), []string{diskAt}, device.Site{VM: muster.VMHost{IOMMU: true, Remapping: true}, Held: n.held}); name == "another device" && len(problems) == 0 {
				t.Error("another device is there, and nobody says so")
			}
		})
	}
}

// A disk that a tenant had when the host was switched off is erased after its start.
func TestHostStarted(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	n := &notes{}
	list := f.checked(diskAt, gpuAt, soundAt)
	if err := f.Take(t.Context(), list, nil, n.keep); err != nil {
		t.Fatal(err)
	}
	f.media[diskAt].holds = "the tenant's"
	f.boot()
	s := f.site()
	if s.Held = n.held; len(s.Held) != 3 {
		t.Fatal(s.Held)
	}
	if _, problems := f.Check(t.Context(), []string{diskAt, gpuAt, soundAt}, s); len(problems) > 0 {
		t.Error(problems)
	}
	if err := n.clean(f); err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{diskAt, gpuAt, soundAt} {
		if err := f.ready(a); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
	f.boot() // while it stands ready
	f.media[diskAt].holds = "the site's, since"
	if err := f.Take(t.Context(), list, n.held, n.keep); err == nil {
		t.Error("what the site wrote since was given away")
	}
	f.media[diskAt].holds = ""
	f.media[diskAt].serial = "EXCHANGED"
	if err := f.Take(t.Context(), list, n.held, n.keep); err != nil {
		t.Error(err)
	}
	f.media[diskAt].holds = "the tenant's"
	if err := n.clean(f); err != nil || !slices.Equal(f.erased, []string{"TENANT-1", "EXCHANGED"}) {
		t.Error(err, f.erased)
	}
}
