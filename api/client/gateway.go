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
