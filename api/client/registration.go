package client

import (
	"context"
	"net/url"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Registered lists the bare machines that the site knows; with a state, those in it.
// Only administrators see them.
func (k *Client) Registered(ctx context.Context, state muster.RegistrationState) ([]muster.Registration, error) {
	query := url.Values{}
	if state != "" {
		query.Set("state", string(state))
	}
	return pages(ctx, k, path("registrations"), query, 0, func(l wire.RegisteredList) ([]muster.Registration, wire.More) { return l.Machines, l.More })
}

// Register registers bare machines: all of them, or none.
func (k *Client) Register(ctx context.Context, r wire.RegisterRequest) ([]wire.RegisteredChange, error) {
	var out wire.RegisteredChanges
	err := k.post(ctx, path("registrations"), r, &out)
	return out.Machines, err
}

// ChangeRegistered approves, blocks, deletes or discovers the machines of a set, or
// none.
func (k *Client) ChangeRegistered(ctx context.Context, set string, what wire.RegisteredAction) ([]wire.RegisteredChange, error) {
	var out wire.RegisteredChanges
	err := k.post(ctx, path("registrations", set, string(what)), struct{}{}, &out)
	return out.Machines, err
}

// MachineBoots lists what bare machines boot for now, and who waits; of one rack, or of
// all. Only administrators see any.
func (k *Client) MachineBoots(ctx context.Context, rack string) (wire.MachineBoots, error) {
	query := url.Values{}
	if rack != "" {
		query.Set("rack", rack)
	}
	out := wire.MachineBoots{Queue: []wire.QueuedBoot{}}
	var err error
	out.Boots, err = pages(ctx, k, path("boots"), query, 0, func(l wire.MachineBoots) ([]wire.MachineBoot, wire.More) {
		out.Queue = append(out.Queue, l.Queue...)
		return l.Boots, l.More
	})
	return out, err
}
