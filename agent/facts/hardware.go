package facts

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// firmware fills in what the machine's firmware says.
func (s Source) firmware(f *muster.Facts) {
	t := parseSMBIOS(s.file("sys/firmware/dmi/tables/DMI"))
	id := func(name string) string { return filled(s.text("sys/class/dmi/id/" + name)) }
	f.Vendor, f.Product = cmp.Or(t.maker, id("sys_vendor")), cmp.Or(t.product, id("product_name"))
	f.UUID = cmp.Or(t.uuid, strings.ToLower(id("product_uuid")))
	f.Firmware = cmp.Or(t.firmware, id("bios_version"))
	f.DIMMs = t.dimms
	switch {
	case exists(s.path("sys/firmware/efi")):
		f.BootMode = muster.BootModeUEFI
	case exists(s.path("sys/firmware/dmi")): // x86, which has no third way
		f.BootMode = muster.BootModeBIOS
	}
	if f.Serial == "" {
		f.Serial = t.serial
	}
}

// caches counts the caches of the processors, each of which is shown with every
// processor that shares it.
func (s Source) caches(cpus []int) []muster.CacheKind {
	type key struct {
		level int
		kind  string
		size  int64
	}
	seen, count := map[string]bool{}, map[key]int{}
	for _, c := range cpus {
		at := "sys/devices/system/cpu/cpu" + strconv.Itoa(c) + "/cache"
		dirs, err := filepath.Glob(s.path(at + "/index[0-9]*"))
		if err != nil {
			continue
		}
		for _, d := range dirs {
			rel := at + "/" + filepath.Base(d) + "/"
			k := key{int(s.number(rel + "level")), strings.ToLower(s.text(rel + "type")), kib(s.text(rel + "size"))}
			whole := fmt.Sprint(k, s.text(rel+"shared_cpu_list"))
			if k.level < 1 || k.level > 9 || k.size <= 0 || seen[whole] {
				continue
			}
			seen[whole] = true
			count[k]++
		}
	}
	var out []muster.CacheKind
	for k, n := range count {
		out = append(out, muster.CacheKind{Level: k.level, Kind: k.kind, Size: k.size, Count: n})
	}
	slices.SortFunc(out, func(a, b muster.CacheKind) int {
		return cmp.Or(a.Level-b.Level, strings.Compare(a.Kind, b.Kind), cmp.Compare(a.Size, b.Size))
	})
	return out
}

// kib reads a size as the kernel writes it: 32K, 16384K, 8M.
func kib(s string) int64 {
	unit := int64(1)
	switch {
	case strings.HasSuffix(s, "K"):
		unit = 1 << 10
	case strings.HasSuffix(s, "M"):
		unit = 1 << 20
	}
	n, err := strconv.ParseInt(strings.TrimRight(s, "KM"), 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return n * unit
}

// Disks lists what has a device behind it and stays when a hand is taken away.
func (s Source) Disks() []muster.Disk {
	dirs, err := os.ReadDir(s.path("sys/block"))
	if err != nil {
		return nil
	}
	var out []muster.Disk
	for _, d := range dirs {
		at := "sys/block/" + d.Name() + "/"
		size := s.number(at+"size") * 512
		// What is hidden is a way to a disk that is shown with all its ways.
		if !exists(s.path(at+"device")) || s.text(at+"removable") == "1" || s.text(at+"hidden") == "1" || size <= 0 || strings.HasPrefix(d.Name(), "sr") {
			continue
		}
		k := muster.Disk{
			Name: d.Name(), Size: size, Model: filled(s.text(at + "device/model")),
			Serial: filled(cmp.Or(s.text(at+"device/serial"), s.text(at+"serial"), pageSerial(s.file(at+"device/vpd_pg80")))),
			NUMA:   s.near(at + "device/numa_node"), ReadOnly: s.text(at+"ro") == "1",
		}
		if k.NUMA == nil {
			k.NUMA = s.near(at + "device/device/numa_node")
		}
		switch {
		case strings.HasPrefix(d.Name(), "nvme"):
			k.Kind = "nvme"
		case strings.HasPrefix(d.Name(), "vd") || strings.HasPrefix(d.Name(), "xvd"):
			k.Kind = "virtual"
		case s.text(at+"queue/rotational") == "0":
			k.Kind = "ssd"
		default:
			k.Kind = "disk"
		}
		out = append(out, k)
	}
	return out
}

// pageSerial reads the vital product data page of serial numbers (SPC-4 7.8.14).
func pageSerial(b []byte) string {
	if len(b) < 4 || b[1] != 0x80 {
		return ""
	}
	n := int(b[2])<<8 | int(b[3])
	return string(b[4:min(len(b), 4+n)])
}

// near reads the memory node that a device is near to; nil: none in particular.
func (s Source) near(name string) *int {
	n, err := strconv.Atoi(s.text(name))
	if err != nil || n < 0 || n > 1<<16 {
		return nil
	}
	return &n
}

// Classes of PCI devices: PCI Code and ID Assignment Specification.
const (
	classVGA         = "0x0300"
	class3D          = "0x0302"
	classDisplay     = "0x0380"
	classProcessing  = "0x1200"
	classCoprocessor = "0x0b40"
)

// NVIDIA's number as a vendor of PCI devices.
const vendorNVIDIA = "0x10de"

// accelerators counts the devices that compute beside the processor, by maker and
// model. A plain graphics card (class 0x0300) is none, as management controllers have one,
// but of NVIDIA, whose cards for workstations compute as others do.
func (s Source) accelerators() []muster.Device {
	dirs, err := os.ReadDir(s.path("sys/bus/pci/devices"))
	if err != nil {
		return nil
	}
	count := map[muster.Device]int{}
	for _, d := range dirs {
		at := "sys/bus/pci/devices/" + d.Name() + "/"
		class := s.text(at + "class")
		kind := "gpu"
		switch {
		case strings.HasPrefix(class, class3D), strings.HasPrefix(class, classDisplay):
		case strings.HasPrefix(class, classVGA) && s.text(at+"vendor") == vendorNVIDIA:
		case strings.HasPrefix(class, classProcessing), strings.HasPrefix(class, classCoprocessor):
			kind = "accelerator"
		default:
			continue
		}
		model := strings.TrimPrefix(s.text(at+"vendor"), "0x") + ":" + strings.TrimPrefix(s.text(at+"device"), "0x")
		if len(model) <= 16 {
			count[muster.Device{Kind: kind, Model: model}]++
		}
	}
	var out []muster.Device
	for d, n := range count {
		d.Count = n
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b muster.Device) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Model, b.Model))
	})
	return out
}

// tpm reports whether the kernel found a TPM of version 2.
func (s Source) tpm() bool { return s.text("sys/class/tpm/tpm0/tpm_version_major") == "2" }

// Available is how much memory below root could be used without swapping, in bytes.
func Available(root string) int64 { return parseMeminfo(read(root, "proc/meminfo"))["MemAvailable"] }
