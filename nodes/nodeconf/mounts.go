package nodeconf

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// mounts are what the agents of a cluster mount themselves: some on all nodes,
// some on the head only.
type mounts struct {
	All  []wire.Mount `json:"all,omitempty"`
	Head []wire.Mount `json:"head,omitempty"`
}

// of is what one node mounts.
func (m mounts) of(n muster.Node) []wire.Mount {
	if !n.Head || len(m.Head) == 0 {
		return m.All
	}
	return append(append([]wire.Mount{}, m.All...), m.Head...)
}
