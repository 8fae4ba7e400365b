package configure

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
)

func TestAnnouncement(t *testing.T) {
	t.Parallel()
	got := announcement(net.HardwareAddr{2, 0, 0, 0, 0, 9}, netip.MustParseAddr("10.128.0.10"))
	want := []byte{
		0, 1, 8, 0, 6, 4, 0, 1, // Ethernet, IPv4, lengths, a request
		2, 0, 0, 0, 0, 9, 10, 128, 0, 10, // of this address
		0, 0, 0, 0, 0, 0, 10, 128, 0, 10, // for itself
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
