package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/internal/rootfs"
	"golang.org/x/sys/unix"
)

// stage is where the root is put together. The directory itself stays behind
// in the host's tree, which the machine leaves before it starts.
const stage = "/tmp"

// buildRoot mounts everything of a machine and makes it the root. It runs
// inside the machine's own mount namespace, so nothing here reaches the host.
func buildRoot(cfg *initConfig, fds []int) error {
	unix.Umask(0)
	if err := rootfs.Private(); err != nil {
		return err
	}
	shares, err := takeShares(len(cfg.Shares))
	if err != nil {
		return err
	}
	if err := mountTmpfs(stage, "0755", cfg.RootSize, cfg.Inodes, 0); err != nil {
		return err
	}
	root := stage + "/root"
	if err := mountOverlay(cfg, fds, root); err != nil {
		return err
	}
	if err := mountKernel(cfg, root); err != nil {
		return err
	}
	if err := mountDev(cfg, root); err != nil {
		return err
	}
	if err := rootfs.Enter(root); err != nil {
		return err
	}
	// From here on no link in an image can lead outside.
	if err := mountOwn(cfg); err != nil {
		return err
	}
	if err := mountShares(cfg.Shares, cfg.Seeded, shares); err != nil {
		return err
	}
	// An image may bring a name of its own, which its systemd would take.
	if err := os.WriteFile("/etc/hostname", []byte(cfg.Hostname+"\n"), 0o644); err != nil {
		return err
	}
	for _, unit := range cfg.Masks {
		err := os.Symlink("/dev/null", "/etc/systemd/system/"+filepath.Base(unit))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("mask %s: %w", unit, err)
		}
	}
	// systemd expects shared mounts.
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

func mountTmpfs(at, mode string, size, inodes int64, flags uintptr) error {
	data := "mode=" + mode
	if size > 0 {
		data += ",size=" + strconv.FormatInt(size, 10)
	}
	if inodes > 0 {
		data += ",nr_inodes=" + strconv.FormatInt(inodes, 10)
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", flags, data); err != nil {
		return fmt.Errorf("mount tmpfs on %s: %w", at, err)
	}
	return nil
}

// mountOverlay puts the layers and a writable one on top at root.
func mountOverlay(cfg *initConfig, fds []int, root string) error {
	var lower []string
	for i, fd := range fds[:cfg.Layers] {
		at := stage + "/layer" + strconv.Itoa(i)
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("place layer %d: %w", i, err)
		}
		lower = append(lower, at)
	}
	for _, d := range []string{"upper", "work", "root", "masks"} {
		if err := os.Mkdir(stage+"/"+d, 0o755); err != nil {
			return err
		}
	}
	data := "lowerdir=" + strings.Join(lower, ":") + ",upperdir=" + stage + "/upper,workdir=" + stage + "/work"
	// Without user xattrs (tmpfs before 6.6) a removed and re-made directory
	// shows its old content, so they are asked for first.
	err := unix.Mount("overlay", root, "overlay", 0, data+",userxattr")
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("overlay", root, "overlay", 0, data)
	}
	if err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	return nil
}

// mountKernel mounts proc, sys and the machine's own part of the control
// groups, and hides what is the host's.
func mountKernel(cfg *initConfig, root string) error {
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	mounts := []struct {
		kind, at, data string
	}{
		{"proc", "proc", ""},
		{"sysfs", "sys", ""},
		{"cgroup2", "sys/fs/cgroup", ""},
	}
	for _, m := range mounts {
		at := filepath.Join(root, m.at)
		if err := makeDir(at); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, at, m.kind, safe, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.kind, err)
		}
	}
	if err := coverFiles(cfg, root); err != nil {
		return err
	}
	// The tree of devices is the host's: it can be read and not written. The
	// control groups below it are a mount of their own and stay writable.
	return rootfs.Rebind(root+"/sys", unix.MS_RDONLY|safe)
}

// hidden are files that say or do things about the host. They belong to the
// host's root, so a machine could not write them anyway; this is a second wall.
func hidden() []string {
	return []string{
		"/proc/kcore", "/proc/keys", "/proc/kmsg", "/proc/sysrq-trigger", "/proc/timer_list",
		"/proc/sched_debug", "/proc/latency_stats", "/proc/kallsyms", "/sys/kernel/notes",
	}
}

// coverFiles puts generated files over those that describe the whole host.
func coverFiles(cfg *initConfig, root string) error {
	cover := []struct {
		name, at string
		text     []byte
	}{
		{"cpuinfo", "/proc/cpuinfo", cfg.CPUInfo},
		{"online", "/sys/devices/system/cpu/online", []byte(cfg.Online)},
	}
	for _, c := range cover {
		if len(c.text) == 0 {
			continue
		}
		file := stage + "/masks/" + c.name
		if err := os.WriteFile(file, c.text, 0o444); err != nil {
			return err
		}
		if err := rootfs.Bind(file, root+c.at, unix.MS_RDONLY); err != nil {
			return err
		}
	}
	for _, at := range hidden() {
		if err := rootfs.Hide(root+at, 0); err != nil {
			return err
		}
	}
	return nil
}

// mountDev makes /dev: no device but those without which no program runs.
func mountDev(cfg *initConfig, root string) error {
	dev := root + "/dev"
	if err := makeDir(dev); err != nil {
		return err
	}
	if err := mountTmpfs(dev, "0755", 4<<20, 4096, unix.MS_NOSUID|unix.MS_NOEXEC); err != nil {
		return err
	}
	if err := rootfs.Devices(dev, 0); err != nil {
		return err
	}
	// Messages of init to the console go nowhere; its journal is what counts.
	if err := touch(dev + "/console"); err != nil {
		return err
	}
	if err := rootfs.Bind("/dev/null", dev+"/console", 0); err != nil {
		return err
	}
	for _, d := range []string{"pts", "mqueue"} {
		if err := os.Mkdir(dev+"/"+d, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=0620,gid=5"); err != nil {
		return fmt.Errorf("mount devpts: %w", err)
	}
	if err := unix.Mount("mqueue", dev+"/mqueue", "mqueue", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount mqueue: %w", err)
	}
	if err := mountTmpfs(dev+"/shm", "1777", cfg.ShmSize, cfg.Inodes, unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	for name, to := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(to, dev+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// mountOwn mounts /run and /tmp and leaves the seed for the agent.
func mountOwn(cfg *initConfig) error {
	const run = "/run"
	if err := mountTmpfs(run, "0755", cfg.RootSize/4, cfg.Inodes, unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	if err := mountTmpfs("/tmp", "1777", cfg.RootSize, cfg.Inodes, unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	if err := os.Mkdir(run+"/muster", 0o700); err != nil {
		return err
	}
	// The kernel lets users mount /proc and /sys in namespaces of their own, as
	// containers do, only where they can see one of which nothing is covered.
	for _, kind := range []string{"proc", "sysfs"} {
		at := run + "/muster/" + kind
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		if err := unix.Mount(kind, at, kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mount a second %s: %w", kind, err)
		}
	}
	if len(cfg.Bootstrap) > 0 {
		if err := os.WriteFile(run+"/muster/seed.json", cfg.Bootstrap, 0o400); err != nil {
			return err
		}
	}
	// The old control groups are read-only accounts of memory and cores, for
	// the agent and for hwloc.
	for _, c := range cfg.V1 {
		at := run + "/muster/cgroup/" + c
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY)
		if err := unix.Mount("cgroup", at, "cgroup", flags, c); err != nil {
			return fmt.Errorf("mount control group %s: %w", c, err)
		}
	}
	return nil
}

// takeShares picks up what stands in the antechamber, which the stage is about
// to cover.
func takeShares(n int) ([]int, error) {
	var fds []int
	for i := range n {
		fd, err := cloneTree(sharePlace(i), 0)
		if err != nil {
			return nil, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// mountShares puts directories of the host where the machine expects them.
func mountShares(paths []string, seeded []bool, fds []int) error {
	for i, p := range paths {
		at := filepath.Clean("/" + p)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if i < len(seeded) && seeded[i] {
			if err := seedShare(fds[i], at); err != nil {
				return err
			}
		}
		if err := unix.MoveMount(fds[i], "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("place share %s: %w", p, err)
		}
	}
	return nil
}

// makeDir makes a directory unless it is there. Anything else of that name, a
// link above all, is refused.
func makeDir(at string) error {
	err := unix.Mkdir(at, 0o755)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	st, err := os.Lstat(at)
	if err == nil && !st.IsDir() {
		err = fmt.Errorf("%s of the image is not a directory", at)
	}
	return err
}

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return f.Close()
}
