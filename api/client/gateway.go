package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Gateway is how the gateway is reached; without an address where the server has none.
func (k *Client) Gateway(ctx context.Context) (wire.Gateway, error) {
	var out wire.Gateway
	return out, k.get(ctx, path("gateway"), nil, &out)
}

// GatewaySessions lists sessions at the gateway, the newest first: so many, 0 for all.
func (k *Client) GatewaySessions(ctx context.Context, q wire.GatewayQuery) ([]muster.GatewaySession, error) {
	v := url.Values{}
	for key, text := range map[string]string{"user": q.User, "cluster": q.Cluster} {
		if text != "" {
			v.Set(key, text)
		}
	}
	if q.Open {
		v.Set("open", "true")
	}
	return pages(ctx, k, path("gateway", "sessions"), v, q.Limit, func(l wire.GatewaySessionList) ([]muster.GatewaySession, wire.More) { return l.Sessions, l.More })
}

// GatewayTicket lets one connection through the straight door. It is asked for once: there is
// another way to a node.
func (k *Client) GatewayTicket(ctx context.Context, r wire.TicketRequest) (wire.Ticket, error) {
	var out wire.Ticket
	return out, k.post(ctx, path("gateway", "tickets"), r, &out)
}

// KillGatewaySession ends an open session at the gateway.
func (k *Client) KillGatewaySession(ctx context.Context, id string) error {
	return k.do(ctx, call{method: http.MethodDelete, path: path("gateway", "sessions", id)})
}
