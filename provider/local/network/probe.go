package network

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Probe makes what a rack is made of in a namespace that goes away at once,
// and reports what this host cannot do.
func Probe(ctx context.Context) error {
	done := make(chan error, 1)
	OwnThread(func() {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("network namespace: %w", err)
			return
		}
		done <- probeHere(ctx)
	})
	return <-done
}

func probeHere(ctx context.Context) error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "b0"}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "m0"}, PeerName: "mgmt0"}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	return runNft(ctx, ruleset())
}
