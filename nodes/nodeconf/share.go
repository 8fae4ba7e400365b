package nodeconf

import (
	"encoding/base64"
	"net/netip"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/slurm"
	"github.com/muster-hpc/muster/wire"
)

// Shared is what the nodes of a cluster have in common. It is made once and
// never changed, so that a thousand nodes do not cost a thousand times a
// thousand hosts. Configurations made from it share its lists: who has one
// reads it only.
type Shared struct {
	in    Input
	all   wire.NodeConfig // without what differs from node to node
	index map[string]int  // where a name is in all.Hosts
	sched *slurm.Cluster  // nil: no scheduler
	munge string
}

// Share composes what the nodes have in common. Node and the host's own key and
// certificate are not looked at. Errors are those of Build.
func Share(in Input) (*Shared, error) {
	head, err := check(in)
	if err != nil {
		return nil, err
	}
	s := &Shared{in: in, munge: base64.StdEncoding.EncodeToString(in.Secrets.MungeKey)}
	s.all = wire.NodeConfig{
		Generation:     in.Generation,
		Cluster:        in.Cluster.ID,
		ClusterName:    in.Cluster.Name,
		Project:        in.Cluster.Project,
		HeadNode:       head.Name,
		HeadBoot:       head.Attempt,
		Interface:      messageInterface,
		Management:     managementInterface,
		Domain:         Domain(in.Cluster.Name),
		Hosts:          hostsOf(in),
		UserRoot:       in.Image.UserRoot,
		Oversubscribed: oversubscribed(in),
		Users:          accounts(in.Users),
		Prober:         &wire.Account{Name: wire.ProbeAccount, UID: wire.ProbeUID, GID: wire.ProbeUID, FullName: "Muster measures", Home: wire.ProbeHome},
		SSH:            sshOf(in),
		Time:           in.Time,
		TimeZone:       in.TimeZone,
		Notices:        in.Cluster.Notices,
		Expires:        in.Cluster.Expires,
		Files:          storageFiles(in.Storage),
	}
	s.all.Sync = syncOf(in.Cluster)
	s.index = make(map[string]int, len(s.all.Hosts))
	for i, h := range s.all.Hosts {
		s.index[h.Name] = i
	}
	s.sched, err = schedulerOf(in, head, s.all.Hosts)
	return s, err
}

// Common is the configuration without what differs from node to node.
func (s *Shared) Common() wire.NodeConfig { return s.all }

// Scheduler is what the scheduler's part is rendered from; nil without one.
func (s *Shared) Scheduler() *slurm.Cluster { return s.sched }

// Node composes the configuration of one node with its host key; the certificates are not in it yet.
// EInternal: it is not one of the cluster's.
func (s *Shared) Node(n muster.Node, hostKey string) (wire.NodeConfig, error) {
	i, ok := s.index[n.Name]
	if !ok || n.Phase == muster.NodeGone {
		return wire.NodeConfig{}, bad(s.in.Cluster.ID, "%s is not one of its nodes", n.Name)
	}
	c, own := s.all, s.all.Hosts[i]
	c.Node, c.Role, c.Head = n.Name, n.Role, n.Head
	c.Address = netip.PrefixFrom(n.Address, s.in.Cluster.Subnet.Bits()).String()
	c.Cores, c.Memory, c.Shape = own.Cores, own.Memory, shapeOf(s.in, n)
	if s.in.Cluster.Spec.VM != nil { // it may show other caches than its host has
		c.Cache = machineOf(s.in, n).Facts.Topology.LastCaches()
	}
	c.SSH.HostKey = hostKey
	if s.in.Mounts != nil {
		c.Mounts = s.in.Mounts(n)
	}
	if s.in.Gateway != nil {
		c.Outside = s.licenceHosts(s.in.Gateway(n))
	}
	if s.in.Proxy != nil && s.in.Cluster.Spec.Egress == muster.EgressProxy {
		c.ProxyURL = s.in.Proxy(n)
	}
	if s.sched == nil {
		return c, nil
	}
	part := s.in.Slurm(*s.sched, n.Name)
	part.MungeKey = s.munge
	part.Ending = !s.in.Cluster.Ending.IsZero()
	part.Pause = pauseOf(s.in.Cluster)
	part.Lose = part.Pause == muster.PauseRequeue && s.in.Cluster.Pause.Lose
	if n.Head {
		part.DBPassword = s.in.Secrets.DBPassword
	}
	c.Slurm = &part
	return c, nil
}

// syncOf is the mark of the pause for which nodes write to their volumes what they have of them; "": there is none.
func syncOf(c muster.Cluster) string {
	if c.Phase != muster.ClusterPausing {
		return ""
	}
	return wire.SyncMark(c.Pause)
}

// pauseOf is what the scheduler does with running jobs for a pause; "": it goes on.
func pauseOf(c muster.Cluster) muster.OnPause {
	switch p := c.Pause; {
	case p == nil, c.Phase == muster.ClusterReady:
		return ""
	case p.OnPause.KeepsMemory():
		return muster.PauseFreeze // until its machines go on
	case c.Phase != muster.ClusterPausing:
		return muster.PauseWait // until it is handed over again, and measured
	case !p.Requeueing.IsZero():
		return muster.PauseRequeue
	}
	return muster.PauseWait
}
