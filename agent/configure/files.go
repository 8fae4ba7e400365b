package configure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// files reads and writes the node's own files, below root. Paths are of the
// node and absolute. Directories that users may write to are not its business:
// see homes.
type files struct {
	root     string
	noOwners bool
}

// at is where a path of the node is.
func (f files) at(path string) string { return filepath.Join(f.root, filepath.Clean("/"+path)) }

// read gives "" for a file that is not there.
func (f files) read(path string) (string, error) {
	b, err := os.ReadFile(f.at(path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

func (f files) exists(path string) bool {
	_, err := os.Stat(f.at(path))
	return err == nil
}

// write makes the file be so, at once and as a whole: a reader sees the old or
// the new text, and a secret is never readable for a moment. It reports whether
// anything changed. Missing directories are made.
func (f files) write(path, content string, mode uint32, owner string) (bool, error) {
	if same, err := f.has(path, content, mode, owner); err != nil || same {
		return false, err
	}
	at, perm := f.at(path), permissions(mode)
	uid, gid, err := f.owner(owner)
	if err != nil {
		return false, err
	}
	dir, name := filepath.Split(at)
	tmp, err := os.CreateTemp(dir, "."+name+".*")
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(dir, 0o755); err == nil {
			tmp, err = os.CreateTemp(dir, "."+name+".*")
		}
	}
	if err != nil {
		return false, err
	}
	if err := f.install(tmp, content, perm, uid, gid, at); err != nil {
		return false, err
	}
	return true, nil
}

// has reports whether a file is there as write would leave it.
func (f files) has(path, content string, mode uint32, owner string) (bool, error) {
	uid, gid, err := f.owner(owner)
	if err != nil {
		return false, err
	}
	return f.same(f.at(path), content, permissions(mode), uid, gid), nil
}

func permissions(mode uint32) fs.FileMode {
	if perm := fs.FileMode(mode).Perm(); perm != 0 {
		return perm
	}
	return 0o644
}

// install fills a temporary file and puts it where it belongs, or removes it.
func (f files) install(tmp *os.File, content string, perm fs.FileMode, uid, gid int, at string) error {
	_, err := tmp.WriteString(content)
	if err == nil && !f.noOwners {
		err = tmp.Chown(uid, gid)
	}
	if err == nil {
		err = tmp.Chmod(perm)
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp.Name(), at)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}

// same reports whether the file is already as it shall be.
func (f files) same(at, content string, perm fs.FileMode, uid, gid int) bool {
	st, err := os.Lstat(at)
	if err != nil || !st.Mode().IsRegular() || st.Mode().Perm() != perm || st.Size() != int64(len(content)) {
		return false
	}
	if u, g := ownerOf(st); !f.noOwners && (u != uid || g != gid) {
		return false
	}
	b, err := os.ReadFile(at)
	return err == nil && string(b) == content
}

// remove is content with a file that is not there.
func (f files) remove(path string) error {
	err := os.Remove(f.at(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// mkdir makes a directory for a service to write in.
func (f files) mkdir(path string, perm fs.FileMode, owner string) error {
	uid, gid, err := f.owner(owner)
	if err != nil {
		return err
	}
	at := f.at(path)
	if err := os.MkdirAll(at, perm); err != nil {
		return err
	}
	if err := os.Chmod(at, perm); err != nil || f.noOwners {
		return err
	}
	return os.Chown(at, uid, gid)
}

// mkdirs makes a directory if there is none.
func (f files) mkdirs(path string) error { return os.MkdirAll(f.at(path), 0o755) }

// owner looks a user up in the node's own files.
func (f files) owner(name string) (uid, gid int, err error) {
	if name == "" || name == "root" {
		return 0, 0, nil
	}
	text, err := f.read("/etc/passwd")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(text) {
		p := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(p) < 4 || p[0] != name {
			continue
		}
		uid, err1 := strconv.Atoi(p[2])
		gid, err2 := strconv.Atoi(p[3])
		return uid, gid, errors.Join(err1, err2)
	}
	return 0, 0, fmt.Errorf("no user %s in the image", name)
}

// replace writes a file that the image has, keeping its owner and mode.
func (f files) replace(path, content string, mode uint32) error {
	at := f.at(path)
	st, err := os.Stat(at)
	if err != nil {
		_, err = f.write(path, content, mode, "")
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(at), "."+filepath.Base(at)+".*")
	if err != nil {
		return err
	}
	uid, gid := ownerOf(st)
	return f.install(tmp, content, st.Mode().Perm(), uid, gid, at)
}
