package network

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Port is one end of a machine's links, as the rack has it.
type Port string

// Ports of a machine.
const (
	ManagementPort Port = "management"
	MessagePort    Port = "message"
)

func (p Port) device(index int) (string, error) {
	switch p {
	case ManagementPort:
		return mgmtName(index), nil
	case MessagePort:
		return msgName(index), nil
	}
	return "", fmt.Errorf("a machine has no port %q", p)
}

// PortState is what the rack knows of a port.
type PortState struct {
	There    bool
	Up       bool   // frames pass
	Received uint64 // frames that came from the machine
}

// PortState looks at one port of a machine.
func (r *Rack) PortState(index int, port Port) (PortState, error) {
	l, err := r.port(index, port)
	if err != nil || l == nil {
		return PortState{}, err
	}
	a := l.Attrs()
	s := PortState{There: true, Up: a.RawFlags&unix.IFF_UP != 0}
	if a.Statistics != nil {
		s.Received = a.Statistics.RxPackets
	}
	return s, nil
}

// CutPort closes one port of a machine, as pulling its cable does.
func (r *Rack) CutPort(index int, port Port) error {
	l, err := r.port(index, port)
	if err != nil || l == nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return net.ErrClosed
	}
	return r.h.LinkSetDown(l)
}

// MendPort opens a port again that was cut.
func (r *Rack) MendPort(index int, port Port) error {
	l, err := r.port(index, port)
	if err != nil {
		return err
	}
	if l == nil {
		return fmt.Errorf("machine %d has no %s port", index, port)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return net.ErrClosed
	}
	if err := r.h.LinkSetUp(l); err != nil || port != ManagementPort {
		return err
	}
	return r.route(index) // it went with the link
}

// port finds the device of a port; nil when it is not there.
func (r *Rack) port(index int, port Port) (netlink.Link, error) {
	name, err := port.device(index)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return nil, net.ErrClosed
	}
	l, err := r.h.LinkByName(name)
	if notFound(err) {
		return nil, nil
	}
	return l, err
}

// route leads to a machine by its management link. The caller holds r.mu.
func (r *Rack) route(index int) error {
	addr, err := ManagementAddress(index)
	if err != nil {
		return err
	}
	number := firstIndex + indexPerSlot*index
	route := &netlink.Route{LinkIndex: number, Dst: hostNet(addr), Scope: netlink.SCOPE_LINK, Src: Gateway().AsSlice()}
	if err := r.h.RouteReplace(route); err != nil {
		return fmt.Errorf("route to %s: %w", addr, err)
	}
	return nil
}

// Attach opens a rack that is there, and changes nothing about it: for looking
// at one, and for faults that tests make. Returns os.ErrNotExist when there is
// none.
func Attach(name string) (*Rack, error) {
	ns, err := openNetns(name, false)
	if err != nil {
		return nil, err
	}
	h, err := netlink.NewHandleAt(netns.NsHandle(ns.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		_ = ns.Close()
		return nil, err
	}
	return &Rack{name: name, ns: ns, h: h}, nil
}
