package fake

import (
	"math/rand/v2"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// meter is what a pretended machine uses: as much to send, to keep and to look
// at as that of a real one, and no two samples alike.
type meter struct {
	r     *rand.Rand
	last  wire.Usage
	cores float64
}

func newMeter(seed uint64, f muster.Facts) *meter {
	return &meter{cores: float64(f.Cores), r: rand.New(rand.NewPCG(seed, 1)), last: wire.Usage{MemoryTotal: max(f.Memory, 1<<30), DiskTotal: max(f.Disk, 10<<30)}}
}

// sample is the next one.
func (m *meter) sample() *wire.Usage {
	u := &m.last
	u.CPUUser, u.CPUSystem, u.CPUWait = 0.95*m.cores*m.r.Float64(), 0.05*m.cores*m.r.Float64(), m.r.Float64()/10
	u.Load1 = m.cores * m.r.Float64()
	u.MemoryUsed = u.MemoryTotal/16 + m.r.Int64N(u.MemoryTotal/8*7)
	u.DiskUsed = 5<<30 + m.r.Int64N(1<<30)
	u.Processes = 150 + m.r.IntN(100)
	for _, counter := range []*int64{&u.NetRx, &u.NetTx, &u.MgmtRx, &u.MgmtTx, &u.DiskRead, &u.DiskWrite} {
		*counter += m.r.Int64N(1 << 20)
	}
	out := *u
	return &out
}
