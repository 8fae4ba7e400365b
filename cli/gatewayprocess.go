package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// GatewayOptions are what a gateway that is a process of its own is told.
type GatewayOptions struct {
	Listen, State string
	// User is as whom it runs; Netns is the network namespace in which nodes are reached.
	User, Netns          string
	Drain, Idle, Longest time.Duration
}

func (a *app) gatewayList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List gateways that are processes of their own (administrators)", Args: exactly(),
		Example: `  muster gateway list -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.Gateways(c.Context())
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) {
				if len(list) == 0 {
					fmt.Fprintln(w, "No gateways but the server's own, if it has one.")
					return
				}
				t := newTable("NAME", "HOSTS", "ADDRESS", "LAST SEEN", "SESSIONS")
				for _, g := range list {
					t.row(g.Name, strings.Join(g.Hosts, " "), first(g.Address, "-"), stamp(g.Seen), fmt.Sprint(g.Sessions))
				}
				t.write(w)
			})
		},
	}
}

func (a *app) gatewayAdd() *cobra.Command {
	var hosts []string
	c := &cobra.Command{
		Use: "add NAME", Short: "Register a gateway that is a process of its own, and print its token", Args: exactly("NAME"),
		Long: `Registers a gateway and prints its token, once. The token lets the process learn who may
reach what and have certificates signed for sessions at the plain door; it does nothing else.`,
		Example: `  muster gateway add gw1 --host gw.example.org > /etc/muster/gateway.token`,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			g, err := k.AddGateway(c.Context(), wire.GatewayRequest{Name: args[0], Hosts: append([]string{}, hosts...)})
			if err != nil {
				return err
			}
			return a.print(g, func(w io.Writer) { fmt.Fprintln(w, g.Token) })
		},
	}
	c.Flags().StringSliceVar(&hosts, "host", nil, "host names by which users reach it, for its host certificate; repeatable")
	return c
}

func (a *app) gatewayRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Take a gateway's token away", Args: exactly("NAME"),
		Long:    "Takes a gateway's token away: within seconds it lets nobody in any more, and its sessions end.",
		Example: `  muster gateway remove gw1`,
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completion(c, func(ctx context.Context, k *client.Client) (names []string) {
				list, _ := k.Gateways(ctx)
				for _, g := range list {
					names = append(names, g.Name)
				}
				return names
			}, typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if err := k.RemoveGateway(c.Context(), args[0]); err != nil {
				return err
			}
			return a.print(wire.Done{Status: "removed"}, func(w io.Writer) { fmt.Fprintf(w, "gateway %s removed\n", clean(args[0])) })
		},
	}
}

func (a *app) gatewayServe() *cobra.Command {
	o := GatewayOptions{}
	c := &cobra.Command{
		Use: "serve", Short: "Run a gateway as a process of its own", Args: exactly(),
		Long: `Runs a gateway beside the server, or on another host, with the token of 'muster gateway add'
(--token-file). It has no store and no key of users or authorities. Who may reach what it learns
from the server; that is good for 15 minutes, so that people log in by the jump door and the
straight one while the server is away. The plain door needs the server for each log-in. Sessions go on whatever the
server does.

Interrupted once (SIGTERM) it lets nobody new in and waits for its sessions, --drain at most.
Nodes must be reachable from where it runs; slices of the server's host are in a network
namespace: --netns.`,
		Example: `  muster gateway serve --server https://muster.example.org:7777 --ca ca.pem --token-file gateway.token \
    --listen :2222 --state /var/lib/muster-gateway --user muster-gateway`,
		RunE: func(c *cobra.Command, _ []string) error {
			if a.env.ServeGateway == nil {
				return muster.Errorf(muster.EUnavailable, "this program has no gateway").Because(muster.ReasonNoGateway).WithHint("use the muster program of a server")
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			return a.env.ServeGateway(c.Context(), k, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", ":2222", "ADDRESS:PORT for users")
	f.StringVar(&o.State, "state", "/var/lib/muster-gateway", "its own folder: host key, records that the server does not have yet, what it knows")
	f.StringVar(&o.User, "user", "", "run as this user of the host, who owns --state (default: as whoever starts it)")
	f.StringVar(&o.Netns, "netns", "", "network namespace of /run/netns in which nodes are reached, such as muster-INSTANCE for slices of this host")
	duration.Var(f, &o.Drain, "drain", 10*time.Minute, "how long to wait for sessions before it stops")
	duration.Var(f, &o.Idle, "idle", 0, "end a session when nothing passed for this long, such as 8h (default: never)")
	duration.Var(f, &o.Longest, "longest", 0, "end a session after this long, such as 7d (default: never)")
	return c
}
