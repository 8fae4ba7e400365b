package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster/wire"
)

func (a *API) certificateRoutes() {
	route(a, huma.Operation{
		OperationID: "certificate-keys", Method: http.MethodGet, Path: "/v1/certificates/keys", Tags: []string{"certificates"},
		Summary:  "List the public keys by which certificates are verified; needs no token",
		Security: []map[string][]string{},
	}, func(ctx context.Context, _ *none) (wire.SigningKeys, error) {
		return a.service.SigningKeys(ctx), nil
	})
}
