package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// registering are the commands by which bare machines come to a site.
func (a *app) registering() []*cobra.Command {
	return []*cobra.Command{
		a.machineAdd(), a.machineImport(), a.machineBoots(),
		a.registeredChange(wire.RegisteredApprove, "Approve discovered machines, or changed hardware", `Approves machines that were discovered or blocked. They boot once to inventory their
hardware, are cleaned, and are then available to clusters. The TPM that a machine
presented is enrolled and identifies it from then on.

For a machine that is already approved, its present hardware and TPM are accepted: the
conditions hardware-changed and tpm-changed are cleared.`),
		a.machineDiscover(),
		a.registeredChange(wire.RegisteredForbid, "Do not answer network boots of machines", `Does not answer machines when they boot from the network, because they belong to
somebody else. Retire a machine that is in service first.`),
		a.machineFenced(), a.registeredChange(wire.RegisteredForget, "Delete registered machines", `Deletes the registrations of machines, with everything that is known about them and the
passwords of their BMCs. Retire a machine that is in service first.`),
	}
}

func (a *app) machineAdd() *cobra.Command {
	var b wire.BareMachine
	management := muster.RegisteredNIC{Use: muster.UseManagement}
	var messageMACs, messageSwitches, messagePorts []string // of each interface for messages
	var power, passwordFile, keyFile, authorityFile, bootMode, boot, trust string
	var replace bool
	c := &cobra.Command{
		Use: "add NAME", Short: "Register a bare machine", Args: exactly("NAME"),
		Long: `Registers a bare machine: its MAC, power control and location. Its hardware is
inventoried when it first boots. To register many machines, use
'muster machine import'. Administrators only.

Power control is one of wol (Wake-on-LAN; the machine powers itself off),
ipmi://USER@HOST, redfish://USER@HOST, or script:///PATH, a program of the site.
Redfish also needs --power-certificate or --power-authority.`,
		Example: `  muster machine add r1-n01 --mac 52:54:00:12:34:56 --power wol --rack r1
  muster machine add r1-n02 --mac 52:54:00:12:34:57 --message-mac 52:54:00:12:35:57 \
      --power ipmi://admin@10.0.0.12 --power-password-file /root/bmc --rack r1 --position 2
  muster machine add r1-n03 --mac 52:54:00:12:34:58 --power redfish://admin@bmc3 \
      --power-password-file /root/bmc --power-authority /root/bmc-ca.pem --power-boot-mode uefi`,
	}
	f := c.Flags()
	f.StringVar(&management.MAC, "mac", "", "MAC of the management interface, which it boots from")
	f.StringSliceVar(&messageMACs, "message-mac", nil, "MAC or InfiniBand GUID of a message interface, for traffic between nodes; again for each")
	f.StringVar(&management.Switch, "switch", "", "switch of the management interface")
	f.StringVar(&management.Port, "port", "", "switch port of the management interface")
	f.StringArrayVar(&messageSwitches, "message-switch", nil, "switch of the message interface; again for each")
	f.StringArrayVar(&messagePorts, "message-port", nil, "switch port of the message interface; again for each")
	f.StringVar(&power, "power", "", "power control: wol, ipmi://USER@HOST, redfish://USER@HOST, script:///PATH")
	f.StringVar(&passwordFile, "power-password-file", "", "file with the BMC's password; - is standard input")
	f.StringVar(&keyFile, "power-key-file", "", "file with the BMC's key K_G: text, or 0x and hexadecimal digits; - is standard input (ipmi)")
	f.StringVar(&b.Power.Quirk, "power-quirk", "", "vendor-specific BMC workaround")
	f.StringVar(&b.Power.CertificateSHA256, "power-certificate", "", "SHA-256 of the BMC's TLS certificate as openssl prints it, or the certificate in PEM (redfish)")
	f.StringVar(&authorityFile, "power-authority", "", "PEM file with the CA of the BMC's TLS certificate; - is standard input (redfish)")
	f.StringVar(&bootMode, "power-boot-mode", "", "boot mode of the machine's firmware: bios or uefi (ipmi, redfish)")
	f.StringVar(&boot, "power-boot", "", "how the firmware boots from the network: pxe or http (http: redfish only; default: pxe)")
	f.StringVar(&b.Power.Interface, "power-interface", "", "server interface that sends magic packets (wol; default: the boot network's)")
	f.BoolVar(&b.Power.Proves, "power-proves", false, "accept the script's \"off\" as proof that the machine has no power (script)")
	f.StringVar(&b.Rack, "rack", "", "rack")
	f.StringVar(&b.Position, "position", "", "position in the rack")
	f.StringVar(&b.Chassis, "chassis", "", "chassis shared with other machines")
	f.StringVar(&b.Class, "class", "", "machine class (default: derived from its hardware)")
	f.StringVar(&b.Serial, "serial", "", "serial number; a machine that reports another one is rejected")
	f.StringVar(&b.UUID, "uuid", "", "system UUID; a machine that reports another one is rejected")
	f.StringVar(&trust, "min-trust", "", "minimum trust level required before the machine may join: tpm, port or network (default: the site's)")
	f.BoolVar(&b.Service, "service", false, "prefer it for separate head nodes")
	f.BoolVar(&replace, "replace", false, "overwrite an existing registration")
	for flag, values := range map[string][]string{
		"power-boot-mode": {string(muster.BootModeBIOS), string(muster.BootModeUEFI)},
		"power-boot":      {string(muster.BootPXE), string(muster.BootHTTP)},
		"power-quirk":     slices.Concat(muster.PowerQuirks(muster.PowerIPMI), muster.PowerQuirks(muster.PowerRedfish)),
	} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
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
		b.Power.CertificateSHA256 = muster.CanonicalSHA256(b.Power.CertificateSHA256)
		b.Power.BootMode, b.Power.Boot = muster.BootMode(bootMode), muster.BootProtocol(boot)
		b.Name, b.MinTrust, b.NICs = muster.MachineID(args[0]), muster.Trust(trust), []muster.RegisteredNIC{management}
		b.NICs = append(b.NICs, messageNICs(messageMACs, messageSwitches, messagePorts)...)
		if passwordFile != "" {
			if b.Password, err = a.secretLine(passwordFile, "password"); err != nil {
				return err
			}
		}
		if keyFile != "" {
			if b.PowerKey, err = a.secretLine(keyFile, "key"); err != nil {
				return err
			}
		}
		if authorityFile != "" {
			if b.Power.Authority, err = a.authority(authorityFile); err != nil {
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

// messageNICs are interfaces for messages by what was said of each, in the same order.
func messageNICs(macs, switches, ports []string) []muster.RegisteredNIC {
	list := make([]muster.RegisteredNIC, max(len(macs), len(switches), len(ports)))
	of := func(list []string, i int) string {
		if i < len(list) {
			return list[i]
		}
		return ""
	}
	for i := range list {
		list[i] = muster.RegisteredNIC{MAC: of(macs, i), Use: muster.UseMessage, Switch: of(switches, i), Port: of(ports, i)}
	}
	return list
}

// maxSecret is more than any file with a password or a key has, in bytes.
const maxSecret = 4096

// secretLine is the only line of a file: what it is, password or key, is for errors.
func (a *app) secretLine(name, what string) (string, error) {
	body, err := a.readUpTo(name, maxSecret, "a file with a "+what)
	if err != nil {
		return "", err
	}
	line, more, _ := strings.Cut(string(body), "\n")
	switch line = strings.TrimSuffix(line, "\r"); {
	case line == "":
		return "", muster.Errorf(muster.EInvalid, "%s contains no %s", name, what).Because(muster.ReasonRequired).WithHint("write it as the first line of the file")
	case strings.TrimSpace(more) != "":
		return "", muster.Errorf(muster.EInvalid, "%s is not a %s file: it has more than one line", name, what).Because(muster.ReasonBadValue).WithHint("name a file that contains the %s and nothing else", what)
	}
	return line, nil
}

// maxAuthority is more than any file with a CA's certificates has, in bytes.
const maxAuthority = 64 << 10

// authority is what a file of certificates has.
func (a *app) authority(name string) (string, error) {
	body, err := a.readUpTo(name, maxAuthority, "a PEM file with the certificate of a CA")
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(body))
	if text == "" {
		return "", muster.Errorf(muster.EInvalid, "%s contains no certificate", name).Because(muster.ReasonRequired).WithHint("name a PEM file with the certificate of a CA")
	}
	return text, nil
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

// registeredFlags are those of a list of registered machines.
type registeredFlags struct {
	on    bool
	state string
}

func (f *registeredFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.on, "registered", false, "list registered bare machines (administrators only)")
	c.Flags().StringVar(&f.state, "state", "", "with --registered: only this state: "+strings.Join(registrationStates(), ", "))
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(registrationStates(), cobra.ShellCompDirectiveNoFileComp))
}

func (f *registeredFlags) check(c *cobra.Command) error {
	if c.Flags().Changed("state") && !f.on {
		return muster.Errorf(muster.EInvalid, "--state needs --registered").Because(muster.ReasonContradiction).WithHint("add --registered, or leave --state out")
	}
	if states := registrationStates(); f.state != "" && !slices.Contains(states, f.state) {
		return muster.Errorf(muster.EInvalid, "--state %s is not a state", f.state).Because(muster.ReasonBadValue).
			WithHint("use %s", cmp.Or(suggest.Of(f.state, states), strings.Join(states, ", ")))
	}
	return nil
}

func registrationStates() []string {
	return []string{string(muster.RegistrationWaiting), string(muster.RegistrationApproved), string(muster.RegistrationBlocked)}
}

func (a *app) listRegistered(c *cobra.Command, state string) error {
	k, err := a.connect()
	if err != nil {
		return err
	}
	list, err := k.Registered(c.Context(), muster.RegistrationState(state))
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) { writeRegistered(w, list, muster.RegistrationState(state)) })
}

func writeRegistered(w io.Writer, list []muster.Registration, state muster.RegistrationState) {
	switch {
	case len(list) > 0:
	case state != "":
		fmt.Fprintf(w, "No bare machine is %s. All of them: muster machine list --registered\n", state)
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
	case len(r.EndorsementKey) > 0 && len(r.ObservedEK) > 0 && fingerprint(r.EndorsementKey) != fingerprint(r.ObservedEK):
		return "it shows another TPM than the enrolled one"
	case r.Asked.After(r.Seen):
		return "hardware inventory requested"
	case r.State == muster.RegistrationWaiting && r.Facts != nil:
		return strings.TrimSpace(r.Facts.Vendor+" "+r.Facts.Product) + " " + discoveredText(r)
	}
	return ""
}

func (a *app) registeredChange(what wire.RegisteredAction, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: string(what) + " MACHINE...", Short: short, Args: someMachines,
		Long: long + `

Give names or sets of names. Either all machines are changed or none. Administrators
only.`,
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
