package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/client"
	"github.com/muster-hpc/muster/inventory"
	"github.com/muster-hpc/muster/nearest"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// registering are the commands by which bare machines come to a site.
func (a *app) registering() []*cobra.Command {
	return []*cobra.Command{
		a.machineAdd(), a.machineImport(), a.machineRegistered(), a.machineBoots(),
		a.registeredChange(wire.RegisteredApprove, "Make registered machines machines of the site", `Makes machines that came by themselves, or were forbidden, machines of the site. They
are booted once to see what they are made of, cleaned, and then given to clusters. The
TPM that a machine showed is enrolled: it vouches for the machine from then on.

Of a machine of the site, what it is made of now is accepted, and the TPM that it
shows now: the conditions hardware-changed and tpm-changed go.`),
		a.machineDiscover(),
		a.registeredChange(wire.RegisteredForbid, "Answer nothing to machines", `Answers nothing to machines when they try to boot over the network: they are
somebody else's. A machine of the site is retired first.`),
		a.machineFenced(), a.registeredChange(wire.RegisteredForget, "Forget registered machines", `Forgets machines with what is known of them and the passwords of their controllers, as
if they had never been there. A machine of the site is retired first.`),
	}
}

func (a *app) machineAdd() *cobra.Command {
	var b wire.BareMachine
	management, message := muster.RegisteredNIC{Use: muster.UseManagement}, muster.RegisteredNIC{Use: muster.UseMessage}
	var power, passwordFile, trust string
	var replace bool
	c := &cobra.Command{
		Use: "add NAME", Short: "Register a bare machine", Args: exactly("NAME"),
		Long: `Registers a bare machine: how it is recognised on the network, how it is switched,
where it stands. What it is made of it tells itself when it boots for the first time.
Many machines are registered with muster machine import. Only administrators may.

How it is switched is one word: wol (a magic packet wakes it; it switches itself off),
ipmi://USER@HOST, redfish://USER@HOST, or script:///PATH, a program of the site.`,
		Example: `  muster machine add r1-n01 --mac 52:54:00:12:34:56 --power wol --rack r1
  muster machine add r1-n02 --mac 52:54:00:12:34:57 --message-mac 52:54:00:12:35:57 \
      --power ipmi://admin@10.0.0.12 --power-password-file /root/bmc --rack r1 --position 2`,
	}
	f := c.Flags()
	f.StringVar(&management.MAC, "mac", "", "address of the interface that it boots from and is managed by")
	f.StringVar(&message.MAC, "message-mac", "", "address of the interface for the messages of clusters")
	f.StringVar(&management.Switch, "switch", "", "switch that the first one is plugged into")
	f.StringVar(&management.Port, "port", "", "and its port")
	f.StringVar(&message.Switch, "message-switch", "", "switch that the second one is plugged into")
	f.StringVar(&message.Port, "message-port", "", "and its port")
	f.StringVar(&power, "power", "", "how it is switched: wol, ipmi://USER@HOST, redfish://USER@HOST, script:///PATH")
	f.StringVar(&passwordFile, "power-password-file", "", "file with the password of its controller; - for standard input")
	f.StringVar(&b.Power.Quirk, "power-quirk", "", "maker whose controllers need other manners")
	f.StringVar(&b.Power.CertificateSHA256, "power-certificate", "", "SHA-256 of its controller's TLS certificate")
	f.StringVar(&b.Rack, "rack", "", "rack that it stands in")
	f.StringVar(&b.Position, "position", "", "where in the rack")
	f.StringVar(&b.Chassis, "chassis", "", "chassis that it shares with others")
	f.StringVar(&b.Class, "class", "", "class of machines with the same hardware (default: made from what it finds in itself)")
	f.StringVar(&b.Serial, "serial", "", "serial number: a machine that says another is not this one")
	f.StringVar(&b.UUID, "uuid", "", "UUID of its mainboard, likewise")
	f.StringVar(&trust, "least-trust", "", "least that must vouch for it: tpm, port, network (default: what the site demands)")
	f.BoolVar(&b.Service, "service", false, "prefer it for separate heads")
	f.BoolVar(&replace, "replace", false, "change it if it is registered already")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := a.checkOutput(); err != nil {
			return err
		}
		for _, need := range []string{"mac", "power"} {
			if !f.Changed(need) {
				return usage(c, "--%s is missing", need)
			}
		}
		p, err := muster.ParsePowerAddress(power)
		if err != nil {
			return err
		}
		b.Power.Kind, b.Power.Address, b.Power.User, b.Power.System = p.Kind, p.Address, p.User, p.System
		b.Name, b.LeastTrust, b.NICs = muster.MachineID(args[0]), muster.Trust(trust), []muster.RegisteredNIC{management}
		if message != (muster.RegisteredNIC{Use: muster.UseMessage}) {
			b.NICs = append(b.NICs, message)
		}
		if passwordFile != "" {
			if b.Password, err = a.password(passwordFile); err != nil {
				return err
			}
		}
		k, err := a.connect()
		if err != nil {
			return err
		}
		list, err := k.Register(c.Context(), wire.RegisterRequest{Machines: []wire.BareMachine{b}, Replace: replace})
		if err != nil {
			return err
		}
		return a.printRegistered(list)
	}
	return c
}

// maxPassword is more than any file with a password has, in bytes.
const maxPassword = 4096

// password is the only line of a file.
func (a *app) password(name string) (string, error) {
	body, err := a.readUpTo(name, maxPassword, "a file with a password")
	if err != nil {
		return "", err
	}
	line, more, _ := strings.Cut(string(body), "\n")
	switch line = strings.TrimSuffix(line, "\r"); {
	case line == "":
		return "", muster.Errorf(muster.EInvalid, "there is no password in %s", name).Because(muster.ReasonRequired).WithHint("write it as the first line of the file")
	case strings.TrimSpace(more) != "":
		return "", muster.Errorf(muster.EInvalid, "%s has more than one line, so it is no file of a password", name).Because(muster.ReasonBadValue).WithHint("check which file was given: it has the password, and nothing else")
	}
	return line, nil
}

// partOf is how many machines go into one request.
const partOf = 1000

func (a *app) machineImport() *cobra.Command {
	var replace, dry bool
	c := &cobra.Command{
		Use: "import FILE", Short: "Register the bare machines of a file", Args: exactly("FILE"),
		Long: `Registers the bare machines that a file lists: YAML, or CSV if its name ends with
.csv. All of them are registered, or none; everything that is wrong is told at once,
with its line. Machines that are registered like this already are left alone; another
password of a controller is taken over, and needs no --replace.

CSV begins with a row of names of columns, in any order: name, mac and power, and
where wanted message-mac, power-user, power-password, power-password-file,
power-quirk, power-certificate-sha256, rack, position, chassis, class, service,
serial, uuid, least-trust, switch, port, message-switch, message-port.

YAML:
  machines:
  - name: r1-n01
    nics:
    - {mac: 52:54:00:12:34:56, use: management, switch: sw1, port: 1}
    - {mac: 52:54:00:12:35:56, use: message, switch: sw2, port: 1}
    power: {kind: ipmi, address: 10.0.0.11, user: admin, password-file: /root/bmc}
    rack: r1
  - {name: r1-n02, mac: 52:54:00:12:34:57, power: wol, rack: r1}

Only administrators may.`,
		Example: `  muster machine import rack1.csv --dry-run
  muster machine import rack1.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			machines, err := a.inventory(args[0])
			if err != nil {
				return err
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
				fmt.Fprintln(a.env.Out, "Nothing was changed: that is what would be done.")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "change machines that are registered already")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would be done")
	return c
}

// register registers machines. Where they are more than a request holds, all of them
// are tried before the first is registered.
func register(c *cobra.Command, k *client.Client, machines []wire.BareMachine, r wire.RegisterRequest) ([]wire.RegisteredChange, error) {
	passes := []bool{r.DryRun}
	if len(machines) > partOf && !r.DryRun {
		passes = []bool{true, false}
	}
	var out []wire.RegisteredChange
	for _, r.DryRun = range passes {
		out = nil
		for from := 0; from < len(machines); from += partOf {
			r.Machines = machines[from:min(from+partOf, len(machines))]
			list, err := k.Register(c.Context(), r)
			if err != nil {
				return nil, err
			}
			out = append(out, list...)
		}
	}
	return out, nil
}

// inventory reads a file of machines, and the files of passwords that it names.
func (a *app) inventory(name string) ([]wire.BareMachine, error) {
	body, err := a.readUpTo(name, inventory.MaxBytes, "a list of machines")
	if err != nil {
		return nil, err
	}
	entries, err := inventory.Decode(name, body)
	var wrong *muster.Error // its files of passwords are looked at all the same: everything is told at once
	if err != nil && (!errors.As(err, &wrong) || len(wrong.Problems) == 0) {
		return nil, err
	}
	var problems []muster.Problem
	machines := make([]wire.BareMachine, len(entries))
	for i, e := range entries {
		m := e.Machine
		machines[i] = wire.BareMachine{
			Name: m.ID, NICs: m.NICs, Power: m.Power, Password: string(e.Password), Class: m.Class, Rack: m.Rack, Position: m.Position,
			Chassis: m.Chassis, Service: m.Service, Serial: m.Serial, UUID: m.UUID, LeastTrust: m.LeastTrust,
		}
		if e.PasswordFile == "" {
			continue
		}
		if machines[i].Password, err = a.password(e.PasswordFile); err != nil {
			p := muster.Problem{Field: string(m.ID) + ".power.password-file", Place: e.Place, Message: err.Error()}
			var known *muster.Error
			if errors.As(err, &known) {
				p.Message, p.Hint = known.Message, known.Hint
			}
			problems = append(problems, p)
		}
	}
	if wrong != nil {
		if len(problems) > 0 {
			wrong.Message += ", and passwords cannot be read"
		}
		wrong.Problems = append(wrong.Problems, problems...)
		return nil, wrong
	}
	if len(problems) > 0 {
		e := muster.Errorf(muster.EInvalid, "%s cannot be taken: passwords cannot be read", name).Because(muster.ReasonHasProblems).WithHint("nothing was changed: put them right and read it again")
		return nil, e.Listing(problems)
	}
	return machines, nil
}

func (a *app) printRegistered(list []wire.RegisteredChange) error {
	return a.print(list, func(w io.Writer) {
		t := newTable("MACHINE", "WHAT", "NOTE")
		for _, m := range list {
			t.row(string(m.Name), m.What, m.Text)
		}
		t.write(w)
	})
}

func (a *app) machineRegistered() *cobra.Command {
	var state string
	states := []string{string(muster.RegistrationWaiting), string(muster.RegistrationApproved), string(muster.RegistrationForbidden)}
	c := &cobra.Command{
		Use: "registered", Short: "List the bare machines that the site knows", Args: exactly(),
		Long: `Lists the bare machines that the site knows: how they are recognised and switched, where
they stand, and when they booted last. Those that wait came by themselves: approve
them, give them a name of your own with muster machine add, or forbid them. Only
administrators see them.`,
		Example: `  muster machine registered
  muster machine registered --state waiting`,
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if state != "" && !slices.Contains(states, state) {
				return muster.Errorf(muster.EInvalid, "--state %s is not a state", state).Because(muster.ReasonBadValue).
					WithHint("use %s", cmp.Or(nearest.Of(state, states), strings.Join(states, ", ")))
			}
			list, err := k.Registered(c.Context(), muster.RegistrationState(state))
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) { writeRegistered(w, list, muster.RegistrationState(state)) })
		},
	}
	c.Flags().StringVar(&state, "state", "", "only those that are waiting, approved or forbidden")
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func writeRegistered(w io.Writer, list []muster.Registration, state muster.RegistrationState) {
	switch {
	case len(list) > 0:
	case state != "":
		fmt.Fprintf(w, "No bare machine is %s. All of them: muster machine registered\n", state)
		return
	default:
		fmt.Fprintln(w, "No bare machine is registered. Add one: muster machine add --help")
		return
	}
	t := newTable("MACHINE", "STATE", "MAC", "MESSAGE MAC", "POWER", "RACK", "POSITION", "CLASS", "BOOTED", "TRUST", "NOTE")
	for _, r := range list {
		macs := map[string][]string{}
		for _, n := range r.NICs {
			macs[n.Use] = append(macs[n.Use], n.MAC)
		}
		booted := "never"
		if !r.Seen.IsZero() {
			booted = r.Seen.Local().Format("2006-01-02 15:04")
		}
		t.row(string(r.ID), string(r.State), strings.Join(macs[muster.UseManagement], " "), strings.Join(macs[muster.UseMessage], " "),
			r.Power.String(), r.Rack, r.Position, r.Class, booted, string(r.Trust), registeredNote(r))
	}
	t.write(w)
}

// registeredNote is what an administrator should look at.
func registeredNote(r muster.Registration) string {
	switch {
	case r.Remark != "":
		return r.Remark
	case len(r.Changed) > 0:
		return "changed: " + strings.Join(r.Changed, "; ")
	case len(r.EndorsementKey) > 0 && len(r.ShownKey) > 0 && fingerprint(r.EndorsementKey) != fingerprint(r.ShownKey):
		return "it shows another TPM than the enrolled one"
	case r.Asked.After(r.Seen):
		return "asked to tell what it is made of"
	case r.State == muster.RegistrationWaiting && r.Facts != nil:
		return strings.TrimSpace(r.Facts.Maker+" "+r.Facts.Product) + " " + discoveredText(r)
	}
	return ""
}

func (a *app) registeredChange(what wire.RegisteredAction, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: string(what) + " MACHINE...", Short: short, Args: someMachines,
		Long: long + `

Machines are named one by one or as a set. All of them are changed, or none. Only
administrators may.`,
		Example: fmt.Sprintf(`  muster machine %s r1-n01
  muster machine %s r1-n[01-16]`, string(what), string(what)),
		ValidArgsFunction: a.completeRegistered,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.ChangeRegistered(c.Context(), strings.Join(args, ","), what)
			if err != nil {
				return err
			}
			return a.printRegistered(list)
		},
	}
}

// completeRegistered completes names of bare machines.
func (a *app) completeRegistered(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	k, err := a.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := k.Registered(c.Context(), "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = string(r.ID)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
