package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

type copyFlags struct {
	user            string
	recursive, keep bool
	quiet           bool
}

func (a *app) cp() *cobra.Command {
	var f copyFlags
	c := &cobra.Command{
		Use: "cp SOURCE... TARGET", Short: "Copy files to or from a node",
		Long: `Copies files with the system's scp, through the server, with a key that is valid for this
one connection. CLUSTER:PATH is on the head, CLUSTER/NODE:PATH on another node; a PATH
that does not begin with / lies in your home there. All else is on this computer: write
./NAME for a name with a colon.

Either the sources or the target are on nodes. The home is the same on all nodes of a
cluster.`,
		Example: `  muster cp input.dat cfd:
  muster cp -r case/ cfd:runs/
  muster cp 'cfd:runs/*.out' results/
  muster cp cfd/n02:/tmp/core .`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(c, "%s is missing", []string{"SOURCE", "TARGET"}[len(args)])
			}
			return nil
		},
		ValidArgsFunction: a.completeCopy,
		RunE:              func(c *cobra.Command, args []string) error { return a.runCopy(c.Context(), args, f) },
	}
	flags := c.Flags()
	flags.StringVarP(&f.user, "user", "u", "", "log in as this user of the cluster")
	flags.BoolVarP(&f.recursive, "recursive", "r", false, "copy directories with all that is in them")
	flags.BoolVarP(&f.keep, "preserve", "p", false, "keep times and permissions")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	return c
}

// copyPlace is one end of a copy. Without a cluster it is on this computer.
type copyPlace struct{ cluster, node, path string }

// readPlace reads CLUSTER:PATH and CLUSTER/NODE:PATH, where CLUSTER may be PROJECT/NAME.
func readPlace(text string) copyPlace {
	at, path, remote := strings.Cut(text, ":")
	if !remote || at == "" || strings.HasPrefix(at, ".") || strings.HasPrefix(at, "/") || strings.HasPrefix(at, "~") {
		return copyPlace{path: text}
	}
	p := copyPlace{cluster: at, path: path}
	if i := strings.LastIndexByte(at, '/'); i > 0 && regexp.MustCompile(`^(head|n\d+|login\d*)$`).MatchString(at[i+1:]) {
		p.cluster, p.node = at[:i], at[i+1:]
	}
	return p
}

func (a *app) runCopy(ctx context.Context, args []string, f copyFlags) error {
	program, err := exec.LookPath("scp")
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "there is no scp on this host").Because(muster.ReasonProgramMissing).
			WithHint("install openssh-client, or use 'muster exec CLUSTER -- sh -c \"cat > FILE\" < FILE'")
	}
	places := make([]copyPlace, len(args))
	for i, text := range args {
		places[i] = readPlace(text)
	}
	target := places[len(places)-1]
	for i, p := range places[:len(places)-1] {
		switch {
		case p.cluster != "" && target.cluster != "":
			return muster.Errorf(muster.EInvalid, "both %s and %s are on nodes", args[i], args[len(args)-1]).Because(muster.ReasonContradiction).
				WithHint("copy to this computer first; nodes of one cluster have the same /home")
		case p.cluster == "" && target.cluster == "":
			return muster.Errorf(muster.EInvalid, "neither %s nor %s is on a node", args[i], args[len(args)-1]).Because(muster.ReasonRequired).
				WithHint("write CLUSTER:PATH for what is on a node")
		}
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
	words, ends, err := a.copyWords(ctx, k, dir, places, f.user)
	if err != nil {
		return err
	}
	line := []string{"-F", filepath.Join(dir, "config")}
	if knowsOldProtocol(ctx, program) {
		line = append(line, "-O") // nodes have no SFTP server
	}
	for flag, on := range map[string]bool{"-r": f.recursive, "-p": f.keep, "-q": f.quiet} {
		if on {
			line = append(line, flag)
		}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, append(append(line, "--"), words...)...)
	said := &lastWords{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.env.In, a.env.Out, io.MultiWriter(a.env.Err, said)
	cmd.Env = a.sshEnvironment()
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if exit.ExitCode() == 255 || said.lostConnection() {
			a.reportLost(ctx, k, ends)
		}
		return &StatusError{Status: max(exit.ExitCode(), 1)}
	}
	return err
}

// reportLost says why a copy lost its connection, and what to do: scp says neither.
func (a *app) reportLost(ctx context.Context, k *client.Client, ends []wire.Access) {
	for _, end := range ends {
		if pretends(ctx, k, string(end.Cluster), end.Node) {
			a.report(nobodyThere(end.Node))
			continue
		}
		a.report(muster.Errorf(muster.EUnavailable, "the connection to %s was lost", end.Node).Because(muster.ReasonNodeUnreachable).
			WithHint("see 'muster show %s' and 'muster logs %s %s', and copy again", end.Cluster, end.Cluster, end.Node))
	}
}

// lastWords keeps the end of what a program writes.
type lastWords struct{ text []byte }

func (l *lastWords) Write(p []byte) (int, error) {
	const most = 4096
	l.text = append(l.text, p...)
	if n := len(l.text) - most; n > 0 {
		l.text = append(l.text[:0], l.text[n:]...)
	}
	return len(p), nil
}

// lostConnection reports whether scp said so: its old protocol has no exit status for it.
func (l *lastWords) lostConnection() bool {
	return bytes.Contains(l.text, []byte("lost connection")) || bytes.Contains(l.text, []byte("Connection closed"))
}

// copyWords makes the places of a copy words of scp, and writes the configuration by which it
// reaches their nodes.
func (a *app) copyWords(ctx context.Context, k *client.Client, dir string, places []copyPlace, user string) (words []string, ends []wire.Access, err error) {
	var config strings.Builder
	hosts := map[[2]string]string{}
	for _, p := range places {
		if p.cluster == "" {
			if strings.Contains(p.path, ":") && !strings.ContainsAny(p.path[:1], "./~") {
				p.path = "./" + p.path
			}
			words = append(words, p.path)
			continue
		}
		key := [2]string{p.cluster, p.node}
		if hosts[key] == "" {
			hosts[key] = fmt.Sprintf("node%d", len(hosts)+1)
			files := filepath.Join(dir, hosts[key])
			if err := os.Mkdir(files, 0o700); err != nil {
				return nil, nil, err
			}
			access, err := loginFiles(ctx, k, files, p.cluster, p.node, user)
			if err != nil {
				return nil, nil, err
			}
			ends = append(ends, access)
			fmt.Fprintf(&config, "Host %s\n  User %s\n", hosts[key], access.User)
			for _, option := range a.sshOptions(files, p.cluster, access, a.hasGateway(ctx, k)) {
				if name, value, ok := strings.Cut(option, "="); ok {
					fmt.Fprintf(&config, "  %s %s\n", name, value)
				}
			}
		}
		words = append(words, hosts[key]+":"+p.path)
	}
	return words, ends, os.WriteFile(filepath.Join(dir, "config"), []byte(config.String()), 0o600)
}

// knowsOldProtocol reports whether an scp has to be told to speak its own protocol: one that
// does not know the option speaks nothing else.
func knowsOldProtocol(ctx context.Context, program string) bool {
	text, _ := exec.CommandContext(ctx, program, "-O").CombinedOutput() // lacks its files: it says how it is used
	return !strings.Contains(string(text), "option -- O")
}

func (a *app) completeCopy(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if strings.Contains(typed, ":") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := a.completeClusters(-1)(c, nil, typed)
	for i, n := range names {
		name, about, described := strings.Cut(n, "\t")
		names[i] = name + ":"
		if described {
			names[i] += "\t" + about
		}
	}
	return names, cobra.ShellCompDirectiveDefault | cobra.ShellCompDirectiveNoSpace
}
