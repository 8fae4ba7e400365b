package redfish

// quirk is what is special about some makers' controllers. docs/operators/power.md has
// the table for operators.
type quirk struct {
	name string
	// mode: BootSourceOverrideMode is sent with each override, not only when
	// the controller shows another one. never: it is not sent at all.
	mode, neverMode bool
	// all: BootSourceOverrideEnabled is sent also when it is Once already.
	all bool
	// settings: the override goes to the settings object of the system.
	settings bool
	// basic: name and password with each request instead of a session.
	basic bool
	// noMatch: If-Match is not sent.
	noMatch bool
	// blind: the override cannot be read back.
	blind bool
	// pauseMillis between the override and the power.
	pauseMillis int
}

// quirks are those known. The source of each is named: none was tried here on
// the maker's hardware.
func quirks() []quirk {
	return []quirk{
		// The default sends what differs from what the controller shows, and
		// Enabled always: what Ironic's redfish driver had to learn for
		// Supermicro (Enabled must be there) while others refuse nothing. A
		// Mode that is sent without need makes an iDRAC 9 queue a job of its
		// BIOS and start the machine twice (metal-operator's users).
		{name: "", all: true},
		// Some controllers refuse Enabled that is set already: the case for
		// which Ironic's redfish driver leaves it out.
		{name: "enabled-once"},
		// Firmware that forgets the mode when the target changes: Ironic's
		// driver sets the mode again after each change for this reason.
		{name: "send-mode", all: true, mode: true},
		// Supermicro's X10 accepts no value of the mode (a published report of
		// Metal3's users).
		{name: "no-mode", all: true, neverMode: true},
		// AMI's MegaRAC takes changes at its settings object and answers
		// OperationSupportedInFutureStateURI at the system (Redfish-Tacklebox's
		// users). Found out by itself, too; the quirk saves the first try.
		{name: "ami-settings", all: true, settings: true},
		// Simulators and small controllers without sessions. Found out by
		// itself when the service says so.
		{name: "basic", all: true, basic: true},
		// Controllers whose entity tags change by the second, so that no
		// If-Match ever holds.
		{name: "no-match", all: true, noMatch: true},
		// The override is kept where Redfish does not show it; seen with
		// sushy-tools 2.2, which shows Continuous whatever was set.
		{name: "blind-boot", all: true, blind: true},
		// Controllers that pass the override to the firmware in the background:
		// reported as an override that works every other time on iDRAC 9.
		{name: "slow-boot", all: true, pauseMillis: 5000},
	}
}

func quirkOf(name string) quirk {
	for _, q := range quirks() {
		if q.name == name {
			return q
		}
	}
	return quirk{}
}
