package client

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// HPLResults returns what HPL showed of a cluster: the newest so many, 0 for all,
// and the fastest.
func (k *Client) HPLResults(ctx context.Context, ref string, most int) (wire.HPLResults, error) {
	var out wire.HPLResults
	list, err := pages(ctx, k, path("clusters", ref, "hpl"), nil, most, func(l wire.HPLResults) ([]muster.HPLResult, wire.More) {
		out = l
		return l.Results, l.More
	})
	out.Results, out.More = list, wire.More{}
	return out, err
}
