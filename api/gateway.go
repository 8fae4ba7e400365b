package api

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Gateways are where users come in by SSH.
type Gateways interface {
	// GatewayInfo has no address where the server has no gateway.
	GatewayInfo(ctx context.Context, who muster.Actor) (wire.Gateway, error)
	GatewaySessions(ctx context.Context, who muster.Actor, q wire.GatewayQuery) (wire.GatewaySessionList, error)
	// HostKeys are those of a cluster's nodes, or of the one that is named.
	HostKeys(ctx context.Context, who muster.Actor, cluster, node string, p wire.Page) (wire.HostKeyList, error)
	SetDoors(ctx context.Context, who muster.Actor, cluster string, r wire.DoorsRequest) (wire.DoorsReply, error)
	// What gateways ask that are processes of their own.
	GatewayPoll(ctx context.Context, who muster.Actor, q wire.GatewayPoll) (wire.GatewayOrders, error)
	GatewayRecords(ctx context.Context, who muster.Actor, r wire.GatewayRecords) error
	GatewaySignFor(ctx context.Context, who muster.Actor, r wire.GatewaySign) (wire.GatewaySigned, error)
	AddGateway(ctx context.Context, who muster.Actor, r wire.GatewayRequest) (wire.GatewayProcess, error)
	RemoveGateway(ctx context.Context, who muster.Actor, name string) error
	GatewayProcesses(ctx context.Context, who muster.Actor, p wire.Page) (wire.GatewayProcessList, error)
	GatewayTicket(ctx context.Context, who muster.Actor, r muster.DoorTicketRequest) (muster.DoorTicket, error)
	KillGatewaySession(ctx context.Context, who muster.Actor, id string) error
}

type gatewaySessionsInput struct {
	User    string `query:"user" maxLength:"64" doc:"Only this user's"`
	Cluster string `query:"cluster" maxLength:"128" doc:"Only to this cluster: its name or ID"`
	Open    bool   `query:"open" doc:"Only those that last"`
	Page
}

type hostKeysInput struct {
	ClusterRef
	Node string `query:"node" maxLength:"64" doc:"Only this node's"`
	Page
}

type doorsInput struct {
	ClusterRef
	Body wire.DoorsRequest
}

// GatewaySessionRef names a session at the gateway in a path.
type GatewaySessionRef struct {
	Session string `path:"session" maxLength:"64" doc:"ID of a session"`
}

type ticketInput struct {
	Body wire.TicketRequest
}

// seen is the address from which a request came; the zero value: not over the network.
func seen(ctx context.Context) netip.Addr {
	p, _ := ctx.Value(peerKey).(peer)
	if p.conn == nil {
		return netip.Addr{}
	}
	at, err := netip.ParseAddrPort(p.conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

func (a *API) gatewayRoutes() {
	tags := []string{"gateway"}
	a.gatewayProcessRoutes(tags)
	route(a, huma.Operation{
		OperationID: "show-gateway", Method: http.MethodGet, Path: "/v1/gateway", Tags: tags,
		Summary: "Show where the gateway listens, and its host key",
	}, func(ctx context.Context, _ *none) (wire.Gateway, error) {
		return a.service.GatewayInfo(ctx, who(ctx))
	})
	route(a, huma.Operation{
		OperationID: "list-host-keys", Method: http.MethodGet, Path: "/v1/clusters/{cluster}/hostkeys", Tags: tags,
		Summary: "List the SSH host keys of a cluster's nodes, for clients that read no host certificates",
	}, func(ctx context.Context, in *hostKeysInput) (wire.HostKeyList, error) {
		return a.service.HostKeys(ctx, who(ctx), in.Cluster, in.Node, in.page())
	})
	route(a, huma.Operation{
		OperationID: "set-doors", Method: http.MethodPost, Path: "/v1/clusters/{cluster}/doors", Tags: tags,
		Summary: "Say by which doors of the SSH gateway users may come to a cluster",
	}, func(ctx context.Context, in *doorsInput) (wire.DoorsReply, error) {
		return a.service.SetDoors(ctx, who(ctx), in.Cluster, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "list-gateway-sessions", Method: http.MethodGet, Path: "/v1/gateway/sessions", Tags: tags,
		Summary: "List sessions at the gateway, the newest first: the caller's own, or everybody's for administrators",
	}, func(ctx context.Context, in *gatewaySessionsInput) (wire.GatewaySessionList, error) {
		return a.service.GatewaySessions(ctx, who(ctx), wire.GatewayQuery{User: in.User, Cluster: in.Cluster, Open: in.Open, Page: in.page()})
	})
	route(a, huma.Operation{
		OperationID: "create-gateway-ticket", Method: http.MethodPost, Path: "/v1/gateway/tickets", Tags: tags,
		Summary:     "Let one connection of the caller through to a node",
		Description: "A ticket is used once, and soon. Where the gateway's kernel can, it lets the connection from client through; otherwise the connection begins with a secret.",
	}, func(ctx context.Context, in *ticketInput) (wire.Ticket, error) {
		r := muster.DoorTicketRequest{Target: in.Body.Target, Seen: seen(ctx)}
		if in.Body.Client != "" {
			var err error
			if r.Client, err = netip.ParseAddrPort(in.Body.Client); err != nil {
				return wire.Ticket{}, muster.Errorf(muster.EInvalid, "client: %.64q is no address and port", in.Body.Client).Because(muster.ReasonBadValue).
					WithHint("write ADDRESS:PORT, or leave it away")
			}
		}
		t, err := a.service.GatewayTicket(ctx, who(ctx), r)
		return wire.Ticket{Address: t.Address, Secret: t.Secret, Node: t.Node, Expires: t.Expires}, err
	})
	route(a, huma.Operation{
		OperationID: "kill-gateway-session", Method: http.MethodDelete, Path: "/v1/gateway/sessions/{session}", Tags: tags,
		Summary: "End an open session at the gateway",
	}, func(ctx context.Context, in *GatewaySessionRef) (wire.Done, error) {
		return wire.Done{Status: "ended"}, a.service.KillGatewaySession(ctx, who(ctx), in.Session)
	})
}
