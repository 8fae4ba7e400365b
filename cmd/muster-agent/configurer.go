package main

import (
	"context"
	"log/slog"

	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/agent/configure"
	"github.com/muster-hpc/muster/wire"
)

// newConfigurer returns what changes this node.
func newConfigurer(log *slog.Logger) agent.Configurer {
	return configurer{configure.New(configure.Options{Log: log})}
}

// configurer gives configure's interface the agent's name for it.
type configurer struct{ c *configure.Configurer }

func (n configurer) Apply(ctx context.Context, c *wire.NodeConfig, r agent.Reporter) error {
	return n.c.Apply(ctx, c, r)
}
