package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Registrations are the bare machines that a site knows.
type Registrations interface {
	Registered(ctx context.Context, who muster.Actor, q wire.RegisteredQuery) (wire.RegisteredList, error)
	// Register registers all machines, or none.
	Register(ctx context.Context, who muster.Actor, r wire.RegisterRequest) ([]wire.RegisteredChange, error)
	// ChangeRegistered changes all machines of a set, or none.
	ChangeRegistered(ctx context.Context, who muster.Actor, set string, what wire.RegisteredAction) ([]wire.RegisteredChange, error)
	// MachineBoots is what machines boot for, in a rack or in all.
	MachineBoots(ctx context.Context, who muster.Actor, q wire.BootQuery) (wire.MachineBoots, error)
}

type bootsInput struct {
	Rack string `query:"rack" maxLength:"64" doc:"Only those of this rack"`
	Page
}

type registeredInput struct {
	State muster.RegistrationState `query:"state" enum:"waiting,approved,blocked" doc:"Only those in this state"`
	Page
}

type registerInput struct {
	Body wire.RegisterRequest
}

func (a *API) registrationRoutes() {
	route(a, huma.Operation{
		OperationID: "list-registrations", Method: http.MethodGet, Path: "/v1/registrations", Tags: []string{"machines"},
		Summary: "List registered bare machines", Description: "For administrators.",
	}, func(ctx context.Context, in *registeredInput) (wire.RegisteredList, error) {
		return a.service.Registered(ctx, who(ctx), wire.RegisteredQuery{State: in.State, Page: in.page()})
	})
	route(a, huma.Operation{
		OperationID: "register-machines", Method: http.MethodPost, Path: "/v1/registrations", Tags: []string{"machines"},
		Summary: "Register bare machines", Description: "For administrators. All of them are registered, or none; everything that is wrong is told at once.",
	}, func(ctx context.Context, in *registerInput) (wire.RegisteredChanges, error) {
		list, err := a.service.Register(ctx, who(ctx), in.Body)
		return wire.RegisteredChanges{Machines: some(list)}, err
	})
	route(a, huma.Operation{
		OperationID: "list-boots", Method: http.MethodGet, Path: "/v1/boots", Tags: []string{"machines"},
		Summary: "List the boots of bare machines: under way, failed, and waiting for their turn", Description: "For administrators.",
	}, func(ctx context.Context, in *bootsInput) (wire.MachineBoots, error) {
		list, err := a.service.MachineBoots(ctx, who(ctx), wire.BootQuery{Rack: in.Rack, Page: in.page()})
		list.Boots, list.Queue = some(list.Boots), some(list.Queue)
		return list, err
	})
	for _, r := range []struct {
		what    wire.RegisteredAction
		summary string
	}{
		{wire.RegisteredApprove, "Approve machines, or accept their changed hardware"},
		{wire.RegisteredForbid, "Block machines: do not answer their network boots"},
		{wire.RegisteredForget, "Delete registered machines"},
		{wire.RegisteredDiscover, "Boot registered machines once to inventory their hardware"},
		{wire.RegisteredFenced, "Confirm that machines are off or disconnected (manual fencing)"},
	} {
		route(a, huma.Operation{
			OperationID: string(r.what) + "-registrations", Method: http.MethodPost, Path: "/v1/registrations/{machine}/" + string(r.what), Tags: []string{"machines"},
			Summary: r.summary, Description: "For administrators. All machines of the set are changed, or none.",
		}, func(ctx context.Context, in *MachineSet) (wire.RegisteredChanges, error) {
			list, err := a.service.ChangeRegistered(ctx, who(ctx), in.Machine, r.what)
			return wire.RegisteredChanges{Machines: some(list)}, err
		})
	}
}
