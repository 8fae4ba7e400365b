package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// Limits of a request that registers machines.
const (
	partOf      = 1000      // machines
	partBytes   = 960 << 10 // a request has at most 1 MiB
	machineSize = 700       // bytes of a machine without its authority
)

// parts are machines as they go into requests.
func parts(machines []wire.BareMachine) (list [][]wire.BareMachine) {
	from, bytes := 0, 0
	for i, m := range machines {
		n := machineSize + len(m.Power.Authority) + strings.Count(m.Power.Authority, "\n")
		if i-from == partOf || i > from && bytes+n > partBytes {
			list, from, bytes = append(list, machines[from:i]), i, 0
		}
		bytes += n
	}
	return append(list, machines[from:])
}

func (a *app) machineImport() *cobra.Command {
	var replace, dry bool
	c := &cobra.Command{
		Use: "import FILE", Short: "Register bare machines from a file", Args: exactly("FILE"),
		Long: `Registers the bare machines listed in a file: YAML, or a table if its name ends in .csv,
.tsv or .txt. Either all machines are registered or none; all errors are reported at once,
with line and column. Machines that are already registered like this are left unchanged; a new BMC
password is stored without --replace.

A table is what spreadsheets save: values separated by commas, semicolons or tabs, in any
usual encoding. Empty rows and columns are ignored, and names of columns may be written
like "MAC address", "Serial No." or "BMC user". It begins with a header row, in any order:
name, mac, power, and optionally message_mac, power_user, power_password, power_password_file,
power_key, power_key_file,
power_quirk, power_certificate_sha256, power_authority, power_authority_file, power_boot_mode,
power_boot, power_interface, power_proves, rack, position, chassis, class, service,
serial, uuid, min_trust, switch, port, message_switch, message_port.

YAML:
  machines:
  - name: r1-n01
    nics:
    - {mac: 52:54:00:12:34:56, use: management, switch: sw1, port: 1}
    - {mac: 52:54:00:12:35:56, use: message, switch: sw2, port: 1}
    power: {kind: ipmi, address: 10.0.0.11, user: admin, password_file: /root/bmc}
    rack: r1
  - {name: r1-n02, mac: 52:54:00:12:34:57, power: wol, rack: r1}
  - name: r1-n03
    mac: 52:54:00:12:34:58
    power: {kind: redfish, address: bmc3, user: admin, password_file: /root/bmc,
      authority_file: /root/bmc-ca.pem, boot_mode: uefi, boot: http}

Administrators only.`,
		Example: `  muster machine import rack1.csv --dry-run
  muster machine import rack1.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			machines, err := a.inventory(args[0])
			if err != nil {
				return a.withServers(c, err, machines, replace)
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := register(c, k, machines, wire.RegisterRequest{Replace: replace, DryRun: dry})
			if err != nil {
				return err
			}
			if err := a.printRegistered(list); err != nil {
				return err
			}
			if dry && a.output == "" {
				fmt.Fprintln(a.env.Out, "Dry run: nothing was changed.")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "overwrite existing registrations")
	c.Flags().BoolVar(&dry, "dry-run", false, "show what would change without changing anything")
	return c
}

// register registers machines of a file. Where they are more than a request holds, all of
// them are tried before the first is registered, and what is wrong with any is told at once.
func register(c *cobra.Command, k *client.Client, listed []listedMachine, r wire.RegisterRequest) ([]wire.RegisteredChange, error) {
	machines := make([]wire.BareMachine, len(listed))
	for i, m := range listed {
		machines[i] = m.BareMachine
	}
	passes := []bool{r.DryRun}
	requests := parts(machines)
	if len(requests) > 1 && !r.DryRun {
		passes = []bool{true, false}
	}
	var out []wire.RegisteredChange
	for _, r.DryRun = range passes {
		out = nil
		var wrong *muster.Error
		done := 0
		for _, r.Machines = range requests {
			list, err := k.Register(c.Context(), r)
			if err != nil {
				placed, ok := placedIn(err, listed[done:done+len(r.Machines)])
				if !ok {
					return nil, err
				}
				if wrong != nil {
					placed = placed.Because(muster.ReasonHasProblems).Listing(append(wrong.Problems, placed.Problems...))
				}
				wrong = placed
			}
			out, done = append(out, list...), done+len(r.Machines)
		}
		if wrong != nil {
			return nil, wrong
		}
	}
	return out, nil
}

// withServers adds to what is wrong with a file what the server knows besides, so that all
// of it is told at once. Where no server can be asked, what the file says is enough.
func (a *app) withServers(c *cobra.Command, err error, listed []listedMachine, replace bool) error {
	var e *muster.Error
	if !errors.As(err, &e) || len(e.Problems) == 0 || len(listed) == 0 {
		return err
	}
	k, cannot := a.connect()
	if cannot != nil {
		return err
	}
	var more *muster.Error
	if _, also := register(c, k, listed, wire.RegisterRequest{Replace: replace, DryRun: true}); !errors.As(also, &more) {
		return err
	}
	told := slices.Clone(e.Problems)
	for _, p := range more.Problems {
		// A file that could not be read was not sent: that it is missing there is no news.
		lacks := strings.Replace(p.Field, "power.certificate_sha256", "power.authority", 1)
		if p.Place != "" && !slices.ContainsFunc(e.Problems, func(q muster.Problem) bool { return q.Field == p.Field || q.Field == lacks+"_file" }) {
			told = append(told, p)
		}
	}
	if len(told) == len(e.Problems) {
		return err
	}
	all := e.Because(muster.ReasonHasProblems).Listing(told)
	all.Message += fmt.Sprintf(", and %d that only the server sees", len(told)-len(e.Problems))
	return all
}

// ofMachine is a field of one of the machines of a request.
var ofMachine = regexp.MustCompile(`^machines\[(\d+)\]\.(.+)$`)

// placedIn is what a server found wrong with machines of a file, where it stands there; false
// for an error of another kind.
func placedIn(err error, listed []listedMachine) (*muster.Error, bool) {
	var e *muster.Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		return nil, false
	}
	problems := make([]muster.Problem, 0, len(e.Problems))
	for _, p := range e.Problems {
		m := ofMachine.FindStringSubmatch(p.Field)
		if m == nil {
			return nil, false
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || n >= len(listed) {
			return nil, false
		}
		of := listed[n]
		field := strings.Replace(m[2], "power_password", "power.password", 1) // as files have it
		if of.entry.Told(field) {                                             // the file was sent without it
			continue
		}
		p.Place, p.Field = of.entry.At(field), of.entry.Called+"."+field
		p.Message = strings.TrimPrefix(p.Message, string(of.Name)+": ")
		problems = append(problems, p)
	}
	return e.Listing(problems), true
}
