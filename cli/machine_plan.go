package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// planFlags are the flags of machine plan.
type planFlags struct {
	muster.VMOptions
	hostCores    int
	memory, tune string
}

func (a *app) machinePlan() *cobra.Command {
	var f planFlags
	c := &cobra.Command{
		Use: "plan (MACHINE | CLUSTER NODE)", Short: "Show how a virtual machine would be set up on a machine", Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "MACHINE is missing")
			}
			return atMost(2)(c, args)
		},
		Long: `Shows how a virtual machine would be set up on a machine, or on the machine of a node:
memory and huge pages of each memory node, which hardware thread runs which vCPU, what is
left to the host, what the virtual machine looks like from inside, its network card and
devices. Each setting has a reason and a place where it can be read back.

It sets nothing. What keeps the virtual machine from being set up is listed with what to
do, and the exit status is 6 then. A bare machine is taken to be booted for it: kernel
arguments are part of the plan. How the machine is built must be known, as for 'muster
machine topology'; of a slice its host says it. JSON has the plan for programs, with the arguments of QEMU.`,
		Example: `  muster machine plan r1-n01
  muster machine plan r1-n01 --cores 16 --nic vf --pages 1GiB
  muster machine plan r1-n01 --device 0000:c1:00.0
  muster machine plan cfd n01 --tune off -o json`,
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return a.nodeNames(c, args[0], typed)
			}
			return a.completeMachine(c, args, typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			o, err := f.options(c)
			if err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			id, err := machineOf(c.Context(), k, args)
			if err != nil {
				return err
			}
			p, err := k.MachinePlan(c.Context(), id, o)
			if err != nil {
				return err
			}
			if err := a.print(p, func(w io.Writer) { writeMachinePlan(w, p) }); err != nil {
				return err
			}
			if len(p.Plan.Lacks) > 0 {
				return &StatusError{Status: exitNoCapacity}
			}
			return nil
		},
	}
	flags := c.Flags()
	flags.IntVar(&f.Cores, "cores", 0, "cores of the virtual machine (default: all but those that the host keeps)")
	flags.StringVar(&f.memory, "memory", "", "its memory, such as 64GiB (default: its cores' share)")
	flags.IntVar(&f.hostCores, "host-cores", 0, "cores that the host keeps for QEMU's own threads (default: 1 of a whole machine with eight or more)")
	flags.StringVar(&f.tune, "tune", "on", "off: without anything that depends on how the machine is built")
	flags.StringVar(&f.NIC, "nic", muster.VMNICVirtio, "network card: virtio, or vf, a virtual function")
	flags.StringVar(&f.Pages, "pages", "", "size of huge pages: 2MiB or 1GiB (default: 2MiB; none with --tune off)")
	flags.StringVar(&f.CPU, "cpu", "", "a model of QEMU's to show instead of the host's")
	flags.BoolVar(&f.Save, "save", false, "the virtual machine may be saved")
	flags.StringArrayVar(&f.Devices, "device", nil, "PCI address of a device to give it whole; repeatable")
	flags.BoolVar(&f.Emulate, "emulate", false, "execute it in software where the host has no KVM (of slices: always)")
	for name, words := range map[string][]string{"tune": {"on", "off"}, "nic": {muster.VMNICVirtio, muster.VMNICFunction}, "pages": {muster.VMPages2MiB, muster.VMPages1GiB}} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	for _, name := range []string{"cores", "memory", "host-cores", "cpu", "device"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return c
}

// options are what the flags say. All that is wrong with them is in the plan, but for what
// is no number or word at all.
func (f *planFlags) options(c *cobra.Command) (muster.VMOptions, error) {
	o := f.VMOptions
	var wrong []string
	o.Untuned = f.tune == "off"
	for _, w := range []struct {
		name, value string
		words       []string
	}{
		{"tune", f.tune, []string{"on", "off"}}, {"nic", f.NIC, []string{muster.VMNICVirtio, muster.VMNICFunction}},
		{"pages", f.Pages, []string{muster.VMPages2MiB, muster.VMPages1GiB}},
	} {
		if c.Flags().Changed(w.name) && !slices.Contains(w.words, w.value) {
			wrong = append(wrong, fmt.Sprintf("--%s: there is no %q, write %s", w.name, clip(w.value, 32), strings.Join(w.words, " or ")))
		}
	}
	if f.Cores < 0 {
		wrong = append(wrong, "--cores is below zero")
	}
	if f.hostCores < 0 {
		wrong = append(wrong, "--host-cores is below zero")
	}
	if f.memory != "" {
		n, err := spec.ParseBytes(f.memory)
		if err != nil {
			wrong = append(wrong, "--memory: "+err.Error())
		}
		o.Memory = n
	}
	if len(wrong) > 0 {
		return o, usage(c, "%s", strings.Join(wrong, "; "))
	}
	if c.Flags().Changed("host-cores") {
		o.HostCores = &f.hostCores
	}
	return o, nil
}

// machineOf is a machine, by its ID or as what a node of a cluster runs on.
func machineOf(ctx context.Context, k *client.Client, args []string) (muster.MachineID, error) {
	if len(args) == 1 {
		return muster.MachineID(args[0]), nil
	}
	cluster, err := k.Cluster(ctx, args[0])
	if err != nil {
		return "", err
	}
	for _, n := range cluster.Nodes {
		if n.Name == args[1] && n.Machine != "" {
			return n.Machine, nil
		}
	}
	return "", muster.Errorf(muster.ENotFound, "cluster %s has no node %q that has a machine", args[0], args[1]).Because(muster.ReasonNoSuchNode).WithHint("see 'muster show %s'", args[0])
}

func writeMachinePlan(w io.Writer, m wire.MachinePlan) {
	p := m.Plan
	kind := "tuned"
	if !p.Tuned {
		kind = "untuned"
	}
	if p.Emulated {
		kind += ", in software"
	}
	fmt.Fprintf(w, "%s: a virtual machine of %s and %s, %s\n", clean(string(m.Machine)), plaintext.Count(len(p.CPUs), "vCPU"), size(p.Memory), kind)
	from := "by its agent"
	if m.Certificate != "" {
		from = "in certificate " + string(m.Certificate)
	}
	if !m.At.IsZero() {
		from += ", " + stamp(m.At)
	}
	fmt.Fprintf(w, "how it is built: %s\n", from)
	if len(p.Lacks) > 0 {
		fmt.Fprintln(w, "\nIt cannot be set up:")
		for _, l := range p.Lacks {
			fmt.Fprintf(w, "  %s: %s\n    what to do: %s\n", clean(l.Reason), clean(l.Text), clean(l.Cure))
		}
	}
	if len(p.KernelArguments) > 0 {
		fmt.Fprintf(w, "\nkernel arguments of the host: %s\n", clean(strings.Join(p.KernelArguments, " ")))
	}
	for _, s := range p.Settings {
		fmt.Fprintf(w, "\n%s: %s\n  because %s\n  read back: %s: %s\n", clean(s.Name), clean(s.Value), clean(s.Reason), clean(s.Read), clean(s.Expect))
	}
}
