package configure

import (
	"context"
	"fmt"
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
		c.log.Warn("firewall disabled: image has no nft")
		return nil
	}
	_, err := c.run.Run(ctx, rules, "nft", "-f", "-")
	return err
}

// gated reports whether other nodes are kept from slurmctld: until it knows its
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
// Connections are not tracked: that would cost each message between nodes, also
// untracked ones, a tenth of its time. What belongs to a TCP connection is told by
// its flags, as a packet without SYN opens nothing; so is what is under way when
// the rules come, such as the agent's own word with the server. Answers by UDP come
// from whom a node asked: that is kept for as long as a resolver waits.
func firewallRules(cfg *wire.NodeConfig, gate bool) string {
	inside := "\t\tiifname \"lo\" accept\n"
	if cfg.Interface != "" {
		inside = fmt.Sprintf("\t\tiifname %q accept\n", cfg.Interface) + inside
		// Further interfaces for messages are on the same network: msg1, msg2.
		if strings.HasPrefix(cfg.Interface, "msg") {
			inside += "\t\tiifname \"msg*\" accept\n"
		}
	}
	input := "\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n" + gateRule(cfg, gate) + inside
	const begin = "table inet muster\ndelete table inet muster\ntable inet muster {\n"
	if cfg.Management == "" {
		return begin + input + "\t}\n}\n"
	}
	return begin + fmt.Sprintf(`	set asked {
		type ipv4_addr . inet_service . inet_service
		flags dynamic, timeout
		timeout 1m
		size 65536
	}
	chain output {
		type filter hook output priority filter; policy accept;
		oifname %[1]q meta l4proto udp update @asked { ip daddr . udp dport . udp sport }
	}
	chain outside {
		tcp dport 22 accept
		tcp flags & (syn | rst | ack) != syn accept
		meta l4proto { 1, 58 } accept
		ip saddr . udp sport . udp dport @asked accept
	}
%[2]s		iifname %[1]q jump outside
	}
}
`, cfg.Management, input)
}

// gateRule refuses at once, so that who asks again soon is not kept waiting.
func gateRule(cfg *wire.NodeConfig, gate bool) string {
	if !gate || cfg.Interface == "" {
		return ""
	}
	return fmt.Sprintf("\t\tiifname %q tcp dport %s reject with tcp reset\n", cfg.Interface, portSlurmctld)
}
