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
func (c *Configurer) firewall(ctx context.Context, cfg *wire.NodeConfig) error {
	rules := firewallRules(cfg)
	if _, err := c.files.write("/etc/muster/firewall.nft", rules, 0o644, ""); err != nil {
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

// firewallRules replace the table as a whole, in one transaction.
func firewallRules(cfg *wire.NodeConfig) string {
	var b strings.Builder
	b.WriteString(`table inet muster
delete table inet muster
table inet muster {
	chain input {
		type filter hook input priority filter; policy drop;
		iifname "lo" accept
`)
	if cfg.Interface != "" {
		fmt.Fprintf(&b, "\t\tiifname %q accept\n", cfg.Interface)
	}
	b.WriteString("\t\tct state established,related accept\n")
	if cfg.Management != "" {
		fmt.Fprintf(&b, "\t\tiifname %q tcp dport 22 accept\n", cfg.Management)
		fmt.Fprintf(&b, "\t\tiifname %q meta l4proto { 1, 58 } accept\n", cfg.Management)
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}
