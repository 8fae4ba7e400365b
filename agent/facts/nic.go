package facts

import (
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-hpc/muster"
)

// Hardware types of interfaces, from the kernel's if_arp.h.
const (
	typeEthernet   = "1"
	typeInfiniband = "32"
)

// nics lists the interfaces that carry something to the outside, by name. The
// speed of a pair (veth) is the nominal one that the kernel gives it.
func (s Source) nics(message, management string) []muster.NIC {
	dirs, err := os.ReadDir(s.path("sys/class/net"))
	if err != nil {
		return s.plainNICs(message, management)
	}
	var out []muster.NIC
	for _, d := range dirs {
		at := "sys/class/net/" + d.Name() + "/"
		n := muster.NIC{Name: d.Name(), MAC: s.text(at + "address"), Use: use(d.Name(), message, management)}
		switch s.text(at + "type") {
		case typeEthernet:
			n.Kind = "ethernet"
		case typeInfiniband:
			n.Kind = "infiniband"
			if guid, err := muster.ParseMAC(n.MAC); err == nil {
				n.MAC = guid // the rest of the address is another one after each boot
			}
		default:
			continue
		}
		if !exists(s.path(at + "device")) {
			// Nothing behind it: a pair has its other end elsewhere; bridges,
			// bonds and dummies are made here and are not NICs.
			if s.text(at+"iflink") == s.text(at+"ifindex") {
				continue
			}
			n.Kind = "veth"
		}
		if mbit := s.number(at + "speed"); mbit > 0 {
			n.Speed = mbit * 1_000_000
		}
		if n.Kind != "veth" {
			s.card(at, &n)
		}
		out = append(out, n)
	}
	return out
}

// card reports what there is to tell of a NIC that is hardware.
func (s Source) card(at string, n *muster.NIC) {
	switch s.text(at + "carrier") { // cannot be read of one that is down
	case "1":
		n.Link = "up"
	case "0":
		n.Link = "down"
	}
	n.NUMA = s.near(at + "device/numa_node")
	link := func(name string) string {
		to, err := os.Readlink(s.path(at + name))
		if err != nil {
			return ""
		}
		return filepath.Base(to)
	}
	n.Driver, n.PCIAddress = link("device/driver"), link("device")
}

// plainNICs is for machines without /sys.
func (s Source) plainNICs(message, management string) []muster.NIC {
	list := s.Interfaces
	if list == nil {
		list = net.Interfaces
	}
	all, err := list()
	if err != nil {
		return nil
	}
	var out []muster.NIC
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && len(i.HardwareAddr) > 0 {
			out = append(out, muster.NIC{
				Name: i.Name, MAC: i.HardwareAddr.String(), Kind: "ethernet",
				Use: use(i.Name, message, management),
			})
		}
	}
	return out
}

func use(name, message, management string) string {
	switch {
	case name == message && name != "":
		return "message"
	case name == management && name != "":
		return "management"
	case strings.HasPrefix(name, "msg"):
		return "message"
	case strings.HasPrefix(name, "mgmt"):
		return "management"
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(filepath.Clean(path))
	return err == nil
}
