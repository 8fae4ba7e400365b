package qemu

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/vm/accel"
)

// NVMeID is the second disk's name in QMP.
const NVMeID = "nvme"

// Args is the command line of a machine, without the program. Same machine, same
// line.
//
// The cards keep the name of the ROM that QEMU gives them: a ROM that is named is
// built in as it is, and the ones of distributions are for another PCI identity
// than the card then has, so that the firmware leaves it out.
func Args(c Config) []string {
	args := []string{
		"-name", value(c.Name) + ",process=lab-" + value(c.Name),
		"-nodefaults", "-no-user-config", "-display", "none",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-machine", board,
		"-accel", accel.Name(c.KVM),
		"-cpu", accel.Processor(c.KVM),
		"-smp", processors(c),
		"-m", strconv.FormatInt(c.Memory>>20, 10),
		"-uuid", c.UUID,
		"-smbios", "type=1,manufacturer=" + value(c.Vendor) + ",product=" + value(c.Model) + ",serial=" + value(c.Serial) + ",uuid=" + c.UUID,
		"-smbios", "type=3,manufacturer=" + value(c.Vendor) + ",serial=" + value(c.Serial),
		"-chardev", "socket,id=monitor,fd=" + strconv.Itoa(c.MonitorFD),
		"-mon", "chardev=monitor,mode=control",
		"-chardev", "socket,id=console,path=" + value(c.Console) + ",server=on,wait=off,logfile=" + value(c.ConsoleLog) + ",logappend=on",
		"-serial", "chardev:console",
		// A guest that panics says so and stands still, as most do.
		"-device", "pvpanic", "-action", "panic=none",
		// Without it UEFI collects randomness for seconds.
		"-device", "virtio-rng-pci",
	}
	args = append(args, cells(c)...)
	if c.UEFI {
		args = append(args,
			"-drive", "if=pflash,format=raw,unit=0,readonly=on,file="+value(c.Code),
			"-drive", "if=pflash,format=raw,unit=1,file="+value(c.Vars))
	}
	net, disk := 1, 2
	if c.DiskOnly {
		net, disk = 2, 1
	}
	for i, n := range c.NICs {
		device := "virtio-net-pci,id=" + n.ID + "-card,netdev=" + n.ID + ",mac=" + n.MAC
		if i == 0 {
			device += ",bootindex=" + strconv.Itoa(net)
		} else {
			device += ",romfile=" // the firmware asks only the first for a way to boot
		}
		args = append(args, "-netdev", fmt.Sprintf("tap,id=%s,fd=%d", n.ID, n.FD), "-device", device)
	}
	// Not NVMe, or only for the small one that is asked how it is: that of QEMU 7.2 lost commands where the guest and QEMU had a processor each,
	// and the guest's driver gives a lost one up after a minute (docs/operators/lab.md). A disk that
	// offered to write zeroes itself would keep room for all that a machine erases.
	args = append(args,
		"-drive", "if=none,id=disk,format=raw,discard=unmap,detect-zeroes=unmap,file="+value(c.Disk),
		"-device", "virtio-blk-pci,drive=disk,write-zeroes=off,serial="+value(c.Serial)+",bootindex="+strconv.Itoa(disk))
	if c.NVMe != "" {
		args = append(args,
			"-drive", "if=none,id=nvme-disk,format=raw,discard=unmap,detect-zeroes=unmap,file="+value(c.NVMe),
			"-device", "nvme,id="+NVMeID+",drive=nvme-disk,serial="+value(c.Serial)+"N")
	}
	if c.TPM != "" {
		args = append(args,
			"-chardev", "socket,id=tpm,path="+value(c.TPM),
			"-tpmdev", "emulator,id=tpm0,chardev=tpm",
			"-device", "tpm-tis,tpmdev=tpm0")
	}
	return args
}

// board is the chipset, without what no server's node misses: each device costs the
// kernel a driver, which it unpacks and compares with its signature. With graphics off the
// firmware speaks on the console.
const board = "q35,graphics=off,sata=off,smbus=off,usb=off,i8042=off,vmport=off"

// value writes a text as QEMU reads it in a list: commas are doubled.
func value(s string) string { return strings.ReplaceAll(s, ",", ",,") }
