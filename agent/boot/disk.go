package boot

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// diskWait is how long a disk may take to appear once its driver is loaded.
const diskWait = 30 * time.Second

// findDisk finds the block device whose serial number this is, below sys and dev ("/" in life).
func findDisk(ctx context.Context, root, serial string, c muster.Clock) (string, error) {
	for end := c.Now().Add(diskWait); ; {
		list, err := filepath.Glob(filepath.Join(root, "sys/block/*"))
		if err != nil {
			return "", err
		}
		for _, at := range list {
			b, err := os.ReadFile(filepath.Join(at, "serial"))
			if err == nil && strings.TrimSpace(string(b)) == serial {
				return filepath.Join(root, "dev", filepath.Base(at)), nil
			}
		}
		if !c.Now().Before(end) {
			return "", muster.Errorf(muster.EUnavailable, "no disk with the serial number %s appears", serial).
				WithHint("the image's kernel needs the driver virtio_blk")
		}
		if err := sleep(ctx, c, nicPoll); err != nil {
			return "", err
		}
	}
}
