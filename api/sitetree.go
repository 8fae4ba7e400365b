package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Topologies are where machines stand and how they are joined.
type Topologies interface {
	SiteTopology(ctx context.Context, who muster.Actor) (wire.SiteTopology, error)
	// ImportTopology returns EInvalid with every problem, and changes nothing then.
	ImportTopology(ctx context.Context, who muster.Actor, r wire.TopologyImport) (wire.SiteTopology, error)
	RemoveTopology(ctx context.Context, who muster.Actor) error
}

type topologyInput struct{ Body wire.TopologyImport }

func (a *API) topologyRoutes() {
	machines := []string{"machines"}
	route(a, huma.Operation{
		OperationID: "show-topology", Method: http.MethodGet, Path: "/v1/topology", Tags: machines,
		Summary: "Show where machines stand and how they are joined",
	}, func(ctx context.Context, _ *struct{}) (wire.SiteTopology, error) {
		return a.service.SiteTopology(ctx, who(ctx))
	})
	route(a, huma.Operation{
		OperationID: "import-topology", Method: http.MethodPost, Path: "/v1/topology", Tags: machines,
		Summary: "Describe where machines stand and how they are joined", Description: "Replaces the description. Where anything is wrong, all of it is named and the present one stays.",
	}, func(ctx context.Context, in *topologyInput) (wire.SiteTopology, error) {
		return a.service.ImportTopology(ctx, who(ctx), in.Body)
	})
	route(a, huma.Operation{
		OperationID: "remove-topology", Method: http.MethodDelete, Path: "/v1/topology", Tags: machines,
		Summary: "Forget the description of where machines stand: registrations alone count",
	}, func(ctx context.Context, _ *struct{}) (wire.Done, error) {
		return wire.Done{Status: "removed"}, a.service.RemoveTopology(ctx, who(ctx))
	})
}
