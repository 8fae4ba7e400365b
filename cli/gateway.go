package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) gateway() *cobra.Command {
	c := &cobra.Command{
		Use: "gateway", Short: "See who is at the SSH gateway", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `The SSH gateway lets users reach their clusters with any SSH client and their own keys
(muster key add): ssh -J USER@GATEWAY:PORT USER@CLUSTER, or ssh -p PORT CLUSTER+USER@GATEWAY.`,
		Example: `  muster gateway sessions
  muster gateway log --user alice
  muster gateway known-hosts gw.example.org >> ~/.ssh/known_hosts`,
	}
	c.AddCommand(a.gatewaySessions(), a.gatewayLog(), a.gatewayKill(), a.gatewayKnownHosts(), a.gatewayList(), a.gatewayAdd(), a.gatewayRemove(), a.gatewayServe())
	return c
}

func (a *app) gatewaySessions() *cobra.Command {
	q := wire.GatewayQuery{Open: true}
	c := &cobra.Command{
		Use: "sessions", Short: "List open sessions: yours, or everybody's for administrators", Args: exactly(),
		Example: `  muster gateway sessions
  muster gateway sessions --cluster cfd -o json`,
		RunE: func(c *cobra.Command, _ []string) error { return a.listGateway(c.Context(), q) },
	}
	a.gatewayFilter(c, &q)
	return c
}

func (a *app) gatewayLog() *cobra.Command {
	q := wire.GatewayQuery{}
	c := &cobra.Command{
		Use: "log", Short: "List sessions of the past and the present, the newest first", Args: exactly(),
		Long: `Lists who came through the gateway: from where, with which key, by which door, to which
node, when, for how long, how many bytes, and why it ended. What was said is not recorded.
The newest 100,000 sessions of the site are kept.`,
		Example: `  muster gateway log
  muster gateway log --user alice --limit 200 -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if q.Limit < 1 {
				return usage(c, "--limit is not a number of sessions")
			}
			return a.listGateway(c.Context(), q)
		},
	}
	a.gatewayFilter(c, &q)
	c.Flags().IntVar(&q.Limit, "limit", 50, "how many")
	return c
}

func (a *app) gatewayFilter(c *cobra.Command, q *wire.GatewayQuery) {
	c.Flags().StringVar(&q.User, "user", "", "only this user")
	c.Flags().StringVar(&q.Cluster, "cluster", "", "only to this cluster")
	_ = c.RegisterFlagCompletionFunc("user", a.completeUsers)
	_ = c.RegisterFlagCompletionFunc("cluster", a.completeClusters(1))
}

func (a *app) listGateway(ctx context.Context, q wire.GatewayQuery) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	k, err := a.connect()
	if err != nil {
		return err
	}
	list, err := k.GatewaySessions(ctx, q)
	if err != nil {
		return err
	}
	if list == nil {
		list = []muster.GatewaySession{}
	}
	return a.print(list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, "No sessions.")
			return
		}
		t := newTable("SESSION", "USER", "KEY", "FROM", "DOOR", "CLUSTER", "NODE", "SINCE", "FOR", "RECEIVED", "SENT", "END")
		for _, x := range list {
			end := x.Ended
			if x.Open() {
				end = time.Now()
			}
			t.row(string(x.ID), x.User, shortKey(x.Fingerprint), x.From, string(x.Door), x.ClusterName, x.Node, stamp(x.Began), plaintext.Span(end.Sub(x.Began).Round(time.Second)),
				size(x.Received), size(x.Sent), strings.TrimSuffix(string(x.End)+": "+x.Text, ": "))
		}
		t.write(w)
	})
}

// shortKey is enough of a fingerprint to know a key by; JSON has all of it.
func shortKey(fingerprint string) string {
	name, digest, ok := strings.Cut(fingerprint, ":")
	if !ok || len(digest) <= 8 {
		return first(fingerprint, "-")
	}
	return name + ":" + digest[:8]
}

func (a *app) gatewayKill() *cobra.Command {
	return &cobra.Command{
		Use: "kill SESSION", Short: "End an open session: yours, or anybody's as an administrator", Args: exactly("SESSION"),
		Example: `  muster gateway kill g-7f2k9x4m3q`,
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completion(c, func(ctx context.Context, k *client.Client) []string {
				list, _ := k.GatewaySessions(ctx, wire.GatewayQuery{Open: true})
				var ids []string
				for _, x := range list {
					ids = append(ids, string(x.ID))
				}
				return ids
			}, typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if err := k.KillGatewaySession(c.Context(), args[0]); err != nil {
				return err
			}
			return a.print(wire.Done{Status: "ended"}, func(w io.Writer) { fmt.Fprintf(w, "session %s ended\n", clean(args[0])) })
		},
	}
}

func (a *app) gatewayKnownHosts() *cobra.Command {
	return &cobra.Command{
		Use: "known-hosts [GATEWAY]", Short: "Print lines for known_hosts: the gateway's key, and what vouches for the nodes of all clusters", Args: atMost(1),
		Long: `Prints the host key of the gateway under the name by which you reach it, GATEWAY, and the
authority of the site, which signs the host keys of the gateway and of all nodes: those of
clusters that will be made as well. Once is enough. Where there is no gateway it prints the
authority alone.

For clients that read no @cert-authority lines: muster ssh-config --known-hosts.`,
		Example: `  muster gateway known-hosts gw.example.org >> ~/.ssh/known_hosts`,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			g, err := k.Gateway(c.Context())
			if err != nil {
				return err
			}
			lines, err := hostLines(g, args)
			if err != nil {
				return usage(c, "%v", err)
			}
			if len(lines) == 0 {
				return muster.Errorf(muster.EUnavailable, "this server has no gateway").Because(muster.ReasonNoGateway).
					WithHint("an administrator starts one with 'muster serve --gateway ADDRESS:PORT'; meanwhile use 'muster ssh'")
			}
			return a.printLines(lines)
		},
	}
}

// nodeNames are the names of nodes at the doors: CLUSTER and CLUSTER.NODE. Names of computers
// elsewhere with their domains are not among them, nor are addresses and hosts at ports of their own:
// the authority of the site has nothing to say of those.
const nodeNames = "*,!*.*.*,!*:*"

// hostLines are what known_hosts needs: the key of the gateway, under its name at its port, and the
// authority for it and for nodes.
func hostLines(g wire.Gateway, args []string) ([]string, error) {
	var lines []string
	nodes := nodeNames
	if g.Address != "" {
		host, name, err := gatewayName(g.Address, args)
		if err != nil {
			return nil, err
		}
		lines = append(lines, name+" "+g.HostKey)
		if g.HostAuthority != "" && slices.Contains(g.Names, host) { // else ssh would complain of its certificate
			lines = append(lines, "@cert-authority "+name+" "+g.HostAuthority)
		} else if !strings.HasPrefix(name, "[") {
			nodes += ",!" + name
		}
	}
	for _, p := range g.Gateways {
		for _, host := range p.Hosts {
			_, name, err := gatewayName(p.Address, []string{host})
			if err == nil && g.HostAuthority != "" && (len(args) == 0 || args[0] == host) {
				lines = append(lines, name+" "+p.HostKey, "@cert-authority "+name+" "+g.HostAuthority)
			}
		}
	}
	if g.HostAuthority != "" {
		lines = append(lines, "@cert-authority "+nodes+" "+g.HostAuthority)
	}
	return lines, nil
}

// gatewayName is the host of a gateway, and what known_hosts calls it.
func gatewayName(address string, args []string) (host, name string, _ error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", "", fmt.Errorf("the server names %q as the address of its gateway", address)
	}
	if len(args) > 0 {
		host = args[0]
		if h, p, err := net.SplitHostPort(args[0]); err == nil {
			host, port = h, p
		}
	}
	name = "[" + host + "]:" + port
	if port == "22" {
		name = host
	}
	if strings.ContainsAny(name, " \t\r\n,*?!@|#") {
		return "", "", fmt.Errorf("%q is not a host", host)
	}
	return host, name, nil
}
