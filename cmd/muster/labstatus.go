package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-hpc/muster/cli"
	"github.com/muster-hpc/muster/lab"
	"github.com/muster-hpc/muster/lab/machine"
)

func labStatus(of labOf) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show a lab and its machines", Args: cli.Exactly(),
		Long: `Shows the machines of a lab. They are asleep (off, listening for Wake-on-LAN), booting,
running (an operating system has configured an interface), crashed, or gone (their
process is not running: 'muster lab up' starts it).`,
		Example: `  sudo muster lab status
  sudo muster lab status -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := of()
			if err != nil {
				return err
			}
			s, err := l.Status(c.Context())
			if err != nil {
				return err
			}
			return cli.Print(c, s, func(w io.Writer) { writeLab(w, s) })
		},
	}
}

func writeLab(w io.Writer, s lab.Status) {
	engine := "translated"
	if s.KVM {
		engine = "KVM"
	}
	fmt.Fprintf(w, "Lab in %s: %s, %s, switch %s.\n\n", s.Dir, s.Firmware, engine, s.Switch)
	writeLabMachines(w, s.Machines)
}

func writeLabMachines(w io.Writer, list []machine.Status) {
	var rows [][]string
	for _, m := range list {
		bmc := ""
		if m.BMC.IsValid() {
			bmc = m.BMC.String()
		}
		rows = append(rows, []string{m.Machine, string(m.State), cli.Since(m.Since, time.Now()), fmt.Sprint(m.PowerOns), m.Class,
			fmt.Sprintf("%d cores, %s", m.Cores, cli.Size(m.Memory)), m.MAC(machine.Management), m.MAC(machine.Message), bmc, fmt.Sprintf("%s/%d", m.Rack, m.Position), faultWords(m)})
	}
	cli.WriteTable(w, []string{"MACHINE", "STATE", "FOR", "POWER-ONS", "CLASS", "HARDWARE", "MANAGEMENT", "MESSAGE", "BMC", "PLACE", "WHAT IS WRONG"}, rows)
}

// faultWords reports what is wrong with a machine, made or not.
func faultWords(m machine.Status) string {
	var words []string
	for _, f := range m.Faults {
		words = append(words, string(f.Kind))
	}
	if m.Problem != "" {
		words = append(words, m.Problem)
	}
	return strings.Join(words, ", ")
}
