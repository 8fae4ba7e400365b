package host

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30

	capSysResource = 24
)

// hugePages looks at the huge pages of each memory node: a sum would hide an empty one.
func (c *check) hugePages(p processor) {
	nodes := c.memoryNodes()
	for _, n := range nodes {
		if n.Memory == 0 {
			continue
		}
		name := "huge-pages:node" + strconv.Itoa(n.ID)
		var have []string
		total := int64(0)
		for _, pool := range n.Pages {
			total += pool.Total
			have = append(have, fmt.Sprintf("%d of %d of %s free", pool.Free, pool.Total, plaintext.Bytes(pool.Size)))
		}
		switch {
		case len(n.Pages) == 0:
			c.bad(name, "the kernel has no huge pages", "use a kernel with CONFIG_HUGETLBFS")
		case total == 0:
			// About what the plan of a whole host takes: it leaves 2 GiB, and a sixty-fourth.
			want := max(n.Memory-n.Memory/64-2*gib/int64(len(nodes)), n.Memory/2) / (2 * mib)
			c.bad(name, "none set aside: "+strings.Join(have, ", "), fmt.Sprintf(
				"echo %d > /%shugepages/hugepages-2048kB/nr_hugepages, soon after the boot while memory is in one piece%s", want, nodePath(n.ID), c.gigantic(p, n)))
		default:
			c.good(name, "%s", strings.Join(have, ", "))
		}
	}
	if len(nodes) == 0 {
		c.bad("huge-pages", "the kernel shows no memory nodes and no memory", "mount /proc and /sys")
	}
}

// gigantic is how pages of 1 GiB are had, where the processor can have them.
func (c *check) gigantic(p processor, n muster.VMMemoryNode) string {
	count := (n.Memory - n.Memory/64 - 2*gib) / gib
	if !p.has("pdpe1gb") || count < 1 {
		return ""
	}
	return fmt.Sprintf("; pages of 1 GiB instead, by kernel arguments: hugepagesz=1G hugepages=%d:%d", n.ID, count)
}

// memlock looks at how much memory a process started from here may lock.
func (c *check) memlock() {
	const name = "memlock"
	for line := range strings.Lines(c.text("proc/self/limits")) {
		rest, ok := strings.CutPrefix(line, "Max locked memory")
		if !ok {
			continue
		}
		w := strings.Fields(rest)
		if len(w) < 2 {
			break
		}
		if w[0] == "unlimited" {
			c.good(name, "unlimited")
			return
		}
		limit, err := strconv.ParseInt(w[0], 10, 64)
		if err != nil || limit < 0 {
			break
		}
		if w[1] == "unlimited" || c.capable(capSysResource) {
			c.good(name, "%s, and this process may raise it for QEMU", plaintext.Bytes(limit))
			return
		}
		c.bad(name, plaintext.Bytes(limit)+", and this process may not raise it: QEMU locks all memory of a virtual machine with a passed-through device",
			"LimitMEMLOCK=infinity in the unit that starts the server, or 'ulimit -l unlimited' in the shell of root that does")
		return
	}
	c.bad(name, "the limit cannot be read", "mount /proc")
}

// capable reports whether this process has a capability, by its number.
func (c *check) capable(number uint) bool {
	for line := range strings.Lines(c.text("proc/self/status")) {
		if rest, ok := strings.CutPrefix(line, "CapEff:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			return err == nil && mask&(1<<number) != 0
		}
	}
	return false
}

func (c *check) merging() {
	switch c.text("sys/kernel/mm/ksm/run") {
	case "1":
		c.bad("ksm", "the kernel merges equal pages (KSM): it costs time, and virtual machines can learn of each other's memory", "echo 2 > /sys/kernel/mm/ksm/run; systemctl disable --now ksmtuned ksm")
	case "":
		c.good("ksm", "the kernel has none")
	default:
		c.good("ksm", "off")
	}
}

func (c *check) transparent() {
	_, after, ok := strings.Cut(c.text("sys/kernel/mm/transparent_hugepage/enabled"), "[")
	mode, _, closed := strings.Cut(after, "]")
	switch {
	case !ok || !closed:
		c.good("transparent-huge-pages", "the kernel has none; tuned virtual machines do not use them")
	case mode == "never":
		c.bad("transparent-huge-pages", "never: untuned virtual machines lie in small pages", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
	default:
		c.good("transparent-huge-pages", "%s; tuned virtual machines do not use them", mode)
	}
}
