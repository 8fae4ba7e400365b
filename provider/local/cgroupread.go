package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// file is the path of a file of a machine's unified group.
func (g *groups) file(id, name string) string { return filepath.Join(g.unified, id, name) }

// processes lists the processes of a machine, those of the groups that its
// init made among them.
func (g *groups) processes(id string) ([]int, error) {
	var out []int
	err := filepath.WalkDir(filepath.Join(g.unified, id), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP) {
			return nil
		}
		for line := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
				out = append(out, pid)
			}
		}
		return err
	})
	return out, err
}

// frozen reports whether a machine was frozen from outside.
func (g *groups) frozen(id string) bool {
	b, err := os.ReadFile(g.file(id, "cgroup.events"))
	return err == nil && strings.Contains(string(b), "frozen 1")
}
