package client

import (
	"context"
	"net/http"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Server describes the server and the caller.
func (k *Client) Server(ctx context.Context) (wire.Server, error) {
	var out wire.Server
	return out, k.get(ctx, path("server"), nil, &out)
}

// Health reports how the parts of the server are. That a part is not well is an
// answer, no error.
func (k *Client) Health(ctx context.Context) (wire.Health, error) {
	var out wire.Health
	err := k.do(ctx, call{method: http.MethodGet, path: path("health"), out: &out, alsoOK: http.StatusServiceUnavailable})
	if err == nil && out.Status == "" { // a 503 of somebody in between
		err = muster.Errorf(muster.EUnavailable, "%s does not report its health", k.address).WithHint("try again in a moment")
	}
	return out, err
}
