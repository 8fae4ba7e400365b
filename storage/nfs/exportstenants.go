package nfs

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/store"
)

// tenants are the machines that a cluster has, and which of them are its head's.
func (x *Exports) tenants(ctx context.Context, id muster.ClusterID) (heads map[muster.MachineID]bool, err error) {
	heads = map[muster.MachineID]bool{}
	err = x.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		nodes, err := tx.Nodes(id)
		if err != nil {
			return err
		}
		list, err := tx.Machines(store.MachineFilter{Cluster: id})
		for _, m := range list {
			if m.Phase.Held() {
				heads[m.ID] = slices.ContainsFunc(nodes, func(n muster.Node) bool { return n.Machine == m.ID && n.Head })
			}
		}
		return err
	})
	return heads, err
}

// note remembers which machines of a cluster mount what. Nobody is noted meanwhile to have
// left: what was read before and written after would open a door again.
func (x *Exports) note(ctx context.Context, c muster.Cluster, mounts []volume.Mount) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	heads, err := x.tenants(ctx, c.ID)
	if err != nil {
		return err
	}
	at := map[muster.MachineID]netip.Addr{}
	for id := range heads {
		if a, ok := x.c.Address(id); ok {
			at[id] = a
		}
	}
	own := x.c.Own.of(c.ID) != nil
	var uses []clusterUse
	for _, m := range mounts {
		if m.Export == nil || m.NFS == nil {
			continue
		}
		u := clusterUse{name: m.Export.Name, path: m.Export.Path, readOnly: m.ReadOnly(), own: own && m.Export.Cluster == c.ID, machines: map[muster.MachineID]netip.Addr{}}
		for id, a := range at {
			if !m.HeadOnly || heads[id] {
				u.machines[id] = a
			}
		}
		uses = append(uses, u)
	}
	if len(uses) == 0 {
		delete(x.uses, c.ID)
		return nil
	}
	x.uses[c.ID] = uses
	return nil
}

// Left closes to a machine what its cluster uses: another may have it next.
func (x *Exports) Left(ctx context.Context, id muster.MachineID) {
	if x.c.Server == nil {
		return
	}
	var had []muster.ClusterID
	x.mu.Lock()
	for c, uses := range x.uses {
		for _, u := range uses {
			if _, one := u.machines[id]; one && !slices.Contains(had, c) {
				had = append(had, c)
			}
			delete(u.machines, id)
		}
	}
	x.mu.Unlock()
	if len(had) > 0 {
		if err := x.set(ctx, had...); err != nil {
			x.c.Log.Error("revoking volume access failed", "machine", id, "error", err)
		}
	}
}

// LeftUnheard closes to every machine what it uses of a cluster that it has left, where
// nobody knows which these are: lines of the audit were lost.
func (x *Exports) LeftUnheard(ctx context.Context) {
	if x.c.Server == nil {
		return
	}
	if err := errors.Join(x.closeLeft(ctx), x.set(ctx, x.c.Own.all()...)); err != nil && ctx.Err() == nil {
		x.c.Log.Error("revoking volume access failed", "error", err)
	}
}

func (x *Exports) closeLeft(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, uses := range x.uses {
		heads, err := x.tenants(ctx, id)
		if err != nil {
			return err
		}
		for _, u := range uses {
			maps.DeleteFunc(u.machines, func(m muster.MachineID, _ netip.Addr) bool { _, still := heads[m]; return !still })
		}
	}
	return nil
}
