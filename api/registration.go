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
	Registered(ctx context.Context, who muster.Actor, state muster.RegistrationState) ([]muster.Registration, error)
	// Register registers all machines, or none.
	Register(ctx context.Context, who muster.Actor, r wire.RegisterRequest) ([]wire.RegisteredChange, error)
	// ChangeRegistered changes all machines of a set, or none.
	ChangeRegistered(ctx context.Context, who muster.Actor, set string, what wire.RegisteredAction) ([]wire.RegisteredChange, error)
	// MachineBoots is what machines boot for, in a rack or in all.
	MachineBoots(ctx context.Context, who muster.Actor, rack string) (wire.MachineBoots, error)
}

type bootsInput struct {
	Rack string `query:"rack" maxLength:"64" doc:"Only those of this rack"`
}

type registeredInput struct {
	State muster.RegistrationState `query:"state" enum:"waiting,approved,forbidden" doc:"Only those in this state"`
}

type registerInput struct {
	Body wire.RegisterRequest
}

func (a *API) registrationRoutes() {
	route(a, huma.Operation{
		OperationID: "list-registrations", Method: http.MethodGet, Path: "/v1/registrations", Tags: []string{"machines"},
		Summary: "List the bare machines that the site knows", Description: "For administrators.",
	}, func(ctx context.Context, in *registeredInput) (wire.RegisteredList, error) {
		list, err := a.service.Registered(ctx, who(ctx), in.State)
		return wire.RegisteredList{Machines: some(list)}, err
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
		list, err := a.service.MachineBoots(ctx, who(ctx), in.Rack)
		list.Boots, list.Queue = some(list.Boots), some(list.Queue)
		return list, err
	})
	for _, r := range []struct {
		what    wire.RegisteredAction
		summary string
	}{
		{wire.RegisteredApprove, "Make registered machines machines of the site, or accept what they are made of now"},
		{wire.RegisteredForbid, "Answer nothing to machines"},
		{wire.RegisteredForget, "Forget registered machines"},
		{wire.RegisteredDiscover, "Have registered machines tell anew what they are made of"},
		{wire.RegisteredFenced, "Say that machines have no power, or are cut off, which Muster asked for"},
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
