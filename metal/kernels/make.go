package kernels

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/muster-hpc/muster/metal/initramfs"
)

// make writes a file that everybody may read, whole or not at all, unless it is there.
func (s *Store) make(at string, write func(io.Writer) error) (err error) {
	s.making.Lock()
	defer s.making.Unlock()
	if exist(at) {
		return nil
	}
	f, err := os.CreateTemp(s.dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	err = write(w)
	if err = errors.Join(err, w.Flush(), f.Chmod(0o444), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), at)
}

// copyOf writes what a file holds.
func copyOf(path string) func(io.Writer) error {
	return func(w io.Writer) error {
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		_, err = io.Copy(w, in)
		return err
	}
}

// initramfs writes the archive for the kernel whose modules are in a tar.
func (s *Store) initramfs(modules string) func(io.Writer) error {
	return func(w io.Writer) error {
		in, err := os.Open(modules)
		if err != nil {
			return err
		}
		defer in.Close()
		st, err := in.Stat()
		if err != nil {
			return err
		}
		tree, err := initramfs.FromTar(in, st.Size())
		if err != nil {
			return err
		}
		_, err = initramfs.Build(w, initramfs.Options{Agent: s.agent, Modules: tree})
		return err
	}
}
