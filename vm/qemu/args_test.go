package qemu

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/accel"
)

func plain() Machine {
	return Machine{Name: "local-01", UUID: "0f0e0d0c-0b0a-4908-8706-050403020100", Type: "pc-q35-7.2", Cores: 2, Memory: 1 << 30,
		Kernel: "/boot/kernel", Initramfs: "/boot/initramfs", Append: []string{"console=ttyS0", "muster.channel=ttyS1"},
		Disks:   []Disk{{Serial: "root", FD: 7, ReadOnly: true}},
		NICs:    []NIC{{ID: "management", MAC: "52:01:02:03:04:00", FD: 8}, {ID: "message", MAC: "52:01:02:03:04:01", FD: 9}},
		Monitor: 4, Console: 5, Channel: 6}
}

// The command line of a machine is what testdata says. MUSTER_UPDATE=1 writes it anew.
func TestArgs(t *testing.T) {
	t.Parallel()
	kvm := plain()
	kvm.KVM = true
	// Two sockets of a core with two threads and one with one, each with a memory node; huge pages, several queues.
	tuned := plain()
	tuned.Cores, tuned.Memory, tuned.NICs[1].Queues = 6, 3<<30, 3
	tuned.Plan = &muster.VMPlan{Tuned: true, Emulated: true, Sockets: 2, Dies: 1, Cores: 2, Threads: 2, Memory: 3 << 30, PageSize: 2 << 20, CPUModel: "Opteron_G3", CPUFeatures: []string{"-svm"},
		MemoryNodes: []muster.VMNode{{ID: 0, Host: new(0), Memory: 1 << 30, Pages: 512, Distances: []int{10, 21}}, {ID: 1, Host: new(4), Memory: 2 << 30, Pages: 1024, Distances: []int{21, 10}}}}
	for s := range 2 {
		for _, at := range [][2]int{{0, 0}, {0, 1}, {1, 0}} {
			tuned.Plan.CPUs = append(tuned.Plan.CPUs, muster.VMCPU{Socket: s, Core: at[0], Thread: at[1], MemoryNode: s, Host: new(3*s + 2*at[0] + at[1])})
		}
	}
	// One without huge pages has memory of one node all the same, an untuned one of any.
	ordinary, untuned := plain(), plain()
	ordinary.Plan = &muster.VMPlan{Tuned: true, Emulated: true, Sockets: 1, Dies: 1, Cores: 2, Threads: 1, Memory: 1 << 30, CPUModel: "Opteron_G3",
		CPUs: []muster.VMCPU{{Host: new(0)}, {Core: 1, Host: new(1)}}, MemoryNodes: []muster.VMNode{{Host: new(0), Memory: 1 << 30}}}
	untuned.Plan = &muster.VMPlan{Emulated: true, Sockets: 1, Dies: 1, Cores: 2, Threads: 1, Memory: 1 << 30, CPUModel: "Opteron_G3", CPUs: []muster.VMCPU{{}, {Core: 1}}, MemoryNodes: []muster.VMNode{{Memory: 1 << 30}}}
	scratch := plain()
	scratch.Disks = append(scratch.Disks, Disk{Serial: "scratch", FD: 10})
	// A virtual function, of a machine of one memory node, and near to the second of two.
	function, near := ordinary, tuned
	function.NICs = []NIC{ordinary.NICs[0], {ID: "message", MAC: "52:01:02:03:04:01", Function: "0000:41:10.0", MemoryNode: new(0)}}
	near.NICs = []NIC{tuned.NICs[0], {ID: "message", MAC: "52:01:02:03:04:01", Function: "0000:41:10.0", MemoryNode: new(1)}}
	// Whole devices, each in a slot: of two at a node, of one elsewhere, of one near to none; beside a function.
	devices, far := ordinary, near
	devices.Devices = []Device{{Address: "0000:c1:00.0", MemoryNode: new(0)}}
	far.Devices = []Device{{Address: "0000:c1:00.0", MemoryNode: new(1)}, {Address: "0000:c1:00.1", MemoryNode: new(1)}, {Address: "0000:18:00.0", MemoryNode: new(0)}, {Address: "0000:19:00.0"}}
	for name, m := range map[string]Machine{"devices": devices, "devices-near": far, "function": function, "function-near": near, "plain": plain(), "kvm": kvm, "tuned": tuned, "ordinary": ordinary, "untuned": untuned, "scratch": scratch} {
		if err := m.Check(); err != nil {
			t.Error(name, err)
		}
		got := strings.Join(Args(&m), "\n") + "\n"
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

// Memory and overhead together are what a machine has, whatever that is; of a large one little is lost.
func TestWithin(t *testing.T) {
	t.Parallel()
	for _, kvm := range []bool{false, true} {
		for _, all := range []int64{1 << 20, 256 << 20, 1 << 30, 3<<30 + 12345, 64 << 30, 2 << 40} {
			m := Machine{KVM: kvm, Memory: Within(all, kvm, "")}
			if m.Memory > 0 && m.Memory+Overhead(&m) > all || m.Memory%(2<<20) != 0 || Within(all, kvm, muster.VMPages1GiB) != m.Memory>>30<<30 {
				t.Errorf("%d: %d and %d", all, m.Memory, Overhead(&m))
			}
			if least := (all - 2<<30) / 10 * 9; m.Memory < least {
				t.Errorf("%d: %d is less than %d", all, m.Memory, least)
			}
		}
	}
}

// No line names a file of the host, the guest has no way to the monitor, and what QEMU may
// ask of the kernel is bounded.
func TestArgsConfine(t *testing.T) {
	t.Parallel()
	m := plain()
	m.NICs[1] = NIC{ID: "message", MAC: "52:01:02:03:04:01", Function: "0000:41:10.0"}
	line := strings.Join(Args(&m), " ")
	for _, path := range regexp.MustCompile(`[ =](/[^ ,]*)`).FindAllStringSubmatch(line, -1) {
		if !strings.HasPrefix(path[1], "/boot/") && !strings.HasPrefix(path[1], "/dev/fdset/") && path[1] != Functions+"/0000:41:10.0" {
			t.Errorf("%s is a path", path[1])
		}
	}
	for _, want := range []string{"-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny", "-nodefaults", "mode=control", "mem-merge=off"} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
	for _, never := range []string{"-monitor", "mode=readline", "mux=on", "balloon", "-qmp", "-gdb", "-vnc", "path="} {
		if strings.Contains(line, never) {
			t.Errorf("%s in %s", never, line)
		}
	}
}

// Everything that is wrong is named, at once.
func TestCheck(t *testing.T) {
	t.Parallel()
	m := Machine{Name: "a,b", UUID: "x", Type: "q35", CPU: "host -monitor stdio", Cores: 3, Plan: &muster.VMPlan{CPUModel: "a b"}, Memory: 1 << 20, Kernel: "k", Initramfs: "i",
		Append: []string{"a b"}, Monitor: 2, Console: 5, Channel: 5,
		Disks: []Disk{{Serial: "a,file=/etc/shadow", FD: 6}, {Serial: "a,file=/etc/shadow", FD: 6}},
		NICs: []NIC{{ID: "n,script=/x", MAC: "01:00:00:00:00:00", Queues: 99}, {ID: "n,script=/x", FD: 9},
			{ID: "f", MAC: "52:01:02:03:04:00", Function: "../x", Queues: 2, MemoryNode: new(0)}, {ID: "g", MAC: "52:01:02:03:04:00", Function: "0000:41:10.0"}},
		Devices: append([]Device{{Address: "../x", MemoryNode: new(7)}, {Address: "0000:41:10.0"}}, make([]Device, 20)...)}
	err := m.Check()
	if muster.CodeOf(err) != muster.EInvalid {
		t.Fatal(err)
	}
	for _, field := range []string{"name", "uuid", "type", "cpu", "plan.cpus", "plan.memory_bytes", "plan.emulated", "plan.cpu_model", "nics[0].queues", "memory_bytes", "kernel", "initramfs", "append[0]", "monitor", "channel",
		"disks[0].serial", "disks[1].serial", "disks[1].fd", "nics[0].id", "nics[1].id", "nics[0].mac", "nics[1].mac", "nics[0].fd", "nics[2].function", "nics[2].queues", "nics[2].memory_node", "nics[3].function", "devices[0].address", "devices[0].memory_node", "devices[1].address", "devices"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in %v", field, err)
		}
	}
}

// This host's QEMU names its newest machine with a version.
func TestType(t *testing.T) {
	t.Parallel()
	if got := parseType([]byte("pc  Standard PC (alias of pc-i440fx-7.2)\nq35   Standard PC (Q35 + ICH9, 2009) (alias of pc-q35-7.2)\n")); got != "pc-q35-7.2" {
		t.Error(got)
	}
	if got := parseType([]byte("q35 no alias\nq35x (alias of pc-q35-9)\nq35 (alias of q35)")); got != "" {
		t.Error(got)
	}
	if _, err := exec.LookPath(accel.Program); err != nil {
		t.Skip("needs QEMU: scripts/setup lab")
	}
	if got, err := Type(t.Context()); err != nil || !versioned(got) {
		t.Error(got, err)
	}
}

func FuzzType(f *testing.F) {
	f.Add([]byte("q35   Standard PC (Q35 + ICH9, 2009) (alias of pc-q35-7.2)\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if name := parseType(b); name != "" && (!versioned(name) || strings.ContainsAny(name, " ,\n")) {
			t.Errorf("%q", name)
		}
	})
}
