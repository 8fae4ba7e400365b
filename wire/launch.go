package wire

import "github.com/muster-hpc/muster"

// LaunchOrder asks a node's agent to run a program on nodes of its cluster, as
// the account that measures, through MPI. The server says what ends when; an
// agent runs one order at a time, and one with another ID ends the one before.
type LaunchOrder struct {
	ID string `json:"id"`
	// Program is one that the image has for measuring: muster-probe, xhpl; or
	// muster-agent, which is the agent itself.
	Program string   `json:"program,omitempty"`
	Args    []string `json:"args,omitempty"`
	// Hosts are the nodes, in the order of their ranks. PerHost is how many ranks
	// each has; 0: one.
	Hosts   []string `json:"hosts,omitempty"`
	PerHost int      `json:"per_host,omitempty"`
	// Cores is how many each rank has; 0: as Bind says.
	Cores int `json:"cores,omitempty"`
	// Bind is what a rank is bound to: core, or none for all of its node.
	Bind string `json:"bind,omitempty"`
	// Env is set for the program on every node.
	Env map[string]string `json:"env,omitempty"`
	// Files are written where rank 0 runs, if that is on the node that launches:
	// the program then runs beside them. Paths are names without folders.
	Files []File `json:"files,omitempty"`
	// Input is what rank 0 reads as its standard input, wherever it runs. It has
	// MaxLaunchInput bytes at most.
	Input string `json:"input,omitempty"`
	// Scratch is a folder that is made for the account before, on a file system
	// that the nodes share, and removed afterwards with all that is in it. It must
	// not be there.
	Scratch string `json:"scratch,omitempty"`
	// Key and Certificate let the account into the nodes, for this launch only:
	// a private key in OpenSSH's form, and what the cluster's authority says of it.
	Key         string `json:"key,omitempty"`
	Certificate string `json:"certificate,omitempty"`
	// Limit is when it is ended.
	Limit muster.Duration `json:"limit_seconds,omitempty"`
	// Cancel: nothing is run, and what runs under this ID ends.
	Cancel bool `json:"cancel,omitempty"`
}

// LaunchEnd is how a launch went. POST /v1/launches: this as one line of JSON,
// and after it what the program printed.
type LaunchEnd struct {
	ID   string `json:"id"`
	Exit int    `json:"exit"` // -1: it did not run, or was ended
	// Error says why, with the last words of the standard error; "" if it went well.
	Error   string  `json:"error,omitempty"`
	Seconds float64 `json:"seconds"` // that it took
	// Cut: it printed more than an agent keeps.
	Cut bool `json:"cut,omitempty"`
}

// LaunchReply tells the agent what to run next, if that is known already.
type LaunchReply struct {
	Next *LaunchOrder `json:"next,omitempty"`
}

// ProbeAccount is the account that measures, with its number. It has no
// password, and only certificates for single launches let it in.
const (
	ProbeAccount = "muster-probe"
	ProbeUID     = 19999
	ProbeHome    = "/run/muster-probe"
)

// MaxLaunchBytes is how much output of a launch is kept, and MaxLaunchInput how
// much it may be given: the rounds of pairs of some ten thousand nodes.
const (
	MaxLaunchBytes = 128 << 20
	MaxLaunchInput = 8 << 20
)

// Where the agents of a launch meet that measure with programs of others: a port of
// the first node, and the variable with the word that they know each other by. The
// ports after it are those of iperf3's servers.
const (
	MeetPort     = 15200
	MeetVariable = "MUSTER_MEET"
	// MeetAtVariable says where, HOST:PORT, to agents that print their conditions: those
	// without it print each their own.
	MeetAtVariable = "MUSTER_MEET_AT"
)

// NodeConditions are what changes the figures of a node, as it sees itself. A launch prints
// one of each node, as a line; one of the nodes prints all of them.
type NodeConditions struct {
	Host       string                 `json:"host"`
	Conditions muster.TestEnvironment `json:"conditions"`
	Counters   Counters               `json:"counters"`
}
