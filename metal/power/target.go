package power

import (
	"context"
	"fmt"
	"strings"

	"github.com/muster-hpc/muster"
)

// Target is a machine to switch.
type Target struct {
	Machine muster.MachineID
	// Rack is told to programs of the site.
	Rack    string
	Address muster.PowerAddress
	// MACs are those of the machine's network interfaces. Wake-on-LAN wakes each.
	MACs []string
	// Secret fetches the password when it is needed; for wol the six bytes of SecureOn.
	// What it returns is used and forgotten: no struct that could be printed holds it.
	Secret func(ctx context.Context) ([]byte, error)
	// Key fetches the key K_G of an IPMI controller, empty where it has none; nil: it has
	// none. It is treated as Secret is.
	Key func(ctx context.Context) ([]byte, error)
}

// Check returns EINVALID with everything that is wrong with the target at once, or nil.
func (t Target) Check() error {
	problems := t.Address.Check()
	if t.Address.HasController() && t.Secret == nil {
		problems = append(problems, muster.Problem{
			Field: "power_password", Reason: muster.ReasonRequired, Message: "the password of its controller is missing", Hint: "give it with --power-password-file FILE; in a list of machines, with password_file or the column power_password_file",
		})
	}
	if t.Address.Kind == muster.PowerWOL && len(t.MACs) == 0 {
		problems = append(problems, muster.Problem{
			Field: "nics", Reason: muster.ReasonRequired, Message: "Wake-on-LAN needs at least one interface", Hint: "name the one that the machine boots from",
		})
	}
	for i, m := range t.MACs {
		if _, err := muster.ParseMAC(m); err != nil || t.Address.Kind == muster.PowerWOL && muster.IsGUID(m) {
			problems = append(problems, muster.Problem{
				Field: fmt.Sprintf("nics[%d].mac", i), Message: fmt.Sprintf("%.40q is not the address of a network interface", m), Hint: "write it as 52:54:00:12:34:56",
			})
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return muster.Errorf(muster.EInvalid, "the machine's power address is wrong").Because(muster.ReasonBadPowerAddress).
		WithHint("see docs/operators/power.md for what each kind needs").Listing(problems)
}

// controller names what may have only one command at a time.
func (t Target) controller() string {
	a := t.Address
	if !a.HasController() {
		return string(t.Machine)
	}
	host, port := a.Endpoint()
	return fmt.Sprintf("%s|%s|%d", a.Kind, host, port)
}

// place is where the controller is, for messages.
func (t Target) place() string {
	if t.Address.Address == "" {
		return string(t.Address.Kind)
	}
	return t.Address.Address
}

// way distinguishes the ways to a machine's power. The password is not part of it: it is
// fetched anew for each session.
type way struct {
	address muster.PowerAddress
	macs    string
}

func (t Target) way() way { return way{t.Address, strings.Join(t.MACs, " ")} }
