package fault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-hpc/muster"
)

// join puts a process into every control group of a machine.
func (s *Site) join(id muster.MachineID, pid int) error {
	dirs := []string{filepath.Join(s.group(id), "muster-fault")}
	if err := os.Mkdir(dirs[0], 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(string(mounts), "\n") {
		left, _, ok := strings.Cut(line, " - cgroup ")
		f := strings.Fields(left)
		if !ok || len(f) < 5 {
			continue
		}
		dir := filepath.Join(f[4], s.name, string(id))
		if _, err := os.Stat(dir); err == nil {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0); err != nil {
			return err
		}
	}
	return nil
}
