package main

import (
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/cleantext"
	"github.com/muster-hpc/muster/daemon"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/spec"
)

// serveFlags are all that a server can be told.
type serveFlags struct {
	c              daemon.Config
	slices, egress []string
	level, format  string
	profile        string
	retain         string
	validate       string
	promises       string
	idle           string
	bare           metalFlags
	derived        derivedFlags
	approve        string
}

func serveCommand(version string) *cobra.Command {
	var (
		flags serveFlags
		file  configFile
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server until it is interrupted. Machines and jobs go on running
without it; start it again with the same --state and it finds them.

Everything that it keeps is in --state, and local users reach it by the socket
muster.sock in there.

What is not given here is read from --config, or from /etc/muster/muster.yaml if
that is there: one line for each flag, by its name with _ for -. A hangup signal
(systemctl reload) has the file read again; what cannot change while the server
runs is named in its log and waits for a restart.`,
		Example: `  # four machines, a fourth of this host's cores each
  muster serve --local 4

  # two classes of machines, one of them for heads
  muster serve --local 4,cores=4,memory=16GiB,class=big --local 2,cores=1,memory=2GiB,class=small,service

  # all that is set, as a file that /etc/muster/muster.yaml can be
  muster serve --local 4 --print-config

  # bare machines that boot from the network on this interface
  muster serve --metal-net eno2

  # only to try things out: more machines than cores, or machines that pretend
  muster serve --state /tmp/m --local 4 --oversubscribe
  muster serve --state /tmp/m --fake 100`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := givenFlags(cmd.Flags())
			if err := file.read(cmd.Flags()); err != nil {
				return err
			}
			if file.print {
				return printConfig(cmd.OutOrStdout(), cmd.Flags())
			}
			c, err := flags.config(version)
			if err != nil {
				return err
			}
			var level slog.LevelVar
			if c.Log, err = newLog(flags.level, flags.format, &level); err != nil {
				return err
			}
			// Texts and records are in UTC. Said here once, because Time.UTC strips
			// what keeps times comparable when the host's clock is set.
			time.Local = time.UTC
			c.Reloads = file.onHangup(cmd.Context(), c.Log, func() (daemon.Config, error) {
				again, err := readAgain(file, given)
				if err != nil {
					return daemon.Config{}, err
				}
				next, err := again.config(version)
				if err == nil {
					next.Log, err = newLog(again.level, again.format, &level)
				}
				return next, err
			})
			return profiled(flags.profile, func() error { return daemon.Run(cmd.Context(), c) })
		},
	}
	flags.add(cmd.Flags())
	file.add(cmd.Flags())
	return cmd
}

// config makes the server's configuration of the flags.
func (f *serveFlags) config(version string) (daemon.Config, error) {
	c := f.c
	c.Version = version
	for _, text := range f.slices {
		s, err := local.ParseSlice(text)
		if err != nil {
			return c, err
		}
		c.Local = append(c.Local, s)
	}
	var err error
	if c.Metal, err = f.bare.read(); err != nil {
		return c, err
	}
	if c.Approval, err = approvalRules(f.approve); err != nil {
		return c, err
	}
	for _, e := range f.egress {
		switch p := muster.Egress(e); p {
		case muster.EgressNone, muster.EgressProxy, muster.EgressNAT:
			c.Egress = append(c.Egress, p)
		default:
			return c, muster.Errorf(muster.EInvalid, "--egress %s is not a policy", e).Because(muster.ReasonBadValue).
				WithHint("use none, proxy and nat, with commas between them")
		}
	}
	if c.LocalNetworks < 0 || c.LocalNetworks > 1<<16 {
		return c, muster.Errorf(muster.EInvalid, "--local-networks %d is not a number of namespaces", c.LocalNetworks).Because(muster.ReasonOutOfRange).WithHint("write one from 0 to 65536")
	}
	if c.Fake < 0 {
		return c, muster.Errorf(muster.EInvalid, "--fake cannot be %d", c.Fake).Because(muster.ReasonOutOfRange).WithHint("write how many machines there should be, such as --fake 20")
	}
	switch v := muster.Validation(f.validate); v {
	case "": // on machines that share cores nothing that is measured counts
		if c.Validate = muster.ValidateQuick; c.Oversubscribe {
			c.Validate = muster.ValidateOff
		}
	case muster.ValidateQuick, muster.ValidateFull, muster.ValidateOff:
		c.Validate = v
	default:
		return c, muster.Errorf(muster.EInvalid, "--validate %s is not a level", f.validate).Because(muster.ReasonBadValue).WithHint("use quick, full or off")
	}
	if f.idle != "0" {
		every, err := spec.ParseDuration(f.idle)
		if err != nil || every < time.Hour {
			return c, muster.Errorf(muster.EInvalid, "--measure-idle %s is not a time of an hour or more", f.idle).Because(muster.ReasonBadValue).WithHint("write it like 7d, or 0 to measure no idle machines")
		}
		c.MeasureIdle = every
	}
	if err := keepHomes(&c, f.retain); err != nil {
		return c, err
	}
	if c.Derived, err = f.derived.read(); err != nil {
		return c, err
	}
	if c.Promises, err = readPromises(f.promises); err != nil {
		return c, err
	}
	return c, nil
}

func (f *serveFlags) add(set *pflag.FlagSet) {
	f.bare.add(set)
	f.derived.add(set)
	set.StringVar(&f.c.State, "state", "/var/lib/muster", "directory that holds everything the server keeps")
	set.StringArrayVar(&f.slices, "local", nil, "machines that are slices of this host: N[,cores=C][,memory=8GiB][,class=NAME][,rack=NAME][,service]; may be repeated")
	set.BoolVar(&f.c.Oversubscribe, "oversubscribe", false, "allow more local machines than cores; shown on every table")
	set.StringSliceVar(&f.c.LocalOpen, "local-open", nil, "what of the kernel to open to local machines though it can harm neighbours: packet, io_uring, keys, perf, vsock, alg, rds, smc, xdp, nokmem (see docs/security.md)")
	set.IntVar(&f.c.LocalNetworks, "local-networks", 16, "how many network namespaces the users of a local machine may make together; 0: none")
	set.IntVar(&f.c.Fake, "fake", 0, "number of machines that only pretend")
	set.DurationVar(&f.c.FakeDelay, "fake-delay", 0, "how long a fake machine takes to boot at most (default 200ms)")
	set.StringVar(&f.c.Listen, "listen", "", "serve the API over TLS at ADDRESS:PORT too")
	set.StringSliceVar(&f.egress, "egress", nil, "outgoing traffic that clusters may ask for (default none,proxy)")
	set.StringVar(&f.retain, "retain", "7d", "how long homes of deleted clusters are kept unless a request says otherwise; 0: not at all")
	set.StringVar(&f.validate, "validate", "", "how much of a cluster is measured before it is handed over, unless its request says otherwise: quick, full or off (default quick; off with --oversubscribe)")
	set.StringVar(&f.idle, "measure-idle", "7d", "after how long a machine that nobody uses is measured again; 0: never")
	set.StringVar(&f.promises, "promises", "", "file with the figures that the site promises of its machines: see docs/certificate.md")
	set.StringVar(&f.approve, "approve", "", "file with rules by which bare machines that come by themselves are approved or forbidden (default: all of them wait for an administrator)")
	set.DurationVar(&f.c.MaxWalltime, "max-walltime", 0, "the longest that clusters may live, such as 72h (default: as long as they like)")
	set.StringVar(&f.c.Agent, "agent", "", "agent program (default: muster-agent beside this program)")
	set.IntVar(&f.c.BootWindow, "boot-window", 0, "how many local machines may boot at once (default: 64)")
	set.StringVar(&f.c.FakeAgents, "fake-agents", "", "socket for a process that runs the agents of machines that pretend")
	set.StringVar(&f.profile, "cpu-profile", "", "write where the time goes to this file")
	set.DurationVar(&f.c.FakeSpread, "fake-spread", 0, "how much sooner than that it may have booted")
	set.Float64Var(&f.c.FakeFail, "fake-fail", 0, "share of fake boots that fail, from 0 to 1")
	set.Float64Var(&f.c.FakeCrash, "fake-crash", 0, "how often in an hour a running fake machine goes off")
	set.Float64Var(&f.c.FakeStall, "fake-stall", 0, "how often in an hour a running fake machine hangs")
	for _, name := range []string{"fake-agents", "cpu-profile", "fake-spread", "fake-fail", "fake-crash", "fake-stall"} { // for measurements
		_ = set.MarkHidden(name)
	}
	set.StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	set.StringVar(&f.format, "log-format", "text", "text or json")
}

// newLog makes the server's log, and sets from which level on it is written.
func newLog(level, format string, from *slog.LevelVar) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, muster.Errorf(muster.EInvalid, "--log-level %s is not a level", level).Because(muster.ReasonBadValue).WithHint("use debug, info, warn or error")
	}
	from.Set(l)
	o := &slog.HandlerOptions{Level: from, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) { // what others wrote stays on its line, and what it seems
		case string:
			a.Value = slog.StringValue(cleantext.Line(v))
		case []string:
			clean := make([]string, len(v))
			for i := range v {
				clean[i] = cleantext.Line(v[i])
			}
			a.Value = slog.AnyValue(clean)
		case error:
			a.Value = slog.StringValue(cleantext.Line(v.Error()))
		}
		return a
	}}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, o)), nil
	}
	return nil, muster.Errorf(muster.EInvalid, "--log-format %s is not a format", format).Because(muster.ReasonBadValue).WithHint("use text or json")
}

func cleanupCommand() *cobra.Command {
	var (
		state   string
		yes     bool
		unknown bool
	)
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove from this host what machines of a state directory left",
		Long: `Stop every local machine of a state directory and remove its namespaces, links
and control groups, when the server is not there to do it; end the file server
of bare machines and unmount the volumes that it served. Users' work on local
machines is lost; records, images, homes and other volumes are kept, and bare
machines are not touched. The next server with this state directory finds the
local machines off and says so, and mounts the volumes again.

When the store is lost, this gives up what it knew: the next server begins anew,
with the keys that are there. With --unknown only machines are ended that the
records do not know, as after a backup that is older than they are.`,
		Example: "  muster cleanup --state /var/lib/muster --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return muster.Errorf(muster.EInvalid, "this stops every machine of %s", state).Because(muster.ReasonNotConfirmed).WithHint("add --yes if that is what you want")
			}
			if !daemon.IsStateDirectory(state) {
				return muster.Errorf(muster.ENotFound, "%s is no state directory: nothing was ever served from there", state).Because(muster.ReasonNoState).
					WithHint("name the --state of the server, such as /var/lib/muster")
			}
			stopped, err := daemon.Cleanup(cmd.Context(), state, unknown)
			for _, id := range stopped {
				cmd.Printf("stopped %s\n", id)
			}
			if err == nil && unknown {
				cmd.Printf("no machine runs that the records of %s do not know\n", state)
			} else if err == nil {
				cmd.Println("nothing of " + state + " runs or is mounted on this host now; its files are kept")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&state, "state", "/var/lib/muster", "state directory of the server")
	cmd.Flags().BoolVar(&yes, "yes", false, "really do it")
	cmd.Flags().BoolVar(&unknown, "unknown", false, "only the machines that the records do not know")
	return cmd
}

// keepHomes reads how long the homes of deleted clusters are kept.
func keepHomes(c *daemon.Config, text string) error {
	if text == "0" {
		c.Retain = -1
		return nil
	}
	d, err := spec.ParseDuration(text)
	if err != nil {
		return muster.Errorf(muster.EInvalid, "--retain %s is not a time", text).Because(muster.ReasonBadValue).WithHint("write 7d, 12h, or 0 for not at all").Wrap(err)
	}
	c.Retain = d
	return nil
}
