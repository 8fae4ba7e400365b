package flow

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"
)

// Marks of connections: the first byte says that one is a door's, the rest whose it is.
const (
	MarkDoor uint32 = 0x4d000000
	markMask uint32 = 0xff000000
)

// SSHPort is the only port of a node that a flow leads to.
const SSHPort = 22

// The rules. Declaring and flushing the table keeps its sets: connections go on while the server
// that let them in is replaced.
//
//	nodes  where a client's next connection leads; removed as soon as it is there, or after a while
//	sources  which address nodes see in the place of the client's
//	marks  which packets of clients are tracked, and as whose
//	back   which packets of nodes are
//	ended  connections that were ended from here: the node is told
//
// The rule with "ct original bytes" is there for what the kernel does when it is made: it counts
// the bytes of every connection from then on.
const rulesText = `
table ip @TABLE@ {
	map nodes { type ipv4_addr . inet_service : ipv4_addr . inet_service; flags timeout; }
	map sources { type ipv4_addr . inet_service : ipv4_addr; }
	map marks { type ipv4_addr . inet_service : mark; }
	set back { type ipv4_addr . ipv4_addr . inet_service; }
	set ended { type ipv4_addr . ipv4_addr . inet_service; flags timeout; }
	chain track { type filter hook prerouting priority raw; policy accept; }
	chain untracked { type filter hook output priority raw; policy accept; }
	chain door { type nat hook prerouting priority dstnat; policy accept; }
	chain source { type nat hook postrouting priority srcnat; policy accept; }
	chain pass { type filter hook forward priority filter - 1; policy accept; }
}
flush table ip @TABLE@
table ip @TABLE@ {
	chain track {
		ip daddr @ADDRESS@ tcp dport @PORT@ ip saddr . tcp sport @marks accept
		tcp sport 22 ip saddr . ip daddr . tcp dport @back accept
		notrack
	}
	chain untracked {
		notrack
	}
	chain door {
		ip daddr @ADDRESS@ tcp dport @PORT@ tcp flags & (fin | syn | rst | ack) == syn ct mark set ip saddr . tcp sport map @marks dnat ip addr . port to ip saddr . tcp sport map @nodes
	}
	chain source {
		ct mark & 0xff000000 == 0x4d000000 snat to ip saddr . tcp sport map @sources
	}
	chain pass {
		tcp sport 22 ip saddr . ip daddr . tcp dport @ended reject with tcp reset
		ct mark & 0xff000000 == 0x4d000000 ct original bytes 0 accept
	}
}
`

func rules(table string, listen netip.AddrPort) string {
	return strings.NewReplacer("@TABLE@", table, "@ADDRESS@", listen.Addr().String(), "@PORT@", fmt.Sprint(listen.Port())).Replace(rulesText)
}

// nft applies a script as one transaction.
func (k *Kernel) nft(ctx context.Context, script string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return k.in(func() error {
		cmd := exec.CommandContext(ctx, "nft", "-f", "-")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("nft: %w: %s", err, bytes.TrimSpace(out))
		}
		return nil
	})
}
