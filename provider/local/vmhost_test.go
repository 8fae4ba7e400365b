package local_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/initramfs"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/vm/accel"
	"github.com/muster-hpc/muster/vm/function"
)

// Where the emulated host has this program, and what its virtual machines start with.
const (
	hostProgram = "/srv/local.test"
	hostKernel  = "/srv/vmlinuz"
	hostGuest   = "/srv/guest"
)

// hostVariable makes TestVMHostInside run; hostServerVariable makes the program a server in the emulated host.
const (
	hostVariable       = "MUSTER_TEST_VM_HOST_INSIDE"
	hostServerVariable = "MUSTER_TEST_VM_HOST_SERVER"
)

// TestVMHost emulates a host with KVM, an IOMMU, two memory nodes and a card with virtual functions, and runs
// TestVMHostInside in it. MUSTER_TEST_VM_HOST names the directory of the image vm-host, of which both the host and the
// QEMU that emulates it are. This program must be static. See scripts/test-vm-host.
func TestVMHost(t *testing.T) {
	image := os.Getenv("MUSTER_TEST_VM_HOST")
	if image == "" {
		t.Skip("emulates a host, which takes minutes: make test-vm-host")
	}
	dir := t.TempDir()
	build := func(name string, wanted func(string) bool, also map[string][]byte) {
		t.Helper()
		if err := buildInitramfs(filepath.Join(dir, name), image, wanted, also); err != nil {
			t.Fatal(err)
		}
	}
	module := func(names ...string) func(string) bool {
		return func(file string) bool { return slices.Contains(names, strings.SplitN(path.Base(file), ".", 2)[0]) }
	}
	build("guest", module("igbvf", "nvme"), nil)
	guest, err := os.ReadFile(filepath.Join(dir, "guest"))
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := os.ReadFile(filepath.Join(image, "vmlinuz"))
	if err != nil {
		t.Fatal(err)
	}
	build("host", module("virtio_pci", "virtio_blk", "squashfs", "overlay"), map[string][]byte{"vmlinuz": kernel, "guest": guest})
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"vmlinuz": filepath.Join(image, "vmlinuz"), "disk": filepath.Join(image, "root.squashfs")} {
		if err := os.Link(file, filepath.Join(dir, name)); err != nil { // of another file system
			if out, err := exec.Command("cp", file, filepath.Join(dir, name)).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	raw := filepath.Join(dir, "nvme")
	if err := os.WriteFile(raw, make([]byte, 16<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	// All mounts are in a namespace of their own, which goes with QEMU.
	cmd := exec.CommandContext(t.Context(), "unshare", append([]string{"--mount", "--propagation", "private", "--", "sh", "-c",
		`mount -o loop,ro "$3" "$2" && mount --bind "$1" "$2/mnt" && mount --rbind /dev "$2/dev" && mount -t proc proc "$2/proc" && mount -t tmpfs none "$2/tmp" && cd / && r=$2 && shift 3 && exec chroot "$r" "$@"`, "sh", dir, root, filepath.Join(image, "root.squashfs"), accel.Program}, emulatedHost()...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	verdict := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := strings.TrimRight(lines.Text(), "\r")
		fmt.Printf("%6.1f  %s\n", time.Since(began).Seconds(), line)
		if rest, ok := strings.CutPrefix(line, "vm-host: "); ok {
			verdict = rest
		}
	}
	if err := cmd.Wait(); err != nil || verdict != "exit 0" {
		t.Errorf("the emulated host ended with %q, %v", verdict, err)
	}
	tagged(t, filepath.Join(dir, "wire.pcap"))
	if b, err := os.ReadFile(raw); err != nil || bytes.Contains(b, []byte(guestWrote)) {
		t.Errorf("what a guest wrote to the NVMe is on it: %v", err)
	}
}

func buildInitramfs(to, image string, wanted func(string) bool, also map[string][]byte) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	in, err := os.Open(filepath.Join(image, "modules.tar"))
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	tree, err := initramfs.FromTar(in, st.Size())
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o444)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = initramfs.Build(out, initramfs.Options{Agent: program, Modules: tree, Wanted: wanted, Also: also})
	return err
}

// emulatedHost is the command line of the host's QEMU. Its card and its NVMe are near to the second memory node.
func emulatedHost() []string {
	return []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35,kernel-irqchip=split", "-accel", "tcg,thread=multi,tb-size=512",
		// KVM in it needs cx16, unlike what this QEMU is run for otherwise.
		"-cpu", "Opteron_G3,-misalignsse,+ssse3,+sse4.1,+sse4.2,+cx16,+svm,+npt,+rdrand",
		"-m", "3G", "-smp", "4,sockets=2,cores=2,threads=1",
		"-object", "memory-backend-ram,id=m0,size=1536M", "-object", "memory-backend-ram,id=m1,size=1536M",
		"-numa", "node,nodeid=0,memdev=m0,cpus=0-1", "-numa", "node,nodeid=1,memdev=m1,cpus=2-3",
		"-device", "intel-iommu,intremap=on,caching-mode=on",
		"-device", "pxb-pcie,id=pxb1,bus=pcie.0,bus_nr=64,numa_node=1", "-device", "pcie-root-port,id=rp1,bus=pxb1,chassis=1,slot=1",
		"-netdev", "hubport,id=wire,hubid=0", "-object", "filter-dump,id=dump,netdev=wire,file=/mnt/wire.pcap", "-device", "igb,bus=rp1,netdev=wire",
		"-device", "pcie-root-port,id=rp2,bus=pxb1,chassis=2,slot=2", "-drive", "if=none,id=nvme,format=raw,file=/mnt/nvme", "-device", "nvme,bus=rp2,serial=MUSTER-TEST-1,drive=nvme",
		"-drive", "if=none,id=root,format=raw,readonly=on,file=/mnt/disk", "-device", "virtio-blk-pci,drive=root,bus=pcie.0",
		"-serial", "stdio", "-kernel", "/mnt/vmlinuz", "-initrd", "/mnt/host", "-append", "console=ttyS0 quiet panic=-1 no_timer_check intel_iommu=on",
	}
}

// hostConfig is the server in the emulated host. The first of its machines stays off: what is pinned to the first processor
// may never come up, because that one loses interrupts of its timer where QEMU translates.
func hostConfig(dir string) local.Config {
	return local.Config{
		Dir: dir, Instance: "vmhost", Slices: []local.Slice{{Count: 4, Cores: 1, Memory: 512 << 20}}, Oversubscribe: true,
		VMCard:    &local.VMCard{Name: "eth0", Functions: 4, FirstVLAN: 100, LastVLAN: 101},
		VMDevices: []local.VMDevice{{Address: hostNVMe()}}, // of local-03, the first of those near to it
		ImagePath: func(context.Context, muster.ImageID) (string, error) { return filepath.Join(dir, "image"), nil },
		Kernel:    func(context.Context, muster.ImageID) (string, string, error) { return hostKernel, hostGuest, nil },
		Log:       slog.New(slog.NewTextHandler(os.Stdout, nil)),
	}
}

// hostWants are two machines of one cluster and one of another, each with a virtual function.
func hostWants(attempt int64) (nets []provider.Network, w []provider.DesiredState) {
	nets = []provider.Network{{Cluster: "c-first", Index: 0, Subnet: netip.MustParsePrefix("10.128.0.0/20")}, {Cluster: "c-second", Index: 1, Subnet: netip.MustParsePrefix("10.128.16.0/20")}}
	w = vmWants(3, &nets[0])
	for i := range w {
		w[i].Machine, w[i].Boot.Attempt = muster.MachineID(fmt.Sprintf("local-%02d", i+2)), attempt
		w[i].VM = &muster.VMOptions{NIC: muster.VMNICFunction, Pages: muster.VMPages2MiB}
	}
	w[2].Boot.Cluster, w[2].Boot.Message.Network, w[2].Boot.Message.Address = nets[1].Cluster, nets[1], netip.MustParsePrefix("10.128.16.1/20")
	return nets, w
}

// hostMachines are those that are started.
func hostMachines() []muster.MachineID { return []muster.MachineID{"local-02", "local-03", "local-04"} }

// hostServer is a server that starts the machines, says so and waits to be killed; with forever, it starts and ends them until
// then.
func hostServer(dir string) int {
	dir, forever := strings.CutPrefix(dir, "forever:")
	ctx := context.Background()
	p, err := local.New(ctx, hostConfig(dir))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for attempt := int64(1); ; attempt++ {
		nets, w := hostWants(attempt)
		if forever {
			fmt.Println("ready")
		}
		if err := p.EnsureNetworks(ctx, nets); err != nil {
			fmt.Println(err)
			return 1
		}
		if errs := p.Ensure(ctx, w); errs != nil {
			fmt.Println(errs)
			return 1
		}
		if !forever {
			fmt.Println("ready")
			select {}
		}
		for _, m := range w {
			if _, err := p.Fence(ctx, m.Machine); err != nil {
				fmt.Println(err)
				return 1
			}
			if _, err := p.Clean(ctx, m.Machine); err != nil {
				fmt.Println(err)
				return 1
			}
		}
	}
}

// killHostServer starts a server, and kills it some time after it is ready.
func killHostServer(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), hostServerVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := false
	lines := bufio.NewScanner(out)
	for !ready && lines.Scan() {
		ready = lines.Text() == "ready"
		if !ready {
			t.Log("the server:", lines.Text())
		}
	}
	if !ready {
		t.Error("the server ended")
	}
	if ready && after > 0 {
		time.Sleep(after)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	rest, _ := io.ReadAll(out)
	if len(rest) > 0 {
		t.Logf("the server: %s", rest)
	}
	_ = cmd.Wait()
}

// vfOnHost is what `ip` says of a function, and sysfs of its driver: nothing of Muster's is between.
type vfOnHost struct {
	VF    int    `json:"vf"`
	MAC   string `json:"address"`
	VLANs []struct {
		VLAN int `json:"vlan"`
	} `json:"vlan_list"`
	Spoof            bool `json:"spoofchk"`
	Trust            bool `json:"trust"`
	driver, override string
}

func (v vfOnHost) vlan() int {
	if len(v.VLANs) == 0 {
		return 0
	}
	return v.VLANs[0].VLAN
}

func functionsOfHost(t *testing.T) []vfOnHost {
	t.Helper()
	b, err := exec.Command("ip", "-json", "link", "show", "dev", "eth0").Output()
	if err != nil {
		t.Fatal(err)
	}
	var links []struct {
		Functions []vfOnHost `json:"vfinfo_list"`
	}
	if err := json.Unmarshal(b, &links); err != nil || len(links) != 1 {
		t.Fatalf("%v: %s", err, b)
	}
	list := links[0].Functions
	for i := range list {
		dir := fmt.Sprintf("/sys/class/net/eth0/device/virtfn%d/", i)
		if to, err := os.Readlink(dir + "driver"); err == nil {
			list[i].driver = filepath.Base(to)
		}
		o, err := os.ReadFile(dir + "driver_override")
		if err != nil {
			t.Fatal(err)
		}
		list[i].override = strings.TrimSpace(string(o))
	}
	return list
}

// hostNVMe is the address of the host's NVMe.
func hostNVMe() string {
	list, _ := filepath.Glob("/sys/bus/pci/devices/*/class")
	for _, path := range list {
		if b, _ := os.ReadFile(path); strings.TrimSpace(string(b)) == "0x010802" {
			return filepath.Base(filepath.Dir(path))
		}
	}
	return ""
}

// nvmeHas is the driver that the NVMe has, and the one that it is reserved for.
func nvmeHas() string {
	dir := "/sys/bus/pci/devices/" + hostNVMe()
	to, _ := os.Readlink(dir + "/driver")
	o, _ := os.ReadFile(dir + "/driver_override")
	return fmt.Sprintf("driver %s, override %s", filepath.Base(to), strings.TrimSpace(string(o)))
}

// cleanHost sees that nobody has a function, the NVMe or a huge page.
func cleanHost(t *testing.T, when, nvme string) {
	t.Helper()
	if has := nvmeHas(); has != nvme {
		t.Errorf("%s: the NVMe has %s", when, has)
	}
	list := functionsOfHost(t)
	if len(list) != 4 {
		t.Errorf("%s: there are %d functions", when, len(list))
	}
	for _, v := range list {
		if v.driver != "" || v.override != "(null)" || v.MAC != "00:00:00:00:00:00" || v.vlan() != 0 || v.Trust || !v.Spoof {
			t.Errorf("%s: function %+v", when, v)
		}
	}
	for node := range 2 {
		b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages", node))
		if err != nil || strings.TrimSpace(string(b)) != "0" {
			t.Errorf("%s: %s huge pages of memory node %d are left, %v", when, strings.TrimSpace(string(b)), node, err)
		}
	}
}

// TestVMHostInside starts virtual machines by KVM, each with a virtual function, in the emulated host of TestVMHost, and one
// of them with an NVMe: what was planned holds on the host, two of one cluster hear each other and not that of another, also not where a guest tags its
// frames itself; a server is killed meanwhile; and after the end the functions are as they were, and what the guest wrote to the NVMe is erased.
func TestVMHostInside(t *testing.T) {
	if os.Getenv(hostVariable) == "" {
		t.Skip("runs in the emulated host of TestVMHost")
	}
	for end := time.Now().Add(2 * time.Minute); !accel.KVMWorks(t.Context()); { // its QEMU is read from the disk first
		if time.Now().After(end) {
			t.Fatal("KVM does not work in the emulated host")
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "image"), make([]byte, 4096), 0o444); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	killHostServer(t, dir, 0)
	t.Logf("three virtual machines run after %v, and their server was killed", time.Since(began).Round(100*time.Millisecond))
	p, err := local.New(t.Context(), hostConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	seen, err := p.Observe(t.Context(), hostMachines())
	if err != nil || len(seen) != 3 {
		t.Fatal(seen, err)
	}
	lines := map[muster.MachineID]*consoleLines{}
	for _, s := range seen {
		if s.State != provider.StateRunning {
			t.Fatalf("%+v", s)
		}
		lines[s.Machine] = readConsole(t, p, s.Machine)
	}
	planHolds(t, p)
	guards(t)
	talk(t, lines)
	usesDisk(t, lines)
	interrupts(t, p)
	for _, s := range seen {
		if r, err := p.Fence(t.Context(), s.Machine); err != nil || !r.Proven {
			t.Errorf("%+v, %v", r, err)
		}
		c, err := p.Clean(t.Context(), s.Machine)
		if err != nil || !c.Verified {
			t.Errorf("%+v, %v", c, err)
		}
		erased := slices.ContainsFunc(c.Steps, func(s muster.CleanStep) bool {
			return s.What == "device "+hostNVMe() && strings.Contains(s.Check, "MUSTER-TEST-1") && strings.Contains(s.Check, "all 16777216 bytes read back, all zero")
		})
		if erased != (s.Machine == "local-03") {
			t.Errorf("%s: %+v", s.Machine, c.Steps)
		}
		t.Logf("%s: clean after %v: %+v", s.Machine, time.Duration(c.Took), c.Steps)
	}
	cleanHost(t, "after the end", "driver ., override (null)")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for i, after := range []time.Duration{700 * time.Millisecond, 3 * time.Second, 8 * time.Second} {
		killHostServer(t, "forever:"+dir, after)
		p, err := local.New(t.Context(), hostConfig(dir))
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			err = p.Destroy(t.Context())
			cleanHost(t, fmt.Sprintf("server killed after %v, all ended by the next", after), "driver nvme, override (null)")
		} else {
			err = p.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	if f, err := function.This().Card("eth0"); err != nil {
		t.Error(err)
	} else if err := f.Enable(5); err == nil {
		t.Error("the number of functions was changed from 4 to 5")
	}
}

// planHolds waits until the facts of every machine are read back, and sees that they hold.
func planHolds(t *testing.T, p *local.Provider) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		seen, err := p.Observe(t.Context(), hostMachines())
		if err != nil {
			t.Fatal(err)
		}
		missing := slices.IndexFunc(seen, func(s provider.Observation) bool { return s.VM == nil })
		if missing < 0 {
			for _, s := range seen {
				named := map[string]bool{}
				for _, f := range s.VM.Settings {
					t.Logf("%s  %-16s %s (%s)", s.Machine, f.Name, f.Found, f.Read)
					named[f.Name] = true
					if !f.Holds {
						t.Errorf("%s: %+v", s.Machine, f)
					}
				}
				if d := "device:" + hostNVMe(); named[d] != (s.Machine == "local-03") {
					t.Errorf("%s: %s is read back: %v", s.Machine, d, named[d])
				}
				for _, name := range []string{"nic", "nic-group", "nic-guard", "memlock", "memory", "huge-pages", "vcpu-pins", "host-threads"} {
					if !named[name] {
						t.Errorf("%s: nothing was read back of %s", s.Machine, name)
					}
				}
				if !s.VM.KVM || !s.VM.Tuned {
					t.Errorf("%s: %+v", s.Machine, s.VM)
				}
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nothing is read back of %s", seen[missing].Machine)
		}
	}
}

// interrupts waits until those of every function are placed: the guests' drivers have asked for them.
func interrupts(t *testing.T, p *local.Provider) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		seen, err := p.Observe(t.Context(), hostMachines())
		if err != nil {
			t.Fatal(err)
		}
		placed := 0
		for _, s := range seen {
			for _, f := range s.VM.Settings {
				if f.Name == "nic-interrupts" {
					placed++
					if !f.Holds {
						t.Errorf("%s: %+v", s.Machine, f)
					}
				}
			}
		}
		if placed == len(seen) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the interrupts of %d of %d functions are placed", placed, len(seen))
		}
	}
}

// guards sees on the host itself what each function is held to.
func guards(t *testing.T) {
	t.Helper()
	vlans := map[int]int{}
	for _, v := range functionsOfHost(t) {
		vlans[v.vlan()]++
		if v.vlan() == 0 { // of the machine that is off
			if v.driver != "" {
				t.Errorf("function %+v", v)
			}
			continue
		}
		if v.driver != function.Driver || !strings.HasPrefix(v.MAC, "52:") || !v.Spoof || v.Trust {
			t.Errorf("function %+v", v)
		}
	}
	if vlans[100] != 2 || vlans[101] != 1 || vlans[0] != 1 || len(vlans) != 3 {
		t.Errorf("functions by VLAN: %v", vlans)
	}
}
