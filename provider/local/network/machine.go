package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
)

// Names of a machine's links, as it sees them.
const (
	ManagementLink = "mgmt0"
	MessageLink    = "msg0"
)

const mgmtPrefix = "m"

func mgmtName(index int) string   { return fmt.Sprintf(mgmtPrefix+"%d", index) }
func msgName(index int) string    { return fmt.Sprintf("n%d", index) }
func bridgeName(index int) string { return fmt.Sprintf("b%d", index) }

// AddMachine links the machine with this index, whose network namespace is
// target, to the rack. Inside, the link is called ManagementLink and has no
// address yet. An old link of that index goes first.
func (r *Rack) AddMachine(index int, target *os.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return net.ErrClosed
	}
	v := &veth{name: mgmtName(index), index: firstIndex + indexPerSlot*index, inside: ManagementLink, number: insideMgmt}
	if err := r.unfilter(v.name); err != nil {
		return err
	}
	if err := r.add(v, target); err != nil {
		return err
	}
	return r.route(index)
}

// AddMessageLink gives the machine in namespace target a message link whose
// far end is attached to nothing, so that it can be tried.
func (r *Rack) AddMessageLink(index int, target *os.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return net.ErrClosed
	}
	if err := r.unfilter(msgName(index)); err != nil {
		return err
	}
	return r.add(&veth{name: msgName(index), index: firstIndex + indexPerSlot*index + 1, inside: MessageLink, number: insideMsg}, target)
}

// RemoveMachine removes every link of a machine.
func (r *Rack) RemoveMachine(index int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return net.ErrClosed
	}
	return errors.Join(r.remove(mgmtName(index)), r.remove(msgName(index)), r.removeRate(index),
		r.unfilter(mgmtName(index)), r.unfilter(msgName(index)))
}

// CutMachine closes both of a machine's ports, whatever it does inside.
func (r *Rack) CutMachine(index int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return net.ErrClosed
	}
	for _, name := range []string{mgmtName(index), msgName(index)} {
		l, err := r.h.LinkByName(name)
		if notFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := r.h.LinkSetDown(l); err != nil {
			return fmt.Errorf("close port %s: %w", name, err)
		}
	}
	return nil
}

// Machines lists the indexes that have a link in the rack.
func (r *Rack) Machines() (map[int]bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	links, err := r.links()
	if err != nil {
		return nil, err
	}
	out := map[int]bool{}
	for _, l := range links {
		for _, prefix := range []string{"m", "n", "r", "x", "y"} {
			if i, ok := indexOf(l.Attrs().Name, prefix); ok {
				out[i] = true
			}
		}
	}
	return out, nil
}

// indexOf reads the number from a name like b12.
func indexOf(name, prefix string) (int, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok || rest == "" {
		return 0, false
	}
	n := 0
	for _, c := range rest {
		if c < '0' || c > '9' || n > 1<<20 {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// Plug is a machine's place on a cluster's network.
type Plug struct {
	Machine int // index
	Bridge  int // index of the network
	// Switch is the one that it is plugged into; "": what joins all.
	Switch  string
	MTU     int   // 0: the default
	Speed   int64 // bits/s each way; 0: as fast as it goes
	Address netip.Prefix
}
