package cli

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
)

func (a *app) ssh() *cobra.Command {
	var user, identity string
	c := &cobra.Command{
		Use: "ssh CLUSTER [NODE] [-- SSH-ARGUMENTS...]", Short: "Log in to a node",
		Long: `Logs in with the system's ssh, through the server, with a key that is valid for this
one connection. Arguments after -- are passed to ssh: options, or a command.

'muster cp' copies files, and rsync works the same way:
  rsync -e 'muster rsh' -a data/ cfd:data/

For programs that run ssh themselves, such as editors, see 'muster ssh-config'.

While the server is away, and the site has a gateway that is a process of its own, it logs in
with your own key (muster key add; --identity) by the straight door of that gateway.`,
		Example: `  muster ssh cfd
  muster ssh cfd n02
  muster ssh cfd --user alice -- -L 8888:localhost:8888`,
		Args: func(c *cobra.Command, args []string) error {
			own := args
			if dash := c.ArgsLenAtDash(); dash >= 0 {
				own = args[:dash]
			}
			if len(own) == 0 {
				return usage(c, "CLUSTER is missing")
			}
			if len(own) > 2 {
				return usage(c, "%q is one argument too many: a command goes after --", own[2])
			}
			return nil
		},
		ValidArgsFunction: a.completeNodes,
		RunE: func(c *cobra.Command, args []string) error {
			var rest []string
			if dash := c.ArgsLenAtDash(); dash >= 0 {
				args, rest = args[:dash], args[dash:]
			}
			node := ""
			if len(args) > 1 {
				node = args[1]
			}
			return a.runSSH(c.Context(), login{cluster: args[0], node: node, user: user, identity: identity}, rest, nil)
		},
	}
	c.Flags().StringVarP(&user, "user", "u", "", "log in as this user of the cluster")
	identityFlag(c, &identity)
	return c
}

func identityFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "identity", "", "private key of yours that is on record, for when the server is away (default: what ssh takes)")
}

// login is where to log in, and as whom.
type login struct {
	cluster, node string
	user          string // "": whoever it is
	identity      string // the user's own key, for when the server is away
}

// runSSH runs the system's ssh with everything it needs in a directory that
// only we can read and that is gone afterwards. options go before the host,
// rest after it; options among rest are moved by ssh itself.
func (a *app) runSSH(ctx context.Context, l login, rest, options []string) error {
	program, err := exec.LookPath("ssh")
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "there is no ssh on this host").Because(muster.ReasonProgramMissing).
			WithHint("install openssh-client, or use 'muster exec %s -- COMMAND'", l.cluster)
	}
	k, err := a.connect()
	if err != nil {
		return err
	}
	dir, err := a.keyDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var args []string
	access, err := loginFiles(ctx, k, dir, l.cluster, l.node, l.user)
	known, _ := a.recall()
	switch {
	case err == nil:
		args = a.sshOptions(dir, l.cluster, access, a.hasGateway(ctx, k))
	case away(err) && len(known.Gateways) > 0:
		fmt.Fprintln(a.env.Err, "muster: the server does not answer: logging in by the gateway with a key of yours")
		access = wire.Access{User: first(l.user, known.User), Node: first(l.node, "head")}
		if args, err = a.sshByKey(dir, l, known); err != nil {
			return err
		}
	default:
		return err
	}
	args = append(append(args, options...), "-l", access.User)
	dashed := 0
	for dashed < len(rest) && strings.HasPrefix(rest[dashed], "-") {
		dashed += optionWords(rest[dashed])
	}
	dashed = min(dashed, len(rest))
	args = append(args, rest[:dashed]...)
	args = append(args, "--", access.Node)
	args = append(args, rest[dashed:]...)
	// Interrupts reach ssh from the terminal itself: our context must not kill
	// it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.env.In, a.env.Out, a.env.Err
	cmd.Env = a.sshEnvironment()
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if exit.ExitCode() == 255 && pretends(ctx, k, first(string(access.Cluster), l.cluster), access.Node) { // ssh says nothing of it
			a.report(nobodyThere(access.Node))
		}
		return &StatusError{Status: max(exit.ExitCode(), 1)}
	}
	return err
}

// loginFiles puts what ssh needs for one connection into a directory: a key, its certificate,
// and the authority that signed the keys of the hosts.
func loginFiles(ctx context.Context, k *client.Client, dir, cluster, node, user string) (wire.Access, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return wire.Access{}, err
	}
	sshPublic, err := ssh.NewPublicKey(public)
	if err != nil {
		return wire.Access{}, err
	}
	access, err := k.Access(ctx, cluster, wire.AccessRequest{Node: node, User: user, PublicKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(sshPublic)))})
	if err != nil {
		return access, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return access, err
	}
	for name, text := range map[string]string{
		"key": string(pem.EncodeToMemory(block)), "key-cert.pub": access.Certificate + "\n", "known_hosts": access.KnownHosts + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return access, err
		}
	}
	return access, nil
}

// hasGateway reports whether the server has a straight door. Where that cannot be said there is none.
func (a *app) hasGateway(ctx context.Context, k *client.Client) bool {
	g, err := a.gatewayInfo(ctx, k)
	return err == nil && g.Address != "" && slices.Contains(g.Doors, muster.DoorStraight)
}

func (a *app) sshOptions(dir, cluster string, access wire.Access, straight bool) []string {
	proxy, pass := quote(a.self())+" tunnel "+quote(cluster)+" "+quote(access.Node), "no"
	if straight {
		proxy, pass = quote(a.self())+" connect "+quote(first(string(access.Cluster), cluster)+"."+access.Node), "yes"
	}
	return []string{
		"-o", "ProxyUseFdpass=" + pass,
		"-F", "/dev/null",
		"-o", "ProxyCommand=" + strings.ReplaceAll(proxy, "%", "%%"),
		"-o", "IdentityFile=" + filepath.Join(dir, "key"),
		"-o", "CertificateFile=" + filepath.Join(dir, "key-cert.pub"),
		"-o", "IdentitiesOnly=yes",
		"-o", "UserKnownHostsFile=" + filepath.Join(dir, "known_hosts"),
		"-o", "GlobalKnownHostsFile=/dev/null",
		"-o", "StrictHostKeyChecking=yes",
		"-o", "HostKeyAlias=" + access.Node,
		"-o", "LogLevel=ERROR",
	}
}

// self is the path of this program, for commands that ssh runs.
func (a *app) self() string {
	if a.env.Executable != "" {
		return a.env.Executable
	}
	self, _ := os.Executable()
	return self
}

// sshEnvironment tells the tunnel which server to use: the flags of this
// command become its environment, a token among them, which so is in no
// argument.
func (a *app) sshEnvironment() []string {
	env := os.Environ()
	set := func(name, value string) {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	set("MUSTER_SERVER", first(a.server, a.env.getenv("MUSTER_SERVER")))
	set("MUSTER_CA", first(a.ca, a.env.getenv("MUSTER_CA")))
	if token, err := a.bearer(); err == nil {
		set("MUSTER_TOKEN", token)
	}
	return env
}

// optionWords is how many words an option of ssh takes: two where its value
// stands apart.
func optionWords(option string) int {
	const valued = "BbcDEeFIiJLlmOopPQRSWw"
	if len(option) == 2 && option[0] == '-' && strings.IndexByte(valued, option[1]) >= 0 {
		return 2
	}
	return 1
}

// rsh is ssh as rsync and scp call it: options, a host, a command.
func (a *app) rsh() *cobra.Command {
	return &cobra.Command{
		Use: "rsh [SSH-OPTIONS] CLUSTER[.NODE] COMMAND...", Short: "Remote shell for rsync -e and scp -S", Hidden: true,
		Example:            `  rsync -e 'muster rsh' -a data/ cfd:data/`,
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
				return c.Help()
			}
			options, user, host, command := splitRsh(args)
			if host == "" {
				return usage(c, "CLUSTER is missing")
			}
			cluster, node, _ := strings.Cut(host, ".")
			return a.runSSH(c.Context(), login{cluster: cluster, node: node, user: user}, command, options)
		},
	}
}

// splitRsh takes the arguments of an ssh command apart.
func splitRsh(args []string) (options []string, user, host string, command []string) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "--" && host == "":
			continue
		case host == "" && word == "-l" && i+1 < len(args):
			i++
			user = args[i]
		case host == "" && strings.HasPrefix(word, "-"):
			options = append(options, word)
			if optionWords(word) == 2 && i+1 < len(args) {
				i++
				options = append(options, args[i])
			}
		case host == "":
			host = word
			if u, h, ok := strings.Cut(word, "@"); ok {
				user, host = u, h
			}
		default:
			return options, user, host, args[i:]
		}
	}
	return options, user, host, nil
}
