package nodeconf

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/crypto/ssh"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/slurm"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// share builds what the nodes of a cluster share.
func (k *Maker) share(ctx context.Context, id muster.ClusterID) (*keptConfig, error) {
	in, raw, err := k.read(ctx, id)
	if err != nil {
		return nil, err
	}
	out := &keptConfig{}
	if out.hostCA, err = clusterSecrets(&in.Secrets, raw); err != nil {
		return nil, fmt.Errorf("secrets of %s: %w", id, err)
	}
	machine := func(n muster.Node) muster.Machine { return in.Machines[n.Machine] }
	in.Proxy = func(n muster.Node) string { return k.c.Proxy(machine(n)) }
	in.Gateway = func(n muster.Node) string { return k.c.Gateway(machine(n)) }
	in.Slurm, in.TimeZone = slurm.Config, k.c.TimeZone
	in.OwnKernel = len(in.Machines) > 0
	for _, m := range in.Machines {
		in.OwnKernel = in.OwnKernel && k.c.Providers.For(m.Provider, in.Cluster.Spec.VM).OwnKernel
		if list := k.c.Time(m.Provider); in.OwnKernel && len(list) > 0 {
			in.Time = list
		}
	}
	if decided := string(raw[schedulerTree]); decided != "" {
		in.Tree = decided == withTree
	}
	in.MemoryPerCore, _ = strconv.ParseInt(string(raw[schedulerMemory]), 10, 64)
	var mounts mounts
	if mounts.All, mounts.Head, err = k.c.Volumes.Mounts(ctx, in.Cluster); err != nil {
		return nil, err
	}
	in.Mounts = func(n muster.Node) []wire.Mount {
		if !k.c.Providers.For(machine(n).Provider, in.Cluster.Spec.VM).OwnKernel {
			return nil // the server's host mounts for it
		}
		return mounts.of(n)
	}
	if out.Shared, err = Share(in); err != nil {
		return nil, err
	}
	if len(raw[schedulerTree]) == 0 && out.Scheduler() != nil {
		if err := k.keepTree(ctx, id, in.Tree); err != nil {
			return nil, err
		}
	}
	if in.MemoryPerCore == 0 && out.Scheduler() != nil {
		if err := k.keepMemory(ctx, id, slurm.MemoryPerCore(*out.Scheduler())); err != nil {
			return nil, err
		}
	}
	var certificates int64
	if k.c.Hosts.PublicKey() != nil {
		certificates, out.until = certificatesOf(id, k.c.Clock.Now())
	}
	out.generation, err = k.generation(ctx, in.Cluster, string(raw[revision]), out.Common(), mounts, k.proxies(in.Machines), in.Licences, treeOf(out.Scheduler()), certificates)
	return out, err
}

// read reads what is on record of a cluster, its image, and its secrets by name.
func (k *Maker) read(ctx context.Context, id muster.ClusterID) (in Input, raw map[string][]byte, err error) {
	raw = map[string][]byte{}
	err = k.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
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
		if in.Places, in.Tree, err = k.places(tx, in); err != nil {
			return err
		}
		if in.Users, err = usersOf(tx, in.Cluster.Spec.Users); err != nil {
			return err
		}
		if in.Licences, err = k.c.Licences(tx, in.Cluster.Project); err != nil {
			return err
		}
		if in.Storage, err = k.storage(tx, in.Cluster); err != nil {
			return err
		}
		for _, name := range []string{
			muster.SecretHostCA, muster.SecretUserCA, muster.SecretMungeKey, muster.SecretRootKey,
			muster.SecretDBPassword, revision, schedulerMemory, schedulerTree,
		} {
			if raw[name], err = tx.Secret(id, name); err != nil && muster.CodeOf(err) != muster.ENotFound {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return in, nil, err
	}
	image, err := k.c.Images.Resolve(string(in.Cluster.Image))
	if err != nil {
		return in, nil, err
	}
	in.Image = *image
	return in, raw, nil
}

// keepMemory fixes what a job gets for a core: Slurm's files stay as they are
// while the cluster grows and shrinks.
func (k *Maker) keepMemory(ctx context.Context, id muster.ClusterID, mb int64) error {
	return k.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		return tx.PutSecret(id, schedulerMemory, strconv.AppendInt(nil, mb, 10))
	})
}

// keepTree fixes whether Slurm knows where nodes stand: it takes another plugin for that
// only when it starts.
func (k *Maker) keepTree(ctx context.Context, id muster.ClusterID, tree bool) error {
	text := withoutTree
	if tree {
		text = withTree
	}
	return k.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		return tx.PutSecret(id, schedulerTree, []byte(text))
	})
}

// schedulerTree is kept as a secret, like schedulerMemory, with one of these values.
const (
	schedulerTree = "scheduler-tree"
	withTree      = "tree"
	withoutTree   = "none"
)

// places are what the machines of nodes stand in. A node that waits for another machine
// stands where it stood.
func (k *Maker) places(tx *store.Tx, in Input) (map[string][]string, bool, error) {
	machines := slices.Collect(maps.Values(in.Machines))
	at := map[string]muster.MachineID{}
	for _, n := range in.Nodes {
		if at[n.Name] = n.Machine; n.Machine != "" || n.PreviousMachine == "" {
			continue
		}
		m, err := tx.Machine(n.PreviousMachine)
		if muster.CodeOf(err) == muster.ENotFound {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		at[n.Name] = m.ID
		machines = append(machines, m)
	}
	where, known, err := k.c.Places(tx, machines)
	if err != nil {
		return nil, false, err
	}
	out := make(map[string][]string, len(at))
	for name, id := range at {
		if id != "" {
			out[name] = where(id)
		}
	}
	return out, known, nil
}

// schedulerMemory is kept as a secret because those go with their cluster.
const schedulerMemory = "scheduler-memory-per-core"

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
		terms, err := tx.KeyTerms(name)
		if err != nil {
			return nil, err
		}
		u.Keys = slices.Clone(u.Keys) // the record is shared
		for i, line := range u.Keys {
			u.Keys[i] = withTerms(line, terms)
		}
		out = append(out, u)
	}
	return out, nil
}

// withTerms lets the node's own sshd end a key: nobody needs to bring it a new configuration then.
func withTerms(line string, terms map[string]muster.SSHKey) string {
	k, ok := pki.UserKey(line)
	if !ok {
		return line
	}
	return pki.AuthorizedKey(k.Under(terms[k.Fingerprint]))
}

// clusterSecrets turns what is stored into what nodes get: of the authorities
// only the public halves. It returns the one that signs host keys.
func clusterSecrets(out *Secrets, raw map[string][]byte) (hostCA pki.SSHAuthority, err error) {
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

// proxies are the proxies that the machines of a cluster use, each once, in order.
func (k *Maker) proxies(machines map[muster.MachineID]muster.Machine) []string {
	var list []string
	for _, m := range machines {
		if p := k.c.Proxy(m); p != "" && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}
