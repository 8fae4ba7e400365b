package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// bounds are what the kernel counts for one machine, whatever users it has inside:
// namespaces and watches in the outer user namespace, which belongs to a host user of
// that machine's own, and resource limits that the inner one takes over when it is
// made. Root of the machine can raise none of them: they bind above its namespace.
type bounds struct {
	Most   map[string]int64 `json:"most"`   // file of /proc/sys/user -> most at once
	Limits []limit          `json:"limits"` // set before the machine's namespace is made
}

// limit is a resource limit.
type limit struct {
	What int    `json:"what"`
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

const (
	// namespaceLimit is how many namespaces of each kind a machine may have. Each
	// process in a container of its own has one of most kinds.
	namespaceLimit = 1024
	// queueLimit is what it may have in message queues, in bytes.
	queueLimit = 64 << 20
	// signalLimit is how many signals and timers may wait.
	signalLimit = 32768
	// fileLimit is how many files a process may have open.
	fileLimit = 1 << 20
)

// machineBounds are the bounds of a machine with that much memory and so many tasks.
func machineBounds(memory int64, tasks, networks int) *bounds {
	const all = unix.RLIM_INFINITY
	b := &bounds{
		Most: map[string]int64{
			// Few, because each may hold tables that no machine is charged for; and one is
			// the machine's own.
			"max_net_namespaces": int64(networks) + 1,
			// Watches are charged to the machine's memory; these numbers keep one
			// machine from using up what the host has for one user.
			"max_inotify_instances": inotifyInstances, "max_inotify_watches": inotifyWatches,
			"max_fanotify_groups": 128, "max_fanotify_marks": 65536,
		},
		Limits: []limit{
			// What all users of the machine have together: the kernel counts these four
			// for a namespace against what was allowed when it was made.
			{unix.RLIMIT_MEMLOCK, uint64(memory), uint64(memory)},
			{unix.RLIMIT_NPROC, uint64(tasks), uint64(tasks)},
			{unix.RLIMIT_MSGQUEUE, queueLimit, queueLimit},
			{unix.RLIMIT_SIGPENDING, signalLimit, signalLimit},
			// What each process may have.
			{unix.RLIMIT_STACK, 8 << 20, all},
			{unix.RLIMIT_NOFILE, 1024, fileLimit},
			{unix.RLIMIT_CORE, 0, all},
		},
	}
	for _, kind := range []string{"user", "pid", "uts", "ipc", "mnt", "cgroup", "time"} {
		b.Most["max_"+kind+"_namespaces"] = namespaceLimit
	}
	return b
}

// limitProcess sets the resource limits of a process, 0 for the one that calls it. What
// may not be raised stays as low as it is.
func (b *bounds) limitProcess(pid int) error {
	for _, l := range b.Limits {
		err := unix.Prlimit(pid, l.What, &unix.Rlimit{Cur: l.Soft, Max: l.Hard}, nil)
		if errors.Is(err, unix.EPERM) {
			var old unix.Rlimit
			if err := unix.Prlimit(pid, l.What, nil, &old); err != nil {
				return err
			}
			err = unix.Prlimit(pid, l.What, &unix.Rlimit{Cur: min(l.Soft, old.Max), Max: min(l.Hard, old.Max)}, nil)
		}
		if err != nil {
			return fmt.Errorf("set resource limit %d: %w", l.What, err)
		}
	}
	return nil
}

// set writes the counts into the user namespace of the process that calls it. What
// this kernel does not count is left out.
func (b *bounds) set(dir string) error {
	names := make([]string, 0, len(b.Most))
	for name := range b.Most {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		err := os.WriteFile(filepath.Join(dir, name), []byte(strconv.FormatInt(b.Most[name], 10)), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("bound what the kernel keeps for the machine: %w", err)
		}
	}
	return nil
}
