package main

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/muster-hpc/muster/agent/diskbench"
	"github.com/muster-hpc/muster/agent/netbench"
	"github.com/muster-hpc/muster/agent/sysinfo"
	"github.com/muster-hpc/muster/agent/tool"
	"github.com/muster-hpc/muster/wire"
)

// tellConditions prints what changes the figures of this node, as one line. It
// needs no rights, and is run on all nodes at once before and after they are
// measured.
func tellConditions(ctx context.Context, out io.Writer) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	var s sysinfo.Source
	c := s.Read()
	c.Topology = s.Topology(ctx)
	for _, name := range []string{diskbench.Program, netbench.Program} {
		if v := tool.Version(ctx, name); v != "" {
			c.Tools = append(c.Tools, v)
		}
	}
	if where := diskbench.Root("").Scratch(); where.Path != "" {
		c.Scratch = &where
	}
	return json.NewEncoder(out).Encode(wire.NodeConditions{Host: host, Conditions: c, Counters: s.Counters()})
}
