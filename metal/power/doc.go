// Package power switches machines on and off: by a magic packet, IPMI, Redfish
// or a site's own program.
//
// A Driver speaks one of these languages to one machine. Control uses the
// drivers: one command at a time to a controller, with deadlines and retries,
// and with every change confirmed by reading it back. A Result says what was
// done and how it was checked, which is what a fence is made of. Whose turn it
// is in a rack is decided before (metal/bootqueue).
package power
