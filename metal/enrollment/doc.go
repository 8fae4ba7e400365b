// Package enrollment reads the rules by which a site takes in bare machines that come by
// themselves, and says which of them is that of a machine.
//
// A rule matches on what a machine says of itself before anything proves it: whoever
// stands on the wire can say the same. Only the switch and the port, where a trusted
// relay tells them, are more than a claim; [Decision] says which it was.
package enrollment
