package network

import (
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespace is a named network namespace and nothing more: no addresses, no
// rules. A Rack is one with both.
type Namespace struct {
	name string
	ns   *os.File
}

// OpenNamespace opens the network namespace with this name, making it when
// create is set. Returns os.ErrNotExist when there is none. The caller closes it.
func OpenNamespace(name string, create bool) (*Namespace, error) {
	f, err := openNetns(name, create)
	if err != nil {
		return nil, err
	}
	return &Namespace{name: name, ns: f}, nil
}

// DeleteNamespace takes the name away; the namespace goes when nothing uses it.
// It is no error when there is none.
func DeleteNamespace(name string) error { return deleteNetns(name) }

// Name is what it is called in /run/netns.
func (n *Namespace) Name() string { return n.name }

// File is the namespace itself, which stays the Namespace's.
func (n *Namespace) File() *os.File { return n.ns }

// Do runs f on a thread inside the namespace. f must not start goroutines that
// open sockets. A process that f starts is in the namespace, too.
func (n *Namespace) Do(f func() error) error { return inNetns(n.ns, f) }

// Handle opens netlink inside the namespace. The caller closes it.
func (n *Namespace) Handle() (*netlink.Handle, error) {
	return netlink.NewHandleAt(netns.NsHandle(n.ns.Fd()), unix.NETLINK_ROUTE)
}

// Close lets go of the namespace, which stays.
func (n *Namespace) Close() error { return n.ns.Close() }
