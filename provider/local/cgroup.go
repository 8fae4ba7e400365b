package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/cpulist"
)

// limits are what a machine may use.
type limits struct {
	CPUs   []int // cores of this host
	Mems   string
	Memory int64 // bytes
	Pids   int
	// Pages are bytes of huge pages of PageSize that it may have, and none of others. PageSize 0: nothing is bounded.
	Pages, PageSize int64
}

// groups makes and removes the control groups of machines. It has one form for
// hosts with old hierarchies (v1, with the unified one beside them) and one
// for hosts with only the unified hierarchy (v2). In both forms the unified
// group is the truth about which processes a machine has: they are frozen,
// killed and counted there, and the machine's systemd owns the part below.
type groups struct {
	unified string            // directory of this instance in the unified hierarchy
	v1      map[string]string // controller -> directory of this instance
	scope   *scope            // in which unified is, where systemd rules it
}

// v1Controllers are used where they are old hierarchies. The name=systemd one
// is there so that a host's systemd does not count a machine to the server.
func v1Controllers() []string { return []string{"cpuset", "memory", "pids", "name=systemd"} }

// groupLimit is how many control groups a machine may make. A system has some dozens,
// each step of a job a few.
const groupLimit = 4096

// v2Controllers are switched on for machines in the v2 form.
const v2Controllers = "+cpuset +memory +pids"

// create makes the control groups of a machine and gives its part of the
// unified hierarchy to the machine's root.
func (g *groups) create(id string, l *limits, root int) error {
	if err := g.prepare(l.Mems); err != nil {
		return err
	}
	for c, dir := range g.v1 {
		d := filepath.Join(dir, id)
		if err := mkdir(d); err != nil {
			return err
		}
		if err := writeSettings(d, v1Settings(c, l)); err != nil {
			return err
		}
	}
	d := filepath.Join(g.unified, id)
	if err := mkdir(d); err != nil {
		return err
	}
	if err := g.boundPages(d, l); err != nil {
		return err
	}
	// Those below are the machine's to make, and the kernel's to keep.
	settings := []setting{{"cgroup.max.descendants", strconv.Itoa(groupLimit)}, {"cgroup.max.depth", "32"}}
	if !g.old() {
		settings = append(settings, v2Settings(l)...)
	}
	if err := writeSettings(d, settings); err != nil {
		return err
	}
	for _, f := range []string{"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		if err := os.Chown(filepath.Join(d, f), root, root); err != nil {
			return err
		}
	}
	return nil
}

// boundPages bounds a machine's huge pages, which no limit of memory counts, where the kernel can.
func (g *groups) boundPages(dir string, l *limits) error {
	if l.PageSize == 0 {
		return nil
	}
	for _, up := range []string{filepath.Dir(g.unified), g.unified} {
		// Where systemd rules it, or an old hierarchy has it, it cannot be.
		_ = os.WriteFile(filepath.Join(up, "cgroup.subtree_control"), []byte("+hugetlb"), 0o644)
	}
	files, err := filepath.Glob(filepath.Join(dir, "hugetlb.*.max"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if strings.HasSuffix(f, ".rsvd.max") {
			continue
		}
		most := int64(0)
		if filepath.Base(f) == pagesFile(l.PageSize) {
			most = l.Pages
		}
		if err := os.WriteFile(f, []byte(strconv.FormatInt(most, 10)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pagesFile is the kernel's name of the bound of huge pages of a size.
func pagesFile(size int64) string {
	if size >= 1<<30 {
		return fmt.Sprintf("hugetlb.%dGB.max", size>>30)
	}
	return fmt.Sprintf("hugetlb.%dMB.max", size>>20)
}

// old reports whether this is the v1 form.
func (g *groups) old() bool { return len(g.v1) > 0 }

// prepare makes the groups of the instance itself.
func (g *groups) prepare(mems string) error {
	for c, dir := range g.v1 {
		if err := mkdir(dir); err != nil {
			return err
		}
		if c != "cpuset" {
			continue
		}
		// A new group of this hierarchy has no cores until it is given some.
		for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
			all, err := os.ReadFile(filepath.Join(filepath.Dir(dir), f))
			if err != nil {
				return err
			}
			if err := writeSettings(dir, []setting{{f, strings.TrimSpace(string(all))}}); err != nil {
				return err
			}
		}
	}
	if err := mkdir(g.unified); err != nil {
		return err
	}
	if g.old() {
		return nil
	}
	if g.scope == nil {
		// Without a systemd that has done it, the root must hand them down.
		root := filepath.Dir(g.unified)
		if err := writeSettings(root, []setting{{"cgroup.subtree_control", v2Controllers}}); err != nil {
			return err
		}
	}
	return writeSettings(g.unified, []setting{{"cgroup.subtree_control", v2Controllers}})
}

type setting struct{ file, value string }

func v1Settings(controller string, l *limits) []setting {
	switch controller {
	case "cpuset":
		return []setting{{"cpuset.mems", l.Mems}, {"cpuset.cpus", cpulist.Format(l.CPUs)}}
	case "memory":
		// Memory and swap together: a machine that runs out of one must not
		// drive the host into the other.
		limit := strconv.FormatInt(l.Memory, 10)
		// What its sockets hold is counted apart here, and bounded by nothing else.
		return []setting{{"memory.limit_in_bytes", limit}, {"memory.memsw.limit_in_bytes", limit},
			{"memory.kmem.tcp.limit_in_bytes", limit}}
	case "pids":
		return []setting{{"pids.max", strconv.Itoa(l.Pids)}}
	}
	return nil
}

func v2Settings(l *limits) []setting {
	return []setting{
		{"cpuset.mems", l.Mems},
		{"cpuset.cpus", cpulist.Format(l.CPUs)},
		{"memory.max", strconv.FormatInt(l.Memory, 10)},
		{"memory.swap.max", "0"},
		{"pids.max", strconv.Itoa(l.Pids)},
	}
}

func writeSettings(dir string, set []setting) error {
	for _, s := range set {
		err := os.WriteFile(filepath.Join(dir, s.file), []byte(s.value), 0o644)
		optional := s.file == "memory.swap.max" || s.file == "memory.memsw.limit_in_bytes" || s.file == "memory.kmem.tcp.limit_in_bytes"
		if optional && errors.Is(err, os.ErrNotExist) {
			continue // a kernel without swap accounting, or one that counts sockets as any memory
		}
		if err != nil {
			return fmt.Errorf("set %s to %s: %w", s.file, s.value, err)
		}
	}
	return nil
}

// enter moves a process into the groups of a machine.
func (g *groups) enter(id string, pid int) error {
	p := []byte(strconv.Itoa(pid))
	for _, dir := range g.v1 {
		if err := os.WriteFile(filepath.Join(dir, id, "cgroup.procs"), p, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(g.unified, id, "cgroup.procs"), p, 0o644)
}

// gone reports whether an access to a group's file failed because the group is not
// there: it was removed before the file was opened, or between that and the access.
func gone(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) }

// populated reports whether any process is left in a machine's groups.
func (g *groups) populated(id string) (bool, error) {
	b, err := os.ReadFile(filepath.Join(g.unified, id, "cgroup.events"))
	if gone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return strings.Contains(string(b), "populated 1"), nil
}

// freeze stops every process of a machine.
func (g *groups) freeze(id string, on bool) error {
	v := "0"
	if on {
		v = "1"
	}
	err := os.WriteFile(filepath.Join(g.unified, id, "cgroup.freeze"), []byte(v), 0o644)
	if gone(err) {
		return nil
	}
	return err
}

// signal kills every process of a machine and does not wait.
func (g *groups) signal(id string) error {
	dir := filepath.Join(g.unified, id)
	// A boot may make the group between the two looks: then it is there, with the
	// file, at the next one.
	var err error
	for range 100 {
		err = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0o644)
		if !gone(err) {
			return err
		}
		if _, e := os.Stat(dir); errors.Is(e, os.ErrNotExist) {
			return nil
		}
	}
	return fmt.Errorf("this kernel cannot kill a control group (needs 5.14): %w", err)
}

// kill kills every process of a machine and returns when none is left.
func (g *groups) kill(ctx context.Context, id string) error {
	if err := g.signal(id); err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) {
		alive, err := g.populated(id)
		return !alive, err
	})
}

// remove removes the empty groups of a machine.
func (g *groups) remove(ctx context.Context, id string) error {
	dirs := []string{filepath.Join(g.unified, id)}
	for _, dir := range g.v1 {
		dirs = append(dirs, filepath.Join(dir, id))
	}
	for _, dir := range dirs {
		if err := removeTree(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes a control group and those below it. The kernel needs a
// moment to let go of the last process.
func removeTree(ctx context.Context, dir string) error {
	below, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range below {
		if e.IsDir() {
			if err := removeTree(ctx, filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return poll(ctx, func() (bool, error) {
		err := unix.Rmdir(dir)
		if errors.Is(err, unix.EBUSY) {
			return false, nil
		}
		if errors.Is(err, unix.ENOENT) {
			err = nil
		}
		return true, err
	})
}

// list names the machines that have groups.
func (g *groups) list() ([]string, error) {
	seen := map[string]bool{}
	dirs := []string{g.unified}
	for _, d := range g.v1 {
		dirs = append(dirs, d)
	}
	var ids []string
	for _, d := range dirs {
		entries, err := os.ReadDir(d)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() && e.Name() != holdGroup && !seen[e.Name()] {
				seen[e.Name()] = true
				ids = append(ids, e.Name())
			}
		}
	}
	return ids, nil
}

// close removes the groups of the instance where no machine has any.
func (g *groups) close(ctx context.Context) error {
	if g.scope != nil {
		// The group of the scope itself is systemd's to remove.
		return g.scope.close(ctx)
	}
	for _, dir := range g.v1 {
		if err := rmdirEmpty(dir); err != nil {
			return err
		}
	}
	return rmdirEmpty(g.unified)
}

func rmdirEmpty(dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

func mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// poll calls done until it is true, without burning a core: the things waited
// for take between microseconds and some tens of milliseconds.
func poll(ctx context.Context, done func() (bool, error)) error {
	wait := 200 * time.Microsecond
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		wait = min(wait*3/2, 10*time.Millisecond)
	}
}
