package flow

import (
	"fmt"
	"os"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// Missing says what of this namespace keeps connections from being let through, and what to do;
// nothing: they can be. It changes nothing.
func Missing(c Config) []string { return (&Kernel{cfg: c}).missing() }

func (k *Kernel) missing() []string {
	var out []string
	_ = k.in(func() error {
		b, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
		if err == nil && strings.TrimSpace(string(b)) == "0" {
			out = append(out, "this host does not forward packets: set net.ipv4.ip_forward=1")
		}
		return nil
	})
	sets, err := nftables.New(nftables.WithNetNSFd(k.ns()))
	if err != nil {
		return append(out, fmt.Sprintf("this kernel has no nftables (CONFIG_NF_TABLES, CONFIG_NFT_NAT): %v", err))
	}
	chains, err := sets.ListChains()
	if err != nil {
		return append(out, fmt.Sprintf("the rules of this host cannot be read (CAP_NET_ADMIN, CONFIG_NF_TABLES): %v", err))
	}
	if c, err := k.tracker(); err != nil {
		out = append(out, fmt.Sprintf("this kernel does not say which connections it follows (CONFIG_NF_CT_NETLINK): %v", err))
	} else {
		if _, err := c.Stats(); err != nil {
			out = append(out, fmt.Sprintf("this kernel does not say which connections it follows (CONFIG_NF_CT_NETLINK): %v", err))
		}
		_ = c.Close()
	}
	following := map[string]bool{}
	for _, c := range chains {
		if c.Table.Name == k.cfg.Table {
			continue
		}
		if c.Hooknum != nil && *c.Hooknum == *nftables.ChainHookForward && c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop && c.Type == nftables.ChainTypeFilter {
			out = append(out, fmt.Sprintf("chain %s of table %s drops what is forwarded: give the gateway a network namespace of its own", c.Name, c.Table.Name))
		}
		list, err := sets.GetRules(c.Table, c)
		if err != nil {
			continue // gone meanwhile
		}
		for _, r := range list {
			if follows(r) && !following[c.Table.Name] {
				following[c.Table.Name] = true
				out = append(out, fmt.Sprintf("table %s follows connections, which the gateway's rules would keep from it: give the gateway a network namespace of its own", c.Table.Name))
			}
		}
	}
	return out
}

// follows reports whether a rule needs connections to be tracked.
func follows(r *nftables.Rule) bool {
	for _, e := range r.Exprs {
		switch x := e.(type) {
		case *expr.Ct, *expr.NAT, *expr.Masq, *expr.Redir:
			return true
		case *expr.Match: // of iptables
			switch x.Name {
			case "conntrack", "state", "connmark", "connlimit", "connbytes":
				return true
			}
		case *expr.Target:
			switch x.Name {
			case "MASQUERADE", "SNAT", "DNAT", "REDIRECT", "CONNMARK", "CT", "NETMAP":
				return true
			}
		}
	}
	return false
}
