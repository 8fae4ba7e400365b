package nodeconf

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/slurm"
	"github.com/muster-hpc/muster/wire"
)

// Names of the interfaces that providers give a machine.
const (
	messageInterface    = "msg0"
	managementInterface = "mgmt0"
)

// Build composes the configuration of one node. It fails with EInternal when
// records contradict each other: no head, an address outside the subnet, a
// user of the cluster without a record.
func Build(in Input) (wire.NodeConfig, error) {
	s, err := Share(in)
	if err != nil {
		return wire.NodeConfig{}, err
	}
	return s.Node(in.Node, in.Secrets.HostKey)
}

// Domain of a cluster's names: n01.cfd.muster.
func Domain(cluster string) string { return cluster + ".muster" }

func bad(id muster.ClusterID, format string, args ...any) error {
	return muster.Errorf(muster.EInternal, "configuration of %s: %s", id, fmt.Sprintf(format, args...))
}

func check(in Input) (head muster.Node, err error) {
	heads := 0
	for _, n := range in.Nodes {
		if n.Head {
			head = n
			heads++
		}
		if !in.Cluster.Subnet.Contains(n.Address) {
			return head, bad(in.Cluster.ID, "address %s of %s is outside %s", n.Address, n.Name, in.Cluster.Subnet)
		}
	}
	if heads != 1 {
		return head, bad(in.Cluster.ID, "%d heads", heads)
	}
	for _, name := range in.Cluster.Spec.Users {
		if !slices.ContainsFunc(in.Users, func(u muster.User) bool { return u.Name == name }) {
			return head, bad(in.Cluster.ID, "no record of user %s", name)
		}
	}
	return head, nil
}

func hostsOf(in Input) []wire.Host {
	nodes := slices.SortedFunc(slices.Values(in.Nodes), func(a, b muster.Node) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Name, b.Name))
	})
	hosts := make([]wire.Host, 0, len(nodes))
	for _, n := range nodes {
		if n.Phase == muster.NodeGone {
			continue
		}
		h := wire.Host{Name: n.Name, Address: n.Address.String(), Compute: n.Role == muster.RoleCompute}
		h.Cores, h.Memory = capacity(in, n)
		h.Sockets, h.Scratch = shaped(in, n).Facts.Sockets, scratch(in, n)
		if in.OwnKernel && h.Compute {
			h.GPUs, h.GPUFiles = gpus(in, n)
		}
		h.Hold, h.Drain, h.Down = n.Hold, n.Leave, n.Down
		h.Unwell = slices.ContainsFunc(n.Conditions, func(c muster.Condition) bool { return c.Code == muster.ConditionUnfit })
		h.Reserve = in.Cluster.Measurement.Reserves(n.Name)
		hosts = append(hosts, h)
	}
	return hosts
}

func oversubscribed(in Input) bool {
	for _, n := range in.Nodes {
		if in.Machines[n.Machine].Facts.Oversubscribed {
			return true
		}
	}
	return false
}

func accounts(users []muster.User) []wire.Account {
	out := make([]wire.Account, 0, len(users))
	for _, u := range users {
		// Each user has a group of the same number.
		out = append(out, wire.Account{Name: u.Name, UID: u.UID, GID: u.UID, FullName: u.FullName, Keys: u.Keys})
	}
	slices.SortFunc(out, func(a, b wire.Account) int { return cmp.Compare(a.UID, b.UID) })
	return out
}

func sshOf(in Input) wire.SSHConfig {
	s := wire.SSHConfig{
		HostCA:          in.Secrets.HostCA,
		UserCA:          in.Secrets.UserCA,
		PrincipalSuffix: "@" + string(in.Cluster.ID),
	}
	if in.Image.UserRoot {
		s.RootKey, s.RootPublicKey = in.Secrets.RootKey, in.Secrets.RootPublicKey
	}
	return s
}

// schedulerOf is what the scheduler's part is rendered from; nil without one.
func schedulerOf(in Input, head muster.Node, hosts []wire.Host) (*slurm.Cluster, error) {
	if in.Cluster.Spec.Scheduler != muster.SchedulerSlurm {
		return nil, nil
	}
	if in.Image.Slurm == "" || in.Slurm == nil {
		return nil, muster.Errorf(muster.EInvalid, "image %s has no Slurm", in.Image.Name).
			WithHint("set scheduler: none, or choose an image with Slurm")
	}
	operator := ""
	if slices.Contains(in.Cluster.Spec.Users, in.Cluster.Owner) {
		operator = in.Cluster.Owner
	}
	tmp := "/tmp"
	if in.OwnKernel && disks(in) {
		tmp = "/scratch"
	}
	return &slurm.Cluster{
		OwnKernel: in.OwnKernel, TmpFS: tmp, Operator: operator,
		ID:          string(in.Cluster.ID),
		Name:        in.Cluster.Name,
		Head:        head.Name,
		HeadAddress: head.Address.String(),
		Version:     in.Image.Slurm,
		Nodes:       hosts,
		Accounting:  hasPackages(in.Image, "slurmdbd", "mariadb-server"),

		MemoryPerCore: in.MemoryPerCore,
		Tree:          in.Tree,
		Places:        in.Places,
	}, nil
}

func hasPackages(image muster.Image, names ...string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(image.Packages, func(p muster.ImagePackage) bool { return p.Name == name }) {
			return false
		}
	}
	return true
}
