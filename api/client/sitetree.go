package client

import (
	"context"
	"net/http"

	"github.com/muster-hpc/muster/wire"
)

// SiteTopology shows where machines stand.
func (k *Client) SiteTopology(ctx context.Context) (wire.SiteTopology, error) {
	var out wire.SiteTopology
	return out, k.get(ctx, path("topology"), nil, &out)
}

// ImportTopology describes where machines stand.
func (k *Client) ImportTopology(ctx context.Context, r wire.TopologyImport) (wire.SiteTopology, error) {
	var out wire.SiteTopology
	return out, k.post(ctx, path("topology"), r, &out)
}

// RemoveTopology forgets the description.
func (k *Client) RemoveTopology(ctx context.Context) error {
	return k.do(ctx, call{method: http.MethodDelete, path: path("topology"), out: &struct{}{}})
}
