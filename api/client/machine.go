package client

import (
	"context"
	"net/url"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Machines lists the machines that answer, or all.
func (k *Client) Machines(ctx context.Context, all bool) ([]wire.Machine, error) {
	query := url.Values{}
	if all {
		query.Set("all", "1")
	}
	return pages(ctx, k, path("machines"), query, 0, func(l wire.MachineList) ([]wire.Machine, wire.More) { return l.Machines, l.More })
}

// Machine shows one machine. Returns ENotFound if there is none.
func (k *Client) Machine(ctx context.Context, id muster.MachineID) (wire.Machine, error) {
	var out wire.Machine
	return out, k.get(ctx, path("machines", string(id)), nil, &out)
}

// Topology reports how a machine is built.
func (k *Client) Topology(ctx context.Context, id muster.MachineID) (wire.MachineTopology, error) {
	var out wire.MachineTopology
	return out, k.get(ctx, path("machines", string(id), "topology"), nil, &out)
}
