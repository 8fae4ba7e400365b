package local_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/agent/boot"
)

// vmHostInit is the first process of the emulated host, and of the virtual machines in it: it does not return.
func vmHostInit() {
	err := errors.New("it ended")
	vendor, byHand := "", false
	if len(os.Args) == 1 {
		if err = mountAll([][3]string{{"proc", "/proc", "proc"}, {"sysfs", "/sys", "sysfs"}, {"devtmpfs", "/dev", "devtmpfs"}}); err == nil {
			b, _ := os.ReadFile("/sys/class/dmi/id/sys_vendor")
			vendor = strings.TrimSpace(string(b))
			b, _ = os.ReadFile("/proc/cmdline")
			byHand = strings.Contains(string(b), byHandArgument)
			drivers()
		}
	}
	switch {
	case len(os.Args) > 1:
		err = hostInside()
	case err != nil:
	case byHand:
		err = enterImage()
	case vendor == "Muster":
		err = guestTalks()
	default:
		err = enterHost()
	}
	if err != nil {
		fmt.Println("vm-host:", err)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

func mountAll(list [][3]string) error {
	for _, m := range list {
		if err := os.MkdirAll(m[1], 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m[0], m[1], m[2], 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	return nil
}

// drivers loads those of the archive for what there is.
func drivers() {
	dir := boot.ModulesDir()
	d := boot.NewDrivers(boot.ReadTable(dir), boot.Sys{Modules: dir}, nil, func(file string, err error) { fmt.Println("module", file, err) })
	d.Names("squashfs", "overlay")
	for d.Walk() > 0 {
	}
}

// enterHost goes on in the host's root.
func enterHost() error {
	if err := mountImage(); err != nil {
		return err
	}
	for from, to := range map[string]string{"/init": hostProgram, "/vmlinuz": hostKernel, "/guest": hostGuest} {
		if err := copyTo(from, "/root"+to); err != nil {
			return err
		}
	}
	return enter(hostProgram, "/init", "host")
}

// mountImage makes a root of the image on the first disk, and above it memory.
func mountImage() error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat("/dev/vda"); err == nil {
			break
		}
		if time.Now().After(end) {
			return errors.New("there is no disk")
		}
		drivers()
	}
	if err := mountAll([][3]string{{"tmpfs", "/above", "tmpfs"}}); err != nil {
		return err
	}
	for _, dir := range []string{"/image", "/root", "/above/upper", "/above/work"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("/dev/vda", "/image", "squashfs", unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mount the image: %w", err)
	}
	if err := unix.Mount("overlay", "/root", "overlay", 0, "lowerdir=/image,upperdir=/above/upper,workdir=/above/work"); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	return nil
}

// enter becomes a program of the root.
func enter(program string, argv ...string) error {
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if err := unix.Mount(dir, "/root"+dir, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", dir, err)
		}
	}
	if err := os.Chdir("/root"); err != nil {
		return err
	}
	if err := unix.Mount("/root", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	return unix.Exec(program, argv, []string{"PATH=/usr/sbin:/usr/bin", "HOME=/root", "LANG=C.UTF-8"})
}

func copyTo(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// hostInside runs the test in the host, as the process that takes whoever loses its parent.
func hostInside() error {
	if err := mountAll([][3]string{{"devpts", "/dev/pts", "devpts"}, {"tmpfs", "/dev/shm", "tmpfs"}, {"tmpfs", "/run", "tmpfs"}, {"tmpfs", "/tmp", "tmpfs"}, {"cgroup2", "/sys/fs/cgroup", "cgroup2"}}); err != nil {
		return err
	}
	for _, args := range [][]string{{"modprobe", "-a", "igb", "kvm_amd", "vfio-pci", "loop", "tun", "nvme"}, {"ip", "link", "set", "lo", "up"}, {"ip", "link", "set", "eth0", "up"}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out)
		}
	}
	p, err := os.StartProcess(hostProgram, []string{hostProgram, "-test.run", "^TestVMHostInside$", "-test.v", "-test.timeout", "20m"},
		&os.ProcAttr{Dir: "/", Env: append(os.Environ(), hostVariable+"=1"), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if pid == p.Pid {
			fmt.Println("vm-host: exit", status.ExitStatus())
			return nil
		}
	}
}

// guestType is the type of the guests' frames: for experiments.
const guestType = 0x88b5

// guestTalks is what a virtual machine does: by its virtual function it sends to all, again with tags of its own,
// answers whom it hears, and prints what it heard of whom, once for each.
func guestTalks() error {
	b, err := os.ReadFile("/sys/class/dmi/id/product_serial")
	if err != nil {
		return err
	}
	name := strings.TrimSpace(string(b))
	var card string
	for card == "" {
		list, _ := filepath.Glob("/sys/class/net/*/device/driver")
		for _, path := range list {
			if to, err := os.Readlink(path); err == nil && filepath.Base(to) == "igbvf" {
				card = filepath.Base(filepath.Dir(filepath.Dir(path)))
			}
		}
		if card == "" {
			time.Sleep(100 * time.Millisecond)
			drivers()
		}
	}
	link, err := netlink.LinkByName(card)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	mac := link.Attrs().HardwareAddr
	fmt.Println("card", card, mac)
	all := uint16(unix.ETH_P_ALL)<<8 | unix.ETH_P_ALL>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(all))
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Attrs().Index}); err != nil {
		return err
	}
	send := func(to net.HardwareAddr, tag int, kind string) {
		frame := append(append([]byte{}, to...), mac...)
		if tag > 0 {
			frame = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(frame, 0x8100), uint16(tag))
		}
		frame = append(binary.BigEndian.AppendUint16(frame, guestType), name+" "+kind+"\n"...)
		for len(frame) < 64 {
			frame = append(frame, 0)
		}
		_, _ = unix.Write(fd, frame) // until the link is up nobody hears it
	}
	go guestWrites()
	go func() {
		everybody := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		for n := 1; ; n++ {
			send(everybody, 0, "plain")
			for _, tag := range []int{100, 101} {
				send(everybody, tag, fmt.Sprint("tagged-", tag))
			}
			if n%5 == 0 {
				fmt.Println("sent", n)
			}
			time.Sleep(500 * time.Millisecond)
		}
	}()
	heard := map[string]bool{}
	buf := make([]byte, 2048)
	for {
		n, err := unix.Read(fd, buf)
		if err != nil {
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENETDOWN) {
				continue
			}
			return err
		}
		frame := buf[:n]
		if n < 18 || net.HardwareAddr(frame[6:12]).String() == mac.String() {
			continue
		}
		rest := frame[12:]
		for len(rest) > 4 && binary.BigEndian.Uint16(rest) == 0x8100 {
			rest = rest[4:]
		}
		line, _, whole := strings.Cut(string(rest[2:]), "\n")
		if binary.BigEndian.Uint16(rest) != guestType || !whole {
			continue
		}
		if strings.HasSuffix(line, " plain") {
			send(append(net.HardwareAddr{}, frame[6:12]...), 0, "answer")
		}
		if !heard[line] {
			heard[line] = true
			fmt.Println("heard", line)
		}
	}
}

// guestWrote is what a guest writes to its NVMe.
const guestWrote = "written by a tenant's guest, of whom nothing may stay"

// guestWrites writes to the NVMe of a guest, if it has one, and reads that again from the disk itself.
func guestWrites() {
	if hostNVMe() == "" {
		return
	}
	const path = "/dev/nvme0n1"
	for {
		if _, err := os.Stat(path); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	say := func(err error) { fmt.Println("disk:", err) }
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_DIRECT|unix.O_SYNC, 0)
	if err != nil {
		say(err)
		return
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		say(err)
		return
	}
	buf, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		say(err)
		return
	}
	for _, at := range []int64{0, 5 << 20, size - 4096} {
		if _, err := f.ReadAt(buf, at); err != nil {
			say(err)
			return
		}
		if strings.Trim(string(buf), "\x00") != "" {
			say(fmt.Errorf("byte %d of another is on it", at))
			return
		}
		copy(buf, guestWrote)
		if _, err := f.WriteAt(buf, at); err != nil {
			say(err)
			return
		}
		clear(buf)
		if _, err := f.ReadAt(buf, at); err != nil || !strings.HasPrefix(string(buf), guestWrote) {
			say(fmt.Errorf("what was written at byte %d is not read: %w", at, err))
			return
		}
		clear(buf)
	}
	fmt.Println("disk: it was empty, and was written and read,", size, "bytes")
}
