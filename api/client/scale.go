package client

import (
	"context"

	"github.com/muster-hpc/muster/wire"
)

// Scale begins to change the size of a cluster. When there is no room for more
// nodes the error is a *RefusedError with code ENever or ENoCapacity. The
// change is done when the cluster's Scaling is gone.
func (k *Client) Scale(ctx context.Context, ref string, r wire.ScaleRequest) (wire.Scaled, error) {
	var out wire.Scaled
	return out, k.post(ctx, path("clusters", ref, "scale"), r, &out)
}

// Extend gives a cluster more time.
func (k *Client) Extend(ctx context.Context, ref string, r wire.ExtendRequest) (wire.Extended, error) {
	var out wire.Extended
	return out, k.post(ctx, path("clusters", ref, "extend"), r, &out)
}

// Pause gives the machines of a cluster back and keeps everything else.
func (k *Client) Pause(ctx context.Context, ref string, r wire.PauseRequest) (wire.Paused, error) {
	var out wire.Paused
	return out, k.post(ctx, path("clusters", ref, "pause"), r, &out)
}

// Resume brings a paused cluster back.
func (k *Client) Resume(ctx context.Context, ref string, r wire.ResumeRequest) (wire.Resumed, error) {
	var out wire.Resumed
	return out, k.post(ctx, path("clusters", ref, "resume"), r, &out)
}

// Measure begins a measurement of a cluster, or ends the one under way.
func (k *Client) Measure(ctx context.Context, ref string, r wire.MeasureRequest) (wire.MeasureReply, error) {
	var out wire.MeasureReply
	return out, k.post(ctx, path("clusters", ref, "measure"), r, &out)
}

// Share lets people into a cluster, or out of it.
func (k *Client) Share(ctx context.Context, ref string, r wire.ShareRequest) (wire.Shared, error) {
	var out wire.Shared
	return out, k.post(ctx, path("clusters", ref, "users"), r, &out)
}
