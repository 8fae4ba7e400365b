package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/cli"

	"github.com/muster-hpc/muster/internal/duration"
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
		Use: "fault MACHINE FAULT", Short: "Inject a fault into a lab machine, or clear it", Args: cli.Exactly("MACHINE", "FAULT"),
		Long: `Injects a fault into one machine or into all of them, until it is cleared with --clear:

  hang             its processors are paused
  crash            it is on but dead until it is powered off; happens once
  nic-down         its cables are unplugged: no link, no Wake-on-LAN
  slow-nic         its links are slow, in both directions
  bmc-unreachable  its BMC does not respond
  bmc-false-ack    its BMC acknowledges commands without executing them
  boot-loop        it resets when an operating system is up, or some time after each start
  power-cut        it has no power: no Wake-on-LAN, no BMC
  disk-failing     its NVMe disk reports that it is failing`,
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
	c.Flags().BoolVar(&clear, "clear", false, "clear the fault")
	c.Flags().StringVar(&f.NIC, "nic", "", "nic-down, slow-nic: management or message (default: both)")
	c.Flags().StringVar(&rate, "rate", "", "slow-nic: bandwidth (default 100Mb/s)")
	duration.Var(c.Flags(), (*time.Duration)(&f.After), "after", 0, "boot-loop: reset this long after each start (default: when the operating system is up)")
	_ = c.RegisterFlagCompletionFunc("nic", cobra.FixedCompletions([]string{machine.Management, machine.Message}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// parseRate reads a speed such as 100Mb/s.
func parseRate(text string) (int64, error) {
	bad := muster.Errorf(muster.EInvalid, "--rate %s is not a speed", text).WithHint("write it like 100Mb/s")
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
		Use: "wake MACHINE...", Short: "Wake lab machines (Wake-on-LAN)", Args: cobra.MinimumNArgs(1),
		Long: `Sends a Wake-on-LAN packet for each machine from the server's interface. A machine that
is on, has no power or is unplugged ignores it.`,
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
		Use: "power MACHINE on|off|reset", Short: "Press the power button of lab machines", Args: cli.Exactly("MACHINE", "on, off or reset"),
		Long: `Powers machines on or off, or resets them, like their power and reset buttons.`,
		Example: `  sudo muster lab power m01 on
  sudo muster lab power all off`,
		ValidArgsFunction: completeLab(of, 1, machine.DoOn, machine.DoOff, machine.DoReset),
		RunE: func(c *cobra.Command, args []string) error {
			switch args[1] {
			case machine.DoOn, machine.DoOff, machine.DoReset:
			default:
				return muster.Errorf(muster.EInvalid, "%q is not a power action", args[1]).WithHint("write on, off or reset")
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
