package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// MachineCare is how administrators look after machines.
type MachineCare interface {
	// ChangeMachines changes all machines of a set, or none.
	ChangeMachines(ctx context.Context, who muster.Actor, set string, what wire.MachineAction, r wire.MachineChange) ([]wire.MachineChanged, error)
	// MachineHistory is newest first. A limit of 0 asks for all.
	MachineHistory(ctx context.Context, who muster.Actor, id muster.MachineID, p wire.Page) (wire.MachineHistory, error)
}

// MachineSet names machines in a path.
type MachineSet struct {
	Machine string `path:"machine" maxLength:"8192" doc:"A machine, or a set of them such as local-[01-03,07]"`
}

type machineChangeInput struct {
	MachineSet
	Body wire.MachineChange
}

type machineHistoryInput struct {
	Machine string `path:"machine" maxLength:"128"`
	Page
}

func (a *API) machineCareRoutes() {
	for _, r := range []struct {
		what    wire.MachineAction
		summary string
	}{
		{wire.MachineDrain, "Give machines to no new cluster"},
		{wire.MachineUndrain, "Take machines back into use, whatever was wanted of them"},
		{wire.MachineMaintenance, "Set machines aside once no cluster has them"},
		{wire.MachineTest, "Test machines once no cluster has them"},
		{wire.MachineRetire, "Take machines out of service for good, once no cluster has them"},
		{wire.MachineNote, "Write a remark on machines"},
	} {
		route(a, huma.Operation{
			OperationID: string(r.what) + "-machines", Method: http.MethodPost, Path: "/v1/machines/{machine}/" + string(r.what), Tags: []string{"machines"},
			Summary:     r.summary,
			Description: "For administrators. All machines of the set are changed, or none.",
		}, func(ctx context.Context, in *machineChangeInput) (wire.MachinesChanged, error) {
			list, err := a.service.ChangeMachines(ctx, who(ctx), in.Machine, r.what, in.Body)
			return wire.MachinesChanged{Machines: some(list)}, err
		})
	}
	route(a, huma.Operation{
		OperationID: "machine-history", Method: http.MethodGet, Path: "/v1/machines/{machine}/history", Tags: []string{"machines"},
		Summary:     "Show a machine's event history",
		Description: "Newest first. Whose the clusters were is shown only to those who may know.",
	}, func(ctx context.Context, in *machineHistoryInput) (wire.MachineHistory, error) {
		id := muster.MachineID(in.Machine)
		return a.service.MachineHistory(ctx, who(ctx), id, in.page())
	})
}
