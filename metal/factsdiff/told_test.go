package factsdiff

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/muster-hpc/muster"
)

func TestWords(t *testing.T) {
	t.Parallel()
	is := was()
	is.DIMMs, is.Memory, is.Disks, is.TPM = is.DIMMs[:1], 112<<30, is.Disks[1:], false
	list := Compare(was(), is)
	want := []string{"memory: 128 GiB before, 112 GiB now: " + list[0].Text, "disk: " + list[1].Text, "tpm: " + list[2].Text}
	if got := Words(was(), is, list); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if !Missing(list) || Missing(list[len(list)-1:]) || Missing(Compare(is, was())) {
		t.Error("what a machine lacks is told wrongly")
	}
	is = was()
	is.DIMMs, is.Memory = nil, 64<<30
	list = Compare(was(), is)
	if got := Words(was(), is, list); len(got) != 1 || got[0] != "memory: "+list[0].Text {
		t.Errorf("%q", got)
	}
}

// What one boot does not see, another saw; and what differs from boot to boot is no
// difference.
func TestKeptAndSame(t *testing.T) {
	t.Parallel()
	before := was()
	before.NICs[0].Neighbour = &muster.Neighbour{System: "sw1", Port: "3"}
	is := was()
	is.NICs[0].Name, is.NICs[0].Link, is.NICs[0].Speed, is.Memory, is.Disks[0].Name = "mgmt0", "down", 0, is.Memory-1<<20, "sdz"
	if Same(before, is) {
		t.Error("a neighbour that is gone is no difference")
	}
	kept := Kept(before, is)
	if kept.NICs[0].Neighbour == nil || kept.NICs[0].Speed != 25e9 || is.NICs[0].Neighbour != nil {
		t.Errorf("%+v", kept.NICs)
	}
	if !Same(before, kept) {
		t.Error("the same machine differs")
	}
	is.NICs[0].Neighbour = &muster.Neighbour{System: "sw1", Port: "4"}
	if Same(before, Kept(before, is)) {
		t.Error("another port is no difference")
	}
	is.Memory = 1 << 30
	if Same(is, before) {
		t.Error("lost memory is no difference")
	}
}

func FuzzBounded(f *testing.F) {
	one, _ := json.Marshal(was())
	f.Add(one)
	f.Add([]byte(`{"vm_host":{"virtualization":"x","memory_nodes":[{"id":-1,"memory_bytes":-5,"distances":[999],"pages":[{"size_bytes":-1,"total":-2,"free":9}]}],"devices":[{"address":"a\n,b","kind":"x","iommu_group":-1,"virtual_functions":{"total":5,"enabled":9,"alone":99}}]}}`))
	f.Add([]byte(`{"vendor":"a\u001b[2Jb","class":"x","cores":-5,"nics":[{"neighbour":{"text":"\n"},"use":"message"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var is muster.Facts
		if json.Unmarshal(data, &is) != nil {
			return
		}
		b := Bounded(is)
		if b.Class != "" || b.Rack != "" || b.Service || b.Cores < 0 || len(b.NICs) > mostParts {
			t.Fatalf("%+v", b)
		}
		if b.VMHost != nil {
			checkVMHost(t, b.VMHost)
		}
		if !Same(b, b) || !reflect.DeepEqual(Bounded(b), b) && !Same(Bounded(b), b) {
			t.Fatal("bounding twice is not bounding once")
		}
		for _, line := range Words(was(), b, Compare(was(), b)) {
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Fatalf("%q", line)
			}
		}
	})
}

// What only the server or one of two words can say is not believed.
func TestBoundedWords(t *testing.T) {
	t.Parallel()
	f := was()
	f.BootMode, f.Accelerators = "coreboot", []muster.Device{{Kind: "gpu", Model: "10de:2330", Name: "a lie", Count: 1}}
	if got := Bounded(f); got.BootMode != "" || got.Accelerators[0].Name != "" || got.Accelerators[0].Model != "10de:2330" {
		t.Errorf("%+v", got)
	}
	if f.BootMode = muster.BootModeUEFI; Bounded(f).BootMode != muster.BootModeUEFI {
		t.Error("a mode is lost")
	}
}

func checkVMHost(t *testing.T, h *muster.VMHost) {
	t.Helper()
	if len(h.Devices) > mostParts || len(h.MemoryNodes) > mostParts || h.Virtualization != "" && h.Virtualization != "vmx" && h.Virtualization != "svm" {
		t.Fatalf("%+v", h)
	}
	for _, n := range h.MemoryNodes {
		for _, p := range n.Pages {
			if n.ID < 0 || n.Memory < 0 || p.Size < 0 || p.Free < 0 || p.Free > p.Total {
				t.Fatalf("%+v", n)
			}
		}
	}
	for _, d := range h.Devices {
		if v := d.Functions; v != nil && (v.Enabled > v.Total || v.Alone > v.Enabled) || d.Group != nil && *d.Group < 0 || strings.ContainsFunc(d.Address+d.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%+v", d)
		}
	}
}

// What is free differs from moment to moment; what there is does not.
func TestVMHostSame(t *testing.T) {
	t.Parallel()
	with := func(free int64, kvm bool) muster.Facts {
		f := was()
		f.VMHost = &muster.VMHost{KVM: kvm, MemoryNodes: []muster.VMMemoryNode{{Pages: []muster.PagePool{{Size: 2 << 20, Total: 8, Free: free}}}}}
		return f
	}
	if !Same(with(1, true), with(2, true)) || Same(with(1, true), with(1, false)) || Same(was(), with(1, true)) {
		t.Error("what is free counts, or what there is does not")
	}
}
