// Package units has the files with which a node's systemd runs the agent: where
// the program is, its unit, the target that a node boots to, the limits that its
// programs have, and where the journal goes. Slices of a host and whole machines
// share them; [Kind] says in what they differ and why.
package units
