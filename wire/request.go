package wire

// Request is a cluster request as a user writes it, before validation: the one
// tree that XML, YAML and JSON decode to. Quantities are still text (">=16",
// "64GiB", "8h"); package spec turns a Request into a muster.Spec.
//
// In XML the root element is <cluster>, each field is an element of the same
// name, and lists repeat their element inside the plural one:
// <users><user>alice</user></users>, <packages><package>x</package></packages>.
type Request struct {
	Name      string             `json:"name" doc:"Name of the cluster: lower-case letters, digits and hyphens"`
	Project   string             `json:"project,omitempty" doc:"Project that owns it; default: your only project"`
	Nodes     int                `json:"nodes" doc:"How many compute nodes"`
	Min       int                `json:"min,omitempty" doc:"Fewest nodes that will do; default: all of them"`
	Machine   MachineConstraints `json:"machine,omitzero" doc:"What each machine must be"`
	Shape     ShapeWish          `json:"shape,omitzero" doc:"Which part of its machine each compute node has"`
	Provider  string             `json:"provider,omitempty" doc:"Short for machine.provider: vm, local, metal"`
	VM        VMWish             `json:"vm,omitzero" doc:"How virtual machines are to be, with provider: vm"`
	LinkRate  string             `json:"link_rate,omitempty" doc:"What each node's links for messages are held to, such as 1Gb/s"`
	Mixed     bool               `json:"mixed,omitempty" doc:"Nodes may be of different classes"`
	Image     string             `json:"image,omitempty" doc:"Image name or content ID; default hpc"`
	Packages  []string           `json:"packages,omitempty" doc:"Extra packages: a derived image is built"`
	Head      string             `json:"head,omitempty" doc:"separate or shared"`
	Logins    int                `json:"logins,omitempty" doc:"How many login nodes besides the head; they take no jobs"`
	Scheduler string             `json:"scheduler,omitempty" doc:"slurm or none; default: what the image has"`
	Placement string             `json:"placement,omitempty" doc:"pack, spread or any"`
	Within    string             `json:"within,omitempty" doc:"All nodes in one chassis, rack, leaf, spine, room or site; any-site: they may be in several data centres. Default: site"`
	Like      string             `json:"like,omitempty" doc:"A cluster: what is left out of nodes, head, logins, machine, provider, vm, mixed, shape, link_rate, image, scheduler, placement and within is as that cluster had it, and the answer says what differs"`
	Walltime  string             `json:"walltime,omitempty" doc:"How long, such as 8h or 2d; counted from ready, or from the promised start"`
	Start     StartWish          `json:"start,omitzero" doc:"When: now, +2h, 2026-12-01 10:00 Europe/Berlin, RFC 3339, earliest, or {after, before}; default: as soon as there is room"`
	Priority  string             `json:"priority,omitempty" doc:"scavenger: on machines that nobody else wants, and ended with grace when somebody does"`
	Validate  string             `json:"validate,omitempty" doc:"How much is measured before the cluster is handed over: quick, full or off"`
	IfSlow    string             `json:"if_slow,omitempty" doc:"What becomes of a cluster that is still slow after machines were replaced: deliver or refuse"`
	OnPause   string             `json:"on_pause,omitempty" doc:"What becomes of running jobs when the cluster is paused and nobody says otherwise: wait (the default; also: stop), requeue, freeze, save or hibernate"`
	Egress    string             `json:"egress,omitempty" doc:"none, proxy or nat"`
	Users     []string           `json:"users,omitempty" doc:"Who may log in; default: you"`
	Doors     []string           `json:"doors,omitempty" doc:"Doors of the SSH gateway that are open: straight, jump, plain; or none. Default: all that the site and the project allow"`
	Home      string             `json:"home,omitempty" doc:"Volume mounted at /home: name or ID; default: a new one"`
	HomeQuota string             `json:"home_quota,omitempty" doc:"Bound of a new home, such as 100GiB, where the file system can"`
	Retain    string             `json:"retain,omitempty" doc:"How long the home stays after the cluster is deleted, such as 7d; 0: not at all"`
	Volumes   []string           `json:"volumes,omitempty" doc:"Data to mount: NAME, NAME:/PLACE or NAME:/PLACE:ro"`
	Queue     *bool              `json:"queue,omitempty" doc:"Wait when there is no room now; default true"`
}

// StartWish is when a cluster is wanted. A text in its place is At.
type StartWish struct {
	At     string `json:"at,omitempty" doc:"One time, or now, or earliest"`
	After  string `json:"after,omitempty" doc:"Not before"`
	Before string `json:"before,omitempty" doc:"Its walltime is over by then"`
}

// ShapeWish is which part of its machine each compute node has.
type ShapeWish struct {
	Cores         int      `json:"cores,omitempty" doc:"Cores that are online"`
	Sockets       int      `json:"sockets,omitempty" doc:"Sockets that they come from, as many from each"`
	MemoryPerCore string   `json:"memory_per_core,omitempty" doc:"Memory for each of them, such as 4GiB"`
	KernelArgs    []string `json:"kernel_args,omitempty" doc:"What is added to the kernel's command line"`
	NUMA          string   `json:"numa,omitempty" doc:"Whether programs see the memory nodes: shown or hidden"`
}

// VMWish is how virtual machines are to be.
type VMWish struct {
	Tune    string `json:"tune,omitempty" doc:"on: pinned, in memory of its cores, built as its host is, where the host allows it; off: as QEMU has it by itself. Default: on"`
	NIC     string `json:"nic,omitempty" doc:"virtio, or vf: a virtual function of a card. Default: virtio"`
	Pages   string `json:"pages,omitempty" doc:"Size of huge pages: 2MiB or 1GiB. Default: ordinary pages"`
	Emulate string `json:"emulate,omitempty" doc:"on: QEMU emulates the processor where the host has no KVM; off: such hosts are not taken. Default: on"`
}

// MachineConstraints is the machine part of a Request.
type MachineConstraints struct {
	Provider     string `json:"provider,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	Processor    string `json:"processor,omitempty"`
	Class        string `json:"class,omitempty"`
	Rack         string `json:"rack,omitempty"`
	Cores        string `json:"cores,omitempty"`
	Memory       string `json:"memory,omitempty"`
	Disk         string `json:"disk,omitempty"`
	NICs         string `json:"nics,omitempty"`
	NICSpeed     string `json:"nic_speed,omitempty"`
	NICKind      string `json:"nic_kind,omitempty"`
	Accelerators string `json:"accelerators,omitempty"`
	Accelerator  string `json:"accelerator,omitempty"`
}
