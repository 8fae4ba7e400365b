// Package atomicfile replaces small files as a whole: a reader sees the old content or the
// new one, never a part, however many write at once.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace puts a file with this content and mode at path, and returns when it will be there
// after a power cut, too. After one that came before, there is the old file or the new one.
func Replace(path string, content []byte, mode fs.FileMode) error {
	if err := put(path, content, mode, (*os.File).Sync); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// ReplaceVolatile is [Replace] for what a power cut may take or leave empty: what is true only
// as long as this host runs, or lies in memory. A crash of the program alone harms nothing.
func ReplaceVolatile(path string, content []byte, mode fs.FileMode) error {
	return put(path, content, mode, func(*os.File) error { return nil })
}

// SyncDir makes last what was made, renamed or removed in a directory.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// put writes beside the file and renames. What a crash leaves there is hidden and ends
// with ".new".
func put(path string, content []byte, mode fs.FileMode, settle func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = settle(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // half of it, on a full disk
	}
	return err
}
