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
	"github.com/muster-hpc/muster/internal/process"
	"github.com/muster-hpc/muster/lab"
)

func labInventory(of labOf) *cobra.Command {
	asCSV := false
	c := &cobra.Command{
		Use: "inventory", Short: "Print the inventory file of a lab", Args: cli.Exactly(),
		Long: `Prints the lab's machines as YAML, with -o json as JSON, with --csv as CSV: name, class,
location, serial number, power control, and for each interface its MAC, switch and
port. It is what 'muster machine import' reads.`,
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
	c.Flags().BoolVar(&asCSV, "csv", false, "one line per machine, for spreadsheets")
	return c
}

func labRun(of labOf) *cobra.Command {
	return &cobra.Command{
		Use: "run -- COMMAND [ARGUMENT...]", Short: "Run a command in the network namespace of a lab", Args: cobra.MinimumNArgs(1),
		Long: `Runs a command in the lab's network namespace, where the server's interface is: the
server itself, or a packet sniffer. Nothing else is isolated. It is not part of the lab:
'muster lab down' does not stop it.`,
		Example: `  sudo muster lab run -- muster serve --state /var/tmp/m
  sudo muster lab run -- ip address`,
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := of()
			if err != nil {
				return err
			}
			path, err := exec.LookPath(args[0])
			if err != nil {
				return muster.Errorf(muster.ENotFound, "program %q not found", args[0]).WithHint("write its path")
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
		Long: `Runs 'muster serve' in the lab's network namespace, with flags that suit its machines:
boot interface, jumbo frames, console. Without KVM their kernels also run without CPU
vulnerability mitigations and self-tests, and nothing is benchmarked. It prints the
command that it runs. Flags after -- are appended.`,
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
		Use: "doctor", Short: "Check this host for what a lab needs", Args: cli.Exactly(),
		Long: `Checks this host for what a lab needs, and prints one command that installs everything
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
