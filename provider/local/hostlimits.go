package local

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	inotifyInstances = 1024
	inotifyWatches   = 1 << 19
	// taskReserve is how many tasks the host keeps for itself and the server.
	taskReserve = 4096
	// leastTasks is how many a machine has in any case: fewer start no system.
	leastTasks = 256
)

// hostLimit is a limit of the kernel that all machines of a host share and that no
// bound of one machine replaces: it must hold what they may all have together.
type hostLimit struct {
	file string // below /proc/sys
	want int64
	why  string
}

// hostLimits are what a host with so many machines needs. docs/operators/security.md says of each
// what it leaves open.
func hostLimits(machines int) []hostLimit {
	n := int64(max(machines, 1))
	tasks := min(n*pidLimit+taskReserve, 1<<22)
	// Every machine may know every other one, over two networks.
	neighbours := min(1024+2*n*min(n, 512)+n*256, 1<<20)
	out := []hostLimit{
		{"kernel/pid_max", tasks, "tasks of all machines"},
		{"kernel/threads-max", tasks, "tasks of all machines"},
		{"fs/file-max", math.MaxInt64, "open files, which each machine's memory bounds"},
		{"fs/inotify/max_user_instances", inotifyInstances, "inotify instances of one machine"},
		{"fs/inotify/max_user_watches", inotifyWatches, "inotify watches of one machine"},
		{"fs/aio-max-nr", min(1<<16+n<<14, 1<<24), "asynchronous reads and writes of all machines"},
		{"kernel/pty/max", min(4096+n*1024, 1<<20), "terminals of all machines"},
	}
	for _, ip := range []string{"ipv4", "ipv6"} {
		at := "net/" + ip + "/neigh/default/"
		out = append(out,
			hostLimit{at + "gc_thresh3", neighbours, "neighbours of all machines"},
			hostLimit{at + "gc_thresh2", neighbours / 2, "neighbours of all machines"},
			hostLimit{at + "gc_thresh1", neighbours / 8, "neighbours of all machines"})
	}
	return out
}

// raiseHostLimits raises what is too low, and lowers nothing. What cannot be raised is
// logged and shown by Doctor: machines run without it, closer to each other.
func raiseHostLimits(root string, machines int, log *slog.Logger) {
	for _, l := range shortLimits(root, machines) {
		at := filepath.Join(root, "proc/sys", l.file)
		if err := os.WriteFile(at, []byte(strconv.FormatInt(l.want, 10)), 0); err != nil {
			log.Warn("raising host limit failed", "limit", l.name(), "to", l.want, "for", l.why, "error", err)
			continue
		}
		log.Info("host limit raised", "limit", l.name(), "to", l.want, "for", l.why)
	}
}

// shortLimits are those that are lower than they should be. One that this kernel does
// not have limits nothing.
func shortLimits(root string, machines int) []hostLimit {
	var out []hostLimit
	for _, l := range hostLimits(machines) {
		if have, err := l.read(root); err == nil && have < l.want {
			out = append(out, l)
		}
	}
	return out
}

func (l *hostLimit) read(root string) (int64, error) {
	b, err := os.ReadFile(filepath.Join(root, "proc/sys", l.file))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return int64(min(n, math.MaxInt64)), err
}

// name is what sysctl calls it.
func (l *hostLimit) name() string { return strings.ReplaceAll(l.file, "/", ".") }

// tasksEach is how many tasks each of the machines may have, so that all of them
// together leave the host its reserve.
func tasksEach(root string, machines int) int {
	room := int64(math.MaxInt64)
	for _, l := range hostLimits(machines) {
		if l.file == "kernel/pid_max" || l.file == "kernel/threads-max" {
			if have, err := l.read(root); err == nil {
				room = min(room, have)
			}
		}
	}
	each := (room - taskReserve) / int64(max(machines, 1))
	return int(max(min(each, pidLimit), leastTasks))
}
