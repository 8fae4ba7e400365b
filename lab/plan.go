package lab

import (
	"crypto/sha256"
	"fmt"
	"net"
	"path/filepath"

	"github.com/muster-hpc/muster/lab/machine"
)

// plan is every machine of a lab. The same directory gives the same machines, down
// to their addresses and serial numbers; two directories share none.
func (l *Lab) plan(c Config) []machine.Config {
	var out []machine.Config
	total := c.Machines()
	perRack := (total + c.Racks - 1) / c.Racks
	for _, k := range c.Classes {
		for range k.Count {
			n := len(out)
			id := sha256.Sum256(fmt.Appendf(nil, "%s machine %d", l.dir, n))
			m := machine.Config{
				Name: name(n), Class: k.Name, Cores: k.Cores, Sockets: k.Sockets, Memory: k.Memory, Disk: k.Disk, NVMe: k.NVMe,
				Rack: fmt.Sprintf("lab-%d", n/perRack+1), Position: n%perRack + 1,
				Serial: fmt.Sprintf("LAB%X", id[:5]), UUID: uuid(id), UEFI: c.UEFI, TPM: c.TPM, KVM: c.KVM,
				NICs: []machine.NIC{
					{Use: machine.Management, MAC: l.mac(n, 0).String(), Port: name(n) + "-mgmt"},
					{Use: machine.Message, MAC: l.mac(n, 1).String(), Port: name(n) + "-msg"},
				},
			}
			if !c.NoBMC {
				m.BMC, m.House = c.controller(n), l.Namespace()
				m.Account, m.PasswordFile = Account, filepath.Join(l.dir, passwordFile)
			}
			out = append(out, m)
		}
	}
	return out
}

// uuid is a random-looking UUID (version 4, RFC 9562) of a digest.
func uuid(id [32]byte) string {
	b := id[8:24]
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// mac is the address of a machine's card: one that no maker has given out, with the
// lab in it.
func (l *Lab) mac(n, card int) net.HardwareAddr {
	sum := sha256.Sum256([]byte(l.dir))
	return net.HardwareAddr{0x52, sum[0], sum[1], sum[2], byte(n), byte(card)}
}

// serverMAC is the address of the server's end of the management network.
func (l *Lab) serverMAC() net.HardwareAddr { return l.mac(0xff, 0xff) }

// Ports of the switch that are no machine's.
const (
	serverPort     = "server"
	controllerPort = "bmc"
)

// ports are all devices of the switch.
func ports(list []machine.Config, c Config) []string {
	out := []string{serverPort}
	if !c.NoBMC {
		out = append(out, controllerPort)
	}
	for _, m := range list {
		for _, n := range m.NICs {
			out = append(out, n.Port)
		}
	}
	return out
}
