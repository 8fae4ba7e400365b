package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Card is a virtual machine's network card: what it may say of itself. A machine with a kernel of its own
// makes up whatever it sends, and volumes trust addresses.
type Card struct {
	MAC     net.HardwareAddr
	Address netip.Addr // IPv4
	// Several: it may have more than one pair of queues; see TapQueues.
	Several bool
}

// AddTap is AddMachine for a virtual machine: what it returns is the far end of the link, for its
// QEMU. The link goes with the last copy of that. It passes what c says and nothing else.
func (r *Rack) AddTap(ctx context.Context, index int, c Card) (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return nil, net.ErrClosed
	}
	f, err := r.tap(ctx, &veth{name: mgmtName(index), index: firstIndex + indexPerSlot*index}, c, managementFilter)
	if err != nil {
		return nil, err
	}
	if err := r.route(index); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// PlugTap is PlugMachine for a virtual machine.
func (r *Rack) PlugTap(ctx context.Context, p Plug, c Card) (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return nil, net.ErrClosed
	}
	br, err := r.bridgeAt(p.Bridge, p.Switch, p.MTU)
	if err != nil {
		return nil, err
	}
	v := &veth{name: msgName(p.Machine), index: firstIndex + indexPerSlot*p.Machine + 1, master: br.Attrs().Index, mtu: p.MTU}
	if p.Speed == 0 {
		return r.tap(ctx, v, c, messageFilter)
	}
	var f *os.File
	err = r.holdLink(p, br, v, func() (err error) {
		f, err = r.tap(ctx, v, c, messageFilter)
		return err
	})
	if err != nil && f != nil {
		_ = f.Close()
		f = nil
	}
	return f, err
}

// tap makes a tap whose filter is in force before anything can pass. An old link of that name goes first. The
// caller holds r.mu.
func (r *Rack) tap(ctx context.Context, v *veth, c Card, filter func(name string, c Card) string) (*os.File, error) {
	if len(c.MAC) != 6 || c.MAC[0]&1 != 0 || !c.Address.Is4() {
		return nil, fmt.Errorf("a card with the MAC %s and the address %s: no such card", c.MAC, c.Address)
	}
	if err := r.remove(v.name); err != nil {
		return nil, err
	}
	var f *os.File
	err := r.Do(func() (err error) { f, err = openTap(v.name, v.index, c.Several); return err })
	if err != nil {
		return nil, fmt.Errorf("make tap %s: %w", v.name, err)
	}
	set := func() error {
		if err := r.nft(ctx, filter(v.name, c)); err != nil {
			return err
		}
		if r.filters == nil {
			r.filters = map[string]bool{}
		}
		r.filters[v.name] = true
		if err := r.admitVirtual(ctx); err != nil {
			return err
		}
		l, err := r.h.LinkByName(v.name)
		if err != nil {
			return err
		}
		if v.mtu > 0 {
			if err := r.h.LinkSetMTU(l, v.mtu); err != nil {
				return err
			}
		}
		if v.master > 0 {
			if err := r.h.LinkSetMasterByIndex(l, v.master); err != nil {
				return err
			}
		}
		return r.h.LinkSetUp(l)
	}
	if err := set(); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("set up tap %s: %w", v.name, err)
	}
	return f, nil
}

// openTap makes a tap in the network namespace of the calling thread, or opens one that stays. Index 0 is any. Before each frame there is a header
// (struct virtio_net_hdr), by which large segments pass as they are.
func openTap(name string, index int, several bool) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err == nil && index > 0 {
		err = unix.IoctlSetPointerInt(fd, unix.TUNSETIFINDEX, index)
	}
	if err == nil {
		flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		if several {
			flags |= unix.IFF_MULTI_QUEUE
		}
		req.SetUint16(flags)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// TapQueues are n more queues of a card that was made with Several, each with both directions. Its filter holds for all.
func (r *Rack) TapQueues(index int, port Port, n int) (files []*os.File, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return nil, net.ErrClosed
	}
	name := mgmtName(index)
	if port == MessagePort {
		name = msgName(index)
	}
	err = r.Do(func() error {
		for range n {
			f, err := openTap(name, 0, true)
			if err != nil {
				return fmt.Errorf("open a queue of tap %s: %w", name, err)
			}
			files = append(files, f)
		}
		return nil
	})
	if err != nil {
		for _, f := range files {
			_ = f.Close()
		}
		return nil, err
	}
	return files, nil
}

// unfilter takes away the filter of a link that is gone, or becomes a machine's without a kernel of its
// own. The caller holds r.mu.
func (r *Rack) unfilter(name string) error {
	if !r.filters[name] {
		return nil
	}
	delete(r.filters, name)
	if err := r.admitVirtual(context.Background()); err != nil {
		r.filters[name] = true
		return err
	}
	r.filters[name] = true // until it is gone
	if err := r.nft(context.Background(), fmt.Sprintf("add table netdev %[1]s\ndelete table netdev %[1]s\n", filterTable(name))); err != nil {
		return err
	}
	delete(r.filters, name)
	return nil
}
