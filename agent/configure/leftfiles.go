package configure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/wire"
)

const (
	// leftFilesAtMost bounds how long a new configuration waits for files to go.
	leftFilesAtMost = 10 * time.Second
	// leftFilesDepth bounds how many directories are open at once.
	leftFilesDepth = 100
)

// endFiles removes what those who are gone left on this node's own file systems for what
// passes, where it takes room, most often memory, from those who stay. It touches no home
// and no volume.
func (c *Configurer) endFiles(ctx context.Context, cfg *wire.NodeConfig, had memory, gone map[string]int) error {
	uids := map[uint32]bool{}
	for _, uid := range gone {
		stays := slices.ContainsFunc(cfg.Users, func(u wire.Account) bool { return u.UID == uid })
		if uid >= firstUID && !stays {
			uids[uint32(uid)] = true
		}
	}
	if len(uids) == 0 {
		return nil
	}
	table, err := c.files.read("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leftFilesAtMost)
	defer cancel()
	s := leftFiles{ctx: ctx, uids: uids}
	for _, dir := range passingDirs(table, append(mountTargets(cfg), had.Mounts...)) {
		err := s.sweep(c.files.at(dir))
		if ctx.Err() != nil {
			return fmt.Errorf("files of theirs in %s: they are too many to go at once", dir)
		}
		s.note(err)
	}
	if s.deep {
		c.log.Warn("files of removed users kept: directory too deep", "depth", leftFilesDepth)
	}
	return errors.Join(s.errs...)
}

// scratchPoint is where a disk of the node is mounted.
var scratchPoint = regexp.MustCompile(`^/scratch[0-9]*$`)

// passingDirs are the directories for what passes that lie on file systems of this node
// alone, by the text of mountinfo. shared are the places of volumes.
func passingDirs(mountinfo string, shared []string) []string {
	dirs := []string{"/tmp", "/var/tmp", "/dev/shm"}
	for line := range strings.Lines(mountinfo) {
		if p := strings.Fields(line); len(p) > 4 && scratchPoint.MatchString(p[4]) && !slices.Contains(dirs, p[4]) {
			dirs = append(dirs, p[4])
		}
	}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		if slices.ContainsFunc(shared, func(s string) bool { return below(dir, s) }) {
			return true
		}
		switch mountKind(mountinfo, dir) {
		case "tmpfs", "overlay", "ext4", "xfs":
			return false
		}
		return true
	})
}

// below reports whether a path is a directory or lies in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// mountKind is the kind of file system that a path lies on; "" when that is not known.
func mountKind(mountinfo, path string) (kind string) {
	longest := 0
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		p, kinds := strings.Fields(before), strings.Fields(after)
		if ok && len(p) > 4 && len(kinds) > 0 && len(p[4]) >= longest && below(path, p[4]) {
			longest, kind = len(p[4]), kinds[0] // a later mount hides one in the same place
		}
	}
	return kind
}

// leftFiles removes the files of some users. Users can write where it works, so it follows
// no link, and it enters nothing that is mounted there.
type leftFiles struct {
	ctx  context.Context
	uids map[uint32]bool
	deep bool // something lies too deep
	errs []error
}

// sweep removes what lies below a directory, which stays. One that is not there, or is a
// link to another, is no error.
func (s *leftFiles) sweep(dir string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, dir, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil
	case errors.Is(err, unix.ENOSYS): // a kernel before 5.6: they stay until the node goes
		return nil
	case err != nil:
		return fmt.Errorf("open %s: %w", dir, err)
	}
	return s.entries(os.NewFile(uintptr(fd), dir), 1)
}

// entries removes what lies in an open directory, and closes it.
func (s *leftFiles) entries(dir *os.File, depth int) error {
	defer func() { _ = dir.Close() }()
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if s.ctx.Err() != nil {
				return s.ctx.Err()
			}
			s.note(s.entry(int(dir.Fd()), dir.Name()+"/"+name, name, depth))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// entry removes one name, if it and what it holds are of those users.
func (s *leftFiles) entry(dir int, path, name string, depth int) error {
	look, err := within(dir, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return passing(err)
	}
	var st unix.Stat_t
	err = unix.Fstat(look, &st)
	_ = unix.Close(look)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	flags := 0
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		flags = unix.AT_REMOVEDIR
		if depth >= leftFilesDepth {
			s.deep = true
			return nil
		}
		fd, err := within(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
		if err != nil {
			return passing(err)
		}
		if err := s.entries(os.NewFile(uintptr(fd), path), depth+1); err != nil {
			return err
		}
	}
	if !s.uids[st.Uid] {
		return nil
	}
	if err := passing(unix.Unlinkat(dir, name, flags)); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// within opens what has a name in a directory, unless it is mounted there.
func within(dir int, name string, flags uint64) (int, error) {
	return unix.Openat2(dir, name, &unix.OpenHow{
		Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
}

// passing forgives what is gone or changed meanwhile, is mounted there, or holds what is
// somebody else's.
func passing(err error) error {
	for _, e := range []error{unix.ENOENT, unix.ELOOP, unix.ENOTDIR, unix.EXDEV, unix.ENOTEMPTY, unix.EBUSY, unix.EISDIR} {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

// note keeps the first errors: there may be one for each file.
func (s *leftFiles) note(err error) {
	const most = 3
	if err != nil && len(s.errs) < most && s.ctx.Err() == nil {
		s.errs = append(s.errs, err)
	}
}
