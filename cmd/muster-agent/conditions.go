package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/muster-hpc/muster/agent/diskbench"
	"github.com/muster-hpc/muster/agent/netbench"
	"github.com/muster-hpc/muster/agent/rendezvous"
	"github.com/muster-hpc/muster/agent/sysinfo"
	"github.com/muster-hpc/muster/agent/tool"
	"github.com/muster-hpc/muster/wire"
)

// tellConditions prints what changes the figures of this node, as one line. It
// needs no rights, and is run on all nodes at once before and after they are
// measured: the node where they meet prints the lines of all of them.
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
	line, err := json.Marshal(wire.NodeConditions{Host: host, Conditions: c, Counters: s.Counters()})
	if err != nil {
		return err
	}
	return tellTogether(ctx, out, host, line)
}

// tellTogether prints this node's line, or those of all nodes of the launch where they meet.
func tellTogether(ctx context.Context, out io.Writer, host string, line []byte) error {
	o, err := rendezvous.FromEnvironment(os.Getenv)
	if err != nil {
		return err
	}
	o.At = os.Getenv(wire.MeetAtVariable)
	if o.At == "" {
		o.Rank, o.Size = 0, 1 // of a server before they met
	}
	at, _, _ := strings.Cut(o.At, ":")
	o.Host, o.Hub = host, at == host
	w, err := rendezvous.Meet(ctx, o)
	if err != nil {
		return err
	}
	defer w.Close()
	return w.TellLines(out, line)
}
