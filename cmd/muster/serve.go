package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/daemon"
	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/provider/local"
)

// serveFlags are all that a server can be told.
type serveFlags struct {
	c              daemon.Config
	slices, egress []string
	links          []string
	doors          []string
	level, format  string
	profile        string
	retain, states string
	validate       string
	promises       string
	idle           string
	bare           metalFlags
	derived        derivedFlags
	versions       versionFlags
	approve        string
	vmCard         string
	vmDevices      []string
}

// mostPatience bounds --patience: a boot has an hour then.
const mostPatience = 20

// serveCommand runs a server by a clock; nil: this computer's.
func serveCommand(version string, clock muster.Clock) *cobra.Command {
	var (
		flags serveFlags
		file  configFile
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Runs the server until it is interrupted. Machines and jobs keep running without it;
start it again with the same --state and it finds them.

All its state is in --state; local users connect to the socket muster.sock there.

Flags that are not given are read from --config, or from /etc/muster/muster.yaml if it
exists: one line per flag, named like the flag with _ instead of -. SIGHUP (systemctl
reload) reloads the file; settings that need a restart are named in the log.`,
		Example: `  # four machines, a fourth of this host's cores each
  muster serve --local 4

  # two classes of machines, one of them for heads
  muster serve --local 4,cores=4,memory=16GiB,class=big --local 2,cores=1,memory=2GiB,class=small,service

  # two leaf switches that are joined by a link of 1 Gb/s, to try placement
  muster serve --local 4,leaf=A --local 4,leaf=B --link A-B=1Gb/s,delay=1ms

  # virtual machines with virtual functions of a network card
  muster serve --local 4 --vm-card ens5,vlans=100-199,functions=4

  # the virtual machine of local-01 has a graphics processor with its sound, and that of a machine near to it an NVMe
  muster serve --local 4 --vm-device 0000:c1:00.0,machine=local-01 --vm-device 0000:c1:00.1 --vm-device 0000:41:00.0

  # print the configuration as a file that /etc/muster/muster.yaml can be
  muster serve --local 4 --print-config

  # bare machines that boot from the network on this interface
  muster serve --metal-interface eno2

  # users reach their clusters with plain ssh and their own keys
  muster serve --local 4 --gateway :2222

  # to try things out: more machines than cores, or simulated machines
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
			c.Clock = clock
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
	var wrong wrongFlags
	var err error
	c.Local, c.LocalLinks, err = readLocal(f.slices, f.links)
	wrong.add(err)
	c.VMCard, c.VMDevices = f.hostDevices(&wrong)
	c.Metal, err = f.bare.read()
	wrong.add(err)
	c.Approval, err = approvalRules(f.approve)
	wrong.add(err)
	if c.TimeZone == "" {
		c.TimeZone = daemon.HostTimeZone()
	} else {
		wrong.add(daemon.CheckTimeZone(c.TimeZone))
	}
	if c.Doors, err = muster.ParseDoors(f.doors); err != nil {
		wrong.flag("--gateway-doors", muster.ReasonBadValue, strings.Join(f.doors, ",")+" is not possible", "write straight, jump, plain, or none")
	}
	for _, e := range f.egress {
		switch p := muster.Egress(e); p {
		case muster.EgressNone, muster.EgressProxy, muster.EgressNAT:
			c.Egress = append(c.Egress, p)
		default:
			wrong.flag("--egress", muster.ReasonBadValue, e+" is not a policy", "use none, proxy and nat, with commas between them")
		}
	}
	if c.LocalNetworks < 0 || c.LocalNetworks > 1<<16 {
		wrong.flag("--local-max-netns", muster.ReasonOutOfRange, fmt.Sprintf("%d is not a number of namespaces", c.LocalNetworks), "write one from 0 to 65536")
	}
	if c.Patience < 1 || c.Patience > mostPatience {
		wrong.flag("--patience", muster.ReasonOutOfRange, fmt.Sprintf("%d is out of range", c.Patience), fmt.Sprintf("write one from 1, the usual, to %d", mostPatience))
	}
	if c.Fake < 0 {
		wrong.flag("--fake", muster.ReasonOutOfRange, fmt.Sprintf("cannot be %d", c.Fake), "write how many machines there should be, such as --fake 20")
	}
	switch v := muster.Validation(f.validate); v {
	case "": // on machines that share cores nothing that is measured counts
		if c.Validate = muster.ValidateQuick; c.Oversubscribe {
			c.Validate = muster.ValidateOff
		}
	case muster.ValidateQuick, muster.ValidateFull, muster.ValidateOff:
		c.Validate = v
	default:
		wrong.flag("--validate", muster.ReasonBadValue, f.validate+" is not a level", "use quick, full or off")
	}
	if f.idle != "0" {
		every, err := spec.ParseDuration(f.idle)
		if err != nil || every < time.Hour {
			wrong.flag("--idle-benchmark-interval", muster.ReasonBadValue, f.idle+" is not a time of an hour or more", "write it like 7d, or 0 to measure no idle machines")
		}
		c.MeasureIdle = every
	}
	if f.states != "" {
		n, err := spec.ParseBytes(f.states)
		if err != nil || n <= 0 {
			wrong.flag("--saved-states-quota", muster.ReasonBadValue, f.states+" is not a size", "write 200GiB, or leave it out for no bound")
		}
		c.StatesBytes = n
	}
	wrong.add(keepHomes(&c, f.retain))
	c.Derived, err = f.derived.read()
	wrong.add(err)
	c.Versions, err = f.versions.read()
	wrong.add(err)
	c.PerformanceTargets, err = readPromises(f.promises)
	wrong.add(err)
	_, err = newLog(f.level, f.format, new(slog.LevelVar)) // the level in force changes only where all else is right
	wrong.add(err)
	if err := wrong.err(); err != nil {
		return daemon.Config{}, err
	}
	return c, nil
}

// hostDevices are the card and the devices of this host that virtual machines have.
func (f *serveFlags) hostDevices(wrong *wrongFlags) (*local.VMCard, []local.VMDevice) {
	none := func(flag, what string) {
		if len(f.slices) == 0 {
			wrong.flag(flag, muster.ReasonBadMachines, what+" is for virtual machines of local machines, and there are none", "add --local, or leave it out")
		}
	}
	var own *local.VMCard
	if f.vmCard != "" {
		if card, err := local.ParseVMCard(f.vmCard); !wrong.add(err) {
			own = &card
			none("--vm-card", card.Name)
		}
	}
	devices, err := local.ParseVMDevices(f.vmDevices)
	if !wrong.add(err) && len(devices) > 0 {
		none("--vm-device", devices[0].Address)
	}
	return own, devices
}

func (f *serveFlags) add(set *pflag.FlagSet) {
	f.bare.add(set)
	f.derived.add(set)
	f.versions.add(set)
	set.StringVar(&f.c.State, "state", "/var/lib/muster", "state directory: everything the server stores")
	set.StringArrayVar(&f.slices, "local", nil, "machines that are slices of this host: N[,cores=C][,memory=8GiB][,class=NAME][,rack=NAME][,set=NAME][,leaf=NAME][,chassis=NAME][,datacentre=NAME][,service]; repeatable")
	set.StringArrayVar(&f.links, "link", nil, "link between two leaves, or from a leaf to a switch, that carries the messages of local machines: A-B=RATE[,delay=TIME]; repeatable (see docs/operators/local-machines.md)")
	set.BoolVar(&f.c.Oversubscribe, "oversubscribe", false, "allow more local machines than cores; every table shows it")
	set.StringSliceVar(&f.c.LocalOpen, "local-allow", nil, "kernel features to allow in local machines although they can affect neighbours: packet, io_uring, keys, perf, vsock, alg, rds, smc, xdp, nokmem (see docs/operators/security.md)")
	set.StringVar(&f.vmCard, "vm-card", "", "network card of this host whose virtual functions virtual machines of local machines may have (vm.nic: vf), and the VLANs of their clusters: NAME,vlans=FIRST-LAST[,functions=N] (see docs/operators/virtual-machines.md)")
	set.StringArrayVar(&f.vmDevices, "vm-device", nil, "PCI device of this host (GPU, HCA, NVMe) that the virtual machine of a local machine has whole; name all of its IOMMU group; what is on an NVMe is erased after each: ADDRESS[,machine=NAME]; repeatable (see docs/operators/virtual-machines.md)")
	set.IntVar(&f.c.LocalNetworks, "local-max-netns", 16, "maximum number of network namespaces that the users of a local machine may create; 0: none")
	set.IntVar(&f.c.Fake, "fake", 0, "number of simulated machines")
	duration.Var(set, &f.c.FakeDelay, "fake-delay", 0, "maximum boot time of a simulated machine (default 200ms)")
	set.StringVar(&f.c.Listen, "listen", "", "also serve the API over TLS on ADDRESS:PORT")
	set.StringVar(&f.c.GatewayFlows, "gateway-flows", "", "have the kernel let connections of 'muster connect' through to bare machines on ADDRESS:PORT, an IPv4 address of this host (see docs/operators/gateway.md)")
	set.StringVar(&f.c.Gateway, "gateway", "", "let users in by SSH on ADDRESS:PORT, such as :2222 (see docs/users/gateway.md)")
	set.StringSliceVar(&f.c.GatewayNames, "gateway-name", nil, "host names by which users reach --gateway, for its host certificate; repeatable (default: the name of this host)")
	set.StringSliceVar(&f.doors, "gateway-doors", nil, "doors of the gateway that may be open: straight, jump, plain; or none (default: all)")
	duration.Var(set, &f.c.GatewayLimits.Idle, "gateway-idle", 0, "end a session at the gateway when nothing passed for this long, such as 8h (default: never)")
	duration.Var(set, &f.c.GatewayLimits.Longest, "gateway-longest", 0, "end a session at the gateway after this long, such as 7d (default: never)")
	set.StringVar(&f.c.TimeZone, "time-zone", "", "time zone of nodes, such as Europe/Berlin (default: that of this host)")
	set.StringSliceVar(&f.egress, "egress", nil, "outgoing traffic that clusters may request: none, proxy, nat (default none,proxy)")
	set.IntVar(&f.c.Patience, "patience", 1, "machines may take so many times as long as usual, and be silent so long, until they count as lost: for emulated or very slow ones")
	set.StringVar(&f.retain, "retain", "7d", "how long to keep the homes of deleted clusters, unless the request says otherwise; 0: delete them at once")
	set.StringVar(&f.validate, "validate", "", "how much of a cluster to measure before it is handed over, unless the request says otherwise: quick, full or off (default quick; off with --oversubscribe)")
	set.StringVar(&f.idle, "idle-benchmark-interval", "7d", "how often to benchmark machines that are idle; 0: never")
	set.StringVar(&f.promises, "performance-targets", "", "file with performance targets of the site's machines (see docs/users/certificate.md)")
	set.StringVar(&f.approve, "approval-rules", "", "file with rules that approve or block machines that are not registered (default: they all wait for an administrator)")
	duration.Var(set, &f.c.DefaultWalltime, "default-walltime", 0, "walltime of requests that name none, such as 1d (default: --max-walltime, or no limit)")
	duration.Var(set, &f.c.MaxQueued, "max-queued", 0, "how long a request may wait for machines before it is ended, such as 7d (default: 30 days)")
	duration.Var(set, &f.c.MaxPause, "max-pause", 0, "how long a cluster may stay paused before it is deleted, such as 30d (default: 30 days)")
	set.StringVar(&f.states, "saved-states-quota", "", "how much saved memory of paused virtual machines may be kept, such as 200GiB (default: as much as the file system of --state holds)")
	duration.Var(set, &f.c.MaxWalltime, "max-walltime", 0, "maximum walltime of clusters, such as 3d (default: unlimited)")
	set.StringVar(&f.c.Agent, "agent", "", "agent program (default: muster-agent beside this program)")
	set.IntVar(&f.c.BootWindow, "local-max-booting", 0, "maximum number of local machines that boot at the same time (default: 64)")
	set.StringVar(&f.c.FakeAgents, "fake-agents", "", "socket of a process that runs the agents of simulated machines")
	set.StringVar(&f.profile, "cpu-profile", "", "write a CPU profile to this file")
	duration.Var(set, &f.c.FakeSpread, "fake-spread", 0, "how much earlier than --fake-delay a simulated machine may have booted")
	set.Float64Var(&f.c.FakeFail, "fake-fail", 0, "share of simulated boots that fail, from 0 to 1")
	set.Float64Var(&f.c.FakeCrash, "fake-crash", 0, "how often per hour a simulated machine powers off")
	set.Float64Var(&f.c.FakeStall, "fake-stall", 0, "how often per hour a simulated machine hangs")
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
			a.Value = slog.StringValue(cleantext.Line(muster.Describe(v)))
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
		Short: "Remove the local machines of a state directory from this host",
		Long: `Stops all local machines of a state directory and removes their namespaces, links and
control groups when no server is running; stops the file server of bare machines and
unmounts its volumes. Users' work on local machines is lost; records, images, homes and
other volumes are kept, and bare machines are not touched. The next server with this
state directory finds the local machines off and mounts the volumes again.

If the database is lost, this abandons what it contained: the next server starts with
an empty one and the existing keys. With --orphans only machines are stopped that are
not in the records, for example after restoring a backup older than they are.`,
		Example: "  muster cleanup --state /var/lib/muster --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return muster.Errorf(muster.EInvalid, "this stops every machine of %s", state).Because(muster.ReasonNotConfirmed).WithHint("add --yes to confirm")
			}
			if !daemon.IsStateDirectory(state) {
				return muster.Errorf(muster.ENotFound, "%s is not a state directory", state).Because(muster.ReasonNoState).
					WithHint("name the --state of the server, such as /var/lib/muster")
			}
			stopped, err := daemon.Cleanup(cmd.Context(), state, unknown)
			for _, id := range stopped {
				cmd.Printf("stopped %s\n", id)
			}
			if err == nil && unknown {
				cmd.Printf("no orphaned machines of %s are running\n", state)
			} else if err == nil {
				cmd.Println("nothing of " + state + " is running or mounted on this host any more; its files are kept")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&state, "state", "/var/lib/muster", "state directory of the server")
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm")
	cmd.Flags().BoolVar(&unknown, "orphans", false, "stop only machines that are not in the records")
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
