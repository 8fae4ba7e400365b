package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/spf13/cobra"
)

// app is what the commands share: the environment and the global flags.
type app struct {
	env       Env
	server    string
	tokenFile string
	ca        string
	output    string
}

// Run runs a command line and returns its exit status. Errors are told on the
// error output. An interrupt ends the context of the command.
func Run(ctx context.Context, env Env, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &app{env: env}
	root := a.root()
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		a.output = outputOf(args)
		return badFlag(c, err)
	})
	root.SetArgs(minus(root, args))
	err := excluded(root.ExecuteContext(ctx))
	a.report(err)
	return ExitCode(err)
}

// New is the tree of commands.
func New(env Env) *cobra.Command { return (&app{env: env}).root() }

func (a *app) root() *cobra.Command {
	env := a.env
	root := &cobra.Command{
		Use:   "muster",
		Short: "Dedicated HPC clusters on demand",
		Long: `Muster hands you a dedicated HPC cluster: you ask, it chooses machines, boots
them into the image you want, joins them into a Slurm and MPI cluster, and takes
them back without a trace.`,
		Example: `  muster create cfd -n 4 --wait        ask for four nodes and wait until they are ready
  muster exec cfd -- srun -N4 hostname use them
  muster ssh cfd                       log in to the head
  muster delete cfd --wait             give them back`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE:          group,
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	flags := root.PersistentFlags()
	flags.StringVar(&a.server, "server", "", "server: unix:PATH or https://host:port (MUSTER_SERVER)")
	flags.StringVar(&a.tokenFile, "token-file", "", "file with the token (or set MUSTER_TOKEN)")
	flags.StringVar(&a.ca, "ca", "", "file with the server's CA certificate (MUSTER_CA)")
	flags.StringVarP(&a.output, "output", "o", "", "output format for programs: json or yaml")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	root.AddGroup(
		&cobra.Group{ID: "clusters", Title: "Clusters:"},
		&cobra.Group{ID: "use", Title: "Using them:"},
		&cobra.Group{ID: "site", Title: "The site:"},
	)
	add(root, "clusters", a.create(), a.list(), a.show(), a.events(), a.change(), a.scale(), a.extend(), a.wait(), a.pause(), a.resume(), a.save(), a.template(), a.share(), a.unshare(), a.doors(), a.delete(), a.calendar(), a.book())
	add(root, "use", a.exec(), a.ssh(), a.cp(), a.sshConfig(), a.connectNode(), a.usage(), a.top(), a.logs(), a.console(), a.certificate(), a.history(), a.compare(), a.bench(), a.program(), a.experiment(), a.platform())
	add(root, "site", a.machine(), a.topology(), a.maintenance(), a.project(), a.simulate(), a.volume(), a.image(), a.user(), a.key(), a.gateway(), a.token(), a.serverInfo(), a.doctor(), a.completionScript(), a.version())
	root.AddCommand(a.tunnel(), a.rsh())
	for _, extra := range env.Extra {
		if extra.GroupID == "" && !extra.Hidden {
			extra.GroupID = "site"
		}
		root.AddCommand(extra)
	}
	refuseEmpty(root)
	root.SetHelpCommand(a.help())
	root.SetHelpCommandGroupID("site")
	root.InitDefaultHelpCmd()
	return root
}

func add(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		root.AddCommand(c)
	}
}

// group is what a command does that only holds others: help, or a word about a
// name that is none of them.
func group(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	e := muster.Errorf(muster.EInvalid, "%q is not a command of %s", args[0], c.CommandPath()).Because(muster.ReasonUnknownCommand)
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		return e.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return e.WithHint("see '%s --help'", c.CommandPath())
}

// excluded says in our words that flags exclude each other, which cobra tells as
// "if any flags in the group [quick full] are set none of the others can be; ...".
func excluded(err error) error {
	if err == nil {
		return nil
	}
	rest, ours := strings.CutPrefix(err.Error(), "if any flags in the group [")
	group, _, whole := strings.Cut(rest, "]")
	if !ours || !whole {
		return err
	}
	names := strings.Fields(group)
	for i, n := range names {
		names[i] = "--" + n
	}
	return muster.Errorf(muster.EInvalid, "%s exclude each other", strings.Join(names, " and ")).Because(muster.ReasonContradiction).WithHint("give one of them")
}

// usage is the error of a command line that cannot be understood.
func usage(c *cobra.Command, format string, args ...any) error {
	return muster.Errorf(muster.EInvalid, "%s", fmt.Sprintf(format, args...)).Because(muster.ReasonBadUsage).WithHint("see '%s --help'", c.CommandPath())
}

// exactly wants so many arguments, and names them when they are missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage(c, "%s is missing", names[len(args)])
		case len(args) > len(names):
			return usage(c, "%q is one argument too many", args[len(names)])
		}
		return nil
	}
}

// atMost wants no more arguments than these.
func atMost(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return usage(c, "%q is one argument too many", args[n])
		}
		return nil
	}
}

// connect makes the client that flags and environment ask for.
func (a *app) connect() (*client.Client, error) {
	token, err := a.bearer()
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{
		Server: first(a.server, a.env.getenv("MUSTER_SERVER")), Token: token,
		CA: first(a.ca, a.env.getenv("MUSTER_CA")), UserAgent: "muster/" + a.env.Version,
	})
}

func (a *app) bearer() (string, error) {
	if a.tokenFile == "" {
		return a.env.getenv("MUSTER_TOKEN"), nil
	}
	raw, err := os.ReadFile(a.tokenFile)
	if err != nil {
		return "", muster.Errorf(muster.EInvalid, "cannot read the token file %s", a.tokenFile).Because(muster.ReasonFileUnreadable).
			WithHint("the file must hold the token and nothing else").Wrap(err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", muster.Errorf(muster.EInvalid, "%s does not hold a token", a.tokenFile).Because(muster.ReasonBadToken).
			WithHint("the file must hold the token and nothing else")
	}
	return token, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// interrupted reports whether the user pressed Ctrl-C.
func interrupted(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && ctx.Err() != nil
}
