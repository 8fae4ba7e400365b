package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
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

// nodeConfig builds the configuration of one node from the records.
func (s *Server) nodeConfig(ctx context.Context, id muster.ClusterID, node string) (wire.NodeConfig, error) {
	var (
		in  nodeconf.Input
		raw = map[string][]byte{}
		rev string
	)
	err := s.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		var err error
		if in.Cluster, err = tx.Cluster(id); err != nil {
			return err
		}
		if in.Nodes, err = tx.Nodes(id); err != nil {
			return err
		}
		if in.Node, err = tx.Node(id, node); err != nil {
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
			muster.SecretDBPassword, muster.SecretHostKey(node), revision,
		} {
			if raw[name], err = tx.Secret(id, name); err != nil && muster.CodeOf(err) != muster.ENotFound {
				return err
			}
		}
		rev = string(raw[revision])
		return nil
	})
	if err != nil {
		return wire.NodeConfig{}, err
	}
	image, err := s.catalog.Resolve(string(in.Cluster.Image))
	if err != nil {
		return wire.NodeConfig{}, err
	}
	in.Image = *image
	if in.Secrets, err = nodeSecrets(in, raw); err != nil {
		return wire.NodeConfig{}, fmt.Errorf("secrets of %s: %w", id, err)
	}
	in.ProxyURL = fmt.Sprintf("http://%s", netip.AddrPortFrom(network.Gateway(), network.ProxyPort))
	in.Slurm = func(c nodeconf.SlurmCluster, node string) wire.SlurmConfig {
		return slurm.Config(slurm.Cluster(c), node)
	}
	c, err := nodeconf.Build(in)
	if err != nil {
		return c, err
	}
	c.Generation, err = s.generation(ctx, id, rev, c)
	return c, err
}

// generation numbers what all nodes of a cluster share. The number grows when
// that changes and stays over restarts, so that agents apply nothing twice.
func (s *Server) generation(ctx context.Context, id muster.ClusterID, rev string, c wire.NodeConfig) (int64, error) {
	shared, err := json.Marshal([]any{c.ClusterName, c.Hosts, c.Users, c.ProxyURL, c.SSH.UserCA, c.SSH.HostCA})
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

// nodeSecrets turns what is stored into what a node gets: of the authorities
// only the public halves.
func nodeSecrets(in nodeconf.Input, raw map[string][]byte) (nodeconf.Secrets, error) {
	out := nodeconf.Secrets{
		MungeKey:   raw[muster.SecretMungeKey],
		DBPassword: string(raw[muster.SecretDBPassword]),
		HostKey:    string(raw[muster.SecretHostKey(in.Node.Name)]),
		RootKey:    string(raw[muster.SecretRootKey]),
	}
	hostCA, err := pki.ParseSSHAuthority(raw[muster.SecretHostCA])
	if err != nil {
		return out, err
	}
	userCA, err := pki.ParseSSHAuthority(raw[muster.SecretUserCA])
	if err != nil {
		return out, err
	}
	out.HostCA, out.UserCA = hostCA.PublicLine(), userCA.PublicLine()
	host, err := ssh.ParsePrivateKey([]byte(out.HostKey))
	if err != nil {
		return out, err
	}
	names := []string{in.Node.Name, in.Node.Name + "." + nodeconf.Domain(in.Cluster.Name), in.Node.Address.String()}
	cert, err := hostCA.SignHost(host.PublicKey(), names, hostCertificateLife)
	if err != nil {
		return out, err
	}
	out.HostCertificate = pki.Line(cert)
	if out.RootKey != "" {
		root, err := ssh.ParsePrivateKey([]byte(out.RootKey))
		if err != nil {
			return out, err
		}
		out.RootPublicKey = pki.Line(root.PublicKey())
	}
	return out, nil
}
