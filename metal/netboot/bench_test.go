package netboot_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/netboot"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
	"github.com/muster-hpc/muster/metal/netboot/httpboot"
)

// everybody is a Directory in which every machine is known and boots the same.
type everybody struct{ boot netboot.Boot }

func (everybody) Decide(*netboot.Request) netboot.Verdict {
	return netboot.Verdict{Standing: dhcp.Known, Boot: "bench"}
}

func (everybody) Holds(netboot.MAC) bool { return false }

func (e everybody) Boot(number string) (netboot.Boot, bool) { return e.boot, number == "bench" }

// TestServe is no test but the server that scripts/bench-boot measures. Its
// environment names the interface; the directory with loaders, leases and the file
// that is fetched; and the MAC that may fetch it.
func TestServe(t *testing.T) {
	iface, dir := os.Getenv("MUSTER_NETBOOT_SERVE"), os.Getenv("MUSTER_NETBOOT_DIR")
	if iface == "" {
		t.Skip("scripts/bench-boot starts it")
	}
	m, err := dhcp.ParseMAC(os.Getenv("MUSTER_NETBOOT_MAC"))
	if err != nil {
		t.Fatal(err)
	}
	leases, err := dhcp.OpenLeaseFile(filepath.Join(dir, "leases"))
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddr("10.99.0.1")
	s, err := netboot.Open(netboot.Config{
		Interface: iface, Address: addr, LoaderDir: filepath.Join(dir, "tftp"), Clock: muster.SystemClock{}, Leases: leases, HTTPPort: 80,
		Networks: []netboot.Network{{
			Prefix: netip.PrefixFrom(addr, 16), Lease: time.Hour,
			Ranges: []dhcp.Range{{First: netip.MustParseAddr("10.99.16.1"), Last: netip.MustParseAddr("10.99.255.250")}},
		}},
		Connections: 1000, PerSource: 1000,
		Directory: everybody{netboot.Boot{MACs: []netboot.MAC{m}, Boot: httpboot.Boot{
			Number: "bench", Server: "https://10.99.0.1:7700", CA: strings.Repeat("ab", 32), Kernel: []string{filepath.Join(dir, "www", "file")},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := s.Run(ctx, func() { fmt.Println("ready") }); err != nil {
		t.Fatal(err)
	}
}
