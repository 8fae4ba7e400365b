package nodeconf

import "github.com/muster-hpc/muster"

// What is kept from jobs: the operating system everywhere, and what
// the head runs beside it (slurmctld, slurmdbd and its database, about 160).
const (
	reserveSystem = 128 * mebibyte
	reserveHead   = 256 * mebibyte
	mebibyte      = 1 << 20
)

// capacity reports what the scheduler may use of a node. A node without a
// machine, for the moment, counts as the smallest one of its cluster: the
// scheduler knows no node of no size, and it takes no job before it registers.
func capacity(in Input, n muster.Node) (cores int, memory int64) {
	m, ok := in.Machines[n.Machine]
	if !ok {
		for _, other := range in.Machines {
			if !ok || other.Facts.Memory < m.Facts.Memory {
				m, ok = other, true
			}
		}
	}
	memory = m.Facts.Memory &^ (mebibyte - 1) // the scheduler counts in MiB
	reserve := int64(reserveSystem)
	if n.Head {
		reserve += reserveHead
	}
	// A small machine keeps at least half for jobs.
	memory -= min(reserve, memory/2)
	return max(1, m.Facts.Cores), max(mebibyte, memory)
}
