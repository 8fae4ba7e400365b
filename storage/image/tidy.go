package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tidy removes from a root file system what must differ from machine to
// machine (identity, keys), what only the build left (logs, caches), and what
// would make two builds differ.
func (s *Store) tidy(ctx context.Context, root string, began time.Time, log io.Writer) error {
	in, err := os.OpenRoot(root) // links in the image cannot lead out of it
	if err != nil {
		return storeError("tidy the root file system", err)
	}
	defer func() { _ = in.Close() }() // nothing is written through it
	if err := tidyFiles(in); err != nil {
		return fmt.Errorf("tidy the root file system: %w", err)
	}
	return s.settle(ctx, root, began, log)
}

// settle makes every time since the build began the epoch. Older ones came with the
// packages and stay: Python and make compare them.
func (s *Store) settle(ctx context.Context, root string, began time.Time, log io.Writer) error {
	return s.run(ctx, job{log: log, argv: []string{"/bin/sh", "-c",
		`find "$1" -xdev -newermt "$2" -print0 | xargs -0 -r -n 500 touch -h -d "$3"; touch -d "$3" "$1"`, "sh",
		root, "@" + strconv.FormatInt(began.Unix()-1, 10), "@" + strconv.FormatInt(epoch().Unix(), 10)}})
}

// leftovers are patterns of files that an image must not have. Directories are
// emptied by NAME/*.
func leftovers() []string {
	return []string{
		"etc/ssh/ssh_host_*", "etc/resolv.conf", "etc/hostname", "etc/fstab",
		"etc/apt/apt.conf.d/99mmdebstrap", "etc/dpkg/dpkg.cfg.d/99mmdebstrap",
		"etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/subuid-", "etc/subgid-",
		"etc/munge/munge.key", "root/.*_history", "root/.cache", "root/.gnupg",
		"run/*", "tmp/*", "tmp/.[!.]*", "var/tmp/*",
		"var/cache/apt/*.bin", "var/cache/apt/archives/*", "var/lib/apt/lists/*",
		"var/cache/debconf/*-old", "var/cache/ldconfig/aux-cache", "var/cache/man/*",
		"var/lib/dpkg/*-old", "var/lib/dbus/machine-id", "var/lib/apt/extended_states.bak",
		"var/lib/systemd/random-seed", "var/lib/systemd/credential.secret", "var/lib/systemd/catalog/database",
		"var/lib/systemd/deb-systemd-helper-enabled/*", "var/lib/mysql/debian-*.flag.bak",
		"dev/*", ".dockerenv",
	}
}

func tidyFiles(in *os.Root) error {
	tree := in.FS()
	for _, pattern := range leftovers() {
		names, err := fs.Glob(tree, pattern)
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := in.RemoveAll(n); err != nil {
				return err
			}
		}
	}
	if err := emptyLogs(in); err != nil {
		return err
	}
	// Present and empty: systemd makes a machine ID at each boot and does not
	// take the boot for the first one.
	if err := in.RemoveAll("etc/machine-id"); err != nil {
		return err
	}
	if err := in.WriteFile("etc/machine-id", nil, 0o444); err != nil {
		return err
	}
	return steadyShadow(in)
}

// emptyLogs deletes the files below var/log and keeps the directories, whose
// owners programs rely on.
func emptyLogs(in *os.Root) error {
	return fs.WalkDir(in.FS(), "var/log", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			return nil
		}
		return in.Remove(name)
	})
}

// steadyShadow sets the day of the last password change, which is the day of
// the build, to a fixed one.
func steadyShadow(in *os.Root) error {
	const file = "etc/shadow"
	data, err := readRegular(in, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(data), "\n")
	for i, l := range lines {
		f := strings.Split(l, ":")
		if len(f) > 3 && f[2] != "" {
			f[2] = "20000"
			lines[i] = strings.Join(f, ":")
		}
	}
	return rewriteRegular(in, file, []byte(strings.Join(lines, "")))
}

// treeSize is the sum of the sizes of a tree's files, each counted once however
// many names it has.
func treeSize(root string) (int64, error) {
	var total int64
	seen := map[uint64]bool{}
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
			if seen[st.Ino] {
				return nil
			}
			seen[st.Ino] = true
		}
		total += info.Size()
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measure the root file system: %w", err)
	}
	return total, nil
}

// base names of the files that a kernel's package puts into boot.
func newest(in fs.FS, pattern string) (string, error) {
	names, err := fs.Glob(in, pattern)
	if err != nil || len(names) == 0 {
		return "", fmt.Errorf("no %s in the root file system", path.Base(pattern))
	}
	return names[len(names)-1], nil
}
