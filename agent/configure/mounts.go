package configure

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/wire"
)

// mountAtMost bounds one mount: a server of files that is away must not stop
// everything else.
const mountAtMost = 30 * time.Second

// mounts mounts what is not mounted yet, before there are users, and unmounts
// what is not wanted any more.
func (c *Configurer) mounts(ctx context.Context, cfg *wire.NodeConfig, had memory) error {
	if len(cfg.Mounts) == 0 && len(had.Mounts) == 0 {
		return nil
	}
	table, err := c.files.read("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var errs []error
	for _, target := range slices.Backward(had.Mounts) {
		wanted := slices.ContainsFunc(cfg.Mounts, func(m wire.Mount) bool { return m.Target == target })
		if wanted || !mounted(table, target) {
			continue
		}
		if err := c.o.Unmount(c.files.at(target)); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", target, err))
		}
	}
	var missing []string
	for _, m := range cfg.Mounts {
		below := func(target string) bool { return strings.HasPrefix(m.Target, target+"/") }
		if mounted(table, m.Target) || slices.ContainsFunc(missing, below) { // it would hide what it is mounted on
			continue
		}
		if err := c.mountOne(ctx, m); err != nil {
			missing = append(missing, m.Target)
			errs = append(errs, fmt.Errorf("mount %s on %s: %w", m.Source, m.Target, err))
		}
	}
	return errors.Join(errs...)
}

// mountOne gives up waiting, though not the call, which nothing can end.
func (c *Configurer) mountOne(ctx context.Context, m wire.Mount) error {
	done := make(chan error, 1)
	go func() { done <- c.o.Mount(m, c.files.at(m.Target)) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.clock.After(mountAtMost):
		return errors.New("it does not answer")
	}
}

// mountTargets are remembered in order, to unmount them in the other one.
func mountTargets(cfg *wire.NodeConfig) []string {
	var list []string
	for _, m := range cfg.Mounts {
		list = append(list, m.Target)
	}
	return list
}

// Mount mounts a file system, without the help of programs that an image may
// lack.
func Mount(m wire.Mount, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	flags, data := mountOptions(m.Options)
	if strings.HasPrefix(m.Type, "nfs") {
		if err := nameClient(target); err != nil {
			return fmt.Errorf("give the NFS client a name: %w", err)
		}
	}
	if strings.HasPrefix(m.Type, "nfs") && !strings.Contains(data, "addr=") {
		host, _, ok := strings.Cut(m.Source, ":/")
		if !ok {
			return fmt.Errorf("%q is not HOST:/PATH", m.Source)
		}
		addr, err := net.ResolveIPAddr("ip", strings.Trim(host, "[]"))
		if err != nil {
			return err
		}
		data = strings.TrimPrefix(data+",addr="+addr.String(), ",")
	}
	return unix.Mount(m.Source, target, m.Type, flags, data)
}

// nfsClientName is what this machine calls itself to file servers, beside its host's
// name.
const nfsClientName = "/sys/fs/nfs/net/nfs_client/identifier"

// nameClient gives this machine's NFS client a name that no other has. Without one it
// is known by its host's name, which the n01 of each cluster has: a file server would
// take the second for the first one started again, and drop what that has open and
// locked. Nobody can guess it, or they could do the same.
func nameClient(target string) error {
	had, err := os.ReadFile(nfsClientName)
	if errors.Is(err, fs.ErrNotExist) {
		// The client is not loaded: asking for it by its name does that, and no more.
		_ = unix.Mount("none:/", target, "nfs4", 0, "no-such-option")
		had, err = os.ReadFile(nfsClientName)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a kernel before 5.3, which has no such name
	}
	if name := strings.TrimSpace(string(had)); err != nil || name != "" && name != "(null)" {
		return err
	}
	return os.WriteFile(nfsClientName, []byte("muster-"+rand.Text()), 0o600)
}

// mountOptions parts what the kernel takes as flags from what the file system
// reads. No volume brings programs with another's rights, or devices.
func mountOptions(options string) (flags uintptr, data string) {
	flags = unix.MS_NOSUID | unix.MS_NODEV
	var rest []string
	for _, o := range strings.Split(options, ",") {
		switch o {
		case "", "rw", "nosuid", "nodev", "defaults", "_netdev":
		case "ro":
			flags |= unix.MS_RDONLY
		case "noexec":
			flags |= unix.MS_NOEXEC
		case "noatime":
			flags |= unix.MS_NOATIME
		case "relatime":
			flags |= unix.MS_RELATIME
		default:
			rest = append(rest, o)
		}
	}
	return flags, strings.Join(rest, ",")
}

// unmount takes a file system away. Who still uses it keeps it until the end.
func unmount(target string) error {
	err := unix.Unmount(target, 0)
	if errors.Is(err, unix.EBUSY) {
		err = unix.Unmount(target, unix.MNT_DETACH)
	}
	if errors.Is(err, unix.EINVAL) { // is not mounted
		return nil
	}
	return err
}

// mounted looks for a mount point in the text of mountinfo.
func mounted(mountinfo, target string) bool {
	for line := range strings.Lines(mountinfo) {
		if p := strings.Fields(line); len(p) > 4 && p[4] == target {
			return true
		}
	}
	return false
}
