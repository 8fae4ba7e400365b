package series

// columns is how many figures an entry has. More may come at the end: a block
// says how many it holds.
const columns = 16

// The figures of a node.
const (
	CPUUser     = iota // cores busy in user mode
	CPUSystem          // cores busy in the kernel
	CPUWait            // cores that waited for input and output
	Load1              // processes that run or want to
	MemoryUsed         // bytes without caches
	MemoryTotal        // bytes
	NetRx              // bytes/s received by the message interfaces
	NetTx              // bytes/s
	MgmtRx             // bytes/s received by the management interface
	MgmtTx             // bytes/s
	DiskRead           // bytes/s
	DiskWrite          // bytes/s
	DiskUsed           // bytes of the root file system
	DiskTotal          // bytes
	Processes
)

// firstRate to lastRate are made from counters, and weighted by themselves:
// there is none until a counter was seen twice.
const (
	firstRate = NetRx
	lastRate  = DiskWrite
)

func isRate(column int) bool { return column >= firstRate && column <= lastRate }

// Names of entries that are not nodes: no node can have them.
const (
	EntryJobs     = "~jobs"     // of a cluster: JobsRunning, JobsPending
	EntryHosts    = "~hosts"    // of a cluster: HostsUp, HostsDown, HostsTotal
	EntryMachines = "~machines" // of the site: by phase, in the order of muster.MachinePhases
	EntryClusters = "~clusters" // of the site: by phase, in the order of muster.ClusterPhases
	EntryCores    = "~cores"    // of a cluster or the site: CoresBusy (summed by this package), CoresTotal
)

// The figures of EntryJobs.
const (
	JobsRunning = iota
	JobsPending
)

// The figures of EntryHosts.
const (
	HostsUp    = iota
	HostsDown  // lost, and not replaced yet
	HostsTotal // all places of the cluster, also those that boot
)

// The figures of EntryCores.
const (
	CoresBusy = iota
	CoresTotal
)

// NodeColumns are the names of a node's figures, in their order: those of wire.Usage, but
// that counters of bytes are by time.
func NodeColumns() []string {
	return []string{
		"cpu_user", "cpu_system", "cpu_wait", "load1", "memory_used_bytes", "memory_total_bytes",
		"net_rx_bytes_per_second", "net_tx_bytes_per_second", "mgmt_rx_bytes_per_second", "mgmt_tx_bytes_per_second",
		"disk_read_bytes_per_second", "disk_write_bytes_per_second", "disk_used_bytes", "disk_total_bytes", "processes",
	}
}
