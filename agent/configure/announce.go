package configure

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/wire"
)

// A machine that takes another's place takes its address on the message network,
// and whoever spoke with the one before goes on sending to that for up to half a
// minute. So every machine says on its network where its address is now, a few
// times: the first word may be said before the network carries it.

// announcePauses are the pauses before each announcement.
func announcePauses() []time.Duration {
	return []time.Duration{0, 300 * time.Millisecond, time.Second, 2 * time.Second}
}

// announce tells the node's message network of its address, once in the life of
// this agent.
func (c *Configurer) announce(ctx context.Context, cfg *wire.NodeConfig) {
	address, err := netip.ParsePrefix(cfg.Address)
	if err != nil || !address.Addr().Is4() || cfg.Interface == "" || !c.announced.CompareAndSwap(false, true) {
		return
	}
	for _, pause := range announcePauses() {
		select {
		case <-ctx.Done():
			c.announced.Store(false) // the next configuration goes on with it
			return
		case <-c.clock.After(pause):
		}
		if err := sendAnnouncement(cfg.Interface, address.Addr()); err != nil {
			c.log.Debug("address announcement failed", "interface", cfg.Interface, "error", err)
		}
	}
}

// sendAnnouncement sends an ARP announcement (RFC 5227, section 3).
func sendAnnouncement(name string, address netip.Addr) error {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	if len(link.HardwareAddr) != 6 {
		return unix.EADDRNOTAVAIL // no Ethernet
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	everybody := unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ARP), Ifindex: link.Index, Halen: 6, Addr: [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
	return unix.Sendto(fd, announcement(link.HardwareAddr, address), 0, &everybody)
}

// announcement is an ARP request of an address for itself.
func announcement(hardware net.HardwareAddr, address netip.Addr) []byte {
	const request = 1
	b := binary.BigEndian.AppendUint16(nil, unix.ARPHRD_ETHER)
	b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IP)
	b = append(b, 6, 4)
	b = binary.BigEndian.AppendUint16(b, request)
	ip := address.As4()
	b = append(b, hardware...)
	b = append(b, ip[:]...)
	b = append(b, make([]byte, 6)...)
	return append(b, ip[:]...)
}

func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
