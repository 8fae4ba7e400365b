package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster/wire"
)

type body[T any] struct{ Body T }

type gatewayRef struct {
	Gateway string `path:"gateway" maxLength:"64" doc:"Name of a gateway"`
}

// gatewayProcessRoutes are those about gateways that are processes of their own, and theirs.
func (a *API) gatewayProcessRoutes(tags []string) {
	route(a, huma.Operation{
		OperationID: "list-gateways", Method: http.MethodGet, Path: "/v1/gateways", Tags: tags,
		Summary: "List the gateways that are processes of their own (administrators)",
	}, func(ctx context.Context, in *struct{ Page }) (wire.GatewayProcessList, error) {
		return a.service.GatewayProcesses(ctx, who(ctx), in.page())
	})
	route(a, huma.Operation{
		OperationID: "add-gateway", Method: http.MethodPost, Path: "/v1/gateways", Tags: tags,
		Summary: "Register a gateway, and make its token (administrators)",
	}, func(ctx context.Context, in *body[wire.GatewayRequest]) (wire.GatewayProcess, error) {
		return a.service.AddGateway(ctx, who(ctx), in.Body)
	})
	route(a, huma.Operation{
		OperationID: "remove-gateway", Method: http.MethodDelete, Path: "/v1/gateways/{gateway}", Tags: tags,
		Summary: "Take a gateway's token away (administrators)",
	}, func(ctx context.Context, in *gatewayRef) (wire.Done, error) {
		return wire.Done{Status: "removed"}, a.service.RemoveGateway(ctx, who(ctx), in.Gateway)
	})
	route(a, huma.Operation{
		OperationID: "poll-gateway", Method: http.MethodPost, Path: gatewayWork + "poll", Tags: tags,
		Summary: "Learn who may reach what, and what is to end (gateways)",
	}, func(ctx context.Context, in *body[wire.GatewayPoll]) (wire.GatewayOrders, error) {
		return a.service.GatewayPoll(ctx, who(ctx), in.Body)
	})
	route(a, huma.Operation{
		OperationID: "record-gateway", Method: http.MethodPost, Path: gatewayWork + "records", Tags: tags,
		Summary: "Put sessions on record that began and that ended (gateways)",
	}, func(ctx context.Context, in *body[wire.GatewayRecords]) (wire.Done, error) {
		return wire.Done{Status: "recorded"}, a.service.GatewayRecords(ctx, who(ctx), in.Body)
	})
	route(a, huma.Operation{
		OperationID: "sign-gateway", Method: http.MethodPost, Path: gatewayWork + "sign", Tags: tags,
		Summary: "Certify a key for one session at the plain door (gateways)",
	}, func(ctx context.Context, in *body[wire.GatewaySign]) (wire.GatewaySigned, error) {
		return a.service.GatewaySignFor(ctx, who(ctx), in.Body)
	})
}
