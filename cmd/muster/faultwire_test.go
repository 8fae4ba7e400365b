package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/provider/local/network"
)

// wiretap listens to every port of the rack and remembers from which port each
// address spoke: as the source of a packet, or as the sender of an ARP packet.
type wiretap struct {
	fd   int
	done chan struct{}

	mu    sync.Mutex
	spoke map[netip.Addr][]port // in the order of first words
	wrong []string
}

// port is one link of the rack from which an address was heard.
type port struct {
	index int
	mac   string
	at    time.Time
}

// tap opens a wiretap in the rack of an instance. Only what machines send
// counts (messages to the host side of their links), on ports only.
func tap(t *testing.T, instance string) *wiretap {
	t.Helper()
	w := &wiretap{done: make(chan struct{}), spoke: map[netip.Addr][]port{}}
	opened := make(chan error, 1)
	network.OwnThread(func() {
		ns, err := unix.Open(filepath.Join("/run/netns", "muster-"+instance), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			defer unix.Close(ns)
			err = unix.Setns(ns, unix.CLONE_NEWNET)
		}
		if err == nil {
			w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_ALL)))
		}
		if err == nil {
			// A look at done now and then.
			err = unix.SetsockoptTimeval(w.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200000})
		}
		opened <- err
	})
	if err := <-opened; err != nil {
		t.Fatalf("wiretap: %v", err)
	}
	end := make(chan struct{})
	go func() { defer close(end); w.listen() }()
	t.Cleanup(func() {
		close(w.done)
		<-end
		_ = unix.Close(w.fd)
	})
	return w
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

func (w *wiretap) listen() {
	buf := make([]byte, 256) // heads are enough
	for {
		select {
		case <-w.done:
			return
		default:
		}
		n, from, err := unix.Recvfrom(w.fd, buf, 0)
		link, ok := from.(*unix.SockaddrLinklayer)
		if err != nil || !ok || n < 14 || link.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if a, ok := sender(buf[:n]); ok && message().Contains(a) {
			w.heard(a, port{index: link.Ifindex, mac: net.HardwareAddr(buf[6:12]).String(), at: time.Now()})
		}
	}
}

// message is where the addresses of nodes are: they belong to nodes, and each
// must be at one port only.
func message() netip.Prefix { return netip.MustParsePrefix("10.128.0.0/9") }

// sender is the address that a frame speaks for.
func sender(frame []byte) (netip.Addr, bool) {
	switch binary.BigEndian.Uint16(frame[12:]) {
	case unix.ETH_P_ARP:
		if len(frame) >= 14+18 {
			return netip.AddrFrom4([4]byte(frame[14+14 : 14+18])), true
		}
	case unix.ETH_P_IP:
		if len(frame) >= 14+20 {
			return netip.AddrFrom4([4]byte(frame[14+12 : 14+16])), true
		}
	}
	return netip.Addr{}, false
}

// heard files one word. A bridge hears everything again: a word with the same
// hardware address is the same speaker, wherever it was heard.
func (w *wiretap) heard(a netip.Addr, p port) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.spoke[a]
	if n := len(was); n > 0 && was[n-1].mac == p.mac {
		return
	}
	for _, old := range was {
		if old.mac == p.mac {
			w.wrong = append(w.wrong, fmt.Sprintf("%s spoke from %s, then from %s, then from %s again", a, p.mac, was[len(was)-1].mac, p.mac))
		}
	}
	w.spoke[a] = append(was, p)
}

// once fails the test if an address was ever in two places at a time: if it
// came back to where it had been after it had spoken from elsewhere.
func (w *wiretap) once(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.wrong {
		t.Errorf("an identity was twice on the wire: %s", text)
	}
	if len(w.spoke) == 0 {
		t.Error("the wiretap heard nothing: it proves nothing")
	}
}

// places counts from how many machines an address was heard.
func (w *wiretap) places(a string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.spoke[netip.MustParseAddr(a)])
}
