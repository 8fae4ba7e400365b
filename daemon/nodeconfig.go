package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/network"
	"github.com/muster-hpc/muster/nodeconf"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/slurm"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// hostCertificateLife is longer than any cluster should live: the authority
// that signs is the cluster's own and dies with it.
const hostCertificateLife = 5 * 365 * 24 * time.Hour

// revision is the secret, deleted with its cluster, that remembers which
// configuration has which generation: "generation hash".
const revision = "config-revision"

// nodeConfig builds the configuration of one node from the records: what all
// nodes share is made once for each change, the rest is one host key.
func (s *Server) nodeConfig(ctx context.Context, id muster.ClusterID, node string) (wire.NodeConfig, error) {
	shared, err := s.configs.of(ctx, id, s.shareConfig)
	if err != nil {
		return wire.NodeConfig{}, err
	}
	var (
		n   muster.Node
		key []byte
	)
	err = s.db.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		if n, err = tx.Node(id, node); err != nil {
			return err
		}
		key, err = tx.Secret(id, muster.SecretHostKey(node))
		return err
	})
	if err != nil {
		return wire.NodeConfig{}, err
	}
	host, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return wire.NodeConfig{}, fmt.Errorf("host key of %s/%s: %w", id, node, err)
	}
	names := []string{n.Name, n.Name + "." + shared.Common().Domain, n.Address.String()}
	cert, err := shared.hostCA.SignHost(host.PublicKey(), names, hostCertificateLife)
	if err != nil {
		return wire.NodeConfig{}, err
	}
	c, err := shared.Node(n, string(key), pki.Line(cert))
	c.Generation = shared.generation
	return c, err
}

// shareConfig builds what the nodes of a cluster share.
func (s *Server) shareConfig(ctx context.Context, id muster.ClusterID) (*sharedConfig, error) {
	var (
		in  nodeconf.Input
		raw = map[string][]byte{}
	)
	err := s.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		var err error
		if in.Cluster, err = tx.Cluster(id); err != nil {
			return err
		}
		if in.Nodes, err = tx.Nodes(id); err != nil {
			return err
		}
		if in.Machines, err = machinesOf(tx, id); err != nil {
			return err
		}
		if in.Users, err = usersOf(tx, in.Cluster.Spec.Users); err != nil {
			return err
		}
		for _, name := range []string{
			muster.SecretHostCA, muster.SecretUserCA, muster.SecretMungeKey, muster.SecretRootKey,
			muster.SecretDBPassword, revision, schedulerMemory,
		} {
			if raw[name], err = tx.Secret(id, name); err != nil && muster.CodeOf(err) != muster.ENotFound {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	image, err := s.catalog.Resolve(string(in.Cluster.Image))
	if err != nil {
		return nil, err
	}
	in.Image = *image
	out := &sharedConfig{}
	if out.hostCA, err = clusterSecrets(&in.Secrets, raw); err != nil {
		return nil, fmt.Errorf("secrets of %s: %w", id, err)
	}
	machine := func(n muster.Node) muster.Machine { return in.Machines[n.Machine] }
	in.Proxy = func(n muster.Node) string { return s.proxyOf(machine(n)) }
	in.Slurm = func(c nodeconf.SlurmCluster, node string) wire.SlurmConfig {
		return slurm.Config(slurm.Cluster(c), node)
	}
	in.MemoryPerCore, _ = strconv.ParseInt(string(raw[schedulerMemory]), 10, 64)
	mounts, err := s.mountsOf(ctx, in.Cluster)
	if err != nil {
		return nil, err
	}
	in.Mounts = func(n muster.Node) []wire.Mount {
		if !s.capabilities.Of(machine(n).Provider).OwnKernel {
			return nil // the server's host mounts for it
		}
		return mounts.of(n)
	}
	if in.Storage, err = s.storageOf(ctx, in.Cluster); err != nil {
		return nil, err
	}
	if out.Shared, err = nodeconf.Share(in); err != nil {
		return nil, err
	}
	if in.MemoryPerCore == 0 && out.Scheduler() != nil {
		if err := s.keepMemory(ctx, id, slurm.MemoryPerCore(slurm.Cluster(*out.Scheduler()))); err != nil {
			return nil, err
		}
	}
	out.generation, err = s.generation(ctx, in.Cluster, string(raw[revision]), out.Common(), mounts, s.proxiesOf(in.Machines))
	return out, err
}

// keepMemory fixes what a job gets for a core: Slurm's files stay as they are
// while the cluster grows and shrinks.
func (s *Server) keepMemory(ctx context.Context, id muster.ClusterID, mb int64) error {
	return s.db.Update(ctx, muster.System(), func(tx *store.Tx) error {
		return tx.PutSecret(id, schedulerMemory, strconv.AppendInt(nil, mb, 10))
	})
}

// schedulerMemory is kept as a secret because those go with their cluster.
const schedulerMemory = "scheduler-memory-per-core"

// generation numbers what all nodes of a cluster share. The number grows when
// that changes and stays over restarts, so that agents apply nothing twice.
func (s *Server) generation(ctx context.Context, cluster muster.Cluster, rev string, c wire.NodeConfig, mounts mounts, proxies []string) (int64, error) {
	id := cluster.ID
	shared, err := json.Marshal([]any{
		c.ClusterName, c.Hosts, c.Users, proxies, c.SSH.UserCA, c.SSH.HostCA, c.Notices, c.Expires, !cluster.Ending.IsZero(), mounts, c.Files,
	})
	if err != nil {
		return 0, err
	}
	hash := fmt.Sprintf("%x", sha256.Sum256(shared))
	if n, old, _ := strings.Cut(rev, " "); old == hash {
		return strconv.ParseInt(n, 10, 64)
	}
	var generation int64
	err = s.db.Update(ctx, muster.System(), func(tx *store.Tx) error {
		now, err := tx.Secret(id, revision)
		if err != nil && muster.CodeOf(err) != muster.ENotFound {
			return err
		}
		n, old, _ := strings.Cut(string(now), " ")
		generation, _ = strconv.ParseInt(n, 10, 64) // 0 for the first
		if old == hash {
			return nil // another node's request was faster
		}
		generation++
		return tx.PutSecret(id, revision, fmt.Appendf(nil, "%d %s", generation, hash))
	})
	return generation, err
}

func machinesOf(tx *store.Tx, id muster.ClusterID) (map[muster.MachineID]muster.Machine, error) {
	list, err := tx.Machines(store.MachineFilter{Cluster: id})
	out := make(map[muster.MachineID]muster.Machine, len(list))
	for _, m := range list {
		out[m.ID] = m
	}
	return out, err
}

func usersOf(tx *store.Tx, names []string) ([]muster.User, error) {
	out := make([]muster.User, 0, len(names))
	for _, name := range names {
		u, err := tx.User(name)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

// clusterSecrets turns what is stored into what nodes get: of the authorities
// only the public halves. It returns the one that signs host keys.
func clusterSecrets(out *nodeconf.Secrets, raw map[string][]byte) (hostCA pki.SSHAuthority, err error) {
	out.MungeKey = raw[muster.SecretMungeKey]
	out.DBPassword = string(raw[muster.SecretDBPassword])
	out.RootKey = string(raw[muster.SecretRootKey])
	if hostCA, err = pki.ParseSSHAuthority(raw[muster.SecretHostCA]); err != nil {
		return hostCA, err
	}
	userCA, err := pki.ParseSSHAuthority(raw[muster.SecretUserCA])
	if err != nil {
		return hostCA, err
	}
	out.HostCA, out.UserCA = hostCA.PublicLine(), userCA.PublicLine()
	if out.RootKey != "" {
		root, err := ssh.ParsePrivateKey([]byte(out.RootKey))
		if err != nil {
			return hostCA, err
		}
		out.RootPublicKey = pki.Line(root.PublicKey())
	}
	return hostCA, nil
}

// proxyOf is the URL at which a machine finds the way out; "" where there is none.
func (s *Server) proxyOf(m muster.Machine) string {
	e := s.endpoints[m.Provider]
	if e == nil || e.proxy == nil {
		return ""
	}
	return fmt.Sprintf("http://%s", netip.AddrPortFrom(e.addr, network.ProxyPort))
}

// proxiesOf are the proxies that the machines of a cluster use, each once, in order.
func (s *Server) proxiesOf(machines map[muster.MachineID]muster.Machine) []string {
	var list []string
	for _, m := range machines {
		if p := s.proxyOf(m); p != "" && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}
