package host

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/muster-hpc/muster/vm/host/hosttest"
)

// Whatever stands in the files, reading ends, and what it finds can be.
func FuzzRead(f *testing.F) {
	for _, tree := range hosttest.Names() {
		b, err := hosttest.Archive(tree)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 4096)])
	}
	for _, s := range []string{"0-16383", "0-999999999", "1-0", "-1", "9223372036854775807", "10 20", "2048kB", "DMAR\x00", "flags : vmx svm hypervisor", "MemTotal: 1 kB",
		"Node 0 MemTotal: 99999999999999 kB", "Max locked memory 8 8 bytes", "CapEff: ffff", "[always] madvise", "QEMU emulator version 7.x", "version ."} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tree := fstest.MapFS{}
		for _, name := range []string{
			"proc/cpuinfo", "proc/meminfo", "proc/cmdline", "proc/interrupts", "proc/self/limits", "proc/self/status",
			acpiTables + "DMAR", "sys/kernel/iommu_groups/1/type", "sys/class/iommu/dmar0/x", "dev/kvm", "sys/kernel/mm/ksm/run", "sys/kernel/mm/transparent_hugepage/enabled",
			"sys/devices/system/cpu/cpu0/topology/physical_package_id", "sys/devices/system/cpu/cpu0/topology/core_cpus_list",
			"sys/devices/system/cpu/cpu0/cache/index0/level", "sys/devices/system/cpu/cpu0/cache/index0/size", "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
			nodeDir + "node0/cpulist", nodeDir + "node0/meminfo", nodeDir + "node0/distance", nodeDir + "node0/hugepages/hugepages-2048kB/nr_hugepages",
			pciDir + "0000:01:00.0/class", pciDir + "0000:01:00.0/numa_node", pciDir + "0000:01:00.0/sriov_totalvfs", pciDir + "0000:01:00.0/sriov_numvfs",
		} {
			tree[name] = &fstest.MapFile{Data: b}
		}
		// Looking into such a tree for each of thousands of processors would take the time of the test.
		tree["sys/devices/system/cpu/online"] = &fstest.MapFile{Data: b[:min(len(b), 3)]}
		s := Source{FS: tree}
		h := s.Read()
		for _, n := range h.MemoryNodes {
			if n.Memory < 0 || n.Memory >= 1<<53 || len(n.Distances) != 0 && len(n.Distances) != len(h.MemoryNodes) {
				t.Errorf("%+v", n)
			}
			for _, p := range n.Pages {
				if p.Free < 0 || p.Free > p.Total {
					t.Errorf("%+v", p)
				}
			}
		}
		for _, d := range h.Devices {
			if v := d.Functions; v != nil && (v.Total < 0 || v.Enabled < 0 || v.Enabled > v.Total || v.Alone > v.Enabled) {
				t.Errorf("%+v", v)
			}
		}
		if top := s.Topology(); top != nil && top.Check() != nil {
			t.Errorf("%+v", top)
		}
		for _, found := range s.Check(t.Context()) {
			if found.Name == "" || found.Text == "" || !found.OK && found.Fix == "" {
				t.Errorf("%+v", found)
			}
		}
		if list := parseList(string(b)); len(list) > mostCPU || slices.ContainsFunc(list, func(n int) bool { return n < 0 || n >= mostCPU }) {
			t.Errorf("%d in the list", len(list))
		}
		qemuVersion(string(b))
	})
}
