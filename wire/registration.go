package wire

import "github.com/muster-hpc/muster"

// BareMachine is what an administrator says of a bare machine. Its schema bounds nothing:
// what is wrong with a machine is reported by muster.Registration.Check, in words and with
// what else is wrong.
type BareMachine struct {
	Name     muster.MachineID       `json:"name" doc:"What the machine is called: small letters, digits, dots, dashes"`
	NICs     []muster.RegisteredNIC `json:"nics" doc:"Its network interfaces; one is for management, from which it boots"`
	Power    muster.PowerAddress    `json:"power" doc:"How it is switched"`
	Password string                 `json:"power_password,omitempty" writeOnly:"true" doc:"Of its management controller. It is kept, and never shown again; left out, that which is kept stays"`
	PowerKey string                 `json:"power_key,omitempty" writeOnly:"true" doc:"The key K_G of its IPMI controller: text of at most 20 bytes, or 0x and hexadecimal digits; 0x00 is none. Kept as the password is"`
	Class    string                 `json:"class,omitempty" doc:"Machines of one kind; left out, made from what the machine finds in itself"`
	Rack     string                 `json:"rack,omitempty"`
	Position string                 `json:"position,omitempty" doc:"In the rack"`
	Chassis  string                 `json:"chassis,omitempty" doc:"That it shares with others"`
	Service  bool                   `json:"service,omitempty" doc:"Preferred for separate heads"`
	Serial   string                 `json:"serial,omitempty" doc:"As SMBIOS has it: a machine that says another is not this one"`
	UUID     string                 `json:"uuid,omitempty" doc:"As SMBIOS has it"`
	MinTrust muster.Trust           `json:"min_trust,omitempty" doc:"The least that must vouch for it: tpm, port or network; left out, what the site demands"`
}

// Registration is the machine as it is kept, without its password.
func (b BareMachine) Registration() muster.Registration {
	b.Power.CertificateSHA256 = muster.CanonicalSHA256(b.Power.CertificateSHA256)
	return muster.Registration{
		ID: b.Name, NICs: b.NICs, Power: b.Power, Class: b.Class, Rack: b.Rack, Position: b.Position, Chassis: b.Chassis,
		Service: b.Service, Serial: b.Serial, UUID: b.UUID, MinTrust: b.MinTrust,
	}
}

// RegisterRequest registers bare machines: all of them, or none.
type RegisterRequest struct {
	Machines []BareMachine `json:"machines" minItems:"1" maxItems:"1000" doc:"At most a thousand at once"`
	Replace  bool          `json:"replace,omitempty" doc:"Change machines that are registered already"`
	DryRun   bool          `json:"dry_run,omitempty" doc:"Only say what would be done"`
}

// RegisteredChange reports what became of one machine.
type RegisteredChange struct {
	Name muster.MachineID `json:"name"`
	What string           `json:"what" doc:"added, changed, unchanged, approved, accepted, blocked, deleted, asked, confirmed-off"`
	Text string           `json:"text,omitempty" doc:"What else is to be known, in words"`
}

// RegisteredChanges is the reply to a change of registrations.
type RegisteredChanges struct {
	Machines []RegisteredChange `json:"machines"`
}

// RegisteredQuery narrows a listing of bare machines.
type RegisteredQuery struct {
	State muster.RegistrationState // only those in this state
	Page
}

// RegisteredList lists bare machines.
type RegisteredList struct {
	Machines []muster.Registration `json:"machines"`
	More
}

// RegisteredAction is what an administrator does with registered machines.
type RegisteredAction string

// The actions.
const (
	// RegisteredApprove makes it a machine of the site; of one that is, it accepts what
	// it is made of now, and its TPM.
	RegisteredApprove RegisteredAction = "approve"
	RegisteredForbid  RegisteredAction = "block"  // its network boots are not answered
	RegisteredForget  RegisteredAction = "delete" // with everything that is known of it
	// RegisteredDiscover boots machines once to inventory their hardware.
	RegisteredDiscover RegisteredAction = "discover"
	// RegisteredFenced: an administrator confirms that it has no power, or no cables.
	RegisteredFenced RegisteredAction = "confirm-off"
)
