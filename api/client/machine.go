package client

import (
	"context"
	"net/url"
	"strconv"

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

// MachinePlan reports how a virtual machine would be set up on a machine.
func (k *Client) MachinePlan(ctx context.Context, id muster.MachineID, o muster.VMOptions) (wire.MachinePlan, error) {
	q := url.Values{}
	for name, n := range map[string]int64{"cores": int64(o.Cores), "memory_bytes": o.Memory} {
		if n != 0 {
			q.Set(name, strconv.FormatInt(n, 10))
		}
	}
	if o.HostCores != nil {
		q.Set("host_cores", strconv.Itoa(*o.HostCores))
	}
	if o.Untuned {
		q.Set("tune", "off")
	}
	for name, text := range map[string]string{"nic": o.NIC, "pages": o.Pages, "cpu": o.CPU} {
		if text != "" {
			q.Set(name, text)
		}
	}
	for name, on := range map[string]bool{"save": o.Save, "emulate": o.Emulate} {
		if on {
			q.Set(name, "true")
		}
	}
	q["device"] = o.Devices
	var out wire.MachinePlan
	return out, k.get(ctx, path("machines", string(id), "plan"), q, &out)
}

// Topology reports how a machine is built.
func (k *Client) Topology(ctx context.Context, id muster.MachineID) (wire.MachineTopology, error) {
	var out wire.MachineTopology
	return out, k.get(ctx, path("machines", string(id), "topology"), nil, &out)
}
