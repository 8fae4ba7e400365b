package facts

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// groupLimits are the files that may hold the machine's memory limit: the
// unified hierarchy, then the old one as the local provider shows it inside.
func groupLimits() []string {
	return []string{
		"sys/fs/cgroup/memory.max",
		"run/muster/cgroup/memory/memory.limit_in_bytes",
		"sys/fs/cgroup/memory/memory.limit_in_bytes",
	}
}

// Memory is the memory that a machine below root may use, in bytes: what its
// kernel has, or the limit of its control group where that is less.
func Memory(root string) int64 {
	total := parseMeminfo(read(root, "proc/meminfo"))["MemTotal"]
	for _, name := range groupLimits() {
		n, err := strconv.ParseInt(strings.TrimSpace(string(read(root, name))), 10, 64)
		if err == nil && n > 0 && (total == 0 || n < total) {
			total = n
		}
	}
	return total
}

func read(root, name string) []byte {
	b, err := os.ReadFile(filepath.Join("/", root, name))
	if err != nil {
		return nil
	}
	return b
}

// parseMeminfo reads /proc/meminfo, or that of one memory node, in bytes.
func parseMeminfo(b []byte) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(string(b)) {
		name, rest, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		// "MemTotal" here, "Node 0 MemTotal" in a memory node.
		words, value := strings.Fields(name), strings.Fields(rest)
		if len(words) == 0 || len(value) == 0 {
			continue
		}
		n, err := strconv.ParseInt(value[0], 10, 64)
		if err != nil || n < 0 || n > 1<<52 {
			continue
		}
		if len(value) > 1 && value[1] == "kB" {
			n <<= 10
		}
		out[words[len(words)-1]] = n
	}
	return out
}
