package initramfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/muster-hpc/muster"
)

const release = "6.12.0-test"

func program() []byte { return []byte("\x7fELF the agent") }

// kernel has drivers that need each other, in all compressions.
func kernel(t testing.TB) fstest.MapFS {
	t.Helper()
	tree := fstest.MapFS{}
	add := func(name string, b []byte) { tree["usr/lib/modules/"+release+"/"+name] = &fstest.MapFile{Data: b} }
	mod := func(name, depends string, more ...string) []byte {
		return fakeModule(append([]string{"name=" + name, "depends=" + depends, "vermagic=" + release + " SMP"}, more...)...)
	}
	add("kernel/drivers/net/virtio_net.ko.xz", packXZ(t, mod("virtio_net", "net-failover,virtio", "alias=virtio:d00000001v*")))
	add("kernel/drivers/net/net_failover.ko.zst", packZstd(t, mod("net_failover", "failover")))
	add("kernel/net/core/failover.ko", mod("failover", ""))
	add("kernel/drivers/virtio/virtio.ko", mod("virtio", ""))
	add("kernel/drivers/net/ethernet/intel/e1000e/e1000e.ko", mod("e1000e", "ptp", "alias=pci:v00008086d000010D3sv*sd*bc*sc*i*", "softdep=pre: helper-mod post: gone"))
	add("kernel/lib/helper_mod.ko", mod("helper_mod", ""))
	add("kernel/fs/overlayfs/overlay.ko", mod("overlay", ""))
	add("kernel/fs/squashfs/squashfs.ko", mod("squashfs", ""))
	add("kernel/drivers/gpu/drm/big.ko", mod("big", ""))
	add("kernel/sound/sound.ko", mod("sound", ""))
	add("kernel/drivers/net/wireless/wifi.ko", mod("wifi", ""))
	add("modules.builtin", []byte("kernel/drivers/ptp/ptp.ko\n"))
	add("modules.order", []byte("x"))
	return tree
}

func packXZ(t testing.TB, b []byte) []byte {
	var out bytes.Buffer
	w, err := xz.NewWriter(&out)
	if err == nil {
		_, err = w.Write(b)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func packZstd(t testing.TB, b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

// read reads an archive as a kernel does.
func read(t testing.TB, b []byte) map[string]entry {
	t.Helper()
	out := map[string]entry{}
	at := 0
	align := func() { at = (at + 3) &^ 3 }
	for at+110 <= len(b) {
		if string(b[at:at+6]) != "070701" {
			t.Fatalf("no header at %d", at)
		}
		var n [13]int
		for i := range n {
			v, err := strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			n[i] = int(v)
		}
		at += 110
		name := string(b[at : at+n[11]-1])
		at += n[11]
		align()
		data := b[at : at+n[6]]
		at += n[6]
		align()
		if name == "TRAILER!!!" {
			return out
		}
		if n[2] != 0 || n[3] != 0 || n[5] != 0 {
			t.Errorf("%s has an owner or a time: %v", name, n)
		}
		out[name] = entry{name: name, mode: uint32(n[1]), data: data, major: uint32(n[9]), minor: uint32(n[10])}
	}
	t.Fatal("the archive has no end")
	return nil
}

func build(t testing.TB, m *Modules, c Compression) ([]byte, Report) {
	t.Helper()
	var out bytes.Buffer
	r, err := Build(&out, Options{Agent: program(), Modules: m, Compression: c, Also: map[string][]byte{"etc/x": []byte("y")}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Size != int64(out.Len()) {
		t.Errorf("%+v and %d bytes", r, out.Len())
	}
	return out.Bytes(), r
}

func fromFS(t testing.TB, tree fs.FS) *Modules {
	t.Helper()
	m, err := FromFS(tree)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestArchive(t *testing.T) {
	t.Parallel()
	b, r := build(t, fromFS(t, kernel(t)), Plain)
	got := read(t, b)
	var names []string
	for n, e := range got {
		if e.mode&0o170000 != typeDir {
			names = append(names, strings.TrimPrefix(n, "lib/modules/"+release+"/"))
		}
	}
	slices.Sort(names)
	want := []string{
		"dev/console", "dev/null", "etc/x", "init",
		"kernel/drivers/net/ethernet/intel/e1000e/e1000e.ko", "kernel/drivers/net/net_failover.ko", "kernel/drivers/net/virtio_net.ko",
		"kernel/drivers/virtio/virtio.ko", "kernel/fs/overlayfs/overlay.ko", "kernel/fs/squashfs/squashfs.ko",
		"kernel/lib/helper_mod.ko", "kernel/net/core/failover.ko",
		"modules.alias", "modules.builtin", "modules.dep", "modules.softdep", "sbin/modprobe",
	}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("\n%v\n%v", names, want)
	}
	if r.Modules != 8 || r.Release != release {
		t.Errorf("%+v", r)
	}
	if e := got["dev/console"]; e.mode != typeChar|0o600 || e.major != 5 || e.minor != 1 {
		t.Errorf("%+v", e)
	}
	if e := got["init"]; e.mode != typeFile|0o755 || !bytes.Equal(e.data, program()) {
		t.Errorf("%+v", e)
	}
	if e := got["sbin/modprobe"]; e.mode != typeLink|0o777 || string(e.data) != "/init" {
		t.Errorf("%+v", e)
	}
	text := func(n string) string { return string(got["lib/modules/"+release+"/"+n].data) }
	if !strings.Contains(text("modules.dep"), "kernel/drivers/net/virtio_net.ko: kernel/drivers/virtio/virtio.ko kernel/drivers/net/net_failover.ko kernel/net/core/failover.ko\n") {
		t.Error(text("modules.dep"))
	}
	if !strings.Contains(text("modules.alias"), "alias virtio:d00000001v* virtio_net\n") || text("modules.softdep") != "softdep e1000e pre: helper-mod post: gone\n" {
		t.Error(text("modules.alias"), text("modules.softdep"))
	}
	for _, dir := range []string{"proc", "sys", "run", "dev", "lib", "lib/modules"} {
		if got[dir].mode != typeDir|0o755 {
			t.Errorf("%s: %o", dir, got[dir].mode)
		}
	}
	// Plain modules, whatever they were before.
	if !bytes.HasPrefix(got["lib/modules/"+release+"/kernel/drivers/net/virtio_net.ko"].data, []byte("\x7fELF")) {
		t.Error("a module is still compressed")
	}
}

// The tar of an image gives the same bytes as a tree, twice, in every compression.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	tree := kernel(t)
	var names []string
	for n := range tree {
		names = append(names, n)
	}
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var tarred bytes.Buffer
	w := tar.NewWriter(&tarred)
	for _, n := range names {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: n, Mode: 0o644, Size: int64(len(tree[n].Data)), Format: tar.FormatPAX, PAXRecords: map[string]string{"comment": strings.Repeat("x", rand.IntN(700))}}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(tree[n].Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Compression{Zstd, Gzip, Plain} {
		want, _ := build(t, fromFS(t, tree), c)
		again, _ := build(t, fromFS(t, tree), c)
		m, err := FromTar(bytes.NewReader(tarred.Bytes()), int64(tarred.Len()))
		if err != nil {
			t.Fatal(err)
		}
		other, _ := build(t, m, c)
		if !bytes.Equal(want, again) || !bytes.Equal(want, other) {
			t.Errorf("%s: %d, %d and %d bytes differ", c, len(want), len(again), len(other))
		}
		var plain []byte
		switch c {
		case Zstd:
			z, err := zstd.NewReader(bytes.NewReader(want))
			if err != nil {
				t.Fatal(err)
			}
			plain, err = io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
		case Gzip:
			z, err := gzip.NewReader(bytes.NewReader(want))
			if err != nil {
				t.Fatal(err)
			}
			if plain, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		default:
			plain = want
		}
		if len(read(t, plain)) < 10 {
			t.Errorf("%s: little is in it", c)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	good := fromFS(t, kernel(t))
	spoiled := kernel(t)
	spoiled["usr/lib/modules/"+release+"/kernel/fs/overlayfs/overlay.ko"].Data = []byte("no module")
	foreign := kernel(t)
	foreign["usr/lib/modules/"+release+"/kernel/fs/overlayfs/overlay.ko"].Data = fakeModule("name=overlay", "vermagic=5.0 SMP")
	cut := kernel(t)
	x := cut["usr/lib/modules/"+release+"/kernel/drivers/net/virtio_net.ko.xz"]
	x.Data = x.Data[:len(x.Data)/2]
	for name, o := range map[string]Options{
		"no agent":     {Modules: good},
		"script":       {Modules: good, Agent: []byte("#!/bin/sh")},
		"no modules":   {Agent: program()},
		"no module":    {Agent: program(), Modules: fromFS(t, spoiled)},
		"other kernel": {Agent: program(), Modules: fromFS(t, foreign)},
		"cut off":      {Agent: program(), Modules: fromFS(t, cut)},
		"name":         {Agent: program(), Modules: good, Also: map[string][]byte{"../x": nil}},
		"twice":        {Agent: program(), Modules: good, Also: map[string][]byte{"init": nil}},
		"compression":  {Agent: program(), Modules: good, Compression: "lzo"},
	} {
		if _, err := Build(io.Discard, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	two := kernel(t)
	two["usr/lib/modules/5.0/kernel/x.ko"] = &fstest.MapFile{}
	if _, err := FromFS(two); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("two kernels: %v", err)
	}
	if _, err := FromFS(fstest.MapFS{}); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("no kernel: %v", err)
	}
	if _, err := FromTar(strings.NewReader(strings.Repeat("x", 1024)), 1024); muster.CodeOf(err) != muster.ECorrupt {
		t.Errorf("no tar: %v", err)
	}
}

// What others wrote reads the archive, too.
func TestCpio(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("no cpio")
	}
	b, _ := build(t, fromFS(t, kernel(t)), Plain)
	cmd := exec.Command("cpio", "-t", "--quiet")
	cmd.Stdin = bytes.NewReader(b)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "sbin/modprobe\n") {
		t.Errorf("%v: %s", err, out)
	}
}

// The kinds hold what a machine needs, and not what it does not.
func TestWanted(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]bool{
		"kernel/drivers/net/ethernet/intel/ice/ice.ko.xz":      true,
		"kernel/drivers/net/virtio_net.ko":                     true,
		"kernel/fs/squashfs/squashfs.ko.xz":                    true,
		"kernel/drivers/block/loop.ko.zst":                     true,
		"kernel/drivers/char/ipmi/ipmi_si.ko":                  true,
		"kernel/drivers/char/tpm/tpm_tis.ko":                   true,
		"kernel/drivers/nvme/host/nvme.ko":                     true,
		"kernel/drivers/gpu/drm/i915/i915.ko":                  false,
		"kernel/drivers/net/wireless/intel/iwlwifi/iwlwifi.ko": false,
		"kernel/drivers/net/ethernet/broadcom/bnx2x/bnx2x.ko":  false,
		"kernel/sound/core/snd.ko":                             false,
		"kernel/drivers/net/ethernet/mellanox/mlxsw/mlxsw.ko":  false,
		"drivers/net/virtio_net.ko":                            false,
		"kernel/fs/xfs/xfs.ko":                                 false,
	} {
		if Wanted(file) != want {
			t.Errorf("%s: %v", file, !want)
		}
	}
}

func FuzzModinfo(f *testing.F) {
	f.Add(fakeModule("name=a-b", "depends=c,d", "alias=pci:*", "softdep=pre: x"))
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readModinfo(b)
		if err != nil {
			return
		}
		for _, s := range append(append([]string{m.name}, m.alias...), m.softdep...) {
			if strings.ContainsAny(s, "\n\x00") {
				t.Fatalf("%q would break a line", s)
			}
		}
	})
}

func FuzzFromTar(f *testing.F) {
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := FromTar(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, n := range m.names() {
			_, _ = m.module(n)
		}
	})
}

func BenchmarkBuild(b *testing.B) {
	tree, agent := os.Getenv("MUSTER_TEST_KERNEL_TREE"), os.Getenv("MUSTER_TEST_AGENT")
	if tree == "" || agent == "" {
		b.Skip("MUSTER_TEST_KERNEL_TREE is a folder with usr/lib/modules, MUSTER_TEST_AGENT the agent's program")
	}
	program, err := os.ReadFile(filepath.Clean(agent))
	if err != nil {
		b.Fatal(err)
	}
	m := fromFS(b, os.DirFS(tree))
	for _, c := range []Compression{Zstd, Gzip} {
		b.Run(string(c), func(b *testing.B) {
			for b.Loop() {
				r, err := Build(io.Discard, Options{Agent: program, Modules: m, Compression: c})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(r.Size), "bytes")
				b.ReportMetric(float64(r.Modules), "modules")
			}
		})
	}
}

// The ports of InfiniBand cards are there before the image is.
func TestInfiniBandIsWanted(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]bool{
		"kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko": true, "kernel/drivers/infiniband/ulp/ipoib/ib_ipoib.ko.xz": true,
		"kernel/drivers/infiniband/ulp/srpt/ib_srpt.ko": false, "kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko": true,
	} {
		if Wanted(file) != want {
			t.Errorf("%s: %v", file, !want)
		}
	}
}
