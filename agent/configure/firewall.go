package configure

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// firewall lets in SSH from outside and anything from the cluster's own
// network. It is a second wall: the provider's network is the first, and the
// only one where users are root.
func (c *Configurer) firewall(ctx context.Context, cfg *wire.NodeConfig, gate bool) error {
	rules := firewallRules(cfg, gate)
	if changed, err := c.files.write("/etc/muster/firewall.nft", rules, 0o644, ""); err != nil || !changed && c.settled.Load() {
		return err
	}
	if !c.files.exists("/usr/sbin/nft") {
		// An image without nft relies on the provider's wall alone.
		c.log.Warn("no firewall in this node: the image has no nft")
		return nil
	}
	_, err := c.run.Run(ctx, rules, "nft", "-f", "-")
	return err
}

// gated tells whether other nodes are kept from slurmctld: until it knows its
// nodes. One that registers before it is declared spoils the order of ranks,
// and a declaration that comes after has slurmctld lose the node.
func (c *Configurer) gated(cfg *wire.NodeConfig) bool {
	return cfg.Head && cfg.Slurm != nil && !c.started("slurmctld")
}

// openGate lets nodes register.
func (c *Configurer) openGate(ctx context.Context, cfg *wire.NodeConfig) error {
	return c.firewall(ctx, cfg, false)
}

// firewallRules replace the table as a whole, in one transaction.
//
// They are loaded while the agent talks to the server. To connection tracking,
// which begins with them, the answer it waits for is a new connection from
// outside, so what belongs to a TCP connection is told by its flags: a packet
// without SYN opens nothing. Messages between nodes are not tracked at all,
// which would only cost them time.
func firewallRules(cfg *wire.NodeConfig, gate bool) string {
	inside := []string{`"lo"`}
	if cfg.Interface != "" {
		inside = append(inside, strconv.Quote(cfg.Interface))
	}
	set := strings.Join(inside, ", ")
	var b strings.Builder
	fmt.Fprintf(&b, `table inet muster
delete table inet muster
table inet muster {
	chain untracked-in {
		type filter hook prerouting priority raw; policy accept;
		iifname { %[1]s } notrack
	}
	chain untracked-out {
		type filter hook output priority raw; policy accept;
		oifname { %[1]s } notrack
	}
	chain input {
		type filter hook input priority filter; policy drop;
%[2]s		iifname { %[1]s } accept
		ct state established,related accept
`, set, gateRule(cfg, gate))
	if cfg.Management != "" {
		name := strconv.Quote(cfg.Management)
		fmt.Fprintf(&b, "\t\tiifname %s tcp dport 22 accept\n", name)
		fmt.Fprintf(&b, "\t\tiifname %s tcp flags & (syn | rst | ack) != syn accept\n", name)
		fmt.Fprintf(&b, "\t\tiifname %s meta l4proto { 1, 58 } accept\n", name)
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

// gateRule refuses at once, so that who asks again soon is not kept waiting.
func gateRule(cfg *wire.NodeConfig, gate bool) string {
	if !gate || cfg.Interface == "" {
		return ""
	}
	return fmt.Sprintf("\t\tiifname %q tcp dport %s reject with tcp reset\n", cfg.Interface, portSlurmctld)
}
