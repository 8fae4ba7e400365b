package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// ExperimentRequest begins an experiment, or goes on with the one of its name.
type ExperimentRequest struct {
	Text    string `json:"text" maxLength:"65536" doc:"The file, in YAML"`
	Cluster string `json:"cluster,omitempty" maxLength:"128" doc:"Cluster on which it runs, in place of what the file says"`
	// Seed is that of a plan that was shown before.
	Seed   uint64 `json:"seed,omitempty" doc:"Where the file has none: that of the plan that a dry run showed"`
	DryRun bool   `json:"dry_run,omitempty" doc:"Plan it, and keep nothing"`
	User   string `json:"user,omitempty" maxLength:"64" doc:"As which user of its clusters; only for administrators"`
}

// Experiment is an experiment with what it shows so far.
type Experiment struct {
	muster.Experiment
	// Resumed: it was on record before this request.
	Resumed bool                    `json:"resumed,omitempty"`
	Result  muster.ExperimentResult `json:"result"`
}

// ExperimentForecast is what is to be extrapolated from an experiment with HPL. 0: nothing.
type ExperimentForecast struct {
	N     int // an order of the matrix
	Nodes int // a number of nodes
}

// ExperimentList are experiments, the newest first, without their plans.
type ExperimentList struct {
	Experiments []ExperimentLine `json:"experiments"`
	More
}

// ExperimentLine is an experiment in a list.
type ExperimentLine struct {
	ID       muster.ExperimentID    `json:"id"`
	Name     string                 `json:"name"`
	Project  string                 `json:"project"`
	By       string                 `json:"by"`
	Created  time.Time              `json:"created"`
	State    muster.ExperimentState `json:"state"`
	Outcome  string                 `json:"outcome,omitempty"`
	Cells    int                    `json:"cells"`
	Planned  int                    `json:"planned"`
	Launches int                    `json:"launches"`
	Spent    float64                `json:"spent" doc:"Machine-hours"`
}

// ExperimentLaunchList are launches, in order.
type ExperimentLaunchList struct {
	Launches []muster.ExperimentLaunch `json:"launches"`
	More
}

// ExperimentCall is what a client that runs an experiment reports when it asks for the next step.
type ExperimentCall struct {
	// Refused is why the cluster of the last step could not be had.
	Refused string `json:"refused,omitempty" maxLength:"4096" doc:"Why the request for the cluster of the last step was refused"`
	// NotExtended: the cluster of the last step got no more time.
	NotExtended bool `json:"not_extended,omitempty" doc:"The cluster of the last step got no more time"`
	// Interrupted: the client is about to leave; the launch is discarded, and made again later.
	Interrupted bool   `json:"interrupted,omitempty" doc:"The client leaves: clusters are given back, and the launch is made again later"`
	User        string `json:"user,omitempty" maxLength:"64" doc:"As which user of its clusters; only for administrators"`
}

// ExperimentDo is what a client is to do next.
type ExperimentDo string

// Steps of experiments.
const (
	ExperimentLaunch  ExperimentDo = "launch"  // submit the job, if it was not, and wait for its end
	ExperimentCreate  ExperimentDo = "create"  // ask for the cluster
	ExperimentWait    ExperimentDo = "wait"    // the cluster is not ready yet: ask again soon
	ExperimentExtend  ExperimentDo = "extend"  // give the cluster more time
	ExperimentRelease ExperimentDo = "release" // delete the cluster, and wait until it is gone
	ExperimentEnd     ExperimentDo = "end"     // nothing is left to do
)

// ExperimentStep is what comes next. The intent is on record before the reply.
type ExperimentStep struct {
	Do   ExperimentDo `json:"do"`
	Text string       `json:"text,omitempty" doc:"A line for people"`
	// Job is of a launch, which may have been submitted already: its submit script may run again.
	Job    *ProgramJob              `json:"job,omitempty"`
	Launch *muster.ExperimentLaunch `json:"launch,omitempty"`
	// Cluster is the one that the step is about.
	Cluster     muster.ClusterID `json:"cluster,omitempty"`
	ClusterName string           `json:"cluster_name,omitempty"`
	// Key and Request are of the request for a cluster: the same key gives the same cluster.
	Key     string `json:"key,omitempty"`
	Request string `json:"request,omitempty"`
	By      string `json:"by,omitempty" doc:"How much longer a cluster is to live"`
	// Done and Planned count launches, Spent are machine-hours.
	Done    int                    `json:"done"`
	Planned int                    `json:"planned"`
	Spent   float64                `json:"spent"`
	State   muster.ExperimentState `json:"state"`
}
