package scratch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/wipe"
	"github.com/muster-hpc/muster/wire"
)

// Maker makes file systems. All fields are required.
type Maker struct {
	// Disks lists those that there are now; Path is where one of them is.
	Disks func() []muster.Disk
	Path  func(muster.Disk) string
	// Find finds a program of the image; Run runs it.
	Find func(program string) (string, error)
	Run  func(ctx context.Context, program string, args ...string) error
	// Part makes a device of the first bytes of a disk whose end is kept for memory.
	Part func(ctx context.Context, path string, size int64) (string, error)
	// At is where the first disk is mounted; the second is at At2, and so on.
	At    string
	Say   func(format string, args ...any)
	Clock muster.Clock
	// Appear is how long is waited for disks of the order.
	Appear time.Duration
}

// Make gives the disks of an order file systems and mounts them, the first that works
// at the first place. What is mounted already is left alone. The error tells of the
// disks that did not work; the others are there.
func (m *Maker) Make(ctx context.Context, order []wire.CleanDisk) error {
	if mounted(m.At) {
		m.Say("scratch: %s is there already", m.At)
		return nil
	}
	k, program, ok := m.kind()
	if !ok {
		m.Say("scratch: the image has neither mkfs.ext4 nor mkfs.xfs: the node's disks are not used; add e2fsprogs or xfsprogs to its recipe")
		return nil
	}
	named, err := m.find(ctx, order)
	if err != nil {
		return err
	}
	failed := make([]error, len(named))
	paths := make([]string, len(named))
	var all sync.WaitGroup
	for i, n := range named {
		if n.Disk == nil {
			failed[i] = muster.Errorf(muster.EUnavailable, "%s", n.Why)
			continue
		}
		all.Go(func() { paths[i], failed[i] = m.format(ctx, *n.Disk, n.Order.Keep, k, program) })
	}
	all.Wait()
	next := 1
	for i, n := range named {
		if failed[i] == nil {
			at := m.place(next)
			if failed[i] = mount(paths[i], at, k); failed[i] == nil {
				m.Say("scratch: %s: %s at %s", n.Title(), k.name, at)
				next++
				continue
			}
		}
		failed[i] = fmt.Errorf("%s: %w", n.Title(), failed[i])
		m.Say("scratch: FAILED: %v", failed[i])
	}
	if err := errors.Join(failed...); err != nil {
		return muster.Errorf(muster.EUnavailable, "not every disk of this node can be used").
			WithHint("the lines above say which; have the machine tested").Wrap(err)
	}
	return nil
}

// kind is the first kind that the image can make.
func (m *Maker) kind() (kind, string, bool) {
	for _, k := range kinds() {
		if p, err := m.Find(k.program); err == nil {
			return k, p, true
		}
	}
	return kind{}, "", false
}

func (m *Maker) place(n int) string {
	if n == 1 {
		return m.At
	}
	return fmt.Sprintf("%s%d", m.At, n)
}

// find waits until the disks are there, for some time.
func (m *Maker) find(ctx context.Context, order []wire.CleanDisk) ([]wipe.Named, error) {
	began := m.Clock.Now()
	for {
		named := wipe.Match(order, slices.Clone(m.Disks()))
		if !slices.ContainsFunc(named, func(n wipe.Named) bool { return n.Absent }) || m.Clock.Now().Sub(began) >= m.Appear {
			return named, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-m.Clock.After(200 * time.Millisecond):
		}
	}
}

// ends is how much is erased at the start and at the end of a disk before it gets a
// file system, in bytes: tables of partitions, and what others recognise.
const ends = 1 << 20

// format makes a file system on a disk that nobody uses, but for its last bytes where they are kept,
// and returns where it is.
func (m *Maker) format(ctx context.Context, d muster.Disk, keep int64, k kind, program string) (string, error) {
	path := m.Path(d)
	dev, err := wipe.OpenWrite(path, d.Size)
	if err != nil {
		return "", err
	}
	// The name may have gone to another disk before it was opened.
	if !slices.ContainsFunc(m.Disks(), func(x muster.Disk) bool {
		return x.Name == d.Name && x.Serial == d.Serial && x.Model == d.Model && x.Size == d.Size
	}) {
		_ = dev.Close()
		return "", muster.Errorf(muster.EConflict, "its name was given to another disk meanwhile")
	}
	n := min(int64(ends), d.Size)
	last := (d.Size - n) / 4096 * 4096
	err = errors.Join(dev.Zero(0, n), dev.Zero(last, d.Size-last), dev.Flush(), dev.Close())
	if err == nil && keep > 0 {
		path, err = m.Part(ctx, path, (d.Size-keep)/4096*4096)
	}
	if err != nil {
		return "", err
	}
	return path, m.Run(ctx, program, append(slices.Clone(k.args), path)...)
}

// mount mounts a disk where everybody may write, and nobody gets rights or devices.
func mount(path, at string, k kind) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(path, at, k.name, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME, k.options); err != nil {
		return fmt.Errorf("mount it at %s: %w", at, err)
	}
	return os.Chmod(at, 0o777|os.ModeSticky)
}

// mounted reports whether something is mounted at a place.
func mounted(at string) bool {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return false
	}
	at = filepath.Clean(at)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == at {
			return true
		}
	}
	return false
}
