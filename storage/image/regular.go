package image

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// mostRead bounds a file of an image that is read whole.
const mostRead = 256 << 20

// openRegular opens a file of a root file system that foreign programs have written. A
// pipe there would keep its reader for ever, and a device would be the host's.
func openRegular(in *os.Root, name string, flag int) (*os.File, error) {
	st, err := in.Stat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("is not a regular file: %s", st.Mode().Type())}
	}
	f, err := in.OpenFile(name, flag|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err = f.Stat(); err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("is not a regular file: %s", st.Mode().Type())}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// readRegular reads such a file whole, up to mostRead.
func readRegular(in *os.Root, name string) ([]byte, error) {
	f, err := openRegular(in, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, mostRead+1))
	if err == nil && len(b) > mostRead {
		err = fmt.Errorf("%s is larger than %d MiB", name, mostRead>>20)
	}
	return b, err
}

// rewriteRegular replaces the content of such a file and keeps its owner and mode.
func rewriteRegular(in *os.Root, name string, data []byte) error {
	f, err := openRegular(in, name, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
