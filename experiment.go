package muster

import (
	"regexp"
	"time"
)

// ExperimentID names an experiment for ever: "ex-" and ten characters.
type ExperimentID string

// NewExperimentID makes a fresh ID of an experiment.
func NewExperimentID() ExperimentID { return ExperimentID("ex-" + RandomID(10)) }

var experimentID = regexp.MustCompile(`^ex-[0-9a-z]{10}$`)

// Valid reports whether the ID has the form of one.
func (id ExperimentID) Valid() bool { return experimentID.MatchString(string(id)) }

// ExperimentState is what became of an experiment.
type ExperimentState string

// States of experiments.
const (
	ExperimentOpen    ExperimentState = "open"    // launches are left, and anybody's client may go on with them
	ExperimentDone    ExperimentState = "done"    // its stop rule was met: Outcome says which
	ExperimentStopped ExperimentState = "stopped" // somebody stopped it
	ExperimentFailed  ExperimentState = "failed"  // it cannot go on: Outcome says why
)

// Experiment launches programs under factors that vary, in an order that chance decided, and
// compares their figures. It belongs to a project.
type Experiment struct {
	ID      ExperimentID `json:"id"`
	Name    string       `json:"name"`
	Project string       `json:"project"`
	// By is who runs it: clusters and jobs are theirs.
	By      string    `json:"by"`
	Created time.Time `json:"created"`
	// Text is the file as it was written. The plan follows from it and from the seed.
	Text string         `json:"text"`
	Plan ExperimentPlan `json:"plan"`

	State ExperimentState `json:"state"`
	// Outcome is why it ended.
	Outcome string    `json:"outcome,omitempty"`
	Ended   time.Time `json:"ended,omitzero"`
	// Clusters are those that it asked for, in order. The intent is on record before the request.
	Clusters []ExperimentCluster `json:"clusters,omitempty"`
	// Spent are the machine-hours of its clusters that are given back; of a cluster that was there
	// before, those of its jobs.
	Spent float64 `json:"spent"`
}

// ExperimentPlan is everything that is fixed before the first launch.
type ExperimentPlan struct {
	// Cluster is one that was there before, on which all runs. "": clusters are asked for.
	Cluster ClusterID `json:"cluster,omitempty"`
	// Seed decides the order of launches.
	Seed   uint64            `json:"seed"`
	Blocks []ExperimentBlock `json:"blocks"`
	Cells  []ExperimentCell  `json:"cells"`
	// Excluded counts the cells that the file leaves out.
	Excluded int `json:"excluded"`
	// Min and Max are how many launches each cell has.
	Min int `json:"min"`
	Max int `json:"max"`
	// PerVisit is how many launches each cell has while its block is visited once.
	PerVisit int `json:"per_visit"`
	// Within is the half-width of the interval of the median, relative to it, that ends the
	// experiment. 0: all launches are made.
	Within float64 `json:"within,omitempty"`
	// Looks are the launches of each cell after which the intervals are looked at, and Level
	// is that of each interval, so that all together hold with 95 %.
	Looks []int   `json:"looks"`
	Level float64 `json:"level"`
	// Discard are the rules by which a launch does not count.
	Discard []DiscardRule `json:"discard"`
	// Budget and AtMost are machine-hours: what may be spent, and what can be at worst.
	Budget float64 `json:"budget,omitempty"`
	AtMost float64 `json:"at_most"`
	// Timeout ends a program, Walltime a cluster.
	Timeout Duration `json:"timeout_seconds"`
	// Job is how long a launch may take at most, with its build and what the scheduler adds.
	Job      Duration `json:"job_seconds"`
	Walltime Duration `json:"walltime_seconds,omitempty"`
}

// ExperimentBlock is what needs a boot, an image or a cluster of its own.
type ExperimentBlock struct {
	// Name is made of its factors.
	Name    string            `json:"name"`
	Factors map[string]string `json:"factors,omitempty"`
	// Request is the request of its clusters in JSON, without name and walltime. "": it runs on
	// a cluster that is there.
	Request string `json:"request,omitempty"`
	// Machines is how many it takes.
	Machines int `json:"machines,omitempty"`
}

// ExperimentCell is one combination of factors.
type ExperimentCell struct {
	Block int `json:"block"`
	// Factors are those that vary, for people; "" is the usual value.
	Factors map[string]string `json:"factors"`
	ExperimentFactors
}

// ExperimentFactors are how one cell runs.
type ExperimentFactors struct {
	Program string `json:"program"`
	Class   string `json:"class,omitempty"`
	Ranks   int    `json:"ranks,omitempty"`
	// PerNode is how many ranks a node has: 0 is as many as it holds.
	PerNode int      `json:"per_node,omitempty"`
	Args    []string `json:"args,omitempty"`
	// Stack is the compiler, MPI and BLAS that it is built with and runs in.
	Stack string `json:"stack,omitempty"`
	RunSettings
}

// RunSettings are how the processes of a run begin.
type RunSettings struct {
	// Threads is how many cores a rank has. 0 is one.
	Threads int `json:"threads,omitempty"`
	// Binding is to what MPI binds a rank: none, core or socket. "": as MPI does by itself.
	Binding string `json:"binding,omitempty"`
	// Env are variables of the environment.
	Env map[string]string `json:"env,omitempty"`
}

// ExperimentCluster is one cluster that an experiment asked for, or meant to.
type ExperimentCluster struct {
	// Visit counts the visits of blocks, from 0, and Block is which.
	Visit int `json:"visit"`
	Block int `json:"block"`
	// Key is that of the request: whoever repeats it meets this cluster.
	Key      string    `json:"key"`
	ID       ClusterID `json:"id"`
	Name     string    `json:"name"`
	Asked    time.Time `json:"asked"`
	Walltime Duration  `json:"walltime_seconds"`
	Machines int       `json:"machines,omitempty"`
	// Ended is when it was seen to be gone, and Problem why it was of no use.
	Ended   time.Time `json:"ended,omitzero"`
	Problem string    `json:"problem,omitempty"`
	Spent   float64   `json:"spent,omitempty"`
}

// DiscardRule is a reason not to count a launch. All are fixed before the first one.
type DiscardRule string

// Rules by which launches are discarded. The last two are always in force: the program had no
// chance to show a figure, and the launch is made again.
const (
	DiscardThrottled   DiscardRule = "throttled"    // the processors or the slice were slowed down
	DiscardForeignLoad DiscardRule = "foreign-load" // something else was busy on its nodes
	DiscardInterrupted DiscardRule = "interrupted"  // the experiment was interrupted
	DiscardClusterLost DiscardRule = "cluster-lost" // its cluster ended under it
)

// Repeated reports whether a launch that was discarded so is made again.
func (r DiscardRule) Repeated() bool { return r == DiscardInterrupted || r == DiscardClusterLost }

// ExperimentLaunch is one launch of a cell. It stays on record whatever became of it.
type ExperimentLaunch struct {
	Experiment ExperimentID `json:"experiment"`
	// N counts launches from 0; Slot is its place in the order, which a launch that is made again
	// shares with the one before.
	N     int          `json:"n"`
	Slot  int          `json:"slot"`
	Visit int          `json:"visit"`
	Cell  int          `json:"cell"`
	Run   ProgramRunID `json:"run,omitempty"`
	// Cluster is where it runs.
	Cluster ClusterID       `json:"cluster"`
	Began   time.Time       `json:"began"`
	Ended   time.Time       `json:"ended,omitzero"`
	State   ProgramRunState `json:"state"`
	Problem string          `json:"problem,omitempty"`
	// VM is how the nodes of its cluster were set up, where they are virtual machines.
	VM *VMCondition `json:"vm,omitempty"`
	// Impossible: the cell cannot run at all, and is not tried again.
	Impossible bool `json:"impossible,omitempty"`
	// Discarded are the rules by which it does not count.
	Discarded []DiscardRule  `json:"discarded,omitempty"`
	Figure    *ProgramFigure `json:"figure,omitempty"`
	Nodes     int            `json:"nodes,omitempty"`
	Ranks     int            `json:"ranks,omitempty"`
	Wall      float64        `json:"wall_seconds,omitempty"`
	Use       *ProgramUse    `json:"use,omitempty"`
	// UseSeries is that of its run, which keeps it: how busy the processors were in each second.
	UseSeries []UseSeries `json:"use_series,omitempty"`
}

// ProgramUse is how a run used the processors and the network of its nodes, all of them together.
type ProgramUse struct {
	// User and System are processor seconds, and Cores how many cores the run was given.
	User   float64 `json:"user_seconds"`
	System float64 `json:"system_seconds"`
	Cores  int     `json:"cores"`
	// Throttled counts how often processors were slowed down, by heat or by a limit.
	Throttled int64 `json:"throttled"`
	// Foreign are the seconds of processors that others had: stolen from a virtual machine, or
	// busy before the program began.
	Foreign float64 `json:"foreign_seconds"`
	// SentBytes and SentPackets are what its nodes sent to the message network, all together, with
	// what others sent meanwhile. What ranks of one node send each other is not among it. Nil: it
	// was not counted, such as of nodes without such a network.
	SentBytes   *int64 `json:"sent_bytes,omitempty"`
	SentPackets *int64 `json:"sent_packets,omitempty"`
}
