package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
)

type execFlags struct {
	node, user string
	tty        bool
	all        bool
	noStdin    bool
}

func (a *app) exec() *cobra.Command {
	var f execFlags
	c := &cobra.Command{
		Use: "exec CLUSTER [--node NODE] [--user USER] -- COMMAND...", Short: "Run a command on a node",
		Long: `Runs a command on the head or on another node, as you or as another user of the
cluster. Standard input, output and error are connected; muster exits with the status
of the command (255 if the connection was lost).

Arguments reach the node as you typed them: no shell interprets them unless you run one
with sh -c.

Copy files the same way: muster exec cfd -- sh -c 'cat > f' < f`,
		Example: `  muster exec cfd -- srun -N4 hostname
  muster exec cfd --node n02 -- sh -c 'echo $HOSTNAME; nproc'
  muster exec cfd --all -- uptime
  muster exec cfd -t -- htop`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usage(c, "CLUSTER is missing")
			case len(args) == 1:
				return muster.Errorf(muster.EInvalid, "the command is missing").Because(muster.ReasonRequired).WithHint("write it after --, or 'muster ssh %s' for a shell", args[0])
			}
			return nil
		},
		ValidArgsFunction: a.completeClusters(1),
		RunE:              func(c *cobra.Command, args []string) error { return a.runExec(c.Context(), args[0], args[1:], f) },
	}
	flags := c.Flags()
	// What comes after the cluster belongs to the command, unless it is ours
	// and stands before --.
	flags.StringVar(&f.node, "node", "", "node (default: the head)")
	flags.StringVarP(&f.user, "user", "u", "", "log in as this user of the cluster")
	flags.BoolVarP(&f.tty, "tty", "t", false, "allocate a terminal")
	flags.BoolVar(&f.all, "all", false, "run on all nodes in parallel, with the node's name before each line")
	flags.BoolVar(&f.noStdin, "no-stdin", false, "do not read standard input")
	_ = c.RegisterFlagCompletionFunc("node", func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.nodeNames(c, args[0], typed)
	})
	return c
}

func (a *app) runExec(ctx context.Context, cluster string, words []string, f execFlags) error {
	k, err := a.connect()
	if err != nil {
		return err
	}
	if !f.all {
		var in io.Reader
		if !f.noStdin {
			in = a.env.In
		}
		return a.execOn(ctx, k, cluster, f.node, f.user, quoteAll(words), streams{in: in, out: a.env.Out, err: a.env.Err, tty: f.tty})
	}
	if f.tty || f.node != "" {
		return muster.Errorf(muster.EInvalid, "--all goes with neither --tty nor --node").Because(muster.ReasonContradiction).WithHint("leave one of them away")
	}
	show, err := k.Cluster(ctx, cluster)
	if err != nil {
		return err
	}
	return a.execAll(ctx, k, string(show.ID), nodeNamesOf(show.Nodes), f.user, quoteAll(words))
}

// execAll runs on many nodes at once. Its status is the highest of theirs.
func (a *app) execAll(ctx context.Context, k *client.Client, cluster string, nodes []string, user, command string) error {
	var mu sync.Mutex // one line at a time
	var worst error
	window := make(chan struct{}, 32)
	var all sync.WaitGroup
	for _, node := range nodes {
		window <- struct{}{}
		all.Go(func() {
			defer func() { <-window }()
			out := &prefixWriter{mu: &mu, w: a.env.Out, prefix: node + ": "}
			errs := &prefixWriter{mu: &mu, w: a.env.Err, prefix: node + ": "}
			err := a.execOn(ctx, k, cluster, node, user, command, streams{out: out, err: errs})
			out.flush()
			errs.flush()
			mu.Lock()
			defer mu.Unlock()
			var status *StatusError
			if err != nil && !errors.As(err, &status) {
				a.report(err)
			}
			if err != nil && ExitCode(err) > ExitCode(worst) {
				worst = err
			}
		})
	}
	all.Wait()
	if worst != nil {
		return &StatusError{Status: ExitCode(worst)}
	}
	return nil
}

// execOn runs one command on one node.
func (a *app) execOn(ctx context.Context, k *client.Client, cluster, node, user, command string, s streams) error {
	conn, err := a.dialNode(ctx, k, cluster, node, user)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	session, err := conn.NewSession()
	if err != nil {
		return broken(err)
	}
	defer func() { _ = session.Close() }()
	return a.attach(ctx, conn, session, command, s)
}

// remoteStatus is the exit status of a finished session.
func remoteStatus(err error) error {
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		if exit.Signal() != "" {
			return &StatusError{Status: 128 + signalNumber(exit.Signal())}
		}
		return &StatusError{Status: exit.ExitStatus()}
	}
	return broken(err)
}

// broken is a connection that ended before the command did. Its status is
// ssh's own for this.
func broken(err error) error {
	return &brokenError{Err: muster.Errorf(muster.EUnavailable, "the connection to the node broke").Because(muster.ReasonNodeUnreachable).
		WithHint("see 'muster show' for how the node is").Wrap(err)}
}

type brokenError struct{ Err *muster.Error }

func (e *brokenError) Error() string { return e.Err.Error() }
func (e *brokenError) Unwrap() error { return e.Err }

// quoteAll makes of words a line that a shell reads as the same words.
func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}

func quote(word string) string {
	if word == "" {
		return "''"
	}
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:,@%+", r)
	}
	if strings.IndexFunc(word, func(r rune) bool { return !safe(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// prefixWriter writes whole lines, each after a prefix.
type prefixWriter struct {
	mu     *sync.Mutex
	w      io.Writer
	prefix string
	rest   []byte
}

func (p *prefixWriter) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		i := strings.IndexByte(string(p.rest), '\n')
		if i < 0 {
			return len(b), nil
		}
		p.mu.Lock()
		_, err := io.WriteString(p.w, p.prefix+string(p.rest[:i+1]))
		p.mu.Unlock()
		p.rest = p.rest[i+1:]
		if err != nil {
			return len(b), err
		}
	}
}

func (p *prefixWriter) flush() {
	if len(p.rest) > 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		_, _ = io.WriteString(p.w, p.prefix+string(p.rest)+"\n")
		p.rest = nil
	}
}
