package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/muster-hpc/muster/wire"
)

// HPLResults returns what HPL showed of a cluster: the newest so many, 0 for all,
// and the fastest.
func (k *Client) HPLResults(ctx context.Context, ref string, most int) (wire.HPLResults, error) {
	query := url.Values{}
	if most > 0 {
		query.Set("limit", strconv.Itoa(most))
	}
	var out wire.HPLResults
	return out, k.get(ctx, path("clusters", ref, "hpl"), query, &out)
}
