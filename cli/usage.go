package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) usage() *cobra.Command {
	var samples int
	c := &cobra.Command{
		Use: "usage CLUSTER", Short: "Show what the nodes use", Args: exactly("CLUSTER"),
		Long: `Shows processor, memory, network and disk of each node: the last sample, or with
--samples and -o json the last ones.`,
		Example: `  muster usage cfd
  muster usage cfd --samples 60 -o json`,
		ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			u, err := k.Usage(c.Context(), args[0], samples)
			if err != nil {
				return err
			}
			return a.print(u, func(w io.Writer) { writeUsage(w, u, time.Now()) })
		},
	}
	c.Flags().IntVar(&samples, "samples", 0, "how many of the newest samples of each node")
	return c
}

func writeUsage(w io.Writer, u wire.ClusterUsage, now time.Time) {
	t := newTable("NODE", "CPU", "USER", "SYSTEM", "WAIT", "LOAD", "MEMORY", "OF", "RECEIVED", "SENT", "DISK READ", "WRITTEN", "DISK USED", "PROCESSES", "AGE")
	for _, n := range u.Nodes {
		if len(n.Samples) == 0 {
			t.row(n.Node, "", "", "", "", "", "", "", "", "", "", "", "", "", "no sample")
			continue
		}
		for _, s := range n.Samples {
			cpu := s.CPUUser + s.CPUSystem
			t.row(n.Node, fmt.Sprintf("%.2f", cpu), fmt.Sprintf("%.2f", s.CPUUser), fmt.Sprintf("%.2f", s.CPUSystem), fmt.Sprintf("%.2f", s.CPUWait),
				fmt.Sprintf("%.2f", s.Load1), size(s.MemoryUsed), size(s.MemoryTotal), size(s.NetRx), size(s.NetTx),
				size(s.DiskRead), size(s.DiskWrite), size(s.DiskUsed), fmt.Sprint(s.Processes), since(s.At, now))
		}
	}
	t.write(w)
}
