package client

import (
	"context"
	"net"
	"net/url"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Console is an open console. Reading gives what the machine prints.
type Console struct{ net.Conn }

// Type sends what was typed.
func (c *Console) Type(b []byte) error { return wire.WriteConsoleFrame(c.Conn, wire.ConsoleInput, b) }

// Size tells the size of the user's terminal.
func (c *Console) Size(columns, rows int) error { return wire.WriteConsoleSize(c.Conn, columns, rows) }

// NodeConsole opens the console of a node ("head": the one that carries the
// head). With shell it is a root shell.
func (k *Client) NodeConsole(ctx context.Context, ref, node string, shell bool) (*Console, error) {
	return k.console(ctx, path("clusters", ref, "nodes", node, "console"), shell)
}

// MachineConsole opens the console of a machine: for administrators.
func (k *Client) MachineConsole(ctx context.Context, id muster.MachineID, shell bool) (*Console, error) {
	return k.console(ctx, path("machines", string(id), "console"), shell)
}

func (k *Client) console(ctx context.Context, target string, shell bool) (*Console, error) {
	return patiently(ctx, func() (*Console, error) { return k.consoleOnce(ctx, target, shell) })
}

func (k *Client) consoleOnce(ctx context.Context, target string, shell bool) (*Console, error) {
	conn, err := k.dial(ctx)
	if err != nil {
		return nil, k.explain(ctx, err)
	}
	query := url.Values{}
	if shell {
		query.Set("shell", "true")
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	out, err := k.upgradeTo(ctx, conn, target, query, wire.ConsoleProtocol)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Console{out}, nil
}
