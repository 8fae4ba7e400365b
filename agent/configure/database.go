package configure

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const databaseDir = "/var/lib/mysql"

// database gives a volume that is mounted where the database lies, and still
// empty, the one that was made with the image: making one takes seconds. What
// is there already is never touched: it is an older head's.
func (c *Configurer) database() error {
	if c.files.exists(databaseDir+"/mysql") || c.o.Root != "" || !c.files.exists(databaseDir) {
		return nil
	}
	// The same root again without what is mounted in it: there the image's
	// directory is seen.
	below := "/run/muster/below"
	if err := os.MkdirAll(below, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("/", below, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	defer func() {
		_ = unix.Unmount(below, unix.MNT_DETACH)
		_ = os.Remove(below)
	}()
	return copyDatabase(filepath.Join(below, databaseDir), databaseDir)
}

// copyDatabase copies a directory with owners and modes. The directory by which
// a complete database is known comes last, so an interrupted copy is repeated.
func copyDatabase(from, to string) error {
	list, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := copyOwner(from, to); err != nil {
		return err
	}
	for _, d := range list {
		if d.Name() == "mysql" {
			continue
		}
		if err := copyTree(filepath.Join(from, d.Name()), filepath.Join(to, d.Name())); err != nil {
			return err
		}
	}
	part := filepath.Join(to, ".mysql.part")
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := copyTree(filepath.Join(from, "mysql"), part); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(to, "mysql"))
}

func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			if err := os.MkdirAll(at, 0o700); err != nil {
				return err
			}
		case d.Type().IsRegular():
			if err := copyFile(path, at); err != nil {
				return err
			}
		default:
			return nil
		}
		return copyOwner(path, at)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if e := out.Close(); err == nil {
		err = e
	}
	return err
}

// copyOwner gives a file the owner and mode of another.
func copyOwner(from, to string) error {
	st, err := os.Stat(from)
	if err != nil {
		return err
	}
	uid, gid := ownerOf(st)
	if err := os.Chown(to, uid, gid); err != nil {
		return err
	}
	return os.Chmod(to, st.Mode().Perm())
}
