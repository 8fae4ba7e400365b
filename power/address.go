package power

import (
	"context"

	"github.com/muster-hpc/muster"
)

// Kind is a way to switch a machine.
type Kind string

// Kinds.
const (
	KindWOL     Kind = "wol"     // Wake-on-LAN: on only
	KindIPMI    Kind = "ipmi"    // IPMI 2.0 over a network
	KindRedfish Kind = "redfish" // Redfish over HTTPS
	KindScript  Kind = "script"  // a program of the site
)

// Secret fetches a password when it is needed. What it returns is used and
// forgotten: no struct that could be printed holds it.
type Secret func(ctx context.Context) ([]byte, error)

// Address says how a machine is switched. Check tells what is wrong with it.
type Address struct {
	Kind Kind `json:"kind"`
	// Host is the controller's name or address; for wol the address that
	// packets are sent to, 255.255.255.255 if empty.
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"` // 0: the kind's own
	User string `json:"user,omitempty"`
	// Secret fetches the password; for wol the six bytes of SecureOn.
	Secret Secret `json:"-"`
	// MACs are those of the machine's network interfaces. Wake-on-LAN wakes
	// each.
	MACs []string `json:"macs,omitempty"`
	// Quirk names what is special about the controller: see docs/power.md.
	Quirk string `json:"quirk,omitempty"`
	// UEFI tells that the firmware boots by UEFI and not as a BIOS.
	UEFI bool `json:"uefi,omitempty"`
	// Boot is how the firmware gets its first file: pxe, or http (redfish
	// only). Empty is pxe.
	Boot string `json:"boot,omitempty"`

	// Interface sends magic packets as raw Ethernet (wol).
	Interface string `json:"interface,omitempty"`
	// Certificate is "sha256:" and the digest of the controller's
	// certificate: no other is accepted (redfish).
	Certificate string `json:"certificate,omitempty"`
	// Authority is in PEM and signed the controller's certificate, where
	// Certificate is empty (redfish).
	Authority string `json:"authority,omitempty"`
	// System is the path of the machine where a controller has several
	// (redfish): /redfish/v1/Systems/1.
	System string `json:"system,omitempty"`
	// Program is the absolute path of the site's program (script).
	Program string `json:"program,omitempty"`
	// Proves tells that what the site's program calls off is without power
	// for certain: the site answers for it (script).
	Proves bool `json:"proves,omitempty"`
}

// Target is a machine to switch.
type Target struct {
	Machine muster.MachineID
	// Rack is told to programs of the site.
	Rack    string
	Address Address
}

// controller names what may have only one command at a time.
func (t Target) controller() string {
	a := t.Address
	if a.Host == "" || a.Kind == KindWOL {
		return string(t.Machine)
	}
	return string(a.Kind) + "|" + a.Host + "|" + itoa(a.Port)
}
