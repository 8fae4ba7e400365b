package client

import (
	"context"
	"net/url"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// UsageOver returns what a cluster used over the time of q.Since, as curves.
func (k *Client) UsageOver(ctx context.Context, ref string, q wire.UsageQuery) (wire.ClusterUsage, error) {
	query := span(q)
	if q.Node != "" {
		query.Set("node", q.Node)
	}
	var out wire.ClusterUsage
	return out, k.get(ctx, path("clusters", ref, "usage"), query, &out)
}

// SiteUsage returns what the site was used for, as far as the caller may see.
func (k *Client) SiteUsage(ctx context.Context, q wire.UsageQuery) (wire.SiteUsage, error) {
	var out wire.SiteUsage
	return out, k.get(ctx, path("site", "usage"), span(q), &out)
}

// Top returns the present state of the caller's clusters, or of one (ref).
func (k *Client) Top(ctx context.Context, ref string) (wire.Top, error) {
	var out wire.Top
	if ref == "" {
		return out, k.get(ctx, path("site", "top"), nil, &out)
	}
	return out, k.get(ctx, path("clusters", ref, "top"), nil, &out)
}

func span(q wire.UsageQuery) url.Values {
	query := url.Values{}
	since := q.Since
	if since == 0 {
		since = time.Hour
	}
	query.Set("since", since.String())
	if q.Step > 0 {
		query.Set("step", q.Step.String())
	}
	return query
}
