package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

type machinesInput struct {
	All bool `query:"all" doc:"Those that do not answer, too"`
	Page
}

type machineRef struct {
	Machine string `path:"machine" maxLength:"128"`
}

func (a *API) machineRoutes() {
	route(a, huma.Operation{
		OperationID: "list-machines", Method: http.MethodGet, Path: "/v1/machines", Tags: []string{"machines"},
		Summary: "List the machines that answer, with their facts and the images that run on them",
	}, func(ctx context.Context, in *machinesInput) (wire.MachineList, error) {
		return a.service.Machines(ctx, who(ctx), wire.MachineQuery{All: in.All, Page: in.page()})
	})
	route(a, huma.Operation{
		OperationID: "show-machine", Method: http.MethodGet, Path: "/v1/machines/{machine}", Tags: []string{"machines"},
		Summary: "Show a machine",
	}, func(ctx context.Context, in *machineRef) (wire.Machine, error) {
		return a.service.Machine(ctx, who(ctx), muster.MachineID(in.Machine))
	})
	route(a, huma.Operation{
		OperationID: "machine-topology", Method: http.MethodGet, Path: "/v1/machines/{machine}/topology", Tags: []string{"machines"},
		Summary:     "Show how a machine is built: sockets, memory nodes, caches, cores, network cards",
		Description: "By the word of its agent if that answers, and by its newest certificate otherwise.",
	}, func(ctx context.Context, in *machineRef) (wire.MachineTopology, error) {
		return a.service.Topology(ctx, who(ctx), muster.MachineID(in.Machine))
	})
}
