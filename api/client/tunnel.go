package client

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/url"
	"time"
)

// TunnelProtocol is the name by which an HTTP connection becomes a tunnel.
const TunnelProtocol = "muster-tunnel"

// Tunnel opens a byte stream to the SSH port of a node ("head" means the node
// that carries the head). Only members of the cluster may.
func (k *Client) Tunnel(ctx context.Context, ref, node string) (net.Conn, error) {
	return patiently(ctx, func() (net.Conn, error) { return k.tunnelOnce(ctx, ref, node) })
}

func (k *Client) tunnelOnce(ctx context.Context, ref, node string) (net.Conn, error) {
	conn, err := k.dial(ctx)
	if err != nil {
		return nil, k.explain(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	out, err := k.upgrade(ctx, conn, path("clusters", ref, "nodes", node, "tunnel"))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return out, nil
}

func (k *Client) upgrade(ctx context.Context, conn net.Conn, target string) (net.Conn, error) {
	return k.upgradeTo(ctx, conn, target, nil, TunnelProtocol)
}

// upgradeTo asks for a connection to become something else.
func (k *Client) upgradeTo(ctx context.Context, conn net.Conn, target string, query url.Values, protocol string) (net.Conn, error) {
	req, err := k.request(ctx, call{method: http.MethodGet, path: target, query: query,
		header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {protocol}}})
	if err != nil {
		return nil, err
	}
	if err := req.Write(conn); err != nil {
		return nil, k.explain(ctx, err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, k.explain(ctx, err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()
		return nil, readError(resp)
	}
	return &tunnelConn{Conn: conn, r: r}, nil
}

// tunnelConn reads first what came with the reply's head.
type tunnelConn struct {
	net.Conn
	r *bufio.Reader
}

func (c *tunnelConn) Read(p []byte) (int, error) {
	if c.r != nil {
		if c.r.Buffered() > 0 {
			return c.r.Read(p)
		}
		c.r = nil
	}
	return c.Conn.Read(p)
}

// CloseWrite tells the other end that nothing more comes.
func (c *tunnelConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
