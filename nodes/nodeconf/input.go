package nodeconf

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/slurm"
	"github.com/muster-hpc/muster/wire"
)

// Input is all that a node's configuration is made from.
type Input struct {
	Cluster  muster.Cluster
	Nodes    []muster.Node // all of the cluster, in any order
	Node     muster.Node   // the one to build for
	Machines map[muster.MachineID]muster.Machine
	Users    []muster.User // records of Cluster.Spec.Users
	Secrets  Secrets
	Image    muster.Image
	// Generation of the configuration, not of the cluster's spec.
	Generation int64
	// MemoryPerCore is what the scheduler gives for a core, in MiB, once that
	// was decided; 0 before.
	MemoryPerCore int64
	// Tree: the scheduler knows where nodes stand. Places are what each one's machine stands
	// in, the outermost first, by the node's name.
	Tree   bool
	Places map[string][]string
	// Time are NTP servers for nodes whose clock is their own.
	Time []string
	// TimeZone is the site's.
	TimeZone string
	// OwnKernel: the nodes are whole machines.
	OwnKernel bool
	// Mounts are what the agents mount, by node. nil: nothing.
	Mounts func(n muster.Node) []wire.Mount
	// Storage tells people what their places are for.
	Storage []wire.Storage
	// Proxy is the URL of the egress proxy as a node sees it; "" without one. nil: no
	// node has one.
	Proxy func(n muster.Node) string
	// Licences are the licence servers of the cluster's project, and Gateway the address at
	// which a node finds them; "" where it does not. nil: no node does.
	Licences []muster.LicenceServer
	Gateway  func(n muster.Node) string
	// Slurm renders the scheduler's part; nil when there is none anywhere.
	Slurm func(c slurm.Cluster, node string) wire.SlurmConfig
}

// Secrets of a cluster and of one node. They go into the fields of NodeConfig
// made for them and nowhere else.
type Secrets struct {
	HostKey       string // private, OpenSSH PEM; of this node
	HostCA        string // public keys, authorized_keys form
	UserCA        string
	MungeKey      []byte
	RootKey       string // private; used only where users are root
	RootPublicKey string
	DBPassword    string
}
