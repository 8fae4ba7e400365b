package series

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Node takes a sample of a node, as its agent told it at now. It only touches
// memory. boot distinguishes starts of the machine, if it is known: with
// another boot, counters begin anew.
func (s *Store) Node(now time.Time, cluster muster.ClusterID, node string, machine muster.MachineID, boot string, u wire.Usage) {
	if node == "" || node[0] == '~' || cluster == "" {
		return
	}
	v := [columns]float64{
		CPUUser: u.CPUUser, CPUSystem: u.CPUSystem, CPUWait: u.CPUWait, Load1: u.Load1,
		MemoryUsed: float64(u.MemoryUsed), MemoryTotal: float64(u.MemoryTotal),
		NetRx: float64(u.NetRx), NetTx: float64(u.NetTx), MgmtRx: float64(u.MgmtRx), MgmtTx: float64(u.MgmtTx),
		DiskRead: float64(u.DiskRead), DiskWrite: float64(u.DiskWrite),
		DiskUsed: float64(u.DiskUsed), DiskTotal: float64(u.DiskTotal), Processes: float64(u.Processes),
	}
	s.samples.Add(1)
	s.live.node(now, key{string(cluster), node}, string(machine), boot, &v)
}
