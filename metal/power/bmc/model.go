package bmc

import "time"

// Model is what is special about a controller's Redfish: what drivers must
// live with. The zero value keeps to the standard.
type Model struct {
	// Resets are the values it allows; nil: On, ForceOff, GracefulShutdown,
	// ForceRestart, GracefulRestart, PushPowerButton.
	Resets []string
	// HidesResets: it does not tell which.
	HidesResets bool
	// NeedsMatch: a change without If-Match is refused with 428.
	NeedsMatch bool
	// WeakTag: it shows W/"..." and accepts only the part in quotes.
	WeakTag bool
	// Future: the boot override is refused at the system and accepted at its
	// settings object, which the system names.
	Future bool
	// UEFI: the firmware starts by UEFI while nobody says otherwise.
	UEFI bool
	// RefusesMode: a change with BootSourceOverrideMode is refused.
	RefusesMode bool
	// NoSessions: basic authentication only.
	NoSessions bool
	// Rises is how long it says PoweringOn after it was switched on.
	Rises time.Duration
	// BadTypes: members that nobody needs have types that the standard does
	// not allow.
	BadTypes bool
	// Second: there is another system, which is never switched.
	Second bool
}

func (m Model) resets() []string {
	if m.Resets != nil {
		return m.Resets
	}
	return []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart", "PushPowerButton"}
}
