package configure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// shapedNode is a machine of two sockets with two cores and two blocks of memory of 128 MiB
// each, as its kernel shows it. Writing to its files changes nothing by itself: kernel does
// what a kernel would.
func shapedNode(t *testing.T) (c *Configurer, root string, kernel func()) {
	t.Helper()
	root = t.TempDir()
	file := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for cpu := range 4 {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", cpu)
		file(dir+"topology/core_id", fmt.Sprint(cpu%2))
		file(dir+"topology/physical_package_id", fmt.Sprint(cpu/2))
		file(dir+fmt.Sprintf("node%d/cpulist", cpu/2), "")
		if cpu > 0 { // the first one has no such file
			file(dir+"online", "1")
		}
	}
	for block := range 4 {
		file(fmt.Sprintf("sys/devices/system/memory/memory%d/state", block), "online")
		file(fmt.Sprintf("sys/devices/system/node/node%d/memory%d/state", block/2, block), "")
	}
	file("proc/cmdline", "initrd=initramfs numa_balancing=disable\n")
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return "1"
		}
		return string(b)
	}
	kernel = func() {
		n := 0
		for block := range 4 {
			if read(fmt.Sprintf("sys/devices/system/memory/memory%d/state", block)) != "offline" {
				n++
			}
		}
		file("proc/meminfo", fmt.Sprintf("MemTotal: %d kB\n", n*128<<10))
	}
	kernel()
	c = New(Options{Root: root, NoOwners: true, Run: tcRunner{}, Affinity: func() (ids []int, _ error) {
		kernel()
		for cpu := range 4 {
			if read(fmt.Sprintf("sys/devices/system/cpu/cpu%d/online", cpu))[:1] == "1" {
				ids = append(ids, cpu)
			}
		}
		return ids, nil
	}})
	return c, root, kernel
}

// tcRunner has links that are held to what was asked last.
type tcRunner map[string]string

func (r tcRunner) Run(_ context.Context, _, name string, args ...string) (string, error) {
	if name != "tc" {
		return "", errors.New("only tc is here")
	}
	line := strings.Join(args, " ")
	if _, rest, ok := strings.Cut(line, " rate "); ok {
		r["rate"], _, _ = strings.Cut(rest, " ")
		return "", nil
	}
	return "qdisc tbf 1: root refcnt 2 rate " + strings.Replace(strings.TrimSuffix(r["rate"], "000000000bit")+"Gbit", "bitGbit", "bit", 1) + " burst 250Kb lat 8ms \n", nil
}

func TestShapeIsMade(t *testing.T) {
	t.Parallel()
	c, root, _ := shapedNode(t)
	if err := os.MkdirAll(filepath.Join(root, "sys/class/net/msg0"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.run = tcRunner{}
	cfg := &wire.NodeConfig{Shape: &wire.NodeShape{Make: true, Cores: 2, Sockets: 1, KernelArgs: []string{"numa_balancing=disable"}, LinkRate: 1e9}}
	for range 2 { // again after a restart of the agent
		if err := c.shape(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	online, err := c.o.Affinity()
	if err != nil || fmt.Sprint(online) != "[0 1]" {
		t.Errorf("online are %v %v", online, err)
	}
	// A node without a shape is left as it is.
	if err := c.shape(t.Context(), &wire.NodeConfig{}); err != nil {
		t.Error(err)
	}
}

// What is not as it was asked for is a failure, with both values.
func TestShapeIsReadBack(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		shape wire.NodeShape
		want  []string
	}{
		"cores":    {wire.NodeShape{Cores: 2}, []string{"2 asked", "4 online"}},
		"sockets":  {wire.NodeShape{Sockets: 1}, []string{"1 asked", "2 online"}},
		"memory":   {wire.NodeShape{Memory: 256 << 20}, []string{"256 MiB", "512 MiB"}},
		"too many": {wire.NodeShape{Make: true, Cores: 6}, []string{"6 cores", "4"}},
		"argument": {wire.NodeShape{KernelArgs: []string{"numa=off"}}, []string{"numa=off"}},
		"stuck":    {wire.NodeShape{Make: true, Memory: 256 << 20}, []string{"256 MiB", "512 MiB"}}, // no block goes
		"no link":  {wire.NodeShape{Make: true, LinkRate: 1e9}, []string{"1000000000", "none"}},
	} {
		c, _, _ := shapedNode(t)
		err := c.shape(t.Context(), &wire.NodeConfig{Shape: &x.shape})
		var e *muster.Error
		if !errors.As(err, &e) || e.Reason != muster.ReasonWrongShape {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range x.want {
			if !strings.Contains(e.Message, w) {
				t.Errorf("%s: %q does not say %q", name, e.Message, w)
			}
		}
	}
}

func TestTBFRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"qdisc tbf 1: root refcnt 2 rate 1Gbit burst 249999b lat 4ms \n":     1e9,
		"qdisc tbf 1: root refcnt 2 rate 200Mbit burst 128Kb limit 512Kb \n": 200e6,
		"qdisc tbf 1: root refcnt 2 rate 1500Kbit burst 128Kb lat 0us":       1500e3,
		"qdisc tbf 1: root refcnt 2 rate 7bit burst 128Kb":                   7,
		"qdisc noqueue 0: root refcnt 2 \n":                                  0,
		"":                                                                   0, "qdisc tbf 1: rate 99999999999999999999Gbit ": 0,
	} {
		if got := tbfRate(text); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func FuzzTBFRate(f *testing.F) {
	f.Add("qdisc tbf 1: root refcnt 2 rate 1Gbit burst 249999b lat 4ms")
	f.Fuzz(func(t *testing.T, text string) {
		if n := tbfRate(text); n < 0 {
			t.Fatal(n)
		}
	})
}
