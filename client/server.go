package client

import (
	"context"

	"github.com/muster-hpc/muster/wire"
)

// Server tells about the server and the caller.
func (k *Client) Server(ctx context.Context) (wire.Server, error) {
	var out wire.Server
	return out, k.get(ctx, path("server"), nil, &out)
}

// Health tells how the parts of the server are.
func (k *Client) Health(ctx context.Context) (wire.Health, error) {
	var out wire.Health
	return out, k.get(ctx, path("health"), nil, &out)
}
