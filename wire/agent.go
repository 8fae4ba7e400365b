package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// AgentProtocol is the version of the messages below. Server and agent one
// version apart work together: fields are only added, unknown ones ignored.
const AgentProtocol = 1

// EpochHeader is in every answer to an agent: the epoch of the server's records, in
// decimal. A server that does not say it is of the first.
const EpochHeader = "Muster-Epoch"

// Bootstrap is what a machine is given to find the server: written by the provider
// where only the machine's root can read it (/run/muster/seed.json, 0400).
type Bootstrap struct {
	Server  string           `json:"server"` // https://10.90.0.1:7700
	CA      string           `json:"ca"`     // PEM: the only authority the agent trusts
	Token   string           `json:"token"`  // one time
	Machine muster.MachineID `json:"machine"`
	Attempt int64            `json:"attempt"`
	Trust   muster.Trust     `json:"trust"`
	// Started is when the provider started the machine: the zero of its stages.
	Started time.Time `json:"started"`
}

// JoinRequest exchanges a one-time token for a node credential. POST /v1/join
type JoinRequest struct {
	Protocol int              `json:"protocol"`
	Version  string           `json:"version"`
	Machine  muster.MachineID `json:"machine"`
	Attempt  int64            `json:"attempt"`
	Token    string           `json:"token"`
	CSR      string           `json:"csr"` // PEM; the private key never leaves the machine
}

// JoinReply carries the credential and, to save a round trip, the first
// configuration.
type JoinReply struct {
	Protocol    int             `json:"protocol"`
	Certificate string          `json:"certificate"` // PEM, client authentication
	Expires     time.Time       `json:"expires"`
	Config      *NodeConfig     `json:"config,omitempty"`
	Interval    muster.Duration `json:"interval_seconds"`
	// Speak: the connection that this came over speaks for the node from now on.
	// Any other presents the certificate.
	Speak bool `json:"speak,omitempty"`
}

// RenewRequest asks for a new certificate over a connection that presents a
// valid one. POST /v1/renew, answered by a JoinReply without Config.
type RenewRequest struct {
	CSR string `json:"csr"`
}

// NodeConfig is everything a node must know, complete before the first node of
// a cluster boots. GET /v1/config returns it; GET /v1/watch?generation=G
// answers when there is a newer one, or 204 after a minute.
type NodeConfig struct {
	Generation  int64            `json:"generation"`
	Cluster     muster.ClusterID `json:"cluster"`
	ClusterName string           `json:"cluster_name"`
	Project     string           `json:"project"`
	Node        string           `json:"node"`
	Role        muster.Role      `json:"role"`
	Head        bool             `json:"head"`      // this node is the head
	HeadNode    string           `json:"head_node"` // name of the head
	// HeadBoot is the number of the head's boot: another one means that the
	// scheduler was away.
	HeadBoot int64 `json:"head_boot,omitempty"`
	// Sync is the mark of a pause for which the node is to write to its volumes all that it has of them, and
	// then to say so: see CheckSynced. "": it is not.
	Sync       string `json:"sync,omitempty"`
	Address    string `json:"address"`   // of this node on the message network, with prefix length
	Interface  string `json:"interface"` // message interface: msg0
	Management string `json:"management_interface"`
	Domain     string `json:"domain"` // n01.cfd.muster
	// Hosts lists every node, with its message address, in index order.
	Hosts []Host `json:"hosts"`
	// HostsDigest names the list of a large cluster, in place of Hosts, for agents
	// that ask with hosts=apart: GET /v1/hosts/DIGEST answers it, compressed.
	HostsDigest string `json:"hosts_digest,omitempty"`
	// Cores and Memory (bytes) are what the scheduler may use here.
	Cores    int   `json:"cores"`
	Memory   int64 `json:"memory_bytes"`
	UserRoot bool  `json:"user_root"` // users are root on this image
	// Cache is what all last-level caches of its host hold together, in bytes, if it is a virtual machine, which may
	// show other ones. 0: not known, or its kernel knows.
	Cache int64 `json:"cache_bytes,omitempty"`
	// Shape is the part of its machine that the node has; nil: all of it.
	Shape *NodeShape `json:"shape,omitempty"`
	// Oversubscribed nodes share their cores with others: what waits must yield.
	Oversubscribed bool      `json:"oversubscribed,omitempty"`
	Users          []Account `json:"users"`
	// Prober is the account that measures, on nodes whose image has the means.
	Prober *Account     `json:"prober,omitempty"`
	SSH    SSHConfig    `json:"ssh"`
	Slurm  *SlurmConfig `json:"slurm,omitempty"` // nil: no scheduler
	// Files are written as given before any service starts. Secrets travel in
	// their own fields, not here.
	Files  []File  `json:"files,omitempty"`
	Mounts []Mount `json:"mounts,omitempty"`
	// Outside are hosts outside that the node reaches by way of the server: licence servers.
	Outside  []Host   `json:"outside,omitempty"`
	ProxyURL string   `json:"proxy_url,omitempty"` // egress proxy
	Time     []string `json:"time,omitempty"`      // NTP servers; empty: the machine's clock is the host's
	// TimeZone is the site's, such as Europe/Berlin; "": the image's own.
	TimeZone string `json:"time_zone,omitempty"`
	// Notices are told once to everybody who is logged in, and kept in the
	// message of the day.
	Notices []muster.Notice `json:"notices,omitempty"`
	// Expires is when the cluster's walltime ends.
	Expires time.Time `json:"expires,omitzero"`
}

// NodeShape is the part of its machine that a node has. The agent looks whether it is so.
type NodeShape struct {
	Cores   int   `json:"cores,omitempty"`   // physical; 0: all
	Sockets int   `json:"sockets,omitempty"` // 0: any
	Memory  int64 `json:"memory_bytes,omitempty"`
	// KernelArgs stand in the command line of the node's kernel.
	KernelArgs []string `json:"kernel_args,omitempty"`
	// LinkRate is what its links for messages are held to, in bits/s each way; 0: nothing.
	LinkRate int64 `json:"link_rate_bps,omitempty"`
	// Make: the agent takes cores and memory offline and holds the links, since the node is
	// a whole machine. Otherwise its host has done it.
	Make bool `json:"make,omitempty"`
}

// Host is a name with its address.
type Host struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	// Cores and Memory (bytes) are what the scheduler may use there; Compute is
	// false for a separate head, which takes no jobs.
	Cores   int   `json:"cores,omitempty"`
	Memory  int64 `json:"memory_bytes,omitempty"`
	Compute bool  `json:"compute,omitempty"`
	// Sockets is over how many the cores are spread, evenly; 0: not known.
	Sockets int `json:"sockets,omitempty"`
	// Scratch is the room for what programs put away for a while, in bytes.
	Scratch int64 `json:"scratch_bytes,omitempty"`
	// GPUs is how many accelerators the scheduler may hand out there; GPUFiles are their
	// devices: /dev/nvidia[0-3].
	GPUs     int    `json:"gpus,omitempty"`
	GPUFiles string `json:"gpu_files,omitempty"`
	// Hold: the scheduler may not use the node yet. Its agent starts no slurmd
	// and reports ready when all else is.
	Hold bool `json:"hold,omitempty"`
	// Drain: the scheduler gives it no new jobs; it is to leave.
	Drain bool `json:"drain,omitempty"`
	// Reserve: the scheduler gives it no new jobs for the time being.
	Reserve bool `json:"reserve,omitempty"`
	// Unwell: something that jobs need does not work there; it gets no new ones.
	Unwell bool `json:"unwell,omitempty"`
	// Down: its machine is lost. The head marks it down in the scheduler.
	Down bool `json:"down,omitempty"`
}

// Account is a person on every node.
type Account struct {
	Name     string   `json:"name"`
	UID      int      `json:"uid"`
	GID      int      `json:"gid"`
	FullName string   `json:"full_name,omitempty"`
	Keys     []string `json:"keys,omitempty"`
	// Home is where it starts; "" for its folder in /home.
	Home string `json:"home,omitempty"`
}

// SSHConfig is what makes every node know every other and let users in.
type SSHConfig struct {
	HostKey         string `json:"host_key"`         // private, OpenSSH PEM; this node's only
	HostCertificate string `json:"host_certificate"` // of HostKey, signed by HostCA: for agents from before DoorCertificate
	// DoorCertificate is that of HostKey by which users know the node: signed by the site's host
	// authority, under the names of doors.
	DoorCertificate string `json:"door_certificate,omitempty"`
	// InsideKey and InsideCertificate are those by which the cluster's nodes know it: ECDSA, and
	// signed by HostCA.
	InsideKey         string `json:"inside_key,omitempty"`
	InsideCertificate string `json:"inside_certificate,omitempty"`
	HostCA            string `json:"host_ca"` // public key; known_hosts @cert-authority
	UserCA            string `json:"user_ca"` // public key; TrustedUserCAKeys
	// Principal that a user's certificate must carry here: user + "@" + cluster ID.
	PrincipalSuffix string `json:"principal_suffix"`
	// RootKey is a private key shared by root on all nodes, only where users
	// are root.
	RootKey       string `json:"root_key,omitempty"`
	RootPublicKey string `json:"root_public_key,omitempty"`
}

// SlurmConfig is this node's part in Slurm.
type SlurmConfig struct {
	Version  string `json:"version"`             // of the image: 24.11.5
	MungeKey string `json:"munge_key"`           // base64; the whole cluster's
	Files    []File `json:"files,omitempty"`     // slurm.conf, ...: head only
	NodeConf string `json:"node_conf,omitempty"` // for slurmd -Z --conf; empty: runs no slurmd
	Server   string `json:"server"`              // head name for --conf-server
	// Scripts are what slurmd runs as jobs begin and end, on nodes that compute.
	Scripts []File `json:"scripts,omitempty"`
	// ClusterName as Slurm and its accounting know it.
	ClusterName string `json:"slurm_cluster_name,omitempty"`
	// NodeLines are arguments of "scontrol create", one for each compute node
	// in index order: whatever order nodes come up in, Slurm then lists and
	// ranks them in this one. Head only.
	NodeLines []NodeLine `json:"node_lines,omitempty"`
	// Operator is the user who may drain nodes, reserve them and change everybody's jobs: the
	// cluster's owner. It takes Accounting. "": nobody.
	Operator string `json:"operator,omitempty"`
	// Accounting tells the head to run slurmdbd and its database.
	Accounting bool `json:"accounting,omitempty"`
	// Tree: Slurm knows where nodes stand, and gives no jobs to a node that it did not know
	// when it read its configuration last. Head only.
	Tree bool `json:"tree,omitempty"`
	// Ending: the cluster ends. The head stops new jobs, lets running ones end
	// as they do at their own time limit, and says so by Report.Ended.
	Ending bool `json:"ending,omitempty"`
	// Pause: the cluster is being paused. The head stops new jobs, and waits for running
	// ones (PauseWait) or puts them into the queue again (PauseRequeue), or suspends them (PauseFreeze).
	Pause muster.OnPause `json:"pause,omitempty"`
	// Lose: with PauseRequeue, jobs that cannot be queued again are ended. Without it the head touches
	// no job while there is one: the server takes the pause back.
	Lose       bool   `json:"lose,omitempty"`
	DBPassword string `json:"db_password,omitempty"` // head only, where accounting needs one
}

// NodeLine declares one compute node to Slurm.
type NodeLine struct {
	Name string   `json:"name"`
	Args []string `json:"args"` // NodeName=n01 CPUs=1 ...
}

// File is a file to write.
type File struct {
	Path    string `json:"path"`
	Mode    uint32 `json:"mode"`
	Owner   string `json:"owner,omitempty"` // user name; default root
	Content string `json:"content"`
}

// Mount is a file system to mount. The local provider mounts volumes itself.
type Mount struct {
	Source  string `json:"source"`
	Target  string `json:"target"`
	Type    string `json:"type"`
	Options string `json:"options,omitempty"`
}

// Report is everything an agent has to say since the last one; it is the
// heartbeat too. POST /v1/report
type Report struct {
	Attempt    int64          `json:"attempt"`
	Generation int64          `json:"generation"` // of the configuration in force; 0 none
	BootID     string         `json:"boot_id,omitempty"`
	State      string         `json:"state"` // configuring, checking, ready, failed
	Stages     []muster.Stage `json:"stages,omitempty"`
	Facts      *muster.Facts  `json:"facts,omitempty"` // as seen inside; with the first report
	Usage      *Usage         `json:"usage,omitempty"`
	Journal    []JournalLine  `json:"journal,omitempty"`
	Checks     []Check        `json:"checks,omitempty"`
	// Scheduler is the head's view of all nodes, when it changed.
	Scheduler *SchedulerState `json:"scheduler,omitempty"`
	// Dropped counts journal lines lost because the server did not answer.
	Dropped int64 `json:"dropped,omitempty"`
	// Goodbye says that the node goes down in order: reboot, poweroff or hibernate. The
	// agent's last word; a hint only.
	Goodbye string `json:"goodbye,omitempty"`
	// Reached answers ReportReply.Reach, once for each name.
	Reached []Reach `json:"reached,omitempty"`
	// Probe: the node's image has what measuring needs.
	Probe bool `json:"probe,omitempty"`
	// Topology is how the machine is built; once after each start.
	Topology *muster.Topology `json:"topology,omitempty"`
	// Seconds are how busy the processors were since the last report, if that is wanted.
	Seconds *UsageSeconds `json:"seconds,omitempty"`
}

// MaxUsageSeconds is how many seconds one report tells of.
const MaxUsageSeconds = 600

// UsageSeconds are how many cores were busy in each of the seconds that ended last,
// oldest first. All lists are equally long. Waiting is for input and output, and is
// idle time.
type UsageSeconds struct {
	// Ago is how many seconds ago the last of them ended: clocks differ.
	Ago    float64   `json:"ago_seconds"`
	User   []float64 `json:"user"`
	System []float64 `json:"system"`
	Wait   []float64 `json:"wait"`
}

// ReportReply tells the agent how to go on.
type ReportReply struct {
	Interval   muster.Duration `json:"interval_seconds"` // until the next report
	Generation int64           `json:"generation"`       // newest configuration
	// Reach names nodes that the server does not hear. The agent tries whether
	// it reaches them, and says so as soon as it knows.
	Reach []string `json:"reach,omitempty"`
	// Launch is what the agent is to run now, if it does not yet.
	Launch *LaunchOrder `json:"launch,omitempty"`
	// Save: the agent is to send the node's root file system now, if it does not yet.
	Save *SaveOrder `json:"save,omitempty"`
	// PowerOff: the machine is to go off now.
	PowerOff bool `json:"power_off,omitempty"`
	// Hibernate: the machine is to write its memory to its disk and go off now.
	Hibernate *HibernateOrder `json:"hibernate,omitempty"`
	// Seconds: the node is being measured, and how busy its processors are in each second
	// is wanted until a reply does not say so.
	Seconds bool `json:"seconds,omitempty"`
}

// SaveOrder asks for the root file system of a node, as a tar without what is mounted on
// it. POST /v1/saves/ID takes it.
type SaveOrder struct {
	ID string `json:"id"`
}

// Refusal is what an agent is told whose attempt is over (410 Gone): it has nothing
// more to report, and may yet have to do something.
type Refusal struct {
	*muster.Error
	// PowerOff: the machine is to go off now.
	PowerOff bool `json:"power_off,omitempty"`
}

// Usage is a sample of what the node uses (mission row A8).
type Usage struct {
	At          time.Time `json:"at"`
	CPUUser     float64   `json:"cpu_user"`   // cores busy in user mode since the last sample
	CPUSystem   float64   `json:"cpu_system"` // cores
	CPUWait     float64   `json:"cpu_wait"`   // cores
	Load1       float64   `json:"load1"`
	MemoryUsed  int64     `json:"memory_used_bytes"`  // bytes, without caches
	MemoryTotal int64     `json:"memory_total_bytes"` // bytes
	NetRx       int64     `json:"net_rx_bytes"`       // bytes on message interfaces since boot
	NetTx       int64     `json:"net_tx_bytes"`
	MgmtRx      int64     `json:"mgmt_rx_bytes"` // bytes on the management interface since boot
	MgmtTx      int64     `json:"mgmt_tx_bytes"`
	DiskRead    int64     `json:"disk_read_bytes"` // bytes since boot
	DiskWrite   int64     `json:"disk_write_bytes"`
	DiskUsed    int64     `json:"disk_used_bytes"`  // bytes of the root file system
	DiskTotal   int64     `json:"disk_total_bytes"` // bytes
	Processes   int       `json:"processes"`
}

// JournalLine is one line of the node's journal.
type JournalLine struct {
	At       time.Time `json:"at"`
	Unit     string    `json:"unit,omitempty"`
	Priority int       `json:"priority"`
	Message  string    `json:"message"`
}

// Check is one thing verified on a node before it is handed over.
type Check struct {
	Name string `json:"name"` // names, sshd, munge, slurmd, home, ...
	OK   bool   `json:"ok"`
	Text string `json:"text,omitempty"`
}

// CheckSynced is the name of the check that a node's volumes have all that it had of them. Its text is the mark
// of the pause.
const CheckSynced = "synced"

// GoodbyeHibernate is the Goodbye of a machine that writes its memory to its disk now.
const GoodbyeHibernate = "hibernate"

// CheckHibernated is the name of the check that a machine could do as a HibernateOrder says. One that could
// not says so: its text is the order's ID, a colon, and why.
const CheckHibernated = "hibernated"

// SyncMark is the mark of a pause for which nodes write to their volumes what they have of them; "": they do not.
func SyncMark(p *muster.Pause) string {
	if p == nil || p.Suspended.IsZero() {
		return ""
	}
	return p.Suspended.UTC().Format(time.RFC3339Nano)
}

// SchedulerState is what slurmctld says.
type SchedulerState struct {
	Up    bool              `json:"up"`
	Nodes map[string]string `json:"nodes,omitempty"` // name -> idle, mixed, allocated, down, ...
	// Reasons reports why nodes take no jobs, as whoever took them out of use wrote it.
	Reasons map[string]string `json:"reasons,omitempty"`
	Jobs    int               `json:"jobs"`    // running
	Queue   int               `json:"pending"` // pending
	// List is the jobs that run or wait, newest first, at most MaxJobs.
	List []Job `json:"list,omitempty"`
	// Ended: the scheduler ended its jobs because the cluster ends.
	Ended bool `json:"ended,omitempty"`
}

// WouldBeLost says why a pause that does not wait for the job would end it for good; "": it would not.
func (j *Job) WouldBeLost() string {
	switch {
	case j.State == "completing": // it has ended already
		return ""
	case j.NoScript:
		return "it lives by an srun or salloc"
	case j.NoRequeue && j.State != "pending":
		return "it may not be queued again (--no-requeue)"
	}
	return ""
}

// MaxJobs is how many jobs a scheduler's state lists.
const MaxJobs = 200

// Job is one job as the scheduler tells it.
type Job struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Name    string    `json:"name"`
	State   string    `json:"state"` // running, pending, ...
	Nodes   string    `json:"nodes,omitempty"`
	Count   int       `json:"count"` // nodes
	Reason  string    `json:"reason,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Limit   string    `json:"limit,omitempty"`
	// NoScript: it belongs to an srun or salloc and ends with it. NoRequeue: it may not be
	// queued again.
	NoScript  bool `json:"no_script,omitempty"`
	NoRequeue bool `json:"no_requeue,omitempty"`
}
