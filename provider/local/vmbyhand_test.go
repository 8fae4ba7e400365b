package local_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// byHandArgument has vmHostInit boot the image as it is.
const byHandArgument = "started.by=hand"

// The two ends of the cable to a virtual machine that is started by hand, in a network namespace of its own.
const (
	byHandHost  = "192.0.2.1"
	byHandGuest = "192.0.2.2"
)

// byHandFiles are put above the image: an address, and sshd with a key.
func byHandFiles(key []byte) map[string][]byte {
	return map[string][]byte{
		"etc/systemd/system/byhand.service": []byte(`[Unit]
DefaultDependencies=no
Before=ssh.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'ip link set eth0 up; ip addr add ` + byHandGuest + `/24 dev eth0; mkdir -p /run/sshd'
`),
		"etc/ssh/ssh_host_ed25519_key": key,
	}
}

// enterImage is what a virtual machine that is started by hand does: its image, an address, and sshd.
func enterImage() error {
	if err := mountImage(); err != nil {
		return err
	}
	for name := range byHandFiles(nil) {
		if err := os.MkdirAll(filepath.Dir("/root/"+name), 0o755); err != nil {
			return err
		}
		if err := copyTo("/files/"+name, "/root/"+name); err != nil {
			return err
		}
		if err := os.Chmod("/root/"+name, 0o600); err != nil {
			return err
		}
	}
	wants := "/root/etc/systemd/system/multi-user.target.wants"
	if err := os.MkdirAll(wants, 0o755); err != nil {
		return err
	}
	for name, to := range map[string]string{"ssh.service": "/lib/systemd/system/ssh.service", "byhand.service": "/etc/systemd/system/byhand.service"} {
		_ = os.Remove(filepath.Join(wants, name))
		if err := os.Symlink(to, filepath.Join(wants, name)); err != nil {
			return err
		}
	}
	return enter("/sbin/init", "/sbin/init")
}

// TestStartByHand starts QEMU as somebody would by hand: with the arguments in the file MUSTER_TEST_QEMU_ARGUMENTS, one a line,
// that Muster gave it for an image, the directory of which is MUSTER_TEST_IMAGE. It prints after how many seconds sshd
// greets. It runs in a network namespace of its own: see scripts/bench-vm-start. This program must be static.
func TestStartByHand(t *testing.T) {
	file, image := os.Getenv("MUSTER_TEST_QEMU_ARGUMENTS"), os.Getenv("MUSTER_TEST_IMAGE")
	if file == "" {
		t.Skip("measures: make bench-vm-start")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, "key"))
	key, err := os.ReadFile(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	also := map[string][]byte{}
	for name, b := range byHandFiles(key) {
		also["files/"+name] = b
	}
	wanted := []string{"virtio_pci", "virtio_blk", "virtio_net", "squashfs", "overlay"}
	if err := buildInitramfs(filepath.Join(dir, "initramfs"), image, func(file string) bool {
		return slices.Contains(wanted, strings.SplitN(path.Base(file), ".", 2)[0])
	}, also); err != nil {
		t.Fatal(err)
	}
	for _, tap := range []string{"management", "message"} {
		run("ip", "tuntap", "add", tap, "mode", "tap")
		run("ip", "link", "set", tap, "up")
		t.Cleanup(func() { run("ip", "tuntap", "del", tap, "mode", "tap") })
	}
	run("ip", "addr", "add", byHandHost+"/24", "dev", "management")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	args := byHand(strings.Split(strings.TrimSpace(string(b)), "\n"), image, dir)
	cmd := exec.Command("qemu-system-x86_64", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for end := began.Add(10 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if line := greeting(net.JoinHostPort(byHandGuest, "22")); strings.HasPrefix(line, "SSH-2.0") {
			break
		}
		if time.Now().After(end) {
			console, _ := os.ReadFile(filepath.Join(dir, "console"))
			t.Fatalf("no greeting; the console: %s", console)
		}
	}
	fmt.Printf("by hand: %.2f\n", time.Since(began).Seconds())
}

// byHand are arguments of a QEMU that is handed nothing: with files instead of descriptors, and what only Muster uses leads nowhere.
func byHand(args []string, image, dir string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		name, value, many := strings.Cut(args[i], ",")
		switch before := args[max(i-1, 0)]; {
		case args[i] == "-add-fd":
			i++
			continue
		case before == "-kernel":
			args[i] = filepath.Join(image, "vmlinuz")
		case before == "-initrd":
			args[i] = filepath.Join(dir, "initramfs")
		case before == "-append":
			args[i] = "console=ttyS0 quiet panic=-1 no_timer_check net.ifnames=0 " + byHandArgument
		case before == "-chardev" && many && name == "socket":
			id, _, _ := strings.Cut(value, ",")
			args[i] = "null," + id
			if id == "id=console" {
				args[i] = "file," + id + ",path=" + filepath.Join(dir, "console")
			}
		case before == "-netdev" && many && name == "tap":
			id, _, _ := strings.Cut(value, ",")
			args[i] = "tap," + id + ",ifname=" + strings.TrimPrefix(id, "id=") + ",script=no,downscript=no,vhost=off"
		case before == "-drive":
			args[i] = strings.Replace(args[i], "/dev/fdset/1", filepath.Join(image, "root.squashfs"), 1)
		}
		out = append(out, args[i])
	}
	return out
}

// greeting is the first line of who listens there; "": nobody does yet.
func greeting(address string) string {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	line, _ := bufio.NewReader(c).ReadString('\n')
	return line
}
