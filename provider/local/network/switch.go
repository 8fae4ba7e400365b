package network

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Where machines stand behind several switches, each cluster has a bridge of its own in each switch that
// its machines need, and those are joined as the switches are:
//
//	machine --- n7 --- b0.4f21aa (leaf) --- t0.4f21aa --- s0.4f21aa --- b0 (what joins all)
//
// No frame of a cluster is ever in a bridge of another one. They share what a link carries all the same: what
// leaves t0.4f21aa takes its turn in u.4f21aa first, the queue of all clusters that send up from that leaf, and
// what leaves s0.4f21aa in d.4f21aa.

// Switch is one that machines, or other switches, are plugged into.
type Switch struct {
	Name  string
	Up    string        // the switch that its link goes to; "": to what joins all
	Rate  int64         // of that link, in bits/s each way, for all clusters together; 0: as fast as it goes
	Delay time.Duration // of that link, each way
}

// mark tells the devices of switches apart. It depends on the name alone, so that devices are found again by
// a server that has other switches.
func mark(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return fmt.Sprintf("%06x", h.Sum32()>>8)
}

func switchBridgeName(index int, mark string) string { return fmt.Sprintf("b%d.%s", index, mark) }
func trunkLowerName(index int, mark string) string   { return fmt.Sprintf("t%d.%s", index, mark) }
func trunkUpperName(index int, mark string) string   { return fmt.Sprintf("s%d.%s", index, mark) }
func queueUpName(mark string) string                 { return "u." + mark }
func queueDownName(mark string) string               { return "d." + mark }

// SetSwitches says which switches there are, and holds their links to their rates: those of clusters that
// run, too. What a cluster has in a switch that is gone stays with it.
func (r *Rack) SetSwitches(list []Switch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	byName, names := map[string]Switch{}, map[string]string{}
	for _, s := range list {
		if other, taken := names[mark(s.Name)]; taken {
			return fmt.Errorf("the switches %s and %s cannot be told apart: give one another name", other, s.Name)
		}
		byName[s.Name], names[mark(s.Name)] = s, s.Name
	}
	for _, s := range list {
		if _, known := byName[s.Up]; s.Up != "" && !known {
			return fmt.Errorf("switch %s is joined to %s, which is none", s.Name, s.Up)
		}
	}
	links, err := r.links()
	if err != nil {
		return err
	}
	used := map[string]bool{} // marks of trunks
	for _, l := range links {
		if m, ok := trunkMark(l.Attrs().Name); ok {
			used[m] = true
		}
	}
	for _, l := range links {
		m, ok := strings.CutPrefix(l.Attrs().Name, "u.")
		if !ok {
			m, ok = strings.CutPrefix(l.Attrs().Name, "d.")
		}
		if _, known := names[m]; ok && !known && !used[m] {
			if err := r.remove(l.Attrs().Name); err != nil {
				return err
			}
		}
	}
	for _, s := range list {
		if err := r.queues(s); err != nil {
			return err
		}
	}
	for _, l := range links {
		if m, ok := trunkMark(l.Attrs().Name); ok {
			if err := r.queued(l, m); err != nil {
				return err
			}
		}
	}
	r.switches = byName
	delays := map[string]time.Duration{}
	for _, s := range list {
		delays[mark(s.Name)] = s.Delay
	}
	return r.carryAll(links, delays)
}

// trunkMark is the mark of the switch whose link to the next a device is an end of.
func trunkMark(name string) (string, bool) {
	before, m, ok := strings.Cut(name, ".")
	_, lower := indexOf(before, "t")
	_, upper := indexOf(before, "s")
	return m, ok && (lower || upper)
}

// queues makes what all clusters wait in that send through the link of a switch. The caller holds r.mu.
func (r *Rack) queues(s Switch) error {
	for _, name := range []string{queueUpName(mark(s.Name)), queueDownName(mark(s.Name))} {
		l, err := r.h.LinkByName(name)
		switch {
		case err == nil:
		case !notFound(err):
			return err
		case s.Rate == 0:
			continue
		default:
			attrs := netlink.NewLinkAttrs()
			attrs.Name = name
			if err := r.h.LinkAdd(&netlink.Ifb{LinkAttrs: attrs}); errors.Is(err, unix.EOPNOTSUPP) {
				return errors.New("this kernel has no ifb, by which links are held to a rate: load the module ifb")
			} else if err != nil {
				return fmt.Errorf("make queue %s: %w", name, err)
			}
			if l, err = r.h.LinkByName(name); err != nil {
				return err
			}
		}
		if s.Rate > 0 {
			err = r.hold(l.Attrs().Index, name, s.Rate)
		} else {
			err = r.release(l)
		}
		if err != nil {
			return err
		}
		if err := r.h.LinkSetUp(l); err != nil {
			return err
		}
	}
	return nil
}

// release lets a device send as fast as it goes.
func (r *Rack) release(l netlink.Link) error {
	list, err := r.h.QdiscList(l)
	if err != nil {
		return err
	}
	for _, q := range list {
		if _, ok := q.(*netlink.Tbf); ok {
			return r.h.QdiscDel(q)
		}
	}
	return nil
}

// queued sends what leaves one end of a trunk through the queue of its link, if that has one. The caller
// holds r.mu.
func (r *Rack) queued(l netlink.Link, mark string) error {
	name := queueUpName(mark)
	if strings.HasPrefix(l.Attrs().Name, "s") {
		name = queueDownName(mark)
	}
	queue, err := r.h.LinkByName(name)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	at := l.Attrs().Index
	clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: at, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
	if err := r.h.QdiscAdd(clsact); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("link %s: %w", l.Attrs().Name, err)
	}
	list, err := r.h.FilterList(l, netlink.HANDLE_MIN_EGRESS)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		return nil
	}
	redirect := netlink.NewMirredAction(queue.Attrs().Index)
	filter := &netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: at, Parent: netlink.HANDLE_MIN_EGRESS, Priority: 1, Protocol: unix.ETH_P_ALL},
		Actions:     []netlink.Action{redirect},
	}
	if err := r.h.FilterAdd(filter); err != nil {
		return fmt.Errorf("send what leaves %s through %s: %w", l.Attrs().Name, name, err)
	}
	return nil
}

// bridgeAt is the bridge of a cluster in a switch, which is made with all on its way up where it is not
// there; "" is the one that joins all. The caller holds r.mu.
func (r *Rack) bridgeAt(index int, name string, mtu int) (netlink.Link, error) {
	if name == "" {
		br, err := r.h.LinkByName(bridgeName(index))
		if err != nil {
			return nil, fmt.Errorf("bridge %s: %w", bridgeName(index), err)
		}
		return br, nil
	}
	s, ok := r.switches[name]
	if !ok {
		return nil, fmt.Errorf("there is no switch %s", name)
	}
	m := mark(name)
	br, err := r.h.LinkByName(switchBridgeName(index, m))
	if notFound(err) {
		br, err = r.makeBridge(switchBridgeName(index, m))
	}
	if err != nil {
		return nil, err
	}
	lower, err := r.h.LinkByName(trunkLowerName(index, m))
	if err == nil && lower.Attrs().Alias == trunkWhole {
		return br, nil
	}
	if err != nil && !notFound(err) {
		return nil, err
	}
	up, err := r.bridgeAt(index, s.Up, mtu)
	if err != nil {
		return nil, err
	}
	return br, r.trunk(index, s, br, up, mtu)
}

// trunkWhole is the alias of a trunk that was made to the end.
const trunkWhole = "whole"

// makeBridge makes a bridge that forwards at once: there is no spanning tree, for switches are one. The
// caller holds r.mu.
func (r *Rack) makeBridge(name string) (netlink.Link, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	off := false
	if err := r.h.LinkAdd(&netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &off}); err != nil {
		return nil, fmt.Errorf("make bridge %s: %w", name, err)
	}
	br, err := r.h.LinkByName(name)
	if err != nil {
		return nil, err
	}
	return br, r.h.LinkSetUp(br)
}

// trunk joins the bridge of a cluster in a switch to that in the next one. A trunk that was begun is made
// anew. The caller holds r.mu.
func (r *Rack) trunk(index int, s Switch, below, above netlink.Link, mtu int) error {
	lower, upper := trunkLowerName(index, mark(s.Name)), trunkUpperName(index, mark(s.Name))
	r.drop(lower)
	if err := errors.Join(r.remove(lower), r.remove(upper)); err != nil {
		return err
	}
	if s.Delay > 0 {
		if err := errors.Join(r.makeTap(lower, mtu), r.makeTap(upper, mtu)); err != nil {
			return err
		}
	} else {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = lower, mtu
		if err := r.h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: upper, PeerMTU: uint32(mtu)}); err != nil {
			return fmt.Errorf("make link %s: %w", lower, err)
		}
	}
	ends := make([]netlink.Link, 2)
	for i, e := range []struct {
		name   string
		bridge netlink.Link
	}{{lower, below}, {upper, above}} {
		l, err := r.h.LinkByName(e.name)
		if err != nil {
			return err
		}
		// The rate is in force before anything can pass.
		if err := r.queued(l, mark(s.Name)); err != nil {
			return err
		}
		if err := r.h.LinkSetMaster(l, e.bridge); err != nil {
			return err
		}
		ends[i] = l
	}
	for _, l := range ends {
		if err := r.h.LinkSetUp(l); err != nil {
			return err
		}
	}
	if s.Delay > 0 {
		if err := r.carry(lower, upper, s.Delay); err != nil {
			return err
		}
	}
	return r.h.LinkSetAlias(ends[0], trunkWhole)
}

// removeNetwork removes the bridges of a cluster and what joins them, that by which it is found the last. The
// caller holds r.mu.
func (r *Rack) removeNetwork(index int, links []netlink.Link) error {
	for _, l := range links {
		before, _, several := strings.Cut(l.Attrs().Name, ".")
		if !several {
			continue
		}
		if !slices.Contains([]string{fmt.Sprintf("b%d", index), fmt.Sprintf("t%d", index), fmt.Sprintf("s%d", index)}, before) {
			continue
		}
		r.drop(l.Attrs().Name)
		if err := r.remove(l.Attrs().Name); err != nil {
			return err
		}
	}
	return r.remove(bridgeName(index))
}

// LinkRate is what the link of a switch is held to each way, in bits/s, as the kernel has it: the lesser of
// both ways. 0: to nothing.
func (r *Rack) LinkRate(name string) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return 0, net.ErrClosed
	}
	return r.rateOf(queueUpName(mark(name)), queueDownName(mark(name)))
}

// CutSwitch takes the bridges of all clusters in a switch down, as a switch that has no power; and with up
// brings them back.
func (r *Rack) CutSwitch(name string, up bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	links, err := r.links()
	if err != nil {
		return err
	}
	for _, l := range links {
		before, m, ok := strings.Cut(l.Attrs().Name, ".")
		if _, bridge := indexOf(before, "b"); !ok || !bridge || m != mark(name) {
			continue
		}
		set := r.h.LinkSetDown
		if up {
			set = r.h.LinkSetUp
		}
		if err := set(l); err != nil {
			return fmt.Errorf("switch %s: %w", name, err)
		}
	}
	return nil
}
