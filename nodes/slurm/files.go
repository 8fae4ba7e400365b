package slurm

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// Directory of the configuration on the head.
const etc = "/etc/slurm/"

// Files renders the head's files. They hold no secret.
func Files(c Cluster) []wire.File {
	files := append(clientFiles(c), wire.File{Path: etc + "job_submit.lua", Mode: 0o644, Content: jobSubmit})
	if gres := gresConf(c); gres != "" {
		files = append(files, wire.File{Path: etc + "gres.conf", Mode: 0o644, Content: gres})
	}
	if c.Accounting {
		files = append(files, wire.File{Path: etc + "slurmdbd.conf", Mode: 0o600, Owner: "slurm", Content: dbdConf})
	}
	return files
}

// clientFiles are what every program of Slurm reads.
func clientFiles(c Cluster) []wire.File {
	files := []wire.File{
		{Path: etc + "slurm.conf", Mode: 0o644, Content: slurmConf(c)},
		{Path: etc + "cgroup.conf", Mode: 0o644, Content: cgroupConf(c)},
		// The distribution's own file includes by a pattern, of which Slurm
		// complains.
		{Path: etc + "plugstack.conf", Mode: 0o644, Content: "# No plugins.\n"},
	}
	if c.Tree {
		files = append(files, wire.File{Path: etc + "topology.conf", Mode: 0o644, Content: topologyConf(c)})
	}
	return files
}

// gresConf says which devices are the nodes' accelerators; "" where none has any.
func gresConf(c Cluster) string {
	var b strings.Builder
	for _, n := range c.Nodes {
		if n.Compute && n.GPUs > 0 {
			b.WriteString("NodeName=" + n.Name + " Name=gpu File=" + n.GPUFiles + "\n")
		}
	}
	return b.String()
}

func cgroupConf(c Cluster) string {
	if c.OwnKernel {
		return "# A job has the cores and the memory that it asked for, and no more.\nCgroupPlugin=cgroup/v2\nIgnoreSystemdOnFailure=yes\nConstrainCores=yes\nConstrainRAMSpace=yes\nConstrainSwapSpace=yes\n"
	}
	if parseRelease(c.Version).hasCgroupDisabled() {
		return "# A node in namespaces has no control groups to give away.\nCgroupPlugin=disabled\n"
	}
	// This release looks for a plugin by itself unless one is named, and does
	// not stand a host with old and new hierarchies. The one for the old ones
	// touches nothing until a plugin asks it to, and none does.
	return "# No plugin in slurm.conf uses control groups.\nCgroupPlugin=cgroup/v1\nConstrainCores=no\nConstrainRAMSpace=no\n"
}

// jobSubmit refuses what a cluster could only forget: it sends no mail.
const jobSubmit = `-- Written by Muster. Changes here do not last.
function slurm_job_submit(job, partition, uid)
  if job.mail_type ~= nil and job.mail_type ~= slurm.NO_VAL16 and job.mail_type ~= 0 then
    slurm.log_user("this cluster sends no mail: leave out --mail-type, and see the job's state with sacct or squeue")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partition, uid)
  return slurm_job_submit(job, partition, uid)
end

return slurm.SUCCESS
`

// dbdConf needs no password: the database knows the user slurm by its socket.
const dbdConf = `# Accounting of this cluster, on its head.
AuthType=auth/munge
DbdHost=localhost
DbdAddr=127.0.0.1
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
PidFile=/run/slurmdbd/slurmdbd.pid
`

// section is a group of settings under a comment that says why.
type section struct {
	why      string
	settings []string // alternating name and value
}

func slurmConf(c Cluster) string {
	var b strings.Builder
	b.WriteString("# Rendered by Muster for Slurm " + c.Version + ". Changes here do not last.\n")
	for _, s := range sections(c) {
		b.WriteString("\n# " + s.why + "\n")
		for i := 0; i < len(s.settings); i += 2 {
			b.WriteString(s.settings[i] + "=" + s.settings[i+1] + "\n")
		}
	}
	return b.String()
}

func sections(c Cluster) []section {
	list := []section{
		{"Who we are. Nodes ask the head for everything else.", []string{
			"ClusterName", ClusterName(c.Name),
			"SlurmctldHost", c.Head + "(" + c.HeadAddress + ")",
			"SlurmctldParameters", "enable_configless",
			"SlurmUser", "slurm",
			"AuthType", "auth/munge",
			// Requeued jobs wait for the end of their old credential.
			"AuthInfo", "cred_expire=5",
		}},
		{"Where things are. Messages go to the journal.", []string{
			"StateSaveLocation", "/var/lib/slurm/slurmctld",
			"SlurmdSpoolDir", "/var/spool/slurmd",
			"SlurmctldPidFile", "/run/slurmctld/slurmctld.pid",
			"SlurmdPidFile", "/run/slurm/slurmd.pid",
			"MailProg", "/bin/true",
		}},
		processes(c),
		{"Resources.", []string{
			"SelectType", "select/cons_tres",
			"SelectTypeParameters", "CR_Core_Memory",
			"DefMemPerCPU", strconv.FormatInt(MemoryPerCore(c), 10),
			// A job has the node's limits, not those of the shell it came from.
			"PropagateResourceLimits", "NONE",
			"MpiDefault", "pmix",
			// Between being asked to end and being killed.
			"KillWait", "20",
			"GresTypes", "gpu",
			"TmpFS", cmp.Or(c.TmpFS, "/tmp"),
		}},
		{"What users find on other clusters: large arrays, scrontab, srun --x11.", []string{
			"MaxArraySize", "100001",
			"MaxJobCount", "200000",
			"ScronParameters", "enable",
			"PrologFlags", "X11",
			// What could not be kept is refused when it is asked for.
			"JobSubmitPlugins", "lua",
		}},
		{"Jobs start when there is room, not some seconds later. Those of --switches wait for it: Slurm's own limit is five minutes.", []string{
			"SchedulerType", "sched/backfill",
			"SchedulerParameters", "batch_sched_delay=0,sched_interval=5,bf_interval=5,enable_user_top,max_switch_wait=604800",
			"PriorityType", "priority/basic",
		}},
		{"Nodes come and go; one that returns is used again.", []string{
			// The same for every size: a cluster that grows needs no new file.
			"MaxNodeCount", strconv.Itoa(maxNodes),
			"TreeWidth", "256",
			"ReturnToService", "2",
			"SlurmdTimeout", "60",
			"SlurmctldTimeout", "60",
			"MessageTimeout", "20",
		}},
		accounting(c),
		{"One partition with all nodes.", []string{
			"PartitionName", "main Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
		}},
	}
	if c.Tree {
		list = append(list, section{"Jobs get nodes that are near to each other: topology.conf.", []string{
			"TopologyPlugin", "topology/tree",
		}})
	}
	return list
}

// processes says how a job's are found, counted and ended.
func processes(c Cluster) section {
	if c.OwnKernel {
		return section{"Control groups hold a job's processes and bound them.", []string{
			"ProctrackType", "proctrack/cgroup",
			"TaskPlugin", "task/cgroup,task/affinity",
			"JobAcctGatherType", "jobacct_gather/cgroup",
			"JobAcctGatherFrequency", "10",
		}}
	}
	return section{"Without control groups: the epilog ends what a job left, and what is over its memory is killed.", []string{
		// linuxproc cannot be combined with X11.
		"ProctrackType", "proctrack/pgid",
		"TaskPlugin", "task/none",
		"Epilog", epilogPath,
		"TaskProlog", taskPrologPath,
		"JobAcctGatherType", "jobacct_gather/linux",
		"JobAcctGatherFrequency", "task=3",
		// Memory that ranks share would count once for each.
		"JobAcctGatherParams", "NoShared,OverMemoryKill",
	}}
}

func accounting(c Cluster) section {
	if !c.Accounting {
		return section{"No accounting in this image.", []string{
			"AccountingStorageType", "accounting_storage/none",
		}}
	}
	return section{"Accounting records everybody and stops nobody.", []string{
		"AccountingStorageType", "accounting_storage/slurmdbd",
		"AccountingStorageHost", c.Head,
	}}
}

// maxNodes is how far a cluster can grow.
const maxNodes = 4096

// MemoryPerCore is what a job gets for each core unless it asks, in MiB:
// without it, the first job on a node takes all of its memory. It is that of
// the nodes unless c says.
func MemoryPerCore(c Cluster) int64 {
	if c.MemoryPerCore > 0 {
		return c.MemoryPerCore
	}
	least := int64(-1)
	for _, n := range c.Nodes {
		if !n.Compute {
			continue
		}
		m := memory(n) / int64(cores(n))
		if least < 0 || m < least {
			least = m
		}
	}
	return max(1, least)
}
