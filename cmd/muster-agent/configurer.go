package main

import (
	"context"
	"log/slog"

	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/agent/configure"
	"github.com/muster-hpc/muster/wire"
)

// configurer lets package agent use package configure: each declares the
// Reporter that it needs, with the same methods.
type configurer struct{ *configure.Configurer }

func newConfigurer(log *slog.Logger) agent.Configurer {
	return configurer{configure.New(configure.Options{Log: log})}
}

func (c configurer) Apply(ctx context.Context, cfg *wire.NodeConfig, r agent.Reporter) error {
	return c.Configurer.Apply(ctx, cfg, r)
}
