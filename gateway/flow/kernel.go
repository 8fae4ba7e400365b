package flow

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"github.com/ti-mo/conntrack"
	"github.com/ti-mo/netfilter"
	"golang.org/x/sys/unix"
)

// Config of a Kernel. Table and Listen are required.
type Config struct {
	// Table is the name of the table of rules; who shares it shares the flows.
	Table string
	// Listen is where clients connect to: an IPv4 address of this namespace.
	Listen netip.AddrPort
	// NS is the network namespace; nil: that of this process. It stays the caller's.
	NS *os.File
}

// Way is a connection that is let in: from where, to which node, and whose it is.
type Way struct {
	Client netip.AddrPort
	Node   netip.Addr
	Mark   uint32 // MarkDoor and a number of the caller's
	// Source is the address that the node sees, with the client's port: one of this namespace, so
	// that answers come back here whatever route the node has to the client. The zero value: the
	// client's. Of ways to one node with one Source each has another port.
	Source netip.Addr
}

// answers is the key of what the node answers: from it, to where.
func (w Way) answers() []byte {
	to := w.Client
	if w.Source.IsValid() {
		to = netip.AddrPortFrom(w.Source, to.Port())
	}
	return append(ip(w.Node), address(to)...)
}

// Flow is a connection as the kernel has it.
type Flow struct {
	Way
	Received, Sent uint64 // bytes of packets, from the client and to it
}

// Kernel lets connections through. It is safe for concurrent use.
type Kernel struct {
	cfg Config

	mu     sync.Mutex // of the two below, which carry one request at a time
	sets   *nftables.Conn
	table  *conntrack.Conn
	latest map[netip.AddrPort]uint32 // mark of the way that a client was given last, until it is forgotten
}

// Open puts the rules in force, and keeps the connections that are there. An error says what the
// kernel, or who set this host up, lacks; Missing says more.
func Open(ctx context.Context, c Config) (*Kernel, error) {
	if !c.Listen.Addr().Is4() || c.Listen.Addr().IsUnspecified() || c.Listen.Addr().IsLoopback() || c.Listen.Port() == 0 {
		return nil, fmt.Errorf("%s is not an IPv4 address and port of this host that others reach", c.Listen)
	}
	k := &Kernel{cfg: c, latest: map[netip.AddrPort]uint32{}}
	if missing := k.missing(); len(missing) > 0 {
		return nil, errors.New(missing[0])
	}
	if err := k.nft(ctx, rules(c.Table, c.Listen)); err != nil {
		return nil, err
	}
	var err error
	if k.sets, err = nftables.New(nftables.AsLasting(), nftables.WithNetNSFd(k.ns())); err != nil {
		return nil, err
	}
	if k.table, err = k.tracker(); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

// Close lets go of the kernel. The rules and the connections stay.
func (k *Kernel) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.sets.CloseLasting()
	if k.table != nil {
		err = errors.Join(err, k.table.Close())
	}
	return err
}

// Remove ends every connection and takes the rules away. There may be none.
func Remove(ctx context.Context, c Config) error {
	k := &Kernel{cfg: c}
	sets, err := nftables.New(nftables.WithNetNSFd(k.ns()))
	if err != nil {
		return err
	}
	tables, err := sets.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if t.Name != c.Table {
			continue
		}
		// Without the rules what is in the table of connections would go on.
		if k.table, err = k.tracker(); err != nil {
			return err
		}
		defer func() { _ = k.table.Close() }()
		err = k.table.FlushFilter(conntrack.NewFilter().Mark(MarkDoor).MarkMask(markMask))
		return errors.Join(err, k.nft(ctx, "delete table ip "+c.Table+"\n"))
	}
	return nil
}

func (k *Kernel) ns() int {
	if k.cfg.NS == nil {
		return 0
	}
	return int(k.cfg.NS.Fd())
}

func (k *Kernel) tracker() (*conntrack.Conn, error) {
	return conntrack.Dial(&netlink.Config{NetNS: k.ns()})
}

// in runs f on a thread inside the namespace.
func (k *Kernel) in(f func() error) error {
	if k.cfg.NS == nil {
		return f()
	}
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with this
		if err := unix.Setns(k.ns(), unix.CLONE_NEWNET); err != nil {
			result <- fmt.Errorf("enter the network namespace: %w", err)
			return
		}
		result <- f()
	}()
	return <-result
}

// Add lets one connection in, which must begin within wait. What was left of another one from the
// same address and port goes first.
func (k *Kernel) Add(w Way, wait time.Duration) error {
	if !w.Client.Addr().Is4() || !w.Node.Is4() || w.Client.Port() == 0 || w.Mark&markMask != MarkDoor {
		return fmt.Errorf("not a way: %+v", w)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.forget(w); err != nil {
		return err
	}
	k.latest[w.Client] = w.Mark
	client := address(w.Client)
	if w.Source.Is4() {
		if err := k.sets.SetAddElements(k.sources(), []nftables.SetElement{{Key: client, Val: ip(w.Source)}}); err != nil {
			return err
		}
	}
	for set, e := range map[*nftables.Set]nftables.SetElement{
		k.nodes(): {Key: client, Val: address(netip.AddrPortFrom(w.Node, SSHPort)), Timeout: wait},
		k.marks(): {Key: client, Val: native32(w.Mark)},
		k.back():  {Key: w.answers()},
	} {
		if err := k.sets.SetAddElements(set, []nftables.SetElement{e}); err != nil {
			return err
		}
	}
	return k.sets.Flush() // all of them, or none
}

// SourceTo is the address of this namespace from which it reaches a node.
func (k *Kernel) SourceTo(node netip.Addr) (from netip.Addr, _ error) {
	return from, k.in(func() error {
		c, err := net.Dial("udp4", netip.AddrPortFrom(node, SSHPort).String()) // sends nothing
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		at, err := netip.ParseAddrPort(c.LocalAddr().String())
		from = at.Addr()
		return err
	})
}

// Used closes the way after the connection that it was for has come: no other one comes in by it.
func (k *Kernel) Used(w Way) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.another(w) {
		return nil
	}
	return k.drop(k.nodes(), address(w.Client))
}

// End ends a connection, or a way on which none came, and has the node hear of it.
func (k *Kernel) End(w Way) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.another(w) {
		return nil
	}
	err := k.forget(w)
	back := w.answers()
	_ = k.drop(k.ended(), back)
	if add := k.sets.SetAddElements(k.ended(), []nftables.SetElement{{Key: back, Timeout: toldFor}}); add != nil {
		return errors.Join(err, add)
	}
	return errors.Join(err, k.sets.Flush())
}

// toldFor is how long a node is told that a connection ended: its next packet is answered so, and
// where nothing else sends one, TCP asks for signs of life every two hours.
const toldFor = 3 * time.Hour

// Forget removes what is known of a connection that has ended.
func (k *Kernel) Forget(w Way) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.another(w) {
		return nil
	}
	return k.forget(w)
}

// another reports whether the client's port is that of a later way: of this one nothing is left then, and what is
// known by the port is not its own. Ports come again within moments, words of ends up to seconds later.
func (k *Kernel) another(w Way) bool {
	mark, known := k.latest[w.Client]
	return known && mark != w.Mark
}

// forget removes everything of a way: packets first, so that none begins it anew.
func (k *Kernel) forget(w Way) error {
	delete(k.latest, w.Client)
	client := address(w.Client)
	back := w.answers()
	err := errors.Join(k.drop(k.nodes(), client), k.drop(k.sources(), client), k.drop(k.marks(), client), k.drop(k.back(), back), k.drop(k.ended(), back))
	gone := k.table.Delete(conntrack.NewFlow(unix.IPPROTO_TCP, 0, w.Client.Addr(), k.cfg.Listen.Addr(), w.Client.Port(), k.cfg.Listen.Port(), 0, 0))
	if errors.Is(gone, unix.ENOENT) {
		gone = nil
	}
	return errors.Join(err, gone)
}

// drop removes an element, which may be gone.
func (k *Kernel) drop(s *nftables.Set, key []byte) error {
	if err := k.sets.SetDeleteElements(s, []nftables.SetElement{{Key: key}}); err != nil {
		return err
	}
	if err := k.sets.Flush(); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// Flows lists the connections that are there.
func (k *Kernel) Flows() ([]Flow, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	list, err := k.table.DumpFilter(conntrack.NewFilter().Family(netfilter.ProtoIPv4).Mark(MarkDoor).MarkMask(markMask), nil)
	if err != nil {
		return nil, err
	}
	var out []Flow
	for _, f := range list {
		if x, ok := k.flow(&f); ok && !over(&f) {
			out = append(out, x)
		}
	}
	return out, nil
}

// flow is a connection of a door; false: it is none of ours.
func (k *Kernel) flow(f *conntrack.Flow) (Flow, bool) {
	t := f.TupleOrig
	if f.Mark&markMask != MarkDoor || netip.AddrPortFrom(t.IP.DestinationAddress, t.Proto.DestinationPort) != k.cfg.Listen {
		return Flow{}, false
	}
	w := Way{Client: netip.AddrPortFrom(t.IP.SourceAddress, t.Proto.SourcePort), Node: f.TupleReply.IP.SourceAddress, Mark: f.Mark}
	if to := f.TupleReply.IP.DestinationAddress; to != w.Client.Addr() {
		w.Source = to
	}
	return Flow{Way: w,
		Received: f.CountersOrig.Bytes, Sent: f.CountersReply.Bytes}, true
}

// Keep removes everything but these ways.
func (k *Kernel) Keep(list []Way) error {
	clients, backs := map[string]bool{}, map[string]bool{}
	for _, w := range list {
		clients[string(address(w.Client))] = true
		backs[string(w.answers())] = true
	}
	flows, err := k.Flows()
	if err != nil {
		return err
	}
	for _, f := range flows {
		if !clients[string(address(f.Client))] {
			err = errors.Join(err, k.End(f.Way))
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for set, keep := range map[*nftables.Set]map[string]bool{k.nodes(): nil, k.sources(): clients, k.marks(): clients, k.back(): backs} {
		elements, listErr := k.sets.GetSetElements(set)
		err = errors.Join(err, listErr)
		for _, e := range elements {
			if !keep[string(e.Key)] {
				err = errors.Join(err, k.drop(set, e.Key))
			}
		}
	}
	return err
}
