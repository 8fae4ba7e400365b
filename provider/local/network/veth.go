package network

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// veth describes a pair of linked devices: one here, one in a machine.
type veth struct {
	name   string // here
	index  int    // here
	master int    // index of a bridge, or 0
	inside string // name in the machine
	number int    // index in the machine; 0: any
	mtu    int    // 0: the default
}

// vethTypePeer is the attribute that holds the description of the far end.
const vethTypePeer = 1

// Device numbers are chosen, never the same at both ends of a pair: the kernel
// tells a change of carrier at once only for a device that knows itself to be
// one end of something else, and otherwise up to a second later, which a port
// of a bridge spends deaf.
const (
	firstIndex   = 10000
	insideMgmt   = 2
	insideMsg    = 3
	indexPerSlot = 2
)

// add makes the pair in one request. An old device of that name goes first.
func (r *Rack) add(v *veth, target *os.File) error {
	err := r.request(v, target)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EBUSY) {
		if err := r.remove(v.name); err != nil {
			return err
		}
		err = r.request(v, target)
	}
	if err != nil {
		return fmt.Errorf("make link %s: %w", v.name, err)
	}
	return nil
}

func (r *Rack) request(v *veth, target *os.File) error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	here := nl.NewIfInfomsg(unix.AF_UNSPEC)
	here.Index = int32(v.index)
	here.Flags, here.Change = unix.IFF_UP, unix.IFF_UP
	req.AddData(here)
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(v.name)))
	if v.mtu > 0 {
		req.AddData(nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(v.mtu))))
	}
	if v.master > 0 {
		req.AddData(nl.NewRtAttr(unix.IFLA_MASTER, nl.Uint32Attr(uint32(v.master))))
	}
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated("veth"))
	peer := info.AddRtAttr(nl.IFLA_INFO_DATA, nil).AddRtAttr(vethTypePeer, nil)
	there := nl.NewIfInfomsgChild(peer, unix.AF_UNSPEC)
	there.Index = int32(v.number)
	peer.AddRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(v.inside))
	peer.AddRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(target.Fd())))
	if v.mtu > 0 {
		peer.AddRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(v.mtu)))
	}
	req.AddData(info)
	return r.Do(func() error {
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		return err
	})
}

// remove removes a device, if it exists.
func (r *Rack) remove(name string) error {
	l, err := r.h.LinkByName(name)
	if notFound(err) {
		return nil
	}
	if err == nil {
		err = r.h.LinkDel(l)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove link %s: %w", name, err)
	}
	return nil
}

func notFound(err error) bool {
	var e netlink.LinkNotFoundError
	return errors.As(err, &e)
}
