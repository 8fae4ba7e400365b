package network

import (
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
)

// AddBridge makes the network of a cluster. label is kept with it, so that it
// can be told whose it is. It is no error when it exists with that label; one
// with another label is replaced.
func (r *Rack) AddBridge(index int, label string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return net.ErrClosed
	}
	name := bridgeName(index)
	old, err := r.h.LinkByName(name)
	switch {
	case notFound(err):
	case err != nil:
		return err
	case old.Attrs().Alias == label && old.Attrs().Flags&1 != 0:
		return nil
	default:
		links, err := r.links()
		if err == nil {
			err = r.removeNetwork(index, links)
		}
		if err != nil {
			return fmt.Errorf("replace bridge %s: %w", name, err)
		}
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	off := false
	// No multicast snooping (there is no querier), no spanning tree (there is
	// one bridge), and addresses are forgotten at once when ports go.
	br := &netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &off}
	if err := r.h.LinkAdd(br); err != nil {
		return fmt.Errorf("make bridge %s: %w", name, err)
	}
	if err := r.h.LinkSetAlias(br, label); err != nil {
		return err
	}
	return r.h.LinkSetUp(br)
}

// RemoveBridge removes the network with this label, if it exists.
func (r *Rack) RemoveBridge(label string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	links, err := r.links()
	if err != nil {
		return err
	}
	for _, l := range links {
		if i, ok := indexOf(l.Attrs().Name, "b"); ok && l.Type() == "bridge" && l.Attrs().Alias == label {
			if err := r.removeNetwork(i, links); err != nil {
				return err
			}
		}
	}
	return nil
}

// Bridges lists labels by index.
func (r *Rack) Bridges() (map[int]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	links, err := r.links()
	if err != nil {
		return nil, err
	}
	out := map[int]string{}
	for _, l := range links {
		if i, ok := indexOf(l.Attrs().Name, "b"); ok && l.Type() == "bridge" {
			out[i] = l.Attrs().Alias
		}
	}
	return out, nil
}

// PlugMachine gives the machine in namespace target a link to a bridge. Inside
// it is called MessageLink and has no address yet.
func (r *Rack) PlugMachine(p Plug, target *os.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return net.ErrClosed
	}
	br, err := r.bridgeAt(p.Bridge, p.Switch, p.MTU)
	if err != nil {
		return err
	}
	v := &veth{name: msgName(p.Machine), index: firstIndex + indexPerSlot*p.Machine + 1, master: br.Attrs().Index,
		inside: MessageLink, number: insideMsg, mtu: p.MTU}
	if err := r.unfilter(v.name); err != nil {
		return err
	}
	if p.Speed > 0 {
		return r.plugHeld(p, br, v, target)
	}
	return r.add(v, target)
}
