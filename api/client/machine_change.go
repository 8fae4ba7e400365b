package client

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// ChangeMachines does something with all machines of a set such as
// local-[01-03], or with none. Only administrators may.
func (k *Client) ChangeMachines(ctx context.Context, set string, what wire.MachineAction, r wire.MachineChange) ([]wire.MachineChanged, error) {
	var out wire.MachinesChanged
	err := k.post(ctx, path("machines", set, string(what)), r, &out)
	return out.Machines, err
}

// MachineHistory reports what befell a machine, newest first: the newest limit
// events, or all with 0.
func (k *Client) MachineHistory(ctx context.Context, id muster.MachineID, limit int) (wire.MachineHistory, error) {
	list, err := pages(ctx, k, path("machines", string(id), "history"), nil, limit, func(l wire.MachineHistory) ([]muster.MachineEvent, wire.More) { return l.Events, l.More })
	return wire.MachineHistory{Machine: id, Events: list}, err
}
