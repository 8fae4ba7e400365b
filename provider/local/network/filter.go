package network

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"
)

// The filter of a tap sees each frame first, before the bridge or the host does anything with it. A frame
// that is tagged for a VLAN is none of the kinds that may pass, whatever is inside.
//
// Declaring and deleting first makes a filter anew, also where an earlier one was left.
const filterText = `
add table netdev @TABLE@
delete table netdev @TABLE@
table netdev @TABLE@ {
	chain in {
		type filter hook ingress device "@LINK@" priority 0; policy drop;
		ether type != { @KINDS@ } drop
		ether saddr != @MAC@ drop
		ether type arp arp saddr ether @MAC@ arp saddr ip @ADDRESS@ accept
		ether type ip ip saddr @ADDRESS@ accept
@MORE@	}
}
`

// ipv6Text lets a machine speak by the one IPv6 address that its card has by itself, and claim no other:
// an advertisement names it (RFC 4861, section 4.4), and only a question whether it is free has no source. No
// machine is a router. Of fragments nobody can say what they are.
const ipv6Text = `		exthdr frag exists drop
		icmpv6 type { nd-router-advert, nd-redirect } drop
		icmpv6 type nd-neighbor-advert @th,64,128 != @HEX@ drop
		ether type ip6 ip6 saddr @LOCAL@ accept
		ether type ip6 ip6 saddr :: icmpv6 type nd-neighbor-solicit @th,64,128 @HEX@ accept
`

// filterTable is the table that holds the filter of a link.
func filterTable(link string) string { return filterPrefix + link }

const filterPrefix = "vm-"

// managementFilter is that of a management link: IPv4 alone.
func managementFilter(link string, c Card) string { return filter(link, c, "ip, arp", "") }

// messageFilter is that of a message link.
func messageFilter(link string, c Card) string {
	local := linkLocal(c)
	return filter(link, c, "ip, arp, ip6", strings.NewReplacer("@HEX@", fmt.Sprintf("0x%x", local.As16()), "@LOCAL@", local.String()).Replace(ipv6Text))
}

func filter(link string, c Card, kinds, more string) string {
	return strings.NewReplacer("@TABLE@", filterTable(link), "@LINK@", link, "@KINDS@", kinds, "@MAC@", c.MAC.String(),
		"@ADDRESS@", c.Address.String(), "@MORE@", more).Replace(filterText)
}

// linkLocal is the address that a card gives itself (RFC 4291, appendix A).
func linkLocal(c Card) netip.Addr {
	m := c.MAC
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

// admitVirtual has those machines, and no others, reach what is for virtual machines alone, whose
// management links have filters: volumes trust their addresses. The caller holds r.mu, or nobody else has r.
func (r *Rack) admitVirtual(ctx context.Context) error {
	var list []string
	for link := range r.filters {
		i, ok := indexOf(link, mgmtPrefix)
		if !ok {
			continue
		}
		a, err := ManagementAddress(i)
		if err != nil {
			return err
		}
		list = append(list, a.String())
	}
	return r.nft(ctx, setText("virtual", list))
}

// listFilters finds the filters that there are: those of an earlier server.
func (r *Rack) listFilters(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var out []byte
	err := r.Do(func() (err error) {
		out, err = exec.CommandContext(ctx, "nft", "list", "tables", "netdev").Output()
		return err
	})
	if err != nil {
		return fmt.Errorf("nft: list the filters of taps: %w", err)
	}
	r.filters = map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if link, ok := strings.CutPrefix(strings.TrimSpace(line), "table netdev "+filterPrefix); ok {
			r.filters[link] = true
		}
	}
	return nil
}
