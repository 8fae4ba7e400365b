package slurm

import (
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// Cluster is what the configuration is made from.
type Cluster struct {
	ID          string // c-…
	Name        string // as the user named it
	Head        string // name of the node that runs slurmctld
	HeadAddress string // its message address
	Version     string // of Slurm in the image: 24.11.5
	Nodes       []wire.Host
	Accounting  bool // slurmdbd and its database run on the head
	// OwnKernel: its nodes are whole machines, whose control groups bound jobs.
	OwnKernel bool
	// TmpFS is where jobs put files for a while: "/tmp", or "/scratch" where every node has
	// a disk of its own.
	TmpFS string
	// Operator is who administers it: its owner; "": nobody.
	Operator string
	// MemoryPerCore is decided when the cluster is first configured and stays,
	// in MiB; 0: what the nodes have.
	MemoryPerCore int64
	// Tree: Slurm knows where nodes stand. It is decided when the cluster is first
	// configured and stays. Places are what the machine of each node stands in, the
	// outermost first; a node that is not there stands nobody knows where.
	Tree   bool
	Places map[string][]string
}

// Config renders one node's part: on the head the files and the list of nodes,
// on nodes that compute the line by which slurmd registers, on others what
// Slurm's commands read.
func Config(c Cluster, node string) wire.SlurmConfig {
	s := wire.SlurmConfig{
		Version:     c.Version,
		Server:      c.Head,
		ClusterName: ClusterName(c.Name),
	}
	for _, n := range c.Nodes {
		switch {
		case n.Name != node:
		case n.Compute:
			s.NodeConf, s.Scripts = NodeConf(n), scripts(c, n)
		case node != c.Head:
			// A login node has no slurmd that would fetch these.
			s.Files = clientFiles(c)
		}
	}
	if node == c.Head {
		s.Files = Files(c)
		s.NodeLines = NodeLines(c)
		s.Accounting, s.Operator, s.Tree = c.Accounting, c.Operator, c.Tree
	}
	return s
}

// ClusterName is the name in a form that Slurm uses for tables of its
// database: letters, digits and underscores, at most 40.
func ClusterName(name string) string {
	b := []byte(strings.ToLower(name))
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			b[i] = '_'
		}
	}
	if len(b) > 40 {
		b = b[:40]
	}
	if len(b) == 0 {
		return "muster"
	}
	return string(b)
}

// NodeConf is what slurmd says of its node when it registers.
func NodeConf(n wire.Host) string {
	return strings.Join(resources(n), " ")
}

// resources are what a node has, as slurm.conf writes it.
func resources(n wire.Host) []string {
	sockets := max(1, n.Sockets)
	if cores(n)%sockets != 0 {
		sockets = 1 // a part of a machine that leaves its sockets uneven
	}
	out := []string{
		"CPUs=" + strconv.Itoa(cores(n)),
		"Sockets=" + strconv.Itoa(sockets),
		"CoresPerSocket=" + strconv.Itoa(cores(n)/sockets),
		"ThreadsPerCore=1",
		"RealMemory=" + strconv.FormatInt(memory(n), 10),
		"TmpDisk=" + strconv.FormatInt(n.Scratch>>20, 10),
	}
	if n.GPUs > 0 {
		out = append(out, "Gres=gpu:"+strconv.Itoa(n.GPUs))
	}
	return out
}

// NodeLines declare the compute nodes in their order. A declared node takes
// jobs once its slurmd registers. Without this, nodes rank in the order of
// their arrival, and mpirun, which starts its daemons by rank, waits for ever.
func NodeLines(c Cluster) []wire.NodeLine {
	var lines []wire.NodeLine
	for _, n := range c.Nodes {
		if !n.Compute {
			continue
		}
		args := append([]string{"NodeName=" + n.Name, "NodeAddr=" + n.Address}, resources(n)...)
		lines = append(lines, wire.NodeLine{Name: n.Name, Args: append(args, "State=FUTURE")})
	}
	return lines
}

func cores(n wire.Host) int { return max(1, n.Cores) }

// memory is in MiB, as Slurm counts it.
func memory(n wire.Host) int64 { return max(1, n.Memory>>20) }
