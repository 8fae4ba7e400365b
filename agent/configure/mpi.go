package configure

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/wire"
)

// mpi tells Open MPI which network is for messages. Inside a node it finds
// shared memory by itself. The files of releases 4 and 5 have other names;
// those of an image without Open MPI are not made.
func (c *Configurer) mpi(cfg *wire.NodeConfig) error {
	if !c.files.exists("/etc/openmpi") {
		return nil
	}
	five := c.files.exists("/etc/openmpi/prte.conf") // release 5 has a launcher of its own
	params, hostfile := mpiParams(cfg, five, isolated(cfg.Management, five)), "/etc/openmpi/openmpi-default-hostfile"
	if five {
		hostfile = "/etc/openmpi/prte-default-hostfile"
		var launcher string
		if cfg.Interface != "" {
			launcher = "prte_if_include = " + cfg.Interface + "\n" + overlap
		}
		if err := c.files.block("/etc/openmpi/prte-mca-params.conf", launcher); err != nil {
			return err
		}
	} else if cfg.Interface != "" {
		params += "oob_tcp_if_include = " + cfg.Interface + "\n" + overlap
	}
	if err := c.files.block("/etc/openmpi/openmpi-mca-params.conf", params); err != nil {
		return err
	}
	return c.files.block(hostfile, mpiHosts(cfg))
}

// overlap lets mpirun start its daemons where a shell of "srun --pty" has the cores.
const overlap = "plm_slurm_args = --overlap\n"

// isolated reports whether no other node can be reached by an interface: its only addresses
// are networks of their own, or (with release 5) the routes to other machines there are closed.
// Open MPI 5 asks the routes and sees that by itself. Open MPI 4 does not, and the provider of
// slices has routes that lead to such addresses of other nodes by the message network. So a
// setting of ours is needed with neither, and would contradict those of users:
// btl_tcp_if_exclude and btl_tcp_if_include go with no other.
func isolated(name string, five bool) bool {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return false
	}
	var closed []netlink.Route
	if five {
		closed, err = netlink.RouteListFiltered(unix.AF_INET, &netlink.Route{Type: unix.RTN_UNREACHABLE}, netlink.RT_FILTER_TYPE)
		if err != nil {
			return false
		}
	}
	addresses, err := i.Addrs()
	for _, a := range addresses {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsLinkLocalUnicast() && !one(n.Mask) && !slices.ContainsFunc(closed, func(r netlink.Route) bool {
			return r.Dst != nil && n.Contains(r.Dst.IP)
		}) {
			return false
		}
	}
	return err == nil
}

// one reports whether a mask is that of a single address.
func one(m net.IPMask) bool {
	bits, all := m.Size()
	return bits == all
}

func mpiParams(cfg *wire.NodeConfig, five, isolated bool) string {
	var b strings.Builder
	switch {
	case cfg.Interface == "":
	case !isolated:
		fmt.Fprintf(&b, "btl_tcp_if_include = %s\n", cfg.Interface)
	case !five:
		// A second connection between two nodes, which is one by the same network: it carries
		// next to nothing beside the first.
		fmt.Fprintf(&b, "btl_tcp_latency_%s = 1000000\nbtl_tcp_bandwidth_%s = 1\n", cfg.Management, cfg.Management)
	}
	if cfg.Oversubscribed {
		// A rank that waits lets the one that it waits for have the core: a
		// message takes 10 us instead of 4 ms.
		b.WriteString("mpi_yield_when_idle = 1\n")
	}
	return b.String()
}

// mpiHosts are the nodes that mpirun uses by itself: all of them where there
// is no scheduler. Where there is one, mpirun asks it.
func mpiHosts(cfg *wire.NodeConfig) string {
	if cfg.Slurm != nil {
		return ""
	}
	var b strings.Builder
	for _, h := range cfg.Hosts {
		if h.Compute {
			fmt.Fprintf(&b, "%s slots=%d\n", h.Name, max(1, h.Cores))
		}
	}
	return b.String()
}
