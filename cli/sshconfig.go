package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) sshConfig() *cobra.Command {
	var known bool
	var user, identity string
	c := &cobra.Command{
		Use: "ssh-config [CLUSTER [NODE]]", Short: "Print a configuration by which plain ssh reaches the nodes", Args: atMost(2),
		Long: `Prints Host blocks for ~/.ssh/config: of one cluster, or of all that are ready and that you
may use. With them ssh, scp, rsync and editors reach NAME (the head) and NAME.NODE
through the server; --known-hosts prints the nodes' host keys, one plain line each, under all
names that nodes have: for clients that read no host certificates.

Plain ssh logs in with a key of yours that Muster knows: muster key add. 'muster ssh' and
'muster cp' need none. Write the blocks again after the nodes of a cluster have changed.`,
		Example: `  muster ssh-config > ~/.ssh/muster        # with "Include muster" at the top of ~/.ssh/config
  muster ssh-config cfd
  muster ssh-config cfd -o json
  muster ssh-config --known-hosts cfd >> ~/.ssh/known_hosts`,
		ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			if known {
				return a.printKnownHosts(c.Context(), k, args)
			}
			if len(args) > 1 {
				return usage(c, "NODE is for --known-hosts")
			}
			hosts, err := a.sshHosts(c.Context(), k, args, user, identity)
			if err != nil {
				return err
			}
			return a.print(hosts, func(w io.Writer) { writeSSHHosts(w, hosts) })
		},
	}
	c.Flags().StringVarP(&user, "user", "u", "", "log in as this user of the cluster")
	c.Flags().StringVar(&identity, "identity", "", "private key of yours that is on record, to be used instead of what ssh takes")
	c.Flags().BoolVar(&known, "known-hosts", false, "print the host keys of nodes: of all clusters that are ready, of one, or of one node")
	return c
}

// sshHost is a Host block.
type sshHost struct {
	Host              string           `json:"host"`
	Cluster           muster.ClusterID `json:"cluster"`
	Node              string           `json:"node"`
	User              string           `json:"user"`
	ProxyCommand      string           `json:"proxy_command"`
	ProxyUseFdpass    bool             `json:"proxy_use_fdpass"`
	KnownHostsCommand string           `json:"known_hosts_command"`
	HostKeyAlias      string           `json:"host_key_alias"`
	IdentityFile      string           `json:"identity_file,omitempty"`
}

// sshHosts are the hosts of clusters: of one that is named, or of all that can be used.
func (a *app) sshHosts(ctx context.Context, k *client.Client, args []string, user, identity string) ([]sshHost, error) {
	hosts := []sshHost{}
	if len(args) > 0 {
		c, err := k.Cluster(ctx, args[0])
		if err != nil {
			return nil, err
		}
		return a.hostsOf(ctx, k, c, c.Name, user, identity)
	}
	list, err := k.Clusters(ctx, client.ClusterFilter{})
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if c.Status != muster.ClusterReady {
			continue
		}
		name := c.Name
		if slices.ContainsFunc(list, func(o wire.Cluster) bool { return o.Name == c.Name && o.ID != c.ID }) {
			name = string(c.ID) // the name says two
		}
		full, err := k.Cluster(ctx, string(c.ID))
		var more []sshHost
		if err == nil {
			more, err = a.hostsOf(ctx, k, full, name, user, identity)
		}
		switch muster.CodeOf(err) {
		case "", muster.EForbidden, muster.EConflict, muster.ENotFound: // not one's own, or gone meanwhile
		default:
			return nil, err
		}
		hosts = append(hosts, more...)
	}
	return hosts, nil
}

func (a *app) hostsOf(ctx context.Context, k *client.Client, c wire.Cluster, name, user, identity string) (hosts []sshHost, err error) {
	access, err := a.signedOnce(ctx, k, string(c.ID), user)
	if err != nil {
		return nil, err
	}
	program := sshWord(a.self()) + a.serverWords()
	g, _ := a.gatewayInfo(ctx, k) // there is none where that cannot be said
	words := ""
	if identity != "" {
		words = "--identity " + sshWord(identity) + " "
	}
	for _, n := range c.Nodes {
		h := sshHost{Host: name + "." + n.Name, Cluster: c.ID, Node: n.Name, User: access.User, HostKeyAlias: string(c.ID) + "." + n.Name, IdentityFile: identity,
			ProxyCommand: program + " tunnel " + string(c.ID) + " " + n.Name, KnownHostsCommand: program + " ssh-config --known-hosts " + string(c.ID) + " " + n.Name}
		if slices.Contains(g.Doors, muster.DoorStraight) {
			h.ProxyCommand, h.ProxyUseFdpass = program+" connect "+words+string(c.ID)+"."+n.Name, true
		}
		if n.Head {
			hosts = append([]sshHost{h}, hosts...)
			hosts[0].Host = name
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// signedOnce asks what a login would be like. Nothing of it is kept.
func (a *app) signedOnce(ctx context.Context, k *client.Client, cluster, user string) (wire.Access, error) {
	dir, err := a.keyDir()
	if err != nil {
		return wire.Access{}, err
	}
	defer os.RemoveAll(dir)
	return loginFiles(ctx, k, dir, cluster, "", user)
}

// serverWords are the flags by which this command found its server. A token is in none.
func (a *app) serverWords() string {
	text := ""
	for _, w := range [][2]string{{"--server", first(a.server, a.env.getenv("MUSTER_SERVER"))}, {"--ca", first(a.ca, a.env.getenv("MUSTER_CA"))}, {"--token-file", a.tokenFile}} {
		if w[1] != "" {
			text += " " + w[0] + " " + sshWord(w[1])
		}
	}
	return text
}

// sshWord is a word of a command in a configuration of ssh, where % begins a token.
func sshWord(text string) string { return strings.ReplaceAll(quote(text), "%", "%%") }

func writeSSHHosts(w io.Writer, hosts []sshHost) {
	for i, h := range hosts {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "Host %s\n  HostName %s\n  HostKeyAlias %s\n  User %s\n%s  ProxyCommand %s\n%s  KnownHostsCommand %s\n  UserKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n",
			clean(h.Host), clean(h.Node), clean(h.HostKeyAlias), clean(h.User), identityLines(h.IdentityFile), h.ProxyCommand, fdpass(h.ProxyUseFdpass), h.KnownHostsCommand)
	}
}

func identityLines(file string) string {
	if file == "" {
		return ""
	}
	return "  IdentityFile \"" + strings.ReplaceAll(clean(file), "%", "%%") + "\"\n  IdentitiesOnly yes\n"
}

func fdpass(yes bool) string {
	if !yes {
		return ""
	}
	return "  ProxyUseFdpass yes\n"
}

// printKnownHosts prints the host keys of nodes: of all clusters that are ready, or of one, under its
// nodes' bare names as well, which the Host blocks use.
func (a *app) printKnownHosts(ctx context.Context, k *client.Client, args []string) error {
	lines := []string{}
	of := func(cluster, node string, bare bool) error {
		list, err := k.HostKeys(ctx, cluster, node)
		if known, ok := a.recall(); away(err) && ok && known.HostAuthority != "" { // of a node's certificate the authority is enough
			lines = append(lines, strings.TrimSpace(knownLine("@cert-authority ", nodeNames, known.HostAuthority)))
			return nil
		}
		for _, h := range list {
			names := h.Names
			if bare {
				names = append([]string{h.Node}, names...)
			}
			lines = append(lines, clean(strings.Join(names, ",")+" "+h.Key))
		}
		return err
	}
	if len(args) > 0 {
		node := ""
		if len(args) > 1 {
			node = args[1]
		}
		if err := of(args[0], node, true); err != nil {
			return err
		}
		return a.printLines(lines)
	}
	list, err := k.Clusters(ctx, client.ClusterFilter{})
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.Status != muster.ClusterReady {
			continue
		}
		if err := of(string(c.ID), "", false); err != nil && muster.CodeOf(err) != muster.ENotFound { // gone meanwhile
			return err
		}
	}
	return a.printLines(lines)
}

func (a *app) printLines(lines []string) error {
	return a.print(lines, func(w io.Writer) {
		for _, l := range lines {
			fmt.Fprintln(w, l)
		}
	})
}
