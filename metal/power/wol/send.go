package wol

import (
	"context"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// sender sends the bytes of one magic packet.
type sender interface {
	send(ctx context.Context, b []byte) error
}

// broadcast sends by UDP.
type broadcast struct {
	host string
	port int
}

func (s broadcast) send(ctx context.Context, b []byte) error {
	host := s.host
	if host == "" {
		host = netip.AddrFrom4([4]byte{255, 255, 255, 255}).String()
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "udp", net.JoinHostPort(host, strconv.Itoa(s.port))) // Go allows broadcasts on each UDP socket
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write(b)
	return err
}

// ethernet sends raw frames on one interface, to everybody: no address, no
// route and no neighbour are needed.
type ethernet struct{ name string }

func (s ethernet) send(_ context.Context, b []byte) error {
	nic, err := net.InterfaceByName(s.name)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	frame := make([]byte, 0, 14+len(b))
	frame = append(frame, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	source := nic.HardwareAddr
	if len(source) != macLength {
		source = make(net.HardwareAddr, macLength)
	}
	frame = append(frame, source...)
	frame = append(frame, etherType>>8, etherType&0xff)
	frame = append(frame, b...)
	return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: nic.Index, Halen: macLength, Addr: [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}})
}
