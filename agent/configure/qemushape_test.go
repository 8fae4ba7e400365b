package configure

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/wire"
)

func TestMain(m *testing.M) {
	if os.Getpid() == 1 && os.Getenv("shape_guest") != "" {
		shapeGuest()
	}
	os.Exit(m.Run())
}

// shapeGuest is the first process of a guest: it takes its shape, says what is left, and ends.
func shapeGuest() {
	say := func(format string, args ...any) { fmt.Printf("SHAPE "+format+"\n", args...) }
	for dir, kind := range map[string]string{"/proc": "proc", "/sys": "sysfs"} {
		if err := unix.Mount(kind, dir, kind, 0, ""); err != nil {
			say("mount %s: %v", dir, err)
		}
	}
	c := New(Options{NoOwners: true})
	see := func(what string) {
		online, _ := c.get("sys/devices/system/cpu/online")
		nodes, _ := c.get("sys/devices/system/node/has_cpu")
		say("%s: cores %s, nodes with cores %s, %d MiB", what, online, nodes, facts.Memory("/")>>20)
	}
	see("before")
	if os.Getenv("shape_guest") == "shaped" {
		s := &wire.NodeShape{Make: true, Cores: 2, Sockets: 1, Memory: 1 << 30, KernelArgs: []string{"numa_balancing=disable"}}
		if err := c.shape(context.Background(), &wire.NodeConfig{Shape: s}); err != nil {
			say("failed: %v", err)
		}
		see("after")
		s.Make, s.Cores, s.Memory = false, 4, 2<<30
		say("wrong: %v", c.shape(context.Background(), &wire.NodeConfig{Shape: s}))
	}
	say("end")
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

// A machine of two sockets with two cores and one of two memory nodes each is left with two
// cores of one socket and half of its memory; the next boot has all of it.
func TestShapeOfAKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a kernel: not with -short")
	}
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("no qemu-system-x86_64: install qemu-system-x86")
	}
	tree := os.Getenv("MUSTER_TEST_KERNEL_TREE")
	if tree == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		tree = filepath.Join(cache, "muster-test", "linux-image-cloud-amd64") // as the tests of agent/boot keep it
	}
	kernels, err := filepath.Glob(filepath.Join(tree, "boot/vmlinuz-*"))
	if err != nil || len(kernels) != 1 {
		t.Skip("no kernel to boot: the tests of agent/boot fetch one, or MUSTER_TEST_KERNEL_TREE names a folder with it")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "guest")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	body, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	initrd := filepath.Join(dir, "initrd")
	if err := os.WriteFile(initrd, archive(body), 0o600); err != nil {
		t.Fatal(err)
	}
	boot := func(mode, args string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-accel", "tcg,thread=multi",
			"-smp", "4,sockets=2,cores=2,threads=1", "-m", "2048",
			"-object", "memory-backend-ram,id=cell0,size=1024M", "-object", "memory-backend-ram,id=cell1,size=1024M",
			"-numa", "node,nodeid=0,cpus=0-1,memdev=cell0", "-numa", "node,nodeid=1,cpus=2-3,memdev=cell1",
			"-serial", "stdio", "-kernel", kernels[0], "-initrd", initrd,
			"-append", "console=ttyS0 quiet panic=-1 shape_guest="+mode+" "+args).CombinedOutput()
		text := strings.ReplaceAll(string(out), "\r", "")
		if err != nil || !strings.Contains(text, "SHAPE end") {
			t.Fatalf("%v\n%s", err, text)
		}
		t.Log(text)
		return text
	}
	text := boot("shaped", "numa_balancing=disable")
	for _, want := range []string{"before: cores 0-3, nodes with cores 0-1", "after: cores 0-1, nodes with cores 0,", "wrong: the node is not of its shape: cores: 4 asked for, 2 online; memory: 2048 MiB asked for, "} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	var had, has int
	for line := range strings.Lines(text) {
		if _, rest, ok := strings.Cut(line, "SHAPE before: "); ok {
			_, _ = fmt.Sscanf(rest[strings.LastIndex(rest, ", ")+2:], "%d MiB", &had)
		}
		if _, rest, ok := strings.Cut(line, "SHAPE after: "); ok {
			_, _ = fmt.Sscanf(rest[strings.LastIndex(rest, ", ")+2:], "%d MiB", &has)
		}
	}
	if had < 1500 || has > 1024 || has < 768 {
		t.Errorf("it had %d MiB and has %d", had, has)
	}
	if strings.Contains(text, "SHAPE failed") {
		t.Error("it failed")
	}
	if text := boot("whole", ""); !strings.Contains(text, "before: cores 0-3, nodes with cores 0-1") {
		t.Error("the next boot has not all of it")
	}
}

// archive is an initramfs with one program and the folders that it mounts on.
func archive(program []byte) []byte {
	var b bytes.Buffer
	put := func(name string, mode int, body []byte) {
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", b.Len()+1, mode, 0, 0, 1, 0, len(body), 0, 0, 0, 0, len(name)+1, 0)
		b.WriteString(name + "\x00")
		pad := func() {
			for b.Len()%4 != 0 {
				b.WriteByte(0)
			}
		}
		pad()
		b.Write(body)
		pad()
	}
	put("proc", 0o40755, nil)
	put("sys", 0o40755, nil)
	put("init", 0o100755, program)
	put("TRAILER!!!", 0, nil)
	return b.Bytes()
}
