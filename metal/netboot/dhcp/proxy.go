package dhcp

import (
	"net/netip"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// ProxyPort is where machines ask a PXE server for their loader once they have
// an address of the site's DHCP server.
const ProxyPort = 4011

// proxy answers with PXE information and nothing else.
//
// A BIOS and iPXE take the loader's name from the offer. UEFI is offered none, so
// that it asks at ProxyPort, which all of its makers' versions do.
func (s *Server) proxy(r *Request, v Verdict, from uint16, port int, now time.Time) (reply, bool) {
	out := reply{request: r, verdict: v, proxy: true, from: from}
	// What a machine asks of the site's server is how its address is known.
	if r.Type == dhcpv4.MessageTypeRequest {
		a := r.client
		if !a.IsValid() {
			a = r.wanted
		}
		if s.table.network(a) >= 0 {
			s.heard.note(a, r.MAC, now)
		}
	}
	if !r.IPXE && !r.pxe && !r.Firmware.HTTP() {
		return reply{}, false // it did not ask to boot
	}
	switch {
	case port == ProxyPort && (r.Type == dhcpv4.MessageTypeRequest || r.Type == dhcpv4.MessageTypeInform):
		out.kind, out.client = ack, r.client
		if !r.client.IsValid() {
			return reply{}, false
		}
	case port != ProxyPort && r.Type == dhcpv4.MessageTypeDiscover:
		out.kind = offer
	default:
		return reply{}, false
	}
	s.boot(&out)
	if out.file == "" {
		s.note(r, r.client, "refused", out.why)
		return reply{}, false
	}
	s.note(r, r.client, "proxy", out.says())
	if out.kind == offer && (r.Firmware == UEFI || r.Firmware == ARM64) && !r.IPXE {
		out.file = ""
	}
	return out, true
}

// heard is which machine has which address, by what machines ask of another
// server. It holds so many and forgets the oldest.
type heard struct {
	mu    sync.Mutex
	byIP  map[netip.Addr]heardOf
	byMAC map[MAC]netip.Addr
	order []netip.Addr // oldest first; may name some that were heard again
}

type heardOf struct {
	mac MAC
	at  time.Time
}

const (
	heardMax = 1 << 16
	heardFor = 24 * time.Hour
)

func newHeard() *heard { return &heard{byIP: map[netip.Addr]heardOf{}, byMAC: map[MAC]netip.Addr{}} }

func (h *heard) note(a netip.Addr, m MAC, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, again := h.byIP[a]; !again {
		h.order = append(h.order, a)
	}
	h.byIP[a], h.byMAC[m] = heardOf{m, now}, a
	if len(h.order) > heardMax {
		old := h.order[0]
		if who := h.byIP[old].mac; h.byMAC[who] == old {
			delete(h.byMAC, who)
		}
		delete(h.byIP, old)
		h.order = h.order[1:]
	}
}

func (h *heard) owner(a netip.Addr, now time.Time) (MAC, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.byIP[a]
	return e.mac, ok && now.Sub(e.at) < heardFor
}

func (h *heard) addressOf(m MAC, now time.Time) (netip.Addr, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a, ok := h.byMAC[m]
	e := h.byIP[a]
	return a, ok && e.mac == m && now.Sub(e.at) < heardFor
}
