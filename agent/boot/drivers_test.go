package boot

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

const (
	testDep = "kernel/net/virtio_net.ko: kernel/virtio.ko kernel/net/net_failover.ko kernel/net/failover.ko\n" +
		"kernel/net/net_failover.ko: kernel/net/failover.ko\nkernel/net/failover.ko:\nkernel/virtio.ko:\nkernel/e1000e.ko:\nkernel/helper-mod.ko:\n" +
		"kernel/later.ko:\nkernel/broken.ko: kernel/gone.ko\n/etc/x.ko:\n../y.ko:\nkernel/nvme.ko:\n"
	testAlias = "alias virtio:d00000001v* virtio_net\nalias pci:v00008086d000010D3sv*sd*bc*sc*i* e1000e\nalias pci:v*d*sv*sd*bc01sc08i02* nvme\n" +
		"alias pci:v00008086d000010D[0-4]sv*sd*bc*sc*i* later\n# alias x y\nalias fs-squashfs virtio\n"
	testSoft    = "softdep e1000e pre: helper-mod post: later gone\n"
	testBuiltin = "kernel/drivers/ptp/ptp.ko\n"
)

func table() *Table { return ParseTable(testDep, testAlias, testSoft, testBuiltin) }

func TestTable(t *testing.T) {
	t.Parallel()
	tb := table()
	for modalias, want := range map[string][]string{
		"virtio:d00000001v00001AF4":                             {"virtio_net"},
		"pci:v00008086d000010D3sv00001AF4sd00001100bc02sc00i00": {"e1000e", "later"},
		"pci:v00001B36d00000010sv00001AF4sd00001100bc01sc08i02": {"nvme"},
		"fs-squashfs": {"virtio"}, "virtio": {"virtio"}, "helper-mod": {"helper_mod"}, "usb:v1": nil, "": nil,
	} {
		if got := tb.For(modalias); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, not %v", modalias, got, want)
		}
	}
	for name, want := range map[string][]string{
		"virtio_net": {"kernel/net/failover.ko", "kernel/net/net_failover.ko", "kernel/virtio.ko", "kernel/net/virtio_net.ko"},
		"virtio-net": {"kernel/net/failover.ko", "kernel/net/net_failover.ko", "kernel/virtio.ko", "kernel/net/virtio_net.ko"},
		"e1000e":     {"kernel/helper-mod.ko", "kernel/e1000e.ko", "kernel/later.ko"},
		"ptp":        nil,
	} {
		if got, ok := tb.Order(name); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %v", name, got, ok)
		}
	}
	for _, name := range []string{"broken", "gone", "x", "y"} {
		if got, ok := tb.Order(name); ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What the kernel has user space load for InfiniBand is loaded with the card's driver.
func TestCompanions(t *testing.T) {
	t.Parallel()
	const dep = "kernel/ib_core.ko:\nkernel/mlx5_ib.ko: kernel/ib_core.ko\nkernel/ib_ipoib.ko: kernel/ib_core.ko\n"
	k := &fakeKernel{devices: []string{"auxiliary:mlx5_core.rdma"}}
	NewDrivers(ParseTable(dep, "alias auxiliary:mlx5_core.rdma mlx5_ib\n", "", ""), k, nil, nil).Walk()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, file := range []string{"kernel/mlx5_ib.ko", "kernel/ib_ipoib.ko"} {
		if !slices.Contains(k.loaded, file) {
			t.Errorf("%s is not loaded: %v", file, k.loaded)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add(testDep, testAlias, testSoft, testBuiltin, "pci:v00008086")
	f.Add("a.ko: b.ko\nb.ko: a.ko\n", "alias [ a\nalias a[b-] b", "softdep a pre: b a post: a", "", "a")
	f.Fuzz(func(t *testing.T, dep, alias, soft, builtin, name string) {
		tb := ParseTable(dep, alias, soft, builtin)
		for _, n := range append(tb.For(name), name) {
			files, _ := tb.Order(n)
			seen := map[string]bool{}
			for _, x := range files {
				if seen[x] || strings.HasPrefix(x, "/") || !filepath.IsLocal(x) {
					t.Fatalf("%q", files)
				}
				seen[x] = true
			}
		}
	})
}

// fakeKernel shows devices as drivers are loaded.
type fakeKernel struct {
	mu      sync.Mutex
	devices []string
	brings  map[string]string // file: device
	fails   map[string]error
	loaded  []string
}

func (k *fakeKernel) Modaliases() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.devices)
}

func (k *fakeKernel) Load(file string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loaded = append(k.loaded, file)
	if d := k.brings[file]; d != "" {
		k.devices = append(k.devices, d)
	}
	return k.fails[file]
}

func TestDrivers(t *testing.T) {
	t.Parallel()
	k := &fakeKernel{
		devices: []string{"pci:v00001B36d00000010sv00001AF4sd00001100bc01sc08i02", "pci:v00008086d000010D3sv00001AF4sd00001100bc02sc00i00"},
		brings:  map[string]string{"kernel/nvme.ko": "virtio:d00000001v00001AF4"},
		fails:   map[string]error{"kernel/virtio.ko": errors.New("no such device")},
	}
	var failed []string
	d := NewDrivers(table(), k, []string{"later"}, func(f string, _ error) { failed = append(failed, f) })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	d.Watch(ctx, muster.SystemClock{})
	at := func(f string) int { return slices.Index(k.loaded, f) }
	if at("kernel/net/virtio_net.ko") < 0 || at("kernel/net/failover.ko") > at("kernel/net/net_failover.ko") || at("kernel/net/net_failover.ko") > at("kernel/net/virtio_net.ko") {
		t.Errorf("%v", k.loaded)
	}
	if !reflect.DeepEqual(failed, []string{"kernel/virtio.ko"}) {
		t.Errorf("failed: %v", failed)
	}
	n := len(k.loaded)
	if slices.Sort(k.loaded); len(slices.Compact(k.loaded)) != n {
		t.Errorf("a file was loaded twice: %v", k.loaded)
	}
	// What is on the blacklist is not loaded for a device; what another needs is.
	if k2 := (&fakeKernel{devices: k.devices[1:2]}); true {
		NewDrivers(table(), k2, []string{"e1000e", "later"}, nil).Walk()
		if len(k2.loaded) > 0 {
			t.Errorf("%v", k2.loaded)
		}
	}
}
