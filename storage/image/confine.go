package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/muster-hpc/muster/internal/rootfs"
	"github.com/muster-hpc/muster/internal/seccomp"
	"golang.org/x/sys/unix"
)

// ConfineArgument is the first argument that makes a program call Confine.
const ConfineArgument = "image-confine"

// confineWord is the descriptor on which Confine hears that it may go on.
const confineWord = 3

// confinement is what a program is told that runs what packages bring: its root is the
// image, and nothing of the host is within its reach.
type confinement struct {
	Root string `json:"root"`
	// ReadOnly are directories of the host that it sees, by where they are in the image.
	ReadOnly map[string]string `json:"read_only,omitempty"`
	Argv     []string          `json:"argv"`
	Env      []string          `json:"env"`
}

// Confine makes of this process, the first one of new pid, mount, network, IPC and host
// name namespaces, a program of an image that is being built. Scripts of packages run as
// root there, because an image is made of files of many owners, some with capabilities,
// and some of them devices; it is a root that can mount nothing, reach no network, open
// no device of the host and see none of its processes.
//
// It returns the exit status of what went wrong; otherwise it does not return.
func Confine(args []string) int {
	runtime.LockOSThread() // rights are a thread's
	if err := confine(args); err != nil {
		fmt.Fprintln(os.Stderr, "E: cannot confine the build:", err)
	}
	return 1
}

func confine(args []string) error {
	if len(args) != 1 || os.Getpid() != 1 {
		return errors.New("the server starts this when it builds an image")
	}
	// It is in its control group before it goes on.
	word := make([]byte, 3)
	if n, err := unix.Read(confineWord, word); n != len(word) || err != nil {
		return errors.New("the server went away")
	}
	var c confinement
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		return err
	}
	enter := func() error { return rootfs.Enter(c.Root) }
	for _, step := range []func() error{ownGroups, loopbackUp, c.mounts, enter, dropRights, limitBuild, closeCalls} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	unix.Umask(0o022)
	return fmt.Errorf("%s: %w", c.Argv[0], unix.Exec(c.Argv[0], c.Argv, c.Env))
}

// ownGroups makes this process's control group the root of what it sees of them. It is
// in that group by now: before, the namespace would begin at the server's.
func ownGroups() error {
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("a control group namespace: %w", err)
	}
	return nil
}

// mounts puts everything into the image that its programs may see. The image's own
// files cannot be devices for them, wherever one is made.
func (c *confinement) mounts() error {
	if err := unix.Sethostname([]byte("localhost")); err != nil {
		return err
	}
	if err := rootfs.Private(); err != nil {
		return err
	}
	if err := rootfs.Bind(c.Root, c.Root, unix.MS_NODEV); err != nil {
		return err
	}
	for at, from := range c.ReadOnly {
		if err := rootfs.Bind(from, filepath.Join(c.Root, at), unix.MS_RDONLY|unix.MS_NODEV|unix.MS_NOSUID|unix.MS_NOEXEC); err != nil {
			return err
		}
	}
	const bare = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, m := range []struct {
		kind, at string
		flags    uintptr
		data     string
	}{
		{"proc", "proc", bare, ""},
		{"tmpfs", "sys", bare | unix.MS_RDONLY, "size=4k"}, // the host's is nobody's business
		{"tmpfs", "run", bare, "mode=755,size=64m"},
		{"tmpfs", "dev", unix.MS_NOSUID | unix.MS_NOEXEC, "mode=755,size=64m"},
	} {
		if err := unix.Mount(m.kind, filepath.Join(c.Root, m.at), m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	if err := c.devices(); err != nil {
		return err
	}
	return c.coverProc()
}

// devices are those without which no program runs.
func (c *confinement) devices() error {
	dev := filepath.Join(c.Root, "dev")
	for _, d := range []string{"shm", "pts"} {
		if err := os.Mkdir(filepath.Join(dev, d), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666"); err != nil {
		return fmt.Errorf("mount dev/pts: %w", err)
	}
	if err := rootfs.Devices(dev, unix.MS_NOSUID|unix.MS_NOEXEC); err != nil {
		return err
	}
	return errors.Join(os.Symlink("pts/ptmx", dev+"/ptmx"), os.Symlink("/proc/self/fd", dev+"/fd"),
		rootfs.Rebind(dev, unix.MS_NOSUID|unix.MS_NOEXEC|unix.MS_NODEV))
}

// coverProc makes what root could change there read-only, and hides what only root
// of the host should read.
func (c *confinement) coverProc() error {
	proc := filepath.Join(c.Root, "proc")
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver", "mtrr"} {
		at := filepath.Join(proc, name)
		if _, err := os.Stat(at); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := rootfs.Bind(at, at, unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC); err != nil {
			return err
		}
	}
	for _, name := range []string{"kcore", "keys", "kmsg", "kallsyms", "timer_list", "sched_debug", "kpagecount", "kpageflags", "kpagecgroup"} {
		if err := rootfs.Hide(filepath.Join(proc, name), unix.MS_RDONLY); err != nil {
			return err
		}
	}
	return nil
}

// keptRights are the capabilities with which packages install.
func keptRights() []int {
	return []int{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID,
		unix.CAP_SETPCAP, unix.CAP_SETFCAP, unix.CAP_MKNOD, unix.CAP_SYS_CHROOT, unix.CAP_AUDIT_WRITE, unix.CAP_NET_BIND_SERVICE}
}

// dropRights leaves this thread the capabilities that installing needs, and no way to
// get others.
func dropRights() error {
	kept := keptRights()
	for right := 0; right < 64; right++ {
		if slices.Contains(kept, right) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(right), 0, 0, 0); err != nil {
			if errors.Is(err, unix.EINVAL) {
				break // this kernel knows no more
			}
			return fmt.Errorf("give up capability %d: %w", right, err)
		}
	}
	var sets [2]unix.CapUserData
	for _, right := range kept {
		sets[right/32].Effective |= 1 << (right % 32)
		sets[right/32].Permitted |= 1 << (right % 32)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&head, &sets[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	return nil
}

// limitBuild bounds what one process of a build may have; what all of them have
// together is bounded by their control group and by the time that they get.
func limitBuild() error {
	for what, most := range map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 16384, unix.RLIMIT_MSGQUEUE: 819200, unix.RLIMIT_MEMLOCK: 64 << 20, unix.RLIMIT_FSIZE: 16 << 30,
	} {
		var now unix.Rlimit
		if err := unix.Prlimit(0, what, nil, &now); err != nil {
			return err
		}
		most = min(most, now.Max)
		if err := unix.Prlimit(0, what, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
			return fmt.Errorf("bound resource %d: %w", what, err)
		}
	}
	return nil
}

func closeCalls() error {
	f, err := seccomp.New(nil)
	if err != nil {
		return err
	}
	return f.Load()
}
