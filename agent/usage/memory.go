package usage

import (
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/agent/facts"
)

// memory is what is in use without caches, and what there is.
func (s *Sampler) memory(p processes) (used, total int64) {
	if s.total == 0 {
		s.total = facts.Memory(s.root)
	}
	if !s.slice {
		m := fields(s.read("proc/meminfo"), ":")
		return max(0, m["MemTotal"]-m["MemAvailable"]) << 10, s.total
	}
	s.memoryGroup = true
	if now, ok := s.count("sys/fs/cgroup/memory.current"); ok {
		st := fields(s.read("sys/fs/cgroup/memory.stat"), ":")
		return max(0, now-max(0, st["file"]-st["shmem"])), s.total
	}
	for _, dir := range []string{"run/muster/cgroup/memory/", "sys/fs/cgroup/memory/"} {
		if now, ok := s.count(dir + "memory.usage_in_bytes"); ok {
			st := fields(s.read(dir+"memory.stat"), ":")
			return max(0, now-max(0, st["total_cache"]-st["total_shmem"])), s.total
		}
	}
	s.memoryGroup = false
	return p.anonymous + s.tmpfsUsed(), s.total
}

func (s *Sampler) count(name string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(string(s.read(name))), 10, 64)
	return n, err == nil && n >= 0
}
