package qemu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func plain() Config {
	return Config{Name: "m01", UUID: "0f0e0d0c-0b0a-4908-8706-050403020100", Serial: "LAB0001", Vendor: "Muster", Model: "Lab small", Cores: 2, Memory: 1 << 30,
		NICs: []NIC{{"management", "52:01:02:03:04:00", 3}, {"message", "52:01:02:03:04:01", 4}}, Disk: "/lab/m01/disk.raw", MonitorFD: 5,
		Console: "/lab/m01/console.sock", ConsoleLog: "/lab/m01/console.log"}
}

// The command line of a machine is what testdata says. MUSTER_UPDATE=1 writes it
// anew.
func TestArgs(t *testing.T) {
	t.Parallel()
	uefi := plain()
	uefi.UEFI, uefi.Code, uefi.Vars, uefi.TPM = true, "/firmware/code.fd", "/lab/m01/vars.fd", "/lab/m01/tpm.sock"
	disk := plain()
	disk.DiskOnly, disk.KVM = true, true
	nvme := plain()
	nvme.NVMe = "/lab/m01/nvme.raw"
	cells := plain()
	cells.Cores, cells.Sockets, cells.Memory = 4, 2, 3<<30
	odd := plain()
	odd.Serial, odd.Disk = "A,B=C", "/lab,x/disk.raw"
	for name, c := range map[string]Config{"bios": plain(), "uefi-tpm": uefi, "disk-kvm": disk, "commas": odd, "nvme": nvme, "sockets": cells} {
		got := strings.Join(Args(c), "\n") + "\n"
		path := filepath.Join("testdata", name+".args")
		if os.Getenv("MUSTER_UPDATE") != "" {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s is now (%v):\n%s", name, err, got)
		}
	}
}

// Only the first card is asked for a way to boot, by a ROM that QEMU names itself.
func TestROM(t *testing.T) {
	t.Parallel()
	line := strings.Join(Args(plain()), " ")
	if strings.Contains(line, "romfile=/") || strings.Count(line, "romfile=") != 1 || strings.Count(line, "bootindex=1") != 1 {
		t.Error(line)
	}
}
