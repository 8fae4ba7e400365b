package facts

import (
	"context"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// lldpTime is how long is listened: switches speak every 30 s unless told
// otherwise.
const lldpTime = 32 * time.Second

// Neighbours listens on NICs with a link for what switches say of themselves, for
// half a minute at most, and fills that in. It needs root. What is heard is what
// anybody on the wire may say.
func (s Source) Neighbours(ctx context.Context, nics []muster.NIC) {
	ctx, cancel := context.WithTimeout(ctx, lldpTime)
	defer cancel()
	var all sync.WaitGroup
	for i := range nics {
		if nics[i].Kind != "ethernet" || nics[i].Link == "down" {
			continue
		}
		all.Go(func() {
			if n, ok := listen(ctx, nics[i].Name); ok {
				nics[i].Neighbour = &n
			}
		})
	}
	all.Wait()
}

// listen waits for one frame on a NIC.
func listen(ctx context.Context, name string) (muster.Neighbour, bool) {
	var none muster.Neighbour
	i, err := net.InterfaceByName(name)
	if err != nil {
		return none, false
	}
	const proto = etherLLDP<<8&0xff00 | etherLLDP>>8 // as the network writes it
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return none, false
	}
	defer unix.Close(fd)
	if unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: i.Index}) != nil {
		return none, false
	}
	// The group that switches speak to; it does not leave the wire.
	group := unix.PacketMreq{Ifindex: int32(i.Index), Type: unix.PACKET_MR_MULTICAST, Alen: 6, Address: [8]uint8{1, 0x80, 0xc2, 0, 0, 0xe}}
	if unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &group) != nil {
		return none, false
	}
	tick := unix.NsecToTimeval(int64(200 * time.Millisecond))
	if unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tick) != nil {
		return none, false
	}
	buf := make([]byte, 2048)
	for ctx.Err() == nil {
		n, from, err := unix.Recvfrom(fd, buf, 0)
		if err != nil || n <= 0 {
			continue
		}
		if l, ok := from.(*unix.SockaddrLinklayer); ok && l.Pkttype == unix.PACKET_OUTGOING {
			continue // said by this machine
		}
		if neighbour, ok := parseLLDP(buf[:n]); ok {
			return neighbour, true
		}
	}
	return none, false
}
