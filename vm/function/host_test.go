package function_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/vm/function"
)

// Addresses of the host's card and of its functions, as Linux numbers those of an igb.
const (
	cardAddress = "0000:41:00.0"
	cardName    = "ens5"
)

func functionAddress(i int) string { return fmt.Sprintf("0000:41:10.%d", 2*i) }

// fake is a host with one card, that does what Linux does when its files are written, and what an igb does when its
// functions are set. before and after are called around each change.
type fake struct {
	function.Host
	t             testing.TB
	guards        []function.Guard
	resets        []int
	before, after func(what string)
	// lies changes what is read back of a function.
	lies func(g *function.Guard)
	// stays: a driver that does not let go; refuses: vfio-pci takes nothing.
	stays, refuses bool
}

func newFake(t testing.TB, functions int) *fake {
	t.Helper()
	f := &fake{t: t, before: func(string) {}, after: func(string) {}}
	f.Dir = t.TempDir()
	f.Host.Write = f.write
	f.Host.Open = func(name string) (function.Settings, error) {
		if name != cardName {
			return nil, fmt.Errorf("no card %s", name)
		}
		return f, nil
	}
	for path, text := range map[string]string{
		"class/net/ens5/flags": "0x1003", "class/net/ens5/mtu": "9000", "class/net/lo/flags": "0x9", "bus/pci/drivers_probe": "", "bus/pci/drivers/vfio-pci/unbind": "", "bus/pci/drivers/igbvf/unbind": "",
		"bus/pci/devices/" + cardAddress + "/sriov_totalvfs": "7", "bus/pci/devices/" + cardAddress + "/sriov_numvfs": "0", "bus/pci/devices/" + cardAddress + "/sriov_drivers_autoprobe": "1",
	} {
		f.put(path, text)
	}
	f.link("class/net/ens5/device", "../../../bus/pci/devices/"+cardAddress)
	f.make(functions)
	return f
}

func (f *fake) must(err error) {
	if err != nil {
		f.t.Helper()
		f.t.Fatal(err)
	}
}

func (f *fake) path(name string) string { return filepath.Join(f.Dir, name) }

func (f *fake) put(name, text string) {
	f.must(os.MkdirAll(filepath.Dir(f.path(name)), 0o755))
	f.must(os.WriteFile(f.path(name), []byte(text+"\n"), 0o644))
}

func (f *fake) link(name, to string) {
	f.must(os.MkdirAll(filepath.Dir(f.path(name)), 0o755))
	_ = os.Remove(f.path(name))
	f.must(os.Symlink(to, f.path(name)))
}

func (f *fake) read(name string) string {
	b, err := os.ReadFile(f.path(name))
	f.must(err)
	return strings.TrimSpace(string(b))
}

// make makes functions, each in a group of its own.
func (f *fake) make(n int) {
	for i := range n {
		a := functionAddress(i)
		dir := "bus/pci/devices/" + a
		f.put(dir+"/driver_override", "(null)")
		f.put(dir+"/reset", "")
		f.put(fmt.Sprintf("kernel/iommu_groups/%d/devices/%s", 20+i, a), "")
		f.link(dir+"/iommu_group", fmt.Sprintf("../../../../kernel/iommu_groups/%d", 20+i))
		f.link("bus/pci/devices/"+cardAddress+"/virtfn"+strconv.Itoa(i), "../"+a)
		f.guards = append(f.guards, function.Guard{MAC: make(net.HardwareAddr, 6), SpoofCheck: true})
		f.resets = append(f.resets, 0)
	}
	f.put("bus/pci/devices/"+cardAddress+"/sriov_numvfs", strconv.Itoa(n))
}

func (f *fake) bind(address, driver string) {
	f.link("bus/pci/devices/"+address+"/driver", "../../drivers/"+driver)
}

func (f *fake) index(address string) int {
	for i := range f.guards {
		if functionAddress(i) == address {
			return i
		}
	}
	f.t.Fatalf("there is no function %q", address)
	return 0
}

func (f *fake) write(path, text string) error {
	name, err := filepath.Rel(f.Dir, path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	what := name + " " + text
	f.before(what)
	defer f.after(what)
	device := filepath.Base(filepath.Dir(name))
	switch filepath.Base(name) {
	case "sriov_numvfs":
		if f.read(name) != "0" && text != "0" {
			return fmt.Errorf("write %s: device or resource busy", name)
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		if f.read(filepath.Dir(name)+"/sriov_drivers_autoprobe") != "0" {
			f.t.Error("a driver of the host takes the functions")
		}
		f.make(n)
	case "driver_override":
		if text == "" {
			text = "(null)"
		}
		f.put(name, text)
	case "drivers_probe":
		driver := f.read("bus/pci/devices/" + text + "/driver_override")
		if driver != "(null)" && !f.refuses {
			f.bind(text, driver)
		}
	case "unbind":
		if !f.stays {
			f.must(os.Remove(f.path("bus/pci/devices/" + text + "/driver")))
		}
	case "reset":
		f.resets[f.index(device)]++
	default:
		f.put(name, text)
	}
	return nil
}

func (f *fake) Set(i int, g function.Guard) error {
	f.before("set " + g.String())
	f.guards[i] = g
	f.after("set " + g.String())
	return nil
}

func (f *fake) Get(i int) (function.Guard, error) {
	g := f.guards[i]
	if f.lies != nil {
		f.lies(&g)
	}
	return g, nil
}

// clean reports what is wrong with a function that nobody has.
func (f *fake) clean(i int) error {
	dir := "bus/pci/devices/" + functionAddress(i)
	if to, err := os.Readlink(f.path(dir + "/driver")); err == nil {
		return fmt.Errorf("it has the driver %s", to)
	}
	if o := f.read(dir + "/driver_override"); o != "(null)" {
		return fmt.Errorf("it is reserved for %s", o)
	}
	if g := f.guards[i]; g.MAC.String() != "00:00:00:00:00:00" || g.VLAN != 0 || g.Trust {
		return fmt.Errorf("it has %s", g)
	}
	return nil
}
