package dhcp

import (
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

func TestBesideAnotherServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Mode = Proxy })
	for i := range 4 {
		r.book.verdicts[mac(i)] = Verdict{Standing: Known, Boot: "b1a2"}
	}
	ipxe := opt(77, []byte("iPXE")...)
	// Nobody gets an address, a lease time, or a NAK.
	offer := func(mods ...mod) *dhcpv4.DHCPv4 {
		t.Helper()
		got := r.local(discover(mac(1), mods...))
		if got == nil {
			t.Fatalf("no offer: %v", r.notes)
		}
		if !got.YourIPAddr.IsUnspecified() || got.Options[51] != nil || got.Options[1] != nil || string(got.Options[60]) != "PXEClient" {
			t.Errorf("%s", got.Summary())
		}
		return got
	}
	if got := offer(pxe(0)); got.BootFileName != "undionly.kpxe" || string(got.Options[43]) != "\x06\x01\x08\xff" || got.ServerIPAddr.String() != "10.1.0.1" {
		t.Errorf("BIOS: %s", got.Summary())
	}
	if got := offer(pxe(7)); got.BootFileName != "" || got.Options[43] != nil {
		t.Errorf("UEFI: %s", got.Summary())
	}
	if got := offer(pxe(7), ipxe); got.BootFileName != "http://10.1.0.1:7780/boot/b1a2/script" {
		t.Errorf("iPXE: %s", got.Summary())
	}
	// UEFI asks at the other port, with the address that the site gave it.
	got := r.send(ask(mac(1), pxe(7), has("10.1.0.77")), "10.1.0.77:4011", ProxyPort)
	if got == nil || got.MessageType() != dhcpv4.MessageTypeAck || got.BootFileName != "snponly.efi" || !got.YourIPAddr.IsUnspecified() {
		t.Errorf("at port 4011: %v", got)
	}
	http := r.local(discover(mac(1), pxe(16), opt(60, []byte("HTTPClient:Arch:00016")...)))
	if http == nil || string(http.Options[60]) != "HTTPClient" || string(http.Options[67]) != "http://10.1.0.1:7780/loader/snponly.efi" {
		t.Errorf("HTTP boot: %v", http)
	}
	for name, p := range map[string]*dhcpv4.DHCPv4{
		"an operating system":        discover(mac(1)),
		"a request to the site":      ask(mac(1), pxe(0), wants("10.1.0.78"), chose("10.1.0.2")),
		"one without an order":       discover(mac(9), pxe(0)),
		"one with a foreign address": ask(mac(2), has("192.168.1.1")),
	} {
		if got := r.local(p); got != nil {
			t.Errorf("%s is answered: %v", name, got)
		}
	}
	// What was asked of the site's server is how addresses are known.
	if m, ok := r.Owner(ip("10.1.0.78")); !ok || m != mac(1) {
		t.Errorf("owner of what was asked for: %v, %v", m, ok)
	}
	if m, ok := r.Owner(ip("10.1.0.77")); !ok || m != mac(1) {
		t.Errorf("owner at port 4011: %v, %v", m, ok)
	}
	if _, ok := r.Owner(ip("192.168.1.1")); ok {
		t.Error("an address of a network that was not given is believed")
	}
}
