package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster/wire"
)

func (a *API) siteRoutes() {
	route(a, huma.Operation{
		OperationID: "server", Method: http.MethodGet, Path: "/v1/server", Tags: []string{"site"},
		Summary: "Show the server and the caller",
	}, func(ctx context.Context, _ *none) (wire.Server, error) {
		return a.service.Server(ctx, who(ctx))
	})
	type healthOutput struct {
		Status int
		Body   wire.Health
	}
	op := huma.Operation{
		OperationID: "health", Method: http.MethodGet, Path: "/v1/health", Tags: []string{"site"},
		Summary:  "Health of the server; needs no token",
		Security: []map[string][]string{},
	}
	a.prepare(&op)
	huma.Register(a.huma, op, func(ctx context.Context, _ *none) (*healthOutput, error) {
		h := a.service.Health(ctx)
		status := http.StatusOK
		if h.Status != "ok" {
			status = http.StatusServiceUnavailable
		}
		return &healthOutput{status, h}, nil
	})
}
