package main

import (
	"context"
	"log/slog"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/wire"
)

// newConfigurer returns what changes this node.
func newConfigurer(*slog.Logger) agent.Configurer { return unable{} }

type unable struct{}

func (unable) Apply(context.Context, *wire.NodeConfig, agent.Reporter) error {
	return muster.Errorf(muster.EInternal, "this agent was built without the part that configures nodes")
}
