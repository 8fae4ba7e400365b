package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

type accessInput struct {
	ClusterRef
	Body wire.AccessRequest
}

type tunnelInput struct {
	ClusterRef
	Node    string `path:"node" maxLength:"128" doc:"Name of the node; head means the one that carries the head"`
	Upgrade string `header:"Upgrade" maxLength:"64" doc:"muster-tunnel"`
}

func (a *API) nodeRoutes() {
	route(a, huma.Operation{
		OperationID: "access", Method: http.MethodPost, Path: "/v1/clusters/{cluster}/access", Tags: []string{"nodes"},
		Summary:     "Get a short-lived SSH certificate",
		Description: "Signs the caller's ephemeral public key for one user of this cluster, and returns the line by which its hosts are known.",
	}, func(ctx context.Context, in *accessInput) (wire.Access, error) {
		return a.service.Access(ctx, who(ctx), in.Cluster, in.Body)
	})
	a.tunnelRoute()
}

// tunnelRoute turns its connection into a byte stream to a node's SSH port.
// What flows there is encrypted from end to end: the server sees nothing of it.
func (a *API) tunnelRoute() {
	op := huma.Operation{
		OperationID: "tunnel", Method: http.MethodGet, Path: "/v1/clusters/{cluster}/nodes/{node}/tunnel", Tags: []string{"nodes"},
		Summary:     "Open a byte stream to a node's SSH port",
		Description: "Send 'Connection: Upgrade' and 'Upgrade: muster-tunnel'. After status 101 the connection carries SSH.",
		Responses: map[string]*huma.Response{
			"101": {Description: "The connection is a tunnel now"},
		},
		DefaultStatus: http.StatusSwitchingProtocols,
	}
	a.prepare(&op)
	huma.Register(a.huma, op, func(ctx context.Context, in *tunnelInput) (*huma.StreamResponse, error) {
		if in.Upgrade != tunnelProtocol {
			return nil, a.fail(ctx, muster.Errorf(muster.EInvalid, "a tunnel needs a connection that is upgraded").Because(muster.ReasonNotUpgraded).
				WithHint("send 'Connection: Upgrade' and 'Upgrade: %s' over HTTP/1.1", tunnelProtocol))
		}
		if err := live(ctx); err != nil {
			return nil, a.fail(ctx, err)
		}
		far, err := a.service.Tunnel(ctx, who(ctx), in.Cluster, in.Node)
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		return &huma.StreamResponse{Body: func(hctx huma.Context) {
			r, w := humago.Unwrap(hctx)
			a.tunnel(w, r, far)
		}}, nil
	})
}
