package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Benches are benchmarks that were run on clusters.
type Benches interface {
	// HPLResults are the newest, and the fastest; also of a deleted cluster.
	HPLResults(ctx context.Context, who muster.Actor, ref string, p wire.Page) (wire.HPLResults, error)
}

type hplInput struct {
	ClusterRef
	Page
}

func (a *API) benchRoutes() {
	route(a, huma.Operation{
		OperationID: "hpl", Method: http.MethodGet, Path: "/v1/clusters/{cluster}/hpl", Tags: []string{"nodes"},
		Summary:     "List what HPL showed of a cluster",
		Description: "The newest results first, and the fastest, with all launches and the conditions. Rates are flop/s.",
	}, func(ctx context.Context, in *hplInput) (wire.HPLResults, error) {
		return a.service.HPLResults(ctx, who(ctx), in.Cluster, in.page())
	})
}
