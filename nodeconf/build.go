package nodeconf

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"

	"github.com/muster-hpc/muster"
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
	head, err := check(in)
	if err != nil {
		return wire.NodeConfig{}, err
	}
	hosts := hostsOf(in)
	own := hosts[slices.IndexFunc(hosts, func(h wire.Host) bool { return h.Name == in.Node.Name })]
	c := wire.NodeConfig{
		Generation:     in.Generation,
		Cluster:        in.Cluster.ID,
		ClusterName:    in.Cluster.Name,
		Project:        in.Cluster.Project,
		Node:           in.Node.Name,
		Role:           in.Node.Role,
		Head:           in.Node.Head,
		HeadNode:       head.Name,
		Address:        netip.PrefixFrom(in.Node.Address, in.Cluster.Subnet.Bits()).String(),
		Interface:      messageInterface,
		Management:     managementInterface,
		Domain:         Domain(in.Cluster.Name),
		Hosts:          hosts,
		Cores:          own.Cores,
		MemoryMB:       own.MemoryMB,
		UserRoot:       in.Image.UserRoot,
		Oversubscribed: oversubscribed(in),
		Users:          accounts(in.Users),
		SSH:            sshOf(in),
		ProxyURL:       in.ProxyURL,
	}
	if in.Cluster.Spec.Egress != muster.EgressProxy {
		c.ProxyURL = ""
	}
	c.Slurm, err = slurmOf(in, head, hosts)
	return c, err
}

// Domain of a cluster's names: n01.cfd.muster.
func Domain(cluster string) string { return cluster + ".muster" }

func check(in Input) (head muster.Node, err error) {
	bad := func(format string, args ...any) error {
		return muster.Errorf(muster.EInternal, "configuration of %s/%s: %s", in.Cluster.ID, in.Node.Name, fmt.Sprintf(format, args...))
	}
	heads, found := 0, false
	for _, n := range in.Nodes {
		if n.Head {
			head = n
			heads++
		}
		found = found || n.Name == in.Node.Name && n.Phase != muster.NodeGone
		if !in.Cluster.Subnet.Contains(n.Address) {
			return head, bad("address %s of %s is outside %s", n.Address, n.Name, in.Cluster.Subnet)
		}
	}
	if heads != 1 {
		return head, bad("%d heads", heads)
	}
	if !found {
		return head, bad("the node is not one of the cluster's")
	}
	for _, name := range in.Cluster.Spec.Users {
		if !slices.ContainsFunc(in.Users, func(u muster.User) bool { return u.Name == name }) {
			return head, bad("no record of user %s", name)
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
		h.Cores, h.MemoryMB = capacity(in, n)
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
		HostKey:         in.Secrets.HostKey,
		HostCertificate: in.Secrets.HostCertificate,
		HostCA:          in.Secrets.HostCA,
		UserCA:          in.Secrets.UserCA,
		PrincipalSuffix: "@" + string(in.Cluster.ID),
	}
	if in.Image.UserRoot {
		s.RootKey, s.RootPublicKey = in.Secrets.RootKey, in.Secrets.RootPublicKey
	}
	return s
}

func slurmOf(in Input, head muster.Node, hosts []wire.Host) (*wire.SlurmConfig, error) {
	if in.Cluster.Spec.Scheduler != muster.SchedulerSlurm {
		return nil, nil
	}
	if in.Image.Slurm == "" || in.Slurm == nil {
		return nil, muster.Errorf(muster.EInvalid, "image %s has no Slurm", in.Image.Name).
			WithHint("set scheduler: none, or choose an image with Slurm")
	}
	s := in.Slurm(SlurmCluster{
		ID:          string(in.Cluster.ID),
		Name:        in.Cluster.Name,
		Head:        head.Name,
		HeadAddress: head.Address.String(),
		Version:     in.Image.Slurm,
		Nodes:       hosts,
		Accounting:  hasPackages(in.Image, "slurmdbd", "mariadb-server"),
	}, in.Node.Name)
	s.MungeKey = base64.StdEncoding.EncodeToString(in.Secrets.MungeKey)
	if in.Node.Head {
		s.DBPassword = in.Secrets.DBPassword
	}
	return &s, nil
}

func hasPackages(image muster.Image, names ...string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(image.Packages, func(p muster.ImagePackage) bool { return p.Name == name }) {
			return false
		}
	}
	return true
}
