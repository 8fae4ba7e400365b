package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/cli"

	"github.com/muster-hpc/muster/lab/machine"
)

// completeLab completes machines of a lab, and after most of them the words.
func completeLab(of labOf, most int, words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		list := words
		if most < 0 || len(args) < most {
			list = nil
			if l, err := of(); err == nil {
				list, _ = l.Names()
			}
		} else if len(args) > most {
			list = nil
		}
		var out []string
		for _, n := range list {
			if strings.HasPrefix(n, typed) {
				out = append(out, n)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func faultNames() []string {
	var out []string
	for _, k := range machine.FaultKinds() {
		out = append(out, string(k))
	}
	return out
}

func labFault(of labOf) *cobra.Command {
	var (
		clear bool
		f     machine.Fault
		rate  string
	)
	c := &cobra.Command{
		Use: "fault MACHINE FAULT", Short: "Break a machine of a lab, or mend it", Args: cli.Exactly("MACHINE", "FAULT"),
		Long: `Breaks a machine, or all of them, until the fault is taken back with --clear:

  hang       its processors stand still, where they are
  crash      it is on and dead, until it is switched off; happens once
  nic-down   its cables are out: no link, no magic packet
  slow-nic   its links are slow, both ways
  bmc-deaf   its management controller does not answer
  bmc-lies   its management controller says done and does nothing
  boot-loop  it starts anew when a system has come up, or so long after each start
  power-cut  it has no mains: no card listens, no controller answers
  disk-fails its NVMe disk says of itself that it is not reliable any more`,
		Example: `  sudo muster lab fault m02 hang
  sudo muster lab fault m02 hang --clear
  sudo muster lab fault m03 slow-nic --nic message --rate 100Mb/s
  sudo muster lab fault all power-cut`,
		ValidArgsFunction: completeLab(of, 1, faultNames()...),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := of()
			if err != nil {
				return err
			}
			f.Kind = machine.FaultKind(args[1])
			if rate != "" {
				if f.Rate, err = parseRate(rate); err != nil {
					return err
				}
			}
			list, err := l.Fault(c.Context(), strings.Split(args[0], ","), f, clear)
			if err != nil {
				return err
			}
			return cli.Print(c, list, func(w io.Writer) { writeLabMachines(w, list) })
		},
	}
	c.Flags().BoolVar(&clear, "clear", false, "mend it")
	c.Flags().StringVar(&f.NIC, "nic", "", "nic-down, slow-nic: management or message; both where nothing is said")
	c.Flags().StringVar(&rate, "rate", "", "slow-nic: speed (default 100Mb/s)")
	c.Flags().DurationVar(&f.After, "after", 0, "boot-loop: so long after each start (default: when a system has come up)")
	_ = c.RegisterFlagCompletionFunc("nic", cobra.FixedCompletions([]string{machine.Management, machine.Message}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// parseRate reads a speed such as 100Mb/s.
func parseRate(text string) (int64, error) {
	bad := muster.Errorf(muster.EInvalid, "--rate %s is no speed", text).WithHint("write it like 100Mb/s")
	for _, u := range []struct {
		unit string
		bits float64
	}{{"Gb/s", 1e9}, {"Mb/s", 1e6}, {"Kb/s", 1e3}} {
		if number, ok := strings.CutSuffix(text, u.unit); ok {
			var v float64
			if n, err := fmt.Sscanf(number+" ", "%f ", &v); err != nil || n != 1 || v <= 0 || v > 1e3 {
				return 0, bad
			}
			return int64(v * u.bits), nil
		}
	}
	return 0, bad
}

func labWake(of labOf) *cobra.Command {
	return &cobra.Command{
		Use: "wake MACHINE...", Short: "Send machines of a lab the magic packet", Args: cobra.MinimumNArgs(1),
		Long: `Sends the magic packet of each machine from the server's interface. A machine that
is on, or has no mains, or whose cable is out, does nothing.`,
		Example: `  sudo muster lab wake m01 m02
  sudo muster lab wake all`,
		ValidArgsFunction: completeLab(of, -1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := of()
			if err != nil {
				return err
			}
			return l.Wake(c.Context(), args)
		},
	}
}

func labPower(of labOf) *cobra.Command {
	return &cobra.Command{
		Use: "power MACHINE on|off|reset", Short: "Press the button of a machine of a lab", Args: cli.Exactly("MACHINE", "on, off or reset"),
		Long: `Switches a machine on or off, or resets it, as somebody does who stands before it.`,
		Example: `  sudo muster lab power m01 on
  sudo muster lab power all off`,
		ValidArgsFunction: completeLab(of, 1, machine.DoOn, machine.DoOff, machine.DoReset),
		RunE: func(c *cobra.Command, args []string) error {
			switch args[1] {
			case machine.DoOn, machine.DoOff, machine.DoReset:
			default:
				return muster.Errorf(muster.EInvalid, "%q is nothing that a button does", args[1]).WithHint("write on, off or reset")
			}
			l, err := of()
			if err != nil {
				return err
			}
			list, err := l.Power(c.Context(), strings.Split(args[0], ","), args[1])
			if err != nil {
				return err
			}
			return cli.Print(c, list, func(w io.Writer) { writeLabMachines(w, list) })
		},
	}
}

// labLook is how often a console is looked at for something new.
const labLook = 50 * time.Millisecond
