package local_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
)

// BenchmarkBoot measures from the order to boot until sshd answers on every
// machine, and from the order to stop until all are cleaned.
func BenchmarkBoot(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprintf("machines=%d", n), func(b *testing.B) {
			p := open(b, fmt.Sprintf("%d,memory=1GiB", n), func(c *local.Config) { c.Instance = "b" + c.Instance })
			net := provider.Network{Cluster: "c-bench", Index: 0, Subnet: netip.MustParsePrefix("10.128.0.0/20")}
			if err := p.EnsureNetworks(b.Context(), []provider.Network{net}); err != nil {
				b.Fatal(err)
			}
			var running, up, off, clean, cpu time.Duration
			for range b.N {
				w := wants(n, &net)
				start := time.Now()
				if errs := p.Ensure(b.Context(), w); errs != nil {
					b.Fatal(errs)
				}
				running += time.Since(start)
				each(w, func(id muster.MachineID) { sshUp(b, p, id) })
				up += time.Since(start)
				cpu += usage(b)
				start = time.Now()
				each(w, func(id muster.MachineID) {
					if _, err := p.Fence(b.Context(), id); err != nil {
						b.Error(err)
					}
				})
				off += time.Since(start)
				each(w, func(id muster.MachineID) {
					if _, err := p.Clean(b.Context(), id); err != nil {
						b.Error(err)
					}
				})
				clean += time.Since(start)
			}
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(b.N) }
			b.ReportMetric(ms(running), "ms-init")
			b.ReportMetric(ms(up), "ms-sshd")
			b.ReportMetric(ms(cpu)/float64(n), "ms-cpu/machine")
			b.ReportMetric(ms(off), "ms-off")
			b.ReportMetric(ms(clean), "ms-clean")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// usage is what all machines of benchmarks have used of the processors so far.
func usage(b *testing.B) time.Duration {
	b.Helper()
	found, err := filepath.Glob("/sys/fs/cgroup/unified/muster-b*/local-*/cpu.stat")
	if err != nil {
		b.Fatal(err)
	}
	var sum time.Duration
	for _, f := range found {
		text, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		var us int64
		if _, err := fmt.Sscanf(string(text), "usage_usec %d", &us); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(us) * time.Microsecond
	}
	return sum
}

func each(w []provider.DesiredState, f func(muster.MachineID)) {
	var wg sync.WaitGroup
	for i := range w {
		wg.Go(func() { f(w[i].Machine) })
	}
	wg.Wait()
}
