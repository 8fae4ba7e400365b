package facts

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/muster-hpc/muster"
)

func TestHardware(t *testing.T) {
	t.Parallel()
	files := host()
	for name, text := range map[string]string{
		"sys/firmware/dmi/tables/DMI":          string(server()),
		"sys/class/tpm/tpm0/tpm_version_major": "2\n",
		"sys/block/nvme0n1/size":               "2000\n", "sys/block/nvme0n1/device/model": "FAST 1TB  \n", "sys/block/nvme0n1/device/serial": "N1\n",
		"sys/block/nvme0n1/device/numa_node": "1\n", "sys/block/nvme0n1/queue/rotational": "0\n",
		"sys/block/sda/size": "4000\n", "sys/block/sda/queue/rotational": "1\n", "sys/block/sda/device/vpd_pg80": "\x00\x80\x00\x03ABC\n",
		"sys/block/vda/size": "8\n", "sys/block/vda/serial": "V1\n", "sys/block/vda/device/x": "",
		"sys/block/mmcblk0boot0/size": "8192\n", "sys/block/mmcblk0boot0/ro": "1\n", "sys/block/mmcblk0boot0/device/serial": "0x1\n", "sys/block/mmcblk0boot0/queue/rotational": "0\n",
		"sys/block/sdb/size": "4000\n", "sys/block/sdb/removable": "1\n", "sys/block/sdb/device/x": "",
		"sys/block/nvme0c0n1/size": "2000\n", "sys/block/nvme0c0n1/hidden": "1\n", "sys/block/nvme0c0n1/device/serial": "N1\n",
		"sys/block/loop0/size": "4000\n", "sys/block/sr0/size": "4000\n", "sys/block/sr0/device/x": "",
		"sys/bus/pci/devices/0000:03:00.0/class": "0x030200\n", "sys/bus/pci/devices/0000:03:00.0/vendor": "0x10de\n", "sys/bus/pci/devices/0000:03:00.0/device": "0x2330\n",
		"sys/bus/pci/devices/0000:04:00.0/class": "0x030200\n", "sys/bus/pci/devices/0000:04:00.0/vendor": "0x10de\n", "sys/bus/pci/devices/0000:04:00.0/device": "0x2330\n",
		"sys/bus/pci/devices/0000:06:00.0/class": "0x030000\n", "sys/bus/pci/devices/0000:06:00.0/vendor": "0x10de\n", "sys/bus/pci/devices/0000:06:00.0/device": "0x2230\n",
		"sys/bus/pci/devices/0000:05:00.0/class": "0x030000\n", "sys/bus/pci/devices/0000:05:00.0/vendor": "0x1a03\n", "sys/bus/pci/devices/0000:05:00.0/device": "0x2000\n",
		"sys/class/net/eno1/carrier": "1\n", "sys/class/net/eno1/device/numa_node": "0\n",
	} {
		files[name] = text
	}
	for c := range 8 {
		at := "sys/devices/system/cpu/cpu" + string(rune('0'+c)) + "/cache/"
		files[at+"index0/level"], files[at+"index0/type"], files[at+"index0/size"] = "1\n", "Data\n", "32K\n"
		files[at+"index0/shared_cpu_list"] = string(rune('0'+c%4)) + "," + string(rune('4'+c%4)) + "\n"
		files[at+"index3/level"], files[at+"index3/type"], files[at+"index3/size"] = "3\n", "Unified\n", "16384K\n"
		files[at+"index3/shared_cpu_list"] = []string{"0-1,4-5\n", "2-3,6-7\n"}[c%4/2]
	}
	root := tree(t, files)
	if err := os.Symlink("../../../../bus/pci/drivers/e1000e", filepath.Join(root, "sys/class/net/eno1/device/driver")); err != nil {
		t.Fatal(err)
	}
	f := Source{Root: root, Affinity: all(0, 1, 2, 3, 4, 5, 6, 7)}.Read("", "")
	one := 1
	want := muster.Facts{
		Vendor: "Maker Inc.", Product: "Server X1", UUID: "00112233-4455-6677-8899-aabbccddeeff", Firmware: "2.17.1", BootMode: muster.BootModeBIOS, TPM: true,
		Caches: []muster.CacheKind{{Level: 1, Kind: "data", Size: 32 << 10, Count: 4}, {Level: 3, Kind: "unified", Size: 16 << 20, Count: 2}},
		Disks: []muster.Disk{
			{Name: "mmcblk0boot0", Kind: "ssd", Serial: "0x1", Size: 8192 * 512, ReadOnly: true},
			{Name: "nvme0n1", Kind: "nvme", Model: "FAST 1TB", Serial: "N1", Size: 2000 * 512, NUMA: &one},
			{Name: "sda", Kind: "disk", Serial: "ABC", Size: 4000 * 512}, {Name: "vda", Kind: "virtual", Serial: "V1", Size: 8 * 512},
		},
		Accelerators: []muster.Device{{Kind: "gpu", Model: "10de:2230", Count: 1}, {Kind: "gpu", Model: "10de:2330", Count: 2}},
	}
	got := muster.Facts{Vendor: f.Vendor, Product: f.Product, UUID: f.UUID, Firmware: f.Firmware, BootMode: f.BootMode, TPM: f.TPM, Caches: f.Caches, Disks: f.Disks, Accelerators: f.Accelerators}
	if !reflect.DeepEqual(got, want) || len(f.DIMMs) != 3 {
		t.Errorf("\n%+v\n%+v", got, want)
	}
	for _, n := range f.NICs {
		if n.Name == "eno1" && (n.Driver != "e1000e" || n.Link != "up" || n.NUMA == nil || *n.NUMA != 0) {
			t.Errorf("%+v", n)
		}
	}
	files["sys/firmware/efi/fw_platform_size"] = "64\n"
	if f := (Source{Root: tree(t, files), Affinity: all(0)}).Read("", ""); f.BootMode != muster.BootModeUEFI {
		t.Errorf("booted by %q", f.BootMode)
	}
	// A slice of a host tells nothing of the host's hardware.
	files["proc/self/uid_map"] = "0 100000 65536\n"
	f = Source{Root: tree(t, files), Affinity: all(0)}.Read("", "")
	if f.Vendor != "" || f.Disks != nil || f.DIMMs != nil || f.UUID != "" {
		t.Errorf("%+v", f)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{"32K": 32 << 10, "8M": 8 << 20, "512": 512, "x": 0, "-1K": 0, "": 0} {
		if got := kib(s); got != want {
			t.Errorf("%s: %d", s, got)
		}
	}
	if pageSerial([]byte{0, 0x80, 0, 9, 'A'}) != "A" || pageSerial([]byte{0, 0x83, 0, 1, 'A'}) != "" || pageSerial(nil) != "" {
		t.Error("pageSerial")
	}
}

// Disks, networks and accelerators are listed with what tells their drivers; a management
// controller's plain display and bridges are not.
func TestListed(t *testing.T) {
	t.Parallel()
	for modalias, want := range map[string]bool{
		"pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00": true, "pci:v00001002d000074A1sv00001002sd000074A1bc12sc00i00": true,
		"pci:v00001002d0000740Csv00001002sd00000B0Cbc03sc80i00": true, "pci:v00008086d00000D8Bsv00008086sd00000000bc0Bsc40i00": true,
		"pci:v00008086d00001521sv00008086sd00000001bc02sc00i00": true, "pci:v0000144Dd0000A80Asv0000144Dsd0000A801bc01sc08i02": true,
		"pci:v000010DEd00002230sv000010DEsd00001459bc03sc00i00": true,
		"pci:v00001A03d00002000sv00001A03sd00002000bc03sc00i00": false, "pci:v00008086d00009D10sv00000000sd00000000bc06sc04i00": false,
		"virtio:d00000001v00001AF4": true,
	} {
		if listed(modalias) != want {
			t.Errorf("%s: %v", modalias, !want)
		}
	}
}
