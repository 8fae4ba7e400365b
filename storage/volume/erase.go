package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// Erase removes the directory of a volume with all that is in it.
func (h *HostPath) Erase(ctx context.Context, v muster.Volume) error {
	at, err := h.path(v.ID)
	if err != nil {
		return err
	}
	h.unlimit(at)
	if err := eraseTree(ctx, at); err != nil {
		return cannot("erased", v, err)
	}
	return nil
}

// heap is where eraseTree puts directories that are still to be emptied.
const heap = ".muster-erase"

// eraseTree removes a tree that its users made as they liked: however deep it
// is, only few directories are open, and no link is followed. Each directory is
// moved to the top before it is emptied, so that nothing recurs; a crash leaves
// a smaller tree of the same kind.
func eraseTree(ctx context.Context, at string) error {
	top, err := openDir(unix.AT_FDCWD, at)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", at, err)
	}
	defer top.Close()
	if err := unix.Mkdirat(int(top.Fd()), heap, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	pile, err := openDir(int(top.Fd()), heap)
	if err != nil {
		return err
	}
	defer pile.Close()
	e := &eraser{ctx: ctx, pile: pile}
	if e.next, err = firstFree(pile); err != nil {
		return err
	}
	if err := e.empty(top, heap); err != nil {
		return err
	}
	for {
		left, err := names(pile, 256)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			break
		}
		for _, n := range left {
			if err := e.remove(n); err != nil {
				return err
			}
		}
	}
	if err := unix.Unlinkat(int(top.Fd()), heap, unix.AT_REMOVEDIR); err != nil {
		return err
	}
	return unix.Rmdir(at)
}

type eraser struct {
	ctx  context.Context
	pile *os.File // directories that are still to be emptied, named by numbers
	next int
}

// remove empties and removes one directory of the pile.
func (e *eraser) remove(name string) error {
	d, err := openDir(int(e.pile.Fd()), name)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return unix.Unlinkat(int(e.pile.Fd()), name, 0)
	}
	if err != nil {
		return err
	}
	err = e.empty(d, "")
	_ = d.Close()
	if err != nil {
		return err
	}
	return unix.Unlinkat(int(e.pile.Fd()), name, unix.AT_REMOVEDIR)
}

// empty removes what is in a directory but for one name, and moves its
// directories to the pile.
func (e *eraser) empty(d *os.File, keep string) error {
	for {
		if err := e.ctx.Err(); err != nil {
			return err
		}
		list, err := names(d, 1024)
		if err != nil {
			return err
		}
		done := 0
		for _, n := range list {
			if n == keep {
				continue
			}
			done++
			if err := e.drop(int(d.Fd()), n); err != nil {
				return err
			}
		}
		if done == 0 {
			return nil
		}
	}
}

func (e *eraser) drop(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return notThere(err)
	}
	if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return notThere(err)
	}
	e.next++
	return notThere(unix.Renameat(dir, name, int(e.pile.Fd()), strconv.Itoa(e.next)))
}

func notThere(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// firstFree is a number above those that an interrupted run left.
func firstFree(pile *os.File) (int, error) {
	list, err := names(pile, -1)
	most := 0
	for _, n := range list {
		if i, err := strconv.Atoi(n); err == nil {
			most = max(most, i)
		}
	}
	return most, err
}

// names lists up to n names of a directory from its beginning; -1: all.
func names(d *os.File, n int) ([]string, error) {
	if _, err := d.Seek(0, 0); err != nil {
		return nil, err
	}
	list, err := d.Readdirnames(n)
	if err != nil && len(list) == 0 && n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return list, err
}

// openDir opens a directory and nothing else; no link is followed.
func openDir(dir int, name string) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
