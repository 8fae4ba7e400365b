package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/muster-hpc/muster/agent/conditions"
	"github.com/muster-hpc/muster/wire"
)

// tellConditions prints what changes the figures of this node, as one line. It
// needs no rights, and is run on all nodes at once before and after they are
// measured.
func tellConditions(out io.Writer) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	var s conditions.Source
	return json.NewEncoder(out).Encode(wire.NodeConditions{Host: host, Conditions: s.Read(), Counters: s.Counters()})
}
