package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// tunnel is what ssh runs as its ProxyCommand.
func (a *app) tunnel() *cobra.Command {
	return &cobra.Command{
		Use: "tunnel CLUSTER NODE", Short: "Connect standard input and output with a node's SSH port", Hidden: true,
		Args:    exactly("CLUSTER", "NODE"),
		Example: `  ssh -o ProxyCommand='muster tunnel cfd n01' ...`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.tunnelNode(c.Context(), args[0], args[1])
		},
	}
}

func (a *app) tunnelNode(ctx context.Context, cluster, node string) error {
	k, err := a.connect()
	if err != nil {
		return err
	}
	conn, err := k.Tunnel(ctx, cluster, node)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	go func() {
		_, _ = io.Copy(conn, a.env.In)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	_, err = io.Copy(a.env.Out, conn)
	if ctx.Err() != nil {
		return nil
	}
	return err
}
