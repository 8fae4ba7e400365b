package wire

// Request is a cluster request as a user writes it, before validation: the one
// tree that XML, YAML and JSON decode to. Quantities are still text (">=16",
// "64GiB", "8h"); package spec turns a Request into a muster.Spec.
//
// In XML the root element is <cluster>, each field is an element of the same
// name, and lists repeat their element inside the plural one:
// <users><user>alice</user></users>, <packages><package>x</package></packages>.
type Request struct {
	Name      string      `json:"name" doc:"Name of the cluster: lower-case letters, digits and hyphens"`
	Project   string      `json:"project,omitempty" doc:"Project that owns it; default: your only project"`
	Nodes     int         `json:"nodes" doc:"How many compute nodes"`
	Min       int         `json:"min,omitempty" doc:"Fewest nodes that will do; default: all of them"`
	Machine   MachineWish `json:"machine,omitzero" doc:"What each machine must be"`
	Mixed     bool        `json:"mixed,omitempty" doc:"Nodes may be of different classes"`
	Image     string      `json:"image,omitempty" doc:"Image name or content ID; default hpc"`
	Packages  []string    `json:"packages,omitempty" doc:"Extra packages: a derived image is built"`
	Head      string      `json:"head,omitempty" doc:"separate or shared"`
	Logins    int         `json:"logins,omitempty" doc:"How many login nodes besides the head; they take no jobs"`
	Scheduler string      `json:"scheduler,omitempty" doc:"slurm or none; default: what the image has"`
	Placement string      `json:"placement,omitempty" doc:"pack, spread or any"`
	Within    string      `json:"within,omitempty" doc:"rack: all nodes in one rack"`
	Walltime  string      `json:"walltime,omitempty" doc:"How long, such as 8h or 2d; counted from ready"`
	Validate  string      `json:"validate,omitempty" doc:"How much is measured before the cluster is handed over: quick, full or off"`
	IfSlow    string      `json:"if-slow,omitempty" doc:"What becomes of a cluster that is still slow after machines were replaced: deliver or refuse"`
	Egress    string      `json:"egress,omitempty" doc:"none, proxy or nat"`
	Users     []string    `json:"users,omitempty" doc:"Who may log in; default: you"`
	Home      string      `json:"home,omitempty" doc:"Volume mounted at /home: name or ID; default: a new one"`
	HomeQuota string      `json:"home-quota,omitempty" doc:"Bound of a new home, such as 100GiB, where the file system can"`
	Retain    string      `json:"retain,omitempty" doc:"How long the home stays after the cluster is deleted, such as 7d; 0: not at all"`
	Volumes   []string    `json:"volumes,omitempty" doc:"Data to mount: NAME, NAME:/PLACE or NAME:/PLACE:ro"`
	Queue     *bool       `json:"queue,omitempty" doc:"Wait when there is no room now; default true"`
}

// MachineWish is the machine part of a Request.
type MachineWish struct {
	Provider     string `json:"provider,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	Processor    string `json:"processor,omitempty"`
	Class        string `json:"class,omitempty"`
	Rack         string `json:"rack,omitempty"`
	Cores        string `json:"cores,omitempty"`
	Memory       string `json:"memory,omitempty"`
	Disk         string `json:"disk,omitempty"`
	NICs         string `json:"nics,omitempty"`
	NICSpeed     string `json:"nic-speed,omitempty"`
	NICKind      string `json:"nic-kind,omitempty"`
	Accelerators string `json:"accelerators,omitempty"`
	Accelerator  string `json:"accelerator,omitempty"`
}
