package client

import (
	"context"

	"github.com/muster-hpc/muster/wire"
)

// SigningKeys lists the public keys by which the server's certificates are
// verified, the present one last.
func (k *Client) SigningKeys(ctx context.Context) (wire.SigningKeys, error) {
	var out wire.SigningKeys
	return out, k.get(ctx, path("certificates", "keys"), nil, &out)
}
