package ipmi

// quirk is what is special about some makers' controllers. docs/operators/power.md has
// the table for operators.
type quirk struct {
	name string
	// suite is the cipher suite to begin with; 0: the best first.
	suite byte
	// administrator: an operator's privilege does not suffice.
	administrator bool
	// tool is the OEM type given to ipmitool, which speaks instead of us.
	tool string
	// old: only IPMI 1.5, spoken by ipmitool. Packets are not encrypted.
	old bool
	// blind: the boot override cannot be read back.
	blind bool
	// invalid: the boot flags are shown without the bit that says that they
	// hold.
	invalid bool
	// pause in milliseconds between the boot override and the power.
	pauseMillis int
}

// quirks are those known. The source of each is named: none was tried here on
// the maker's hardware.
func quirks() []quirk {
	return []quirk{
		{name: ""},
		// A controller that drops requests for a suite that it does not know
		// instead of refusing them costs seconds per session. The
		// specification (13.17) wants a refusal.
		{name: "suite3", suite: 3},
		// The specification (appendix G) gives Chassis Control and Set System
		// Boot Options to operators; sites may set a channel's least privilege
		// higher.
		{name: "administrator", administrator: true},
		// ipmitool's manual lists intelplus for Intel's IPMI 2.0: its key
		// exchange differs from the specification.
		{name: "intelplus", tool: "intelplus"},
		// Controllers from before RMCP+. ipmitool speaks their lan interface.
		{name: "ipmi15", old: true},
		// Simple controllers take the boot flags and do not show them: the
		// specification allows parameters that can only be written.
		{name: "blind-boot", blind: true},
		// Seen with OpenIPMI's simulator 2.0.33: it keeps the device and shows no
		// valid bit. Where the bit is missing elsewhere, the flags ran out.
		{name: "no-valid-bit", invalid: true},
		// Controllers that carry boot flags over to the firmware in the
		// background start the machine with the old ones when switched on at
		// once: the case that RackHD's and Ironic's users describe as an
		// override that works every other time.
		{name: "slow-boot", pauseMillis: 3000},
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
