package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/muster-hpc/muster/wire"
)

// Volumes lists the volumes that the caller may see.
func (k *Client) Volumes(ctx context.Context, q wire.VolumeQuery) ([]wire.Volume, error) {
	return pages(ctx, k, path("volumes"), ownedBy(q.Project, q.Owner, q.All), q.Limit, func(l wire.VolumeList) ([]wire.Volume, wire.More) { return l.Volumes, l.More })
}

// Volume shows one volume, by ID or name. Returns ENotFound when there is none
// that the caller may see.
func (k *Client) Volume(ctx context.Context, ref string) (wire.Volume, error) {
	var out wire.Volume
	return out, k.get(ctx, path("volumes", ref), nil, &out)
}

// CreateVolume makes a volume for a project's data.
func (k *Client) CreateVolume(ctx context.Context, r wire.VolumeRequest) (wire.Volume, error) {
	var out wire.Volume
	return out, k.post(ctx, path("volumes"), r, &out)
}

// DeleteVolume erases a volume that no cluster uses; that goes on after it
// returns.
func (k *Client) DeleteVolume(ctx context.Context, ref string) (wire.Volume, error) {
	var out wire.Volume
	return out, k.do(ctx, call{method: http.MethodDelete, path: path("volumes", ref), out: &out})
}

// RetainVolume says how long from now a volume is kept: 30d, or ever.
func (k *Client) RetainVolume(ctx context.Context, ref, span string) (wire.Volume, error) {
	var out wire.Volume
	return out, k.post(ctx, path("volumes", ref, "retain"), wire.VolumeRetention{For: span}, &out)
}

// EraseCluster begins the deletion of a cluster and of its home.
func (k *Client) EraseCluster(ctx context.Context, ref string) (wire.Deleted, error) {
	var out wire.Deleted
	return out, k.do(ctx, call{method: http.MethodDelete, path: path("clusters", ref), query: url.Values{"erase": {"1"}}, out: &out})
}
