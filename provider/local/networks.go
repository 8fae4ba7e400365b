package local

import (
	"context"
	"errors"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// EnsureNetworks makes a bridge for each network.
func (p *Provider) EnsureNetworks(_ context.Context, networks []provider.Network) error {
	var errs []error
	for _, n := range networks {
		if err := p.rack.AddBridge(n.Index, string(n.Cluster)); err != nil {
			errs = append(errs, err)
			continue
		}
		p.mu.Lock()
		p.nets[n.Cluster] = n
		p.mu.Unlock()
	}
	return errors.Join(errs...)
}

// RemoveNetworks removes the bridges of clusters.
func (p *Provider) RemoveNetworks(_ context.Context, clusters []muster.ClusterID) error {
	var errs []error
	for _, c := range clusters {
		if err := p.rack.RemoveBridge(string(c)); err != nil {
			errs = append(errs, err)
			continue
		}
		p.mu.Lock()
		delete(p.nets, c)
		p.mu.Unlock()
	}
	return errors.Join(errs...)
}

// Networks lists the clusters that have a bridge.
func (p *Provider) Networks(context.Context) ([]muster.ClusterID, error) {
	labels, err := p.rack.Bridges()
	if err != nil {
		return nil, err
	}
	var out []muster.ClusterID
	for _, l := range labels {
		out = append(out, muster.ClusterID(l))
	}
	return out, nil
}

// releaseImages lets go of images that no machine has.
func (p *Provider) releaseImages() {
	used := map[string]bool{}
	for _, m := range p.all(nil) {
		m.mu.Lock()
		if m.rec != nil {
			used[m.rec.Image] = true
		}
		m.mu.Unlock()
	}
	p.lowers.keep(used, time.Now(), p.releaseImages)
	if err := dropTrees(p.dir, used); err != nil {
		p.cfg.Log.Warn("removing unpacked image failed", "error", err)
	}
}
