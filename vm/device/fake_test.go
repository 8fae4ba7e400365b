package device_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/device"
	"github.com/muster-hpc/muster/vm/pci"
)

// Addresses of the host's devices: a disk alone in its group, and a graphics processor with its sound in one group,
// behind a bridge that is in it, too.
const (
	diskAt   = "0000:41:00.0"
	gpuAt    = "0000:c1:00.0"
	soundAt  = "0000:c1:00.1"
	bridgeAt = "0000:c0:01.0"
	otherAt  = "0000:01:00.0" // the disk of the host's system
)

// medium is what is in a disk: nobody's, or somebody's.
type medium struct {
	serial, firmware string
	holds            string
	hidden           bool // it has a namespace that is not attached
	broken           bool
}

// fake is a host that does what Linux does when its files are written. before and after are called around each change.
type fake struct {
	device.Host
	t             testing.TB
	media         map[string]*medium // by the address of their controller
	natural       map[string]string  // the driver of the host for each device
	resets        map[string]int
	groups        map[string]int
	erased        []string // serial numbers
	before, after func(what string)
	stays         bool // drivers do not let go
}

func newFake(t testing.TB) *fake {
	t.Helper()
	f := &fake{t: t, media: map[string]*medium{}, natural: map[string]string{}, resets: map[string]int{}, groups: map[string]int{}, before: func(string) {}, after: func(string) {}}
	root, err := os.MkdirTemp("/dev/shm", "muster-device-") // its files are written thousands of times
	if err != nil {
		root = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	f.Dir, f.Proc, f.Dev, f.Rules = filepath.Join(root, "sys"), filepath.Join(root, "proc"), filepath.Join(root, "dev"), filepath.Join(root, "run/udev/rules.d")
	f.Host.Write, f.Disks, f.Addresses, f.Identify = f.write, f, func(string) (int, error) { return 0, nil }, f.identify
	f.must(os.MkdirAll(filepath.Dir(f.Rules), 0o755))
	f.must(os.MkdirAll(filepath.Join(f.Proc, "self"), 0o755))
	f.must(os.WriteFile(filepath.Join(f.Proc, "self/mountinfo"), []byte("21 1 259:1 / / rw - ext4 /dev/root rw\n"), 0o644))
	f.must(os.WriteFile(filepath.Join(f.Proc, "swaps"), []byte("Filename Type Size Used Priority\n"), 0o644))
	for _, name := range []string{"vfio-pci", "nvme", "nouveau", "snd_hda_intel", "pcieport"} {
		f.put("bus/pci/drivers/"+name+"/unbind", "")
	}
	f.put("bus/pci/drivers_probe", "")
	f.device(bridgeAt, "0x060400", 7, "pcieport")
	f.device(gpuAt, "0x030200", 7, "nouveau")
	f.device(soundAt, "0x040300", 7, "snd_hda_intel")
	f.disk(diskAt, 5, "TENANT-1")
	f.disk(otherAt, 3, "SYSTEM")
	f.media[otherAt].holds = "the site"
	f.block("nvme3n1", "259:1")
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
	if err := os.WriteFile(f.path(name), []byte(text+"\n"), 0o644); err == nil {
		return
	}
	f.must(os.MkdirAll(filepath.Dir(f.path(name)), 0o755))
	f.must(os.WriteFile(f.path(name), []byte(text+"\n"), 0o644))
}

func (f *fake) link(name, to string) {
	f.must(os.MkdirAll(filepath.Dir(f.path(name)), 0o755))
	_ = os.Remove(f.path(name))
	f.must(os.Symlink(to, f.path(name)))
}

func (f *fake) read(name string) string {
	s, err := pci.Text(f.path(name))
	f.must(err)
	return s
}

func at(address string, names ...string) string {
	return strings.Join(append([]string{"bus/pci/devices", address}, names...), "/")
}

func (f *fake) device(address, class string, group int, driver string) {
	for name, text := range map[string]string{"vendor": "0x10de", "device": "0x2330", "subsystem_vendor": "0x10de", "subsystem_device": "0x16c1", "class": class, "driver_override": "(null)", "reset": ""} {
		f.put(at(address, name), text)
	}
	f.put(fmt.Sprintf("kernel/iommu_groups/%d/devices/%s", group, address), "")
	f.link(at(address, "iommu_group"), fmt.Sprintf("../../../../kernel/iommu_groups/%d", group))
	f.natural[address], f.groups[address] = driver, group
	f.bind(address, driver)
}

func (f *fake) disk(address string, group int, serial string) {
	f.media[address] = &medium{serial: serial, firmware: "1.0"}
	f.device(address, "0x010802", group, "nvme")
}

// block is what the kernel has of a disk when its driver has it.
func (f *fake) block(name, dev string) {
	for file, text := range map[string]string{"dev": dev, "size": "2048", "nsid": "1", "queue/logical_block_size": "512"} {
		f.put("class/block/"+name+"/"+file, text)
	}
}

// number is the one that the kernel gives a disk: of its group, so that a test knows it.
func (f *fake) number(address string) string { return strconv.Itoa(f.groups[address]) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (f *fake) bind(address, driver string) {
	f.link(at(address, "driver"), "../../drivers/"+driver)
	if m := f.media[address]; m != nil && driver == "nvme" {
		name := "nvme" + f.number(address)
		f.put(at(address, "nvme", name, name+"n1", "x"), "")
		f.put(at(address, "nvme", name, "hwmon1", "x"), "")
		if address != otherAt {
			f.block(name+"n1", "259:"+f.number(address))
		}
	}
}

func (f *fake) unbind(address string) {
	f.must(os.Remove(f.path(at(address, "driver"))))
	if f.media[address] != nil {
		f.must(os.RemoveAll(f.path(at(address, "nvme"))))
		f.must(os.RemoveAll(f.path("class/block/nvme" + f.number(address) + "n1")))
	}
}

// boot starts the host anew: its drivers have the devices, and nothing is reserved.
func (f *fake) boot() {
	for address, driver := range f.natural {
		if f.driver(address) == driver && f.read(at(address, "driver_override")) == "(null)" {
			continue
		}
		if f.driver(address) != "" {
			f.unbind(address)
		}
		f.put(at(address, "driver_override"), "(null)")
		f.bind(address, driver)
	}
	f.must(os.RemoveAll(f.Rules))
}

func (f *fake) driver(address string) string { return must(f.DriverOf(address)) }

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
	address := filepath.Base(filepath.Dir(name))
	switch filepath.Base(name) {
	case "driver_override":
		if text == "" {
			text = "(null)"
		}
		f.put(name, text)
	case "drivers_probe":
		driver := f.read(at(text, "driver_override"))
		if driver == "(null)" {
			driver = f.natural[text]
		}
		if f.driver(text) == "" {
			f.bind(text, driver)
		}
	case "unbind":
		if !f.stays {
			f.unbind(text)
		}
	case "reset":
		if f.driver(address) != "" {
			f.t.Errorf("%s is reset while %s has it", address, f.driver(address))
		}
		f.resets[address]++
	default:
		f.put(name, text)
	}
	return nil
}

func (f *fake) medium(path string) (*medium, string) {
	for address, m := range f.media {
		if name := filepath.Join(f.Dev, "nvme"+f.number(address)); path == name || path == name+"n1" {
			if f.driver(address) != "nvme" {
				f.t.Errorf("%s is opened, and its driver is %q", path, f.driver(address))
			}
			return m, address
		}
	}
	f.t.Fatalf("there is no %s", path)
	return nil, ""
}

func (f *fake) identify(path string, cns uint8) ([]byte, error) {
	m, _ := f.medium(path)
	b := make([]byte, 4096)
	if cns == 0x10 {
		binary.LittleEndian.PutUint32(b, 1)
		if m.hidden {
			binary.LittleEndian.PutUint32(b[4:], 9)
		}
		return b, nil
	}
	copy(b[4:24], fmt.Sprintf("%-20s", m.serial))
	copy(b[24:64], fmt.Sprintf("%-40s", "a disk"))
	copy(b[64:72], fmt.Sprintf("%-8s", m.firmware))
	b[256] = 1 << 3
	return b, nil
}

func (f *fake) Empty(_ context.Context, path string, size int64) error {
	if m, _ := f.medium(path); m.holds != "" || size != 1<<20 {
		return fmt.Errorf("it holds what is %s", m.holds)
	}
	return nil
}

func (f *fake) Erase(_ context.Context, path string, size int64) (string, error) {
	m, address := f.medium(path)
	f.before("erase " + path)
	defer f.after("erase " + path)
	if m.broken || size != 1<<20 {
		return "", errors.New("byte 7 is not zero after zeroes were written")
	}
	if address == otherAt {
		f.t.Fatal("the disk of the host's system was erased")
	}
	m.holds = ""
	f.erased = append(f.erased, m.serial)
	return "all 1048576 bytes read back, all zero", nil
}

func (f *fake) site() device.Site {
	return device.Site{VM: muster.VMHost{IOMMU: true, Remapping: true}}
}

// checked are devices without a fault.
func (f *fake) checked(addresses ...string) []device.Device {
	f.t.Helper()
	list, problems := f.Check(f.t.Context(), addresses, f.site())
	if len(problems) > 0 {
		f.t.Fatal(problems)
	}
	return list
}

// ready reports what is wrong with a device that stands ready for the next.
func (f *fake) ready(address string) error {
	if d := f.driver(address); d != "" {
		return fmt.Errorf("it has the driver %s", d)
	}
	if o := f.read(at(address, "driver_override")); o != "(null)" {
		return fmt.Errorf("it is reserved for %s", o)
	}
	if f.resets[address] == 0 {
		return errors.New("it was not reset")
	}
	if m := f.media[address]; m != nil && m.holds != "" {
		return fmt.Errorf("it holds what is %s", m.holds)
	}
	return nil
}
