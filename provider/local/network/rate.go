package network

import (
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
)

// A link that is held to a rate has a way of its own to its cluster's bridge, all of it in the
// rack, where the machine changes nothing:
//
//	machine --- n7 --- r7 (bridge) --- x7 --- y7 --- b0 (the cluster's bridge)
//
// n7 holds what flows to the machine, and x7 what flows from it: a device holds only what it
// sends.

func rateBridgeName(index int) string { return fmt.Sprintf("r%d", index) }
func rateInnerName(index int) string  { return fmt.Sprintf("x%d", index) }
func rateOuterName(index int) string  { return fmt.Sprintf("y%d", index) }

// plugHeld is PlugMachine with a rate. The caller holds r.mu.
func (r *Rack) plugHeld(p Plug, cluster netlink.Link, v *veth, target *os.File) error {
	return r.holdLink(p, cluster, v, func() error { return r.add(v, target) })
}

// holdLink makes a link with a way of its own to its cluster's bridge, and holds both to the rate.
// add makes the link v itself. The caller holds r.mu.
func (r *Rack) holdLink(p Plug, cluster netlink.Link, v *veth, add func() error) error {
	if err := r.removeRate(p.Machine); err != nil {
		return err
	}
	off := false
	attrs := netlink.NewLinkAttrs()
	attrs.Name = rateBridgeName(p.Machine)
	own := &netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &off}
	if err := r.h.LinkAdd(own); err != nil {
		return fmt.Errorf("make bridge %s: %w", attrs.Name, err)
	}
	bridge, err := r.h.LinkByName(attrs.Name)
	if err != nil {
		return err
	}
	attrs = netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex, attrs.MTU = rateInnerName(p.Machine), bridge.Attrs().Index, p.MTU
	if err := r.h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: rateOuterName(p.Machine), PeerMTU: uint32(p.MTU)}); err != nil {
		return fmt.Errorf("make link %s: %w", attrs.Name, err)
	}
	inner, err := r.h.LinkByName(rateInnerName(p.Machine))
	if err != nil {
		return err
	}
	outer, err := r.h.LinkByName(rateOuterName(p.Machine))
	if err != nil {
		return err
	}
	if err := r.h.LinkSetMaster(outer, cluster); err != nil {
		return err
	}
	// The rate is set before anything can pass.
	if err := r.hold(inner.Attrs().Index, inner.Attrs().Name, p.Speed); err != nil {
		return err
	}
	for _, l := range []netlink.Link{bridge, inner, outer} {
		if err := r.h.LinkSetUp(l); err != nil {
			return err
		}
	}
	v.master = bridge.Attrs().Index
	if err := add(); err != nil {
		return err
	}
	if err := r.hold(v.index, v.name, p.Speed); err != nil {
		return err
	}
	got, err := r.rate(p.Machine)
	if err == nil && got != p.Speed {
		err = fmt.Errorf("link %s is held to %d b/s, not to %d", v.name, got, p.Speed)
	}
	return err
}

// removeRate removes what held a machine's link to a rate. The caller holds r.mu.
func (r *Rack) removeRate(index int) error {
	for _, name := range []string{rateInnerName(index), rateBridgeName(index)} { // the pair goes together
		if err := r.remove(name); err != nil {
			return err
		}
	}
	return nil
}

// hold bounds what a device sends, in bits/s.
func (r *Rack) hold(index int, name string, bits int64) error {
	rate := uint64(bits) / 8
	// Enough for one large segment of a 64 KiB send, and for 2 ms of traffic.
	burst := max(uint32(min(rate/500, 16<<20)), 128<<10)
	q := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       rate, Limit: burst * 4, Buffer: netlink.Xmittime(rate, burst),
	}
	if err := r.h.QdiscReplace(q); err != nil {
		return fmt.Errorf("hold %s to %d b/s: %w", name, bits, err)
	}
	return nil
}

// Rate is what a machine's link for messages is held to each way, in bits/s, as the kernel
// has it; 0: to nothing. It is the lesser of both ways.
func (r *Rack) Rate(index int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return 0, net.ErrClosed
	}
	return r.rate(index)
}

func (r *Rack) rate(index int) (int64, error) {
	return r.rateOf(msgName(index), rateInnerName(index))
}

// rateOf is the least that devices are held to; 0: one is not. The caller holds r.mu.
func (r *Rack) rateOf(names ...string) (int64, error) {
	var least int64
	for i, name := range names {
		l, err := r.h.LinkByName(name)
		if notFound(err) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		list, err := r.h.QdiscList(l)
		if err != nil {
			return 0, err
		}
		var found int64
		for _, q := range list {
			if t, ok := q.(*netlink.Tbf); ok {
				found = int64(t.Rate) * 8
			}
		}
		if i == 0 || found < least {
			least = found
		}
	}
	return least, nil
}
