package rootfs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Enter makes a mount the root and forgets the host's tree. Only that holds: whoever may
// change its root leaves any other. The host's mounts must be Private before.
func Enter(root string) error {
	if err := unix.Chdir(root); err != nil {
		return fmt.Errorf("enter %s: %w", root, err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's tree: %w", err)
	}
	return unix.Chdir("/")
}
