package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/spf13/cobra"
)

func (a *app) doctor() *cobra.Command {
	var fix, virtual bool
	c := &cobra.Command{
		Use: "doctor", Short: "Check this host for missing requirements", Args: exactly(),
		Long: `Checks what a server on this host needs to build images and run machines, and how to fix
what is missing. With --fix it lists the missing Debian packages and installs them.

With --vm it checks instead what virtual machines need of this host, with no server:
virtualization, KVM, IOMMU and interrupt remapping, IOMMU groups, virtual functions of
each network card, huge pages of each memory node, limits. It says the exact way to set
what is missing: a kernel argument, a file, or an entry in firmware setup. It sets none of
it. Run it as root: some files can be read by nobody else.`,
		Example: `  muster doctor
  sudo muster doctor --fix
  sudo muster doctor --vm
  sudo muster doctor --vm -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			look := a.diagnose
			if virtual {
				look = a.diagnoseVM
			}
			checks := look(c.Context())
			if fix {
				done, err := a.fix(c.Context(), checks)
				if err != nil {
					return err
				}
				if done {
					checks = look(c.Context())
				}
			}
			if err := a.print(checks, func(w io.Writer) { writeChecks(w, checks) }); err != nil {
				return err
			}
			if slices.ContainsFunc(checks, func(c Check) bool { return !c.OK && c.Level != "warning" }) {
				return &StatusError{Status: exitFailed}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&virtual, "vm", false, "check what virtual machines need of this host")
	c.Flags().BoolVar(&fix, "fix", false, "install the missing Debian packages (as root)")
	return c
}

// diagnose runs all checks of the host.
func (a *app) diagnose(ctx context.Context) []Check {
	checks := []Check{}
	for _, p := range image.Prerequisites() {
		c := Check{Name: p.Name, OK: p.OK, Text: first(p.Problem, p.Why), Package: p.Package}
		if !p.OK {
			c.Level, c.Text = "error", p.Problem+" ("+p.Why+")"
			if p.Package != "" {
				c.Fix = "apt-get install " + p.Package
			}
		}
		checks = append(checks, c)
	}
	if _, err := exec.LookPath("ssh"); err != nil {
		checks = append(checks, Check{Name: "ssh", Level: "warning", Text: "not found; muster ssh needs it, muster exec does not", Fix: "apt-get install openssh-client", Package: "openssh-client"})
	} else {
		checks = append(checks, Check{Name: "ssh", OK: true, Text: "muster ssh uses it"})
	}
	for _, more := range a.env.Doctor {
		checks = append(checks, more(ctx)...)
	}
	return checks
}

func writeChecks(w io.Writer, checks []Check) {
	t := newTable("CHECK", "RESULT", "WHAT")
	bad := 0
	for _, c := range checks {
		result := "ok"
		if !c.OK {
			result = first(c.Level, "error")
			bad++
		}
		t.row(c.Name, result, c.Text)
	}
	t.write(w)
	if bad == 0 {
		fmt.Fprintln(w, "This host has all that Muster needs.")
		return
	}
	fmt.Fprintln(w, "\nWhat to do:")
	for _, c := range checks {
		if !c.OK && c.Fix != "" {
			fmt.Fprintf(w, "  %s: %s\n", clean(c.Name), clean(c.Fix))
		}
	}
}

// fix installs the packages that checks miss, and reports whether it did.
func (a *app) fix(ctx context.Context, checks []Check) (bool, error) {
	var packages []string
	for _, c := range checks {
		if !c.OK && c.Package != "" && !slices.Contains(packages, c.Package) {
			packages = append(packages, c.Package)
		}
	}
	if len(packages) == 0 {
		fmt.Fprintln(a.env.Err, "no package is missing")
		return false, nil
	}
	fmt.Fprintf(a.env.Err, "installing: %s\n", strings.Join(packages, " "))
	if a.env.Install != nil {
		return true, a.env.Install(ctx, a.env.Err, packages)
	}
	if os.Geteuid() != 0 {
		return false, muster.Errorf(muster.EForbidden, "only root can install packages").Because(muster.ReasonNeedsRoot).WithHint("run 'sudo muster doctor --fix'")
	}
	for _, args := range [][]string{{"update", "-q"}, append([]string{"install", "-q", "-y", "--no-install-recommends"}, packages...)} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = a.env.Err, a.env.Err
		if err := cmd.Run(); err != nil {
			return false, muster.Errorf(muster.EUnavailable, "apt-get %s failed", args[0]).Because(muster.ReasonProgramMissing).
				WithHint("install by hand: apt-get install %s", strings.Join(packages, " ")).Wrap(err)
		}
	}
	return true, nil
}
