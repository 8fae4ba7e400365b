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

// HostKeys are the SSH host keys of a cluster's nodes, or of the one that is named.
func (k *Client) HostKeys(ctx context.Context, cluster, node string) ([]wire.HostKey, error) {
	v := url.Values{}
	if node != "" {
		v.Set("node", node)
	}
	return pages(ctx, k, path("clusters", cluster, "hostkeys"), v, 0, func(l wire.HostKeyList) ([]wire.HostKey, wire.More) { return l.HostKeys, l.More })
}

// SetDoors says by which doors of the gateway users may come to a cluster.
func (k *Client) SetDoors(ctx context.Context, ref string, r wire.DoorsRequest) (wire.DoorsReply, error) {
	var out wire.DoorsReply
	return out, k.post(ctx, path("clusters", ref, "doors"), r, &out)
}

// AddGateway registers a gateway that will be a process of its own.
func (k *Client) AddGateway(ctx context.Context, r wire.GatewayRequest) (wire.GatewayProcess, error) {
	var out wire.GatewayProcess
	return out, k.post(ctx, path("gateways"), r, &out)
}

// RemoveGateway takes a gateway's token away.
func (k *Client) RemoveGateway(ctx context.Context, name string) error {
	return k.do(ctx, call{method: http.MethodDelete, path: path("gateways", name)})
}

// Gateways are those that are processes of their own.
func (k *Client) Gateways(ctx context.Context) ([]wire.GatewayProcess, error) {
	return pages(ctx, k, path("gateways"), nil, 0, func(l wire.GatewayProcessList) ([]wire.GatewayProcess, wire.More) { return l.Gateways, l.More })
}

// GatewayPoll is what a gateway says, with its own token; the reply is what it is to do.
func (k *Client) GatewayPoll(ctx context.Context, q wire.GatewayPoll) (wire.GatewayOrders, error) {
	var out wire.GatewayOrders
	return out, k.post(ctx, path("gateway", "work", "poll"), q, &out)
}

// GatewayRecords sends records of a gateway.
func (k *Client) GatewayRecords(ctx context.Context, r wire.GatewayRecords) error {
	var out wire.Done
	return k.post(ctx, path("gateway", "work", "records"), r, &out)
}

// GatewaySign asks for a certificate for one session at the plain door.
func (k *Client) GatewaySign(ctx context.Context, r wire.GatewaySign) (wire.GatewaySigned, error) {
	var out wire.GatewaySigned
	return out, k.post(ctx, path("gateway", "work", "sign"), r, &out)
}
