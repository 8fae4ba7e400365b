package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/metal/enrollment"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/storage/image"
)

// Config says what server to run.
type Config struct {
	// State is the directory that holds everything; made when missing.
	State string
	// Local are the machines to cut from this host.
	Local []local.Slice
	// LocalLinks join what they stand in; see LocalTree.
	LocalLinks []topology.Link
	// Metal says how bare machines are reached.
	Metal Metal
	// Patience is how many times as long as usual machines may take, and be silent; 0 is once.
	Patience int
	// Oversubscribe allows more local machines than cores.
	Oversubscribe bool
	// LocalOpen names what of the kernel is open to local machines; see package seccomp.
	LocalOpen []string
	// VMCard has virtual functions for virtual machines of local machines; nil: they have none.
	VMCard *local.VMCard
	// VMDevices are whole devices for virtual machines of local machines.
	VMDevices []local.VMDevice
	// LocalNetworks is how many network namespaces users of a local machine may make.
	LocalNetworks int
	// Fake is how many machines only pretend.
	Fake int
	// FakeDelay is how long a fake machine takes to boot at most.
	FakeDelay time.Duration
	// FakeSpread is how much sooner than FakeDelay a fake machine may have
	// booted. 0: as much as that.
	FakeSpread time.Duration
	// FakeFail is the share of boots that end in the machine going off.
	FakeFail float64
	// FakeCrash and FakeStall are how often in an hour a running fake machine
	// goes off, or hangs.
	FakeCrash, FakeStall float64
	// FakeAgents is a socket to which a process connects that runs the agents
	// of machines that pretend. Empty: they run in this process.
	FakeAgents string
	// TimeZone is that of the nodes; "": their image's.
	TimeZone string
	// Listen is an address for the API over TLS; "" for none.
	Listen string
	// Gateway is an address for users who come by SSH; "" for none.
	Gateway string
	// GatewayNames are those by which users reach it: of its host certificate.
	GatewayNames []string
	// Doors are those that may be open. Empty: all; muster.DoorNone alone: none.
	Doors []muster.Door
	// GatewayFlows is where the kernel lets connections through to nodes that this host reaches
	// itself, as ADDRESS:PORT; "" for nowhere.
	GatewayFlows string
	// GatewayLimits bound it. Zero values: the usual ones.
	GatewayLimits gateway.Limits
	// Retain is how long homes of deleted clusters are kept unless a request
	// says otherwise. 0: muster.DefaultRetain; negative: not at all.
	Retain time.Duration
	// Validate is how much of a cluster is measured before it is handed over,
	// unless its request says otherwise. "": quick.
	Validate muster.Validation
	// Egress lists what clusters may ask for. Empty: none and proxy.
	Egress []muster.Egress
	// MaxWalltime is the longest that a cluster may live. 0: as long as it
	// likes.
	MaxWalltime time.Duration
	// DefaultWalltime is what a request gets that names none. 0: MaxWalltime, or no end.
	DefaultWalltime time.Duration
	// MaxQueued is how long a request may wait until it is ended. 0: 30 days.
	MaxQueued time.Duration
	// StatesBytes bounds the saved memory of virtual machines, all together. 0: as much as the file system holds.
	StatesBytes int64
	// MaxPause is how long a cluster may stay paused until it is deleted. 0: 30 days.
	MaxPause time.Duration
	// Approval are the rules by which bare machines that come by themselves are taken
	// in. Nil: all of them wait for an administrator.
	Approval enrollment.Rules
	// Agent is the agent program that is put into machines. Empty: the file
	// muster-agent beside this program.
	Agent string
	// BootWindow limits how many local machines boot at once. 0: 64.
	BootWindow int
	// SeriesBytes bounds the file of what was measured over time. 0: 1 GiB.
	SeriesBytes int64
	// MeasureIdle is after how long a machine that nobody uses is measured again. 0:
	// never.
	MeasureIdle time.Duration
	// PerformanceTargets are what the site says that its machines reach.
	PerformanceTargets analysis.Targets
	// JournalBytes bounds what nodes logged, all together. 0: 4 GiB.
	JournalBytes int64
	// Derived says which images with added packages stay though no cluster uses them.
	Derived image.Keep
	// Versions says which old contents of images stay. Zero: image.DefaultKeepVersions.
	Versions image.KeepVersions
	// Reloads are configurations that replace this one while the server runs, as far as
	// they can; see Server.reload. Nil: none comes.
	Reloads <-chan Config
	Version string
	Log     *slog.Logger
	Clock   muster.Clock
}

func (c *Config) setDefaults() error {
	if c.State == "" {
		c.State = "/var/lib/muster"
	}
	abs, err := filepath.Abs(c.State)
	if err != nil {
		return err
	}
	c.State = abs
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.JournalBytes == 0 {
		c.JournalBytes = 4 << 30
	}
	if c.FakeDelay == 0 {
		c.FakeDelay = 200 * time.Millisecond
	}
	if c.Metal.Interface != "" && os.Geteuid() != 0 {
		return muster.Errorf(muster.EForbidden, "bare machines need root: their addresses are lent and their switches set").Because(muster.ReasonNeedsRoot).WithHint("run it with sudo")
	}
	if len(c.Local) > 0 && os.Geteuid() != 0 {
		return muster.Errorf(muster.EForbidden, "local machines need root: namespaces, cgroups and mounts are made").Because(muster.ReasonNeedsRoot).
			WithHint("run it with sudo, or try --fake 8")
	}
	if c.Agent == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		c.Agent = filepath.Join(filepath.Dir(self), "muster-agent")
	}
	if len(c.Local) > 0 || c.Metal.Interface != "" {
		if st, err := os.Stat(c.Agent); err != nil || st.IsDir() || st.Mode()&0o111 == 0 {
			return muster.Errorf(muster.EInvalid, "there is no agent program at %s", c.Agent).Because(muster.ReasonProgramMissing).
				WithHint("build it (make build) or name it with --agent")
		}
	}
	return nil
}
