package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/cli"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/lab"
	"github.com/muster-hpc/muster/lab/machine"
)

// labDirectory is where a lab lies when nobody says.
const labDirectory = "/var/lib/muster/lab"

// labOf is the lab that the flags of a command name.
type labOf func() (*lab.Lab, error)

func labCommand() *cobra.Command {
	dir := ""
	c := &cobra.Command{
		Use: "lab", Short: "Run a rack of virtual machines on this host, for rehearsals", Args: cobra.ArbitraryArgs, RunE: cli.Group,
		Long: `A rack of virtual machines on this host. They support Wake-on-LAN and network boot, have
BMCs and are connected to a switch. Muster treats them like real bare machines. See
docs/operators/lab.md.`,
		Example: `  sudo muster lab up --machines 4
  sudo muster lab status
  sudo muster lab wake m01
  sudo muster lab down`,
	}
	c.PersistentFlags().StringVar(&dir, "dir", labDirectory, "directory of the lab")
	_ = c.MarkPersistentFlagDirname("dir")
	of := func() (*lab.Lab, error) { return lab.Open(dir) }
	c.AddCommand(labUp(of), labDown(of), labStatus(of), labConsole(of), labFault(of), labWake(of), labPower(of), labInventory(of), labRun(of), labServe(of), labDoctor())
	return c
}

// labFlags say what a lab consists of.
type labFlags struct {
	config   lab.Config
	machines []string
	cores    int
	memory   string
	disk     string
	bios     bool
	net      string
}

func (f *labFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.machines, "machines", []string{"4"}, "machines: N[,class=NAME][,cores=C][,memory=SIZE][,disk=SIZE][,nvme=SIZE]; repeatable, for several classes")
	c.Flags().IntVar(&f.cores, "cores", lab.DefaultCores, "default cores per machine")
	c.Flags().StringVar(&f.memory, "memory", "1GiB", "default memory per machine")
	c.Flags().StringVar(&f.disk, "disk", "8GiB", "default disk size per machine; sparse")
	c.Flags().BoolVar(&f.bios, "bios", false, "machines with a BIOS (the default)")
	c.Flags().BoolVar(&f.config.UEFI, "uefi", false, "machines with UEFI")
	c.Flags().BoolVar(&f.config.TPM, "tpm", false, "machines with a TPM")
	c.Flags().BoolVar(&f.config.NoBMC, "no-bmc", false, "machines without BMCs: only Wake-on-LAN powers them on")
	c.Flags().BoolVar(&f.config.NoKVM, "no-kvm", false, "emulate even if KVM is available, for the same speed everywhere")
	c.Flags().IntVar(&f.config.Racks, "racks", 1, "number of racks")
	c.Flags().StringVar(&f.net, "net", lab.DefaultNet().String(), "management network; the server has its first address")
	c.Flags().StringVar(&f.config.Uplink, "uplink", "", "create the server's interface with this name on the host instead of inside the lab")
	c.MarkFlagsMutuallyExclusive("bios", "uefi")
}

// said reports whether any of the flags was given.
func (f *labFlags) said(c *cobra.Command) bool {
	for _, name := range []string{"machines", "cores", "memory", "disk", "bios", "uefi", "tpm", "no-bmc", "no-kvm", "racks", "net", "uplink"} {
		if c.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// read makes a lab of the flags, or says everything that is wrong with them.
func (f *labFlags) read() (lab.Config, error) {
	c := f.config
	e := muster.Errorf(muster.EInvalid, "the lab cannot be made so")
	bad := func(field string, err error) {
		e.Problems = append(e.Problems, muster.Problem{Field: field, Message: err.Error()})
	}
	base := lab.Class{Name: lab.DefaultClass, Cores: f.cores}
	var err error
	if base.Memory, err = spec.ParseBytes(f.memory); err != nil {
		bad("--memory", err)
	}
	if base.Disk, err = spec.ParseBytes(f.disk); err != nil {
		bad("--disk", err)
	}
	if c.Net, err = netip.ParsePrefix(f.net); err != nil {
		bad("--net", muster.Errorf(muster.EInvalid, "%q is not a network; write it like 10.77.0.0/16", f.net))
	}
	for _, text := range f.machines {
		k, err := lab.ParseClass(text, base)
		if err != nil {
			bad("--machines", err)
			continue
		}
		c.Classes = append(c.Classes, k)
	}
	if len(e.Problems) > 0 {
		return c, e.Listing(e.Problems)
	}
	return c, c.Check()
}

func labUp(of labOf) *cobra.Command {
	var f labFlags
	c := &cobra.Command{
		Use: "up", Short: "Create a lab, or start what is missing", Args: cli.Exactly(),
		Long: `Creates a lab: switch, machines and BMCs. All machines are off. If the lab exists, it
starts what is missing, for example after a reboot of this host; what is running is left
alone.

The server's interface, mgmt0, is in the lab's own network namespace, or on the host
with --uplink: 'muster lab serve' runs a server on it.`,
		Example: `  sudo muster lab up --machines 4
  sudo muster lab up --machines 3,class=small --machines 1,class=big,cores=2,memory=2GiB --uefi --tpm
  sudo muster lab up --machines 8 --racks 2 --no-bmc --dir /var/tmp/lab2
  sudo muster lab up --machines 4 --uplink lab0`,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := of()
			if err != nil {
				return err
			}
			config, err := f.read()
			if err != nil {
				return err
			}
			// Without controllers in this program no machine can have one.
			config.NoBMC = config.NoBMC || labController() == nil
			want := &config
			if _, err := l.Config(); err == nil && !f.said(c) {
				want = nil // the lab that is there
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if err := l.Up(c.Context(), want, self, told(c)); err != nil {
				return err
			}
			s, err := l.Status(c.Context())
			if err != nil {
				return err
			}
			return cli.Print(c, s, func(w io.Writer) { writeLab(w, s); tellServer(w, s) })
		},
	}
	f.add(c)
	return c
}

// told prints progress beside the result.
func told(c *cobra.Command) lab.Told {
	return func(format string, args ...any) { fmt.Fprintf(c.ErrOrStderr(), format+"\n", args...) }
}

// tellServer says how a server is run on a lab.
func tellServer(w io.Writer, s lab.Status) {
	if s.Uplink {
		fmt.Fprintf(w, "\nThe server's interface is %s, with %s.\n", s.Interface, s.Server)
	} else {
		fmt.Fprintf(w, "\nThe server's interface is %s, with %s, inside the lab.\n", s.Interface, s.Server)
	}
	at := ""
	if s.Dir != labDirectory {
		at = " --dir " + s.Dir
	}
	fmt.Fprintf(w, "Next: sudo muster lab serve%s, and in another terminal: sudo muster lab inventory%[1]s > rack.yaml; sudo muster machine import rack.yaml\n", at)
}

func labDown(of labOf) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Remove a lab with everything in it", Args: cli.Exactly(),
		Long: `Powers off all machines and removes the lab: processes, namespaces, files. The data on
the machines' disks is lost. It works on partial labs, and it is not an error if there
is none.`,
		Example: `  sudo muster lab down
  sudo muster lab down --dir /var/tmp/lab2`,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := of()
			if err != nil {
				return err
			}
			return l.Down(c.Context(), told(c))
		},
	}
}

// labMachineCommand is one machine of a lab. 'muster lab up' starts it; it ends with
// 'muster lab down'.
func labMachineCommand() *cobra.Command {
	return &cobra.Command{
		Use: lab.MachineArgument + " DIR", Short: "Run one machine of a lab", Hidden: true,
		Example: "  muster lab-machine /var/lib/muster/lab/machines/m01",
		Args:    cli.Exactly("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			// Who presses Ctrl-C where the lab was made does not mean its machines.
			signal.Ignore(os.Interrupt, syscall.SIGHUP)
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			return machine.Run(c.Context(), args[0], machine.Options{Clock: muster.SystemClock{}, Log: log, Controller: labController()})
		},
	}
}
