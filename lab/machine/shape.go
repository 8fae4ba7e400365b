package machine

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// shape limits what flows to a machine to so many bits/s; 0 lifts the limit.
func shape(port string, bits int64) error {
	link, err := netlink.LinkByName(port)
	if err != nil {
		return fmt.Errorf("port %s: %w", port, err)
	}
	rate := uint64(bits) / 8
	// Enough for one large segment and 10 ms of traffic.
	burst := max(uint32(rate/100), 64<<10)
	q := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       rate, Limit: burst * 4, Buffer: burst,
	}
	if bits == 0 {
		if !shaped(link) {
			return nil
		}
		if err := netlink.QdiscDel(q); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("lift the limit of %s: %w", port, err)
		}
		return nil
	}
	if err := netlink.QdiscReplace(q); err != nil {
		return fmt.Errorf("shape %s: %w", port, err)
	}
	return nil
}

func shaped(link netlink.Link) bool {
	list, err := netlink.QdiscList(link)
	if err != nil {
		return false
	}
	for _, q := range list {
		if q.Type() == "tbf" {
			return true
		}
	}
	return false
}
