package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/cli"
	"github.com/muster-hpc/muster/lab"
	"github.com/muster-hpc/muster/lab/process"
)

func labInventory(of labOf) *cobra.Command {
	asCSV := false
	c := &cobra.Command{
		Use: "inventory", Short: "Print what an administrator tells Muster of the lab's machines", Args: cli.Exactly(),
		Long: `Prints the lab's machines as YAML, with -o json as JSON, with --csv as CSV: name,
class, place, serial number, what switches them on, and for each card its address,
the switch and the port of the switch.`,
		Example: `  sudo muster lab inventory > rack.yaml
  sudo muster lab inventory --csv`,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := of()
			if err != nil {
				return err
			}
			list, err := l.Inventory()
			if err != nil {
				return err
			}
			if asCSV {
				return list.WriteCSV(c.OutOrStdout())
			}
			if f := c.Flag("output"); f != nil && f.Value.String() == "" {
				_ = f.Value.Set("yaml")
			}
			return cli.Print(c, list, func(io.Writer) {})
		},
	}
	c.Flags().BoolVar(&asCSV, "csv", false, "one line for each machine, for spreadsheets")
	return c
}

func labRun(of labOf) *cobra.Command {
	return &cobra.Command{
		Use: "run -- COMMAND [ARGUMENT...]", Short: "Run a command where the server's interface of a lab is", Args: cobra.MinimumNArgs(1),
		Long: `Runs a command in the lab's network namespace, where the server's interface is:
the server itself, or a program that looks at the wire. Everything else is as it is
here. It is no part of the lab: 'muster lab down' does not end it.`,
		Example: `  sudo muster lab run -- muster serve --state /var/tmp/m
  sudo muster lab run -- ip address`,
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := of()
			if err != nil {
				return err
			}
			path, err := exec.LookPath(args[0])
			if err != nil {
				return muster.Errorf(muster.ENotFound, "there is no program %q", args[0]).WithHint("write its path")
			}
			runtime.LockOSThread() // it becomes the command
			if err := l.Enter(); err != nil {
				return err
			}
			return syscall.Exec(path, args, process.WithoutMark(os.Environ())) //nolint:gosec // what was asked for
		},
	}
}

func labServe(of labOf) *cobra.Command {
	return &cobra.Command{
		Use: "serve [-- FLAG...]", Short: "Run a server for the machines of a lab", Args: cobra.ArbitraryArgs,
		Long: `Runs 'muster serve' where the lab is, with what suits its machines: the interface
that they boot from, large packets, their console. Where they are translated, because
this computer lends no processor, their kernels also leave out what only keeps
attackers from a real processor or compares itself at each start, and speeds are
not measured, neither of clusters nor of idle machines. It says the command that it becomes. Flags after -- come last.`,
		Example: `  sudo muster lab serve
  sudo muster lab serve -- --state /var/tmp/m --retain 0`,
		RunE: func(c *cobra.Command, args []string) error {
			l, err := of()
			if err != nil {
				return err
			}
			flags, err := l.Serving()
			if err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return muster.Errorf(muster.EInternal, "where this program is cannot be found out").Wrap(err)
			}
			argv := slices.Concat([]string{"muster", "serve"}, flags, args)
			fmt.Fprintln(c.ErrOrStderr(), strings.Join(argv, " "))
			runtime.LockOSThread() // it becomes the server
			if err := l.Enter(); err != nil {
				return err
			}
			return syscall.Exec(self, argv, process.WithoutMark(os.Environ())) //nolint:gosec // itself
		},
	}
}

func labDoctor() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check what a lab needs of this computer", Args: cli.Exactly(),
		Long: `Checks what a lab needs of this computer, and says in one line what installs all
that is missing.`,
		Example: `  muster lab doctor`,
		RunE: func(c *cobra.Command, _ []string) error {
			found := lab.Doctor(c.Context(), lab.Config{})
			var checks []cli.Check
			missing := false
			for _, k := range found {
				check := cli.Check{Name: k.Name, OK: k.OK, Text: k.Found, Package: k.Package}
				if !k.OK {
					check.Level, check.Fix = "warning", k.Fix
					if k.Needed {
						check.Level, missing = "error", true
					}
				}
				checks = append(checks, check)
			}
			err := cli.Print(c, checks, func(w io.Writer) {
				cli.WriteChecks(w, checks)
				if cure := lab.Cure(found); cure != "" {
					_, _ = io.WriteString(w, "\nAll at once: "+cure+"\n")
				}
			})
			if err == nil && missing {
				return &cli.StatusError{Status: 1}
			}
			return err
		},
	}
}
