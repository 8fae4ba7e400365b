package loopdev_test

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/loopdev"
)

// What is in the file is on the device, and the other way round; a device that is only
// read takes nothing. All at once, each asker has a device of its own.
func TestAttach(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root attaches loop devices")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("this kernel has no loop devices: %v", err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			path := filepath.Join(t.TempDir(), "image")
			want := bytes.Repeat([]byte{byte(i)}, 64<<10)
			if err := os.WriteFile(path, want, 0o600); err != nil {
				t.Error(err)
				return
			}
			back, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer back.Close()
			flags := uint32(unix.LO_FLAGS_DIRECT_IO)
			if i%2 == 1 {
				flags = unix.LO_FLAGS_READ_ONLY
			}
			dev, err := loopdev.Attach(back, flags)
			if err != nil {
				t.Error(err)
				return
			}
			defer dev.Close()
			got, err := io.ReadAll(dev)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes, %v", dev.Name(), len(got), err)
			}
			_, err = dev.WriteAt([]byte("x"), 4096)
			if i%2 == 1 {
				if err == nil {
					t.Errorf("%s: it is only read, and takes what is written", dev.Name())
				}
				return
			}
			if err = cmp.Or(err, dev.Sync()); err != nil {
				t.Error(err)
			}
			if b, err := os.ReadFile(path); err != nil || b[4096] != 'x' {
				t.Errorf("%s: what was written is not in the file: %v", dev.Name(), err)
			}
		})
	}
	all.Wait()
}
