package hibernate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// The swap area is as mkswap makes it, and leaves the note's page alone.
func TestSwapHeader(t *testing.T) {
	t.Parallel()
	p := bytes.Repeat([]byte{7}, page)
	if err := swapHeader(p, 1<<20, [16]byte{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if version, last := binary.NativeEndian.Uint32(p[1024:]), binary.NativeEndian.Uint32(p[1028:]); version != 1 || last != 1<<20/page-2 {
		t.Errorf("version %d, last page %d", version, last)
	}
	if string(p[page-10:]) != "SWAPSPACE2" || binary.NativeEndian.Uint32(p[1032:]) != 0 || p[1036] != 1 || p[0] != 0 {
		t.Errorf("%q", p[1024:1060])
	}
	if swapHeader(p, 8*page, [16]byte{}) == nil {
		t.Error("nothing fits there")
	}
}

func notePage(text string) []byte {
	p := make([]byte, page)
	binary.BigEndian.PutUint32(p, uint32(len(text)))
	copy(p[4:], text)
	return p
}

func TestParseNote(t *testing.T) {
	t.Parallel()
	want := wire.HostJoin{Machine: "m1", Attempt: 7, Token: "mjt_x"}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parseNote(notePage(string(b))); err != nil || got.Machine != "m1" || got.Attempt != 7 || got.Token != "mjt_x" {
		t.Errorf("%+v %v", got, err)
	}
	long := notePage(string(b))
	binary.BigEndian.PutUint32(long, page)
	for name, p := range map[string][]byte{
		"nothing": nil, "an empty page": make([]byte, page), "longer than the page": long, "no note": notePage("{}"),
		"no token": notePage(`{"machine":"m1","attempt":7}`), "no JSON": notePage("x"), "an attempt below one": notePage(`{"machine":"m1","attempt":0,"token":"t"}`),
	} {
		if got, err := parseNote(p); muster.CodeOf(err) != muster.ECorrupt {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

func FuzzParseNote(f *testing.F) {
	f.Add(notePage(`{"machine":"m1","attempt":7,"token":"mjt_x"}`))
	f.Fuzz(func(t *testing.T, p []byte) {
		if j, err := parseNote(p); err == nil && (j.Machine == "" || j.Token == "" || j.Attempt < 1) {
			t.Fatalf("%+v", j)
		}
	})
}

// A request to the device mapper is laid out as the kernel has it.
func TestTable(t *testing.T) {
	t.Parallel()
	b, err := table("muster-memory", "crypt", "aes-xts-plain64 00 0 254:0 2048", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	e := binary.NativeEndian
	if e.Uint32(b) != 4 || e.Uint32(b[12:]) != uint32(len(b)) || e.Uint32(b[16:]) != 312 || e.Uint32(b[20:]) != 1 || e.Uint32(b[28:])&(1<<15) == 0 {
		t.Errorf("header %v", b[:48])
	}
	x := b[312:]
	if got := string(bytes.TrimRight(b[48:48+128], "\x00")); got != "muster-memory" || e.Uint64(x) != 0 || e.Uint64(x[8:]) != 2048 || int(e.Uint32(x[20:])) != len(x) || len(x)%8 != 0 {
		t.Errorf("%q, target %v", got, x[:40])
	}
	if kind, params := string(bytes.TrimRight(x[24:40], "\x00")), string(bytes.TrimRight(x[40:], "\x00")); kind != "crypt" || params != "aes-xts-plain64 00 0 254:0 2048" {
		t.Errorf("%q %q", kind, params)
	}
	if _, err := table("", "crypt", "", 512); err == nil {
		t.Error("a device without a name")
	}
	if _, err := table("x", "crypt", "", 100); err == nil {
		t.Error("a part of a sector")
	}
	if dmRequest(dmCreate) != 0xc138fd03 {
		t.Errorf("%x", dmRequest(dmCreate))
	}
}

// Why is empty on a machine that can, and names everything that is in the way.
func TestWhy(t *testing.T) {
	t.Parallel()
	tree := func(files map[string]string) Kernel {
		root := t.TempDir()
		for name, text := range files {
			at := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return Kernel{Root: root}
	}
	good := map[string]string{"sys/power/state": "freeze mem disk\n", "sys/kernel/security/lockdown": "[none] integrity confidentiality\n", "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n", "sys/class/kfd/kfd/topology/nodes/0/gpu_id": "0\n"}
	if why := tree(good).Why(); len(why) > 0 {
		t.Error(why)
	}
	for name, x := range map[string]struct{ file, text, want string }{
		"lockdown":   {"sys/kernel/security/lockdown", "none [integrity] confidentiality\n", "locked down (integrity)"},
		"no support": {"sys/power/state", "freeze mem\n", "CONFIG_HIBERNATION"},
		"RDMA":       {"sys/class/infiniband/mlx5_0", "", "RDMA devices (mlx5_0)"},
		"a GPU":      {"dev/nvidia0", "", "accelerators (nvidia0)"},
		"AMD's":      {"sys/class/kfd/kfd/topology/nodes/1/gpu_id", "4711\n", "accelerators (kfd)"},
		"swap":       {"proc/swaps", "Filename\tType\n/dev/sda2 partition 1 0 -2\n", "/dev/sda2"},
	} {
		files := map[string]string{}
		for k, v := range good {
			files[k] = v
		}
		files[x.file] = x.text
		if name == "lockdown" {
			files["sys/power/state"] = "freeze mem\n"
		}
		if why := strings.Join(tree(files).Why(), "; "); !strings.Contains(why, x.want) || strings.Contains(why, "; ") {
			t.Errorf("%s: %q", name, why)
		}
	}
}
