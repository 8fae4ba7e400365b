package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

type machinesInput struct {
	All bool `query:"all" doc:"Those that do not answer, too"`
	Page
}

type machineRef struct {
	Machine string `path:"machine" maxLength:"128"`
}

type planInput struct {
	Machine   string   `path:"machine" maxLength:"128"`
	Cores     int      `query:"cores" minimum:"0" maximum:"16384" doc:"Cores of the virtual machine; 0 means all but those that the host keeps"`
	Memory    int64    `query:"memory_bytes" minimum:"0" maximum:"9007199254740992" doc:"Its memory; 0 means its cores' share"`
	HostCores int      `query:"host_cores" minimum:"-1" maximum:"16384" default:"-1" doc:"Cores that the host keeps for QEMU's own threads; -1 means one of a whole machine with eight or more"`
	Tune      string   `query:"tune" enum:"on,off" default:"on" doc:"off: without anything that depends on how the machine is built"`
	NIC       string   `query:"nic" enum:"virtio,vf" default:"virtio" doc:"vf: a virtual function of a network card"`
	Pages     string   `query:"pages" enum:"2MiB,1GiB" doc:"Size of huge pages; without it 2MiB, and none with tune=off"`
	CPU       string   `query:"cpu" maxLength:"64" doc:"A model of QEMU's to show instead of the host's"`
	Save      bool     `query:"save" doc:"It may be saved to a file and loaded elsewhere"`
	Device    []string `query:"device,explode" maxItems:"64" doc:"PCI address of a device to give it whole"`
	Emulate   bool     `query:"emulate" doc:"QEMU executes it in software where the host has no KVM"`
}

func (in *planInput) options() muster.VMOptions {
	o := muster.VMOptions{
		Cores: in.Cores, Memory: in.Memory, Untuned: in.Tune == "off", NIC: in.NIC, Pages: in.Pages, CPU: in.CPU,
		Save: in.Save, Devices: in.Device, Emulate: in.Emulate,
	}
	if in.HostCores >= 0 {
		o.HostCores = &in.HostCores
	}
	return o
}

func (a *API) machineRoutes() {
	route(a, huma.Operation{
		OperationID: "list-machines", Method: http.MethodGet, Path: "/v1/machines", Tags: []string{"machines"},
		Summary: "List the machines that answer, with their facts and the images that run on them",
	}, func(ctx context.Context, in *machinesInput) (wire.MachineList, error) {
		return a.service.Machines(ctx, who(ctx), wire.MachineQuery{All: in.All, Page: in.page()})
	})
	route(a, huma.Operation{
		OperationID: "show-machine", Method: http.MethodGet, Path: "/v1/machines/{machine}", Tags: []string{"machines"},
		Summary: "Show a machine",
	}, func(ctx context.Context, in *machineRef) (wire.Machine, error) {
		return a.service.Machine(ctx, who(ctx), muster.MachineID(in.Machine))
	})
	route(a, huma.Operation{
		OperationID: "machine-topology", Method: http.MethodGet, Path: "/v1/machines/{machine}/topology", Tags: []string{"machines"},
		Summary:     "Show how a machine is built: sockets, memory nodes, caches, cores, network cards",
		Description: "By the word of its agent if that answers, and by its newest certificate otherwise.",
	}, func(ctx context.Context, in *machineRef) (wire.MachineTopology, error) {
		return a.service.Topology(ctx, who(ctx), muster.MachineID(in.Machine))
	})
	route(a, huma.Operation{
		OperationID: "machine-plan", Method: http.MethodGet, Path: "/v1/machines/{machine}/plan", Tags: []string{"machines"},
		Summary: "Show how a virtual machine would be set up on a machine, with reasons",
		Description: "Nothing is set up. What keeps it from being set up is in lacks, each with a reason and a cure; arguments are those of QEMU. " +
			"A whole computer is taken to be booted for it, so that what a kernel argument or a module sets is not lacking.",
	}, func(ctx context.Context, in *planInput) (wire.MachinePlan, error) {
		return a.service.MachinePlan(ctx, who(ctx), muster.MachineID(in.Machine), in.options())
	})
}
