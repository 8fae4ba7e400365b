package slurm

import (
	"fmt"

	"github.com/muster-hpc/muster/wire"
)

// Where the scripts are on nodes.
const (
	epilogPath     = "/etc/muster/slurm-epilog"
	taskPrologPath = "/etc/muster/slurm-task-prolog"
)

// scripts are what slurmd runs on a node without control groups of its own.
func scripts(c Cluster, n wire.Host) []wire.File {
	if c.OwnKernel {
		return nil
	}
	return []wire.File{
		{Path: epilogPath, Mode: 0o755, Content: epilog},
		{Path: taskPrologPath, Mode: 0o755, Content: fmt.Sprintf(taskProlog, MemoryPerCore(c), memory(n))},
	}
}

// epilog runs on each node of a job when it has ended. The agent ends what is left of it.
const epilog = `#!/bin/sh
# Written by Muster. Changes here do not last.
[ "${SLURM_JOB_UID:-0}" -ge 1000 ] || exit 0
pgrep -U "$SLURM_JOB_UID" > /dev/null || exit 0
exec /usr/lib/muster/muster-agent end-job
`

// taskProlog runs before each task, as its user. When a node has no memory left, the kernel
// ends the process with the highest sum of what it uses and its adjustment, in thousandths
// of the node: what is most above that which its job asked for, rather than the largest.
const taskProlog = `#!/bin/sh
# Written by Muster. Changes here do not last.
asked=${SLURM_MEM_PER_NODE:-$((${SLURM_MEM_PER_CPU:-%d} * ${SLURM_CPUS_ON_NODE:-1}))}
adjust=$((1000 - 1000 * asked / %d))
if [ "$asked" -gt 0 ] && [ "$adjust" -gt 0 ]; then
	{ echo "$adjust" > "/proc/$PPID/oom_score_adj"; } 2> /dev/null
fi
exit 0
`
